// What `selvaged --check` finds beyond what the file itself says.
#include "server/start_check.h"

#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace selvage::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class StartCheck : public testing::Test {
 protected:
  StartCheck() {
    for (const char* name : {"export", "state", "damaged"}) {
      std::filesystem::create_directory(folder_ / name);
    }
    tests::write_file(folder_ / "damaged/handle.key", "short");
    tests::write_file(folder_ / "file", "");
  }
  /// The text is on lines 2 and later; empty: nothing is refused.
  std::string refusal(const std::string& text, const char* state = "state") {
    const auto settings = parse_config_text("state_dir: '" + folder_ / state + "'\n" + text +
                                                "export { path: '" + folder_ / "export" + "' }\n",
                                            "conf");
    if (!settings) return settings.error().message;
    const auto config = combine(*settings, {});
    if (!config) return config.error().message;
    const auto refused = check_start(*config);
    return refused ? refused->message : "";
  }
  std::string path(const std::string& name) const { return "'" + folder_ / name + "'"; }

  storage::TempDir folder_;
};

TEST_F(StartCheck, ControlSocketAndGroup) {
  EXPECT_EQ(refusal("control_socket: " + path("s") + " control_group: 'root'\n"), "");
  EXPECT_EQ(refusal("control_group: 'no such group'\n"),
            "conf:2: there is no group 'no such group'");
  EXPECT_THAT(refusal("\ncontrol_socket: '/" + std::string(120, 'x') + "'\n"),
              AllOf(StartsWith("conf:3: control socket /xxx"), HasSubstr("File name too long")));
  EXPECT_THAT(refusal("control_socket: " + path("gone/s") + "\n"),
              AllOf(StartsWith("conf:2: "), HasSubstr("No such file or directory")));
  EXPECT_THAT(refusal("control_socket: " + path("file/s") + "\n"),
              AllOf(StartsWith("conf:2: "), HasSubstr("Not a directory")));
  EXPECT_THAT(refusal("control_socket: " + path("file") + "\n"),
              AllOf(StartsWith("conf:2: "), HasSubstr("File exists")));
}

TEST_F(StartCheck, Addresses) {
  EXPECT_EQ(refusal("listen: '127.0.0.1'\nport: 0\nmetrics: '127.0.0.1:0'\n"), "");
  EXPECT_EQ(refusal("listen: '192.0.2.77'\n"),
            "conf:2: 192.0.2.77: Cannot assign requested address");
  EXPECT_EQ(refusal("listen: '127.0.0.1'\nlisten: '127.0.0.1'\n"),
            "conf:2: 127.0.0.1: given twice");
  EXPECT_THAT(refusal("\nmetrics: '192.0.2.77:1'\n"), StartsWith("conf:3: 192.0.2.77:1: "));
  EXPECT_EQ(refusal("port: 2051\nmetrics: '127.0.0.1:2051'\n"),
            "conf:3: 127.0.0.1:2051: the port is that of NFS");
}

TEST_F(StartCheck, StateDirectoryAndKey) {
  EXPECT_THAT(refusal("", "file"),
              AllOf(StartsWith("conf:1: state directory"), HasSubstr("Not a directory")));
  EXPECT_THAT(refusal("", "damaged"),
              AllOf(StartsWith("conf:1: "), HasSubstr("handle.key: Invalid argument")));
  EXPECT_EQ(refusal("", "x/y/z"), "");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x")) << "a check makes nothing";
  EXPECT_FALSE(std::filesystem::exists(folder_ / "state/handle.key"));
}

TEST_F(StartCheck, MemoryForTheExports) {
  std::string many = "memory_limit: 268435456\n";
  for (int i = 0; i < 12; ++i) {
    const std::string name = "m" + std::to_string(i);
    std::filesystem::create_directory(folder_ / name);
    many += "export { path: " + path(name) + " }\n";
  }
  EXPECT_THAT(refusal(many), AllOf(StartsWith("conf:"),
                                   HasSubstr("memory_limit is too small for so many exports")));
}

}  // namespace
}  // namespace selvage::server
