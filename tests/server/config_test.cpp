#include "server/config.h"

#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace selvage::server {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(ConfigFile, EverySetting) {
  const auto parsed = parse_config_text(R"(
    # a comment
    listen: "127.0.0.1"
    listen: "::1"
    port: 0
    state_dir: "/var/lib/other"
    threads: 3
    export {
      path: "/srv//data/./x/"
      access: ro
      clients: "10.0.0.0/8"
      clients: "2001:db8::1"
      squash: all
      anonuid: 1001
      anongid: 1002
      read: dontcache
      write: buffered
      edges: dontcache
      min_middle: 4
      stable_floor: data_sync
      sync: false
    }
    export { path: "/" squash: none stable_floor: file_sync edges: buffered }
  )",
                                        "f");
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_THAT(parsed->listen, SizeIs(2));
  EXPECT_EQ(parsed->listen[0].to_string(), "127.0.0.1");
  EXPECT_EQ(parsed->listen[1].to_string(), "::1");
  EXPECT_EQ(parsed->port, 0);
  EXPECT_EQ(parsed->state_dir, "/var/lib/other");
  EXPECT_EQ(parsed->threads, 3U);
  ASSERT_THAT(parsed->exports, SizeIs(2));
  const auto& one = parsed->exports[0];
  EXPECT_EQ(one.path, "/srv/data/x");
  ASSERT_THAT(one.rules, SizeIs(2));
  EXPECT_EQ(one.rules[0].client.text(), "2001:db8::1");  // A host before a network.
  EXPECT_EQ(one.rules[1].client.text(), "10.0.0.0/8");
  for (const auto& rule : one.rules) {
    EXPECT_TRUE(rule.read_only);
    EXPECT_FALSE(rule.secure);
    EXPECT_EQ(rule.squash, Squash::all);
    EXPECT_EQ(rule.anonuid, 1001U);
    EXPECT_EQ(rule.anongid, 1002U);
  }
  EXPECT_EQ(one.storage.read, storage::IoMode::dontcache);
  EXPECT_EQ(one.storage.write, storage::IoMode::buffered);
  EXPECT_EQ(one.storage.edges, storage::EdgeMode::dontcache);
  EXPECT_EQ(one.storage.min_middle_pages, 4U);
  EXPECT_EQ(one.storage.stable_floor, storage::Stability::data_sync);
  EXPECT_FALSE(one.storage.sync);
  EXPECT_EQ(one.origin, "f:9");
  const auto& root = parsed->exports[1];
  EXPECT_EQ(root.path, "/");
  EXPECT_EQ(root.rules.at(0).squash, Squash::none);
  EXPECT_EQ(root.storage.stable_floor, storage::Stability::file_sync);
  EXPECT_EQ(root.storage.edges, storage::EdgeMode::buffered);
}

TEST(ConfigFile, SampleIsRightAndItsCommentsToo) {
  const std::string sample = tests::read_file(SELVAGE_SOURCE_DIR "/deploy/selvage.conf.example");
  const auto plain = parse_config_text(sample, "sample");
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->exports.at(0).path, "/srv/data");

  // Every commented default, switched on, is a setting that parses.
  std::string all;
  std::istringstream lines(sample);
  for (std::string line; std::getline(lines, line);) {
    const auto hash = line.find("# ");
    const auto colon = line.find(": ");
    const bool setting = hash != std::string::npos && colon != std::string::npos &&
                         line.find(' ', hash + 2) == colon + 1;
    all += (setting ? line.substr(hash + 2) : line) + "\n";
  }
  const auto full = parse_config_text(all, "sample");
  ASSERT_TRUE(full) << full.error().message << all;
  EXPECT_EQ(full->port, 2049);
  EXPECT_EQ(full->exports.at(0).storage.min_middle_pages, 1U);
  EXPECT_TRUE(full->exports.at(0).storage.sync);
}

TEST(ConfigFile, DomainOfOwners) {
  EXPECT_EQ(parse_config_text("nfs4_domain: 'example.org'", "f")->nfs4_domain, "example.org");
  for (const char* wrong : {"''", "'a b'", "'@example.org'", "'a/b'"}) {
    const auto parsed = parse_config_text(std::string("nfs4_domain: ") + wrong, "f");
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_THAT(parsed.error().message, HasSubstr("f:1: nfs4_domain: must be a domain"));
  }
  Settings file;
  file.nfs4_domain = "file.org";
  file.exports.resize(1);
  file.exports[0].path = "/";
  Settings command_line;
  EXPECT_EQ(combine(file, command_line)->nfs4_domain, "file.org");
  command_line.nfs4_domain = "line.org";
  EXPECT_EQ(combine(file, command_line)->nfs4_domain, "line.org");
}

TEST(ConfigFile, DefaultsOfAnExport) {
  const auto parsed = parse_config_text("export { path: '/srv' }", "f");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_TRUE(parsed->listen.empty());
  EXPECT_FALSE(parsed->port);
  EXPECT_FALSE(parsed->state_dir);
  EXPECT_FALSE(parsed->threads);
  ASSERT_THAT(parsed->exports, SizeIs(1));
  const auto& one = parsed->exports[0];
  ASSERT_THAT(one.rules, SizeIs(1));
  EXPECT_EQ(one.rules[0], AccessRule());
  EXPECT_FALSE(one.says_who);
  EXPECT_FALSE(one.manage_gids);
  EXPECT_EQ(one.storage.read, storage::IoMode::direct);
  EXPECT_EQ(one.storage.write, storage::IoMode::direct);
  EXPECT_EQ(one.storage.edges, storage::EdgeMode::assemble);
  EXPECT_EQ(one.storage.min_middle_pages, 1U);
  EXPECT_EQ(one.storage.stable_floor, storage::Stability::unstable);
  EXPECT_TRUE(one.storage.sync);
}

TEST(ConfigFile, ReadAndWriteModesMoveTogetherUnlessSetApart) {
  const auto parsed = parse_config_text(R"(
    export { path: "/a" write: buffered }
    export { path: "/b" read: dontcache }
    export { path: "/c" read: buffered write: direct })",
                                        "f");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->exports[0].storage.read, storage::IoMode::buffered);
  EXPECT_EQ(parsed->exports[0].storage.write, storage::IoMode::buffered);
  EXPECT_EQ(parsed->exports[1].storage.read, storage::IoMode::dontcache);
  EXPECT_EQ(parsed->exports[1].storage.write, storage::IoMode::dontcache);
  EXPECT_EQ(parsed->exports[2].storage.read, storage::IoMode::buffered);
  EXPECT_EQ(parsed->exports[2].storage.write, storage::IoMode::direct);
}

TEST(ConfigFile, RulesForSomeClients) {
  const auto parsed = parse_config_text(R"(
    export {
      path: "/srv"
      clients: "10.0.0.0/8"
      clients: "*"
      access: ro
      anonuid: 5
      rule { clients: "10.1.0.0/16" clients: "@admins" access: rw squash: none secure: true }
      rule { clients: "build.example.org" anonuid: 7 }
      manage_gids: true
    })",
                                        "f");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const auto& one = parsed->exports.at(0);
  EXPECT_TRUE(one.says_who);
  EXPECT_TRUE(one.manage_gids);
  ASSERT_THAT(one.rules, SizeIs(5));
  EXPECT_EQ(one.rules[0].client.text(), "build.example.org");
  EXPECT_EQ(one.rules[0].anonuid, 7U);
  EXPECT_TRUE(one.rules[0].read_only);
  EXPECT_EQ(one.rules[1].client.text(), "10.1.0.0/16");
  EXPECT_FALSE(one.rules[1].read_only);
  EXPECT_TRUE(one.rules[1].secure);
  EXPECT_EQ(one.rules[1].squash, Squash::none);
  EXPECT_EQ(one.rules[1].anonuid, 5U);
  EXPECT_EQ(one.rules[2].client.text(), "10.0.0.0/8");
  EXPECT_TRUE(one.rules[2].read_only);
  EXPECT_EQ(one.rules[3].client.text(), "@admins");
  EXPECT_EQ(one.rules[4].client.text(), "*");
  EXPECT_FALSE(one.rules[4].secure);
}

struct BadFile {
  const char* text;
  const char* message;
};

class ConfigErrors : public ::testing::TestWithParam<BadFile> {};

TEST_P(ConfigErrors, RefusedWithFileLineAndReason) {
  const auto parsed = parse_config_text(GetParam().text, "selvage.conf");
  ASSERT_FALSE(parsed) << GetParam().text;
  EXPECT_THAT(parsed.error().message, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Table, ConfigErrors,
    ::testing::Values(
        BadFile{"\n\nprot: 2049\n", "selvage.conf:3: "},
        BadFile{"port: 1\nport: 2\n", "selvage.conf:2: "},
        BadFile{"port: 1\n\nport 2\n", "selvage.conf:3: "},
        BadFile{"port: 'x'\n", "selvage.conf:1: "}, BadFile{"port: -1\n", "selvage.conf:1: "},
        BadFile{"threads: 1\nport: 65536\n", "selvage.conf:2: port: must be 0 to 65535"},
        BadFile{"\nthreads: 0\n", "selvage.conf:2: threads: must be 1 to 256"},
        BadFile{"\nthreads: 257\n", "selvage.conf:2: threads: must be 1 to 256"},
        BadFile{"state_dir: 'x'\n", "selvage.conf:1: state_dir: must be an absolute path"},
        BadFile{"listen: '::1'\nlisten: 'localhost'\n",
                "selvage.conf:2: listen: 'localhost' is not an IPv4 or IPv6 address"},
        BadFile{"\nexport {\n access: ro\n}\n", "selvage.conf:2: an export needs a path"},
        BadFile{"\nexport {\n path: 'srv'\n}\n", "selvage.conf:3: 'srv' is not an absolute path"},
        BadFile{"export {\n path: '/srv/../etc'\n}\n", "selvage.conf:2: '/srv/../etc' has a '..'"},
        BadFile{"export {\n path: '/s\\000rv'\n}\n", "selvage.conf:2: the path holds a NUL"},
        BadFile{"export {\n path: '/srv'\n write: fast\n}\n", "selvage.conf:3: "},
        BadFile{"export {\n path: '/srv'\n wite: direct\n}\n", "selvage.conf:3: "},
        BadFile{"export {\n path: '/srv'\n clients: '*'\n clients: '10.0.0.1/8'\n}\n",
                "selvage.conf:4: clients: '10.0.0.1/8' has bits set beyond its prefix"},
        BadFile{"export {\n path: '/srv'\n rule {\n access: ro\n}\n}\n",
                "selvage.conf:3: a rule needs clients"},
        BadFile{"export {\n path: '/srv'\n rule {\n clients: '10.0.0.300'\n}\n}\n",
                "selvage.conf:3: clients: '10.0.0.300' is neither"},
        BadFile{"memory_limit: 268435455\n", "selvage.conf:1: memory_limit: must be"},
        BadFile{"\nmax_connections: 15\n", "selvage.conf:2: max_connections: must be"},
        BadFile{"exports: '/etc/exports'\nexports: 'exports'\n",
                "selvage.conf:2: exports: must be an absolute path"},
        BadFile{"export {\n path: '/srv'\n min_middle: 0\n}\n",
                "selvage.conf:3: min_middle: must be 1 to 2048 pages"},
        BadFile{"export {\n path: '/srv'\n anonuid: 4294967295\n}\n", "selvage.conf:3: anonuid: "},
        BadFile{"export {\n path: '/srv'\n anongid: 4294967295\n}\n", "selvage.conf:3: anongid: "},
        BadFile{"export {\n path: '/srv'\n sync: yes\n}\n", "selvage.conf:3: "},
        BadFile{"export {\n path: '/srv'\n", "selvage.conf:3: "}));

TEST(ConfigFile, PathsAreBounded) {
  const auto text = [](std::size_t bytes) {
    return "export { path: '/" + std::string(bytes - 1, 'a') + "' }";
  };
  EXPECT_TRUE(parse_config_text(text(max_path_bytes), "f"));
  EXPECT_FALSE(parse_config_text(text(max_path_bytes + 1), "f"));
}

TEST(ConfigFile, FilesAreBounded) {
  const storage::TempDir dir;
  const auto large = tests::write_file(dir / "large", std::string(max_config_bytes + 1, '\n'));
  const auto refused = read_config_file(large);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("larger than 1 MiB"));
  EXPECT_TRUE(
      read_config_file(tests::write_file(dir / "full", std::string(max_config_bytes, '\n'))));
  EXPECT_TRUE(read_config_file(tests::write_file(dir / "empty", "")));
}

TEST(ConfigFile, MissingFileIsNamed) {
  const auto missing = read_config_file("/nonexistent/selvage.conf");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "/nonexistent/selvage.conf: No such file or directory");
  const storage::TempDir dir;
  EXPECT_FALSE(read_config_file(dir.path()));
}

TEST(ConfigCombine, CommandLineOverridesAndAddsExports) {
  const storage::TempDir a;
  const storage::TempDir b;
  auto file = parse_config_text(
      "listen: '::1' port: 1 threads: 2 state_dir: '/x' export { path: '" + a.path() + "' }", "f");
  ASSERT_TRUE(file);
  Settings command_line;
  command_line.listen.push_back(boost::asio::ip::make_address("127.0.0.1"));
  command_line.port = 0;
  command_line.threads = 5;
  command_line.state_dir = "/y";
  command_line.exports.push_back(*parse_export_argument(b.path()));
  const auto both = combine(*file, command_line);
  ASSERT_TRUE(both) << both.error().message;
  ASSERT_THAT(both->listen, SizeIs(1));
  EXPECT_EQ(both->listen[0].to_string(), "127.0.0.1");
  EXPECT_EQ(both->port, 0);
  EXPECT_EQ(both->threads, 5U);
  EXPECT_EQ(both->state_dir, "/y");
  ASSERT_THAT(both->exports, SizeIs(2));
  EXPECT_EQ(both->exports[0].path, a.path());
  EXPECT_EQ(both->exports[1].path, b.path());

  const auto alone = combine(*file, {});
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(alone->listen[0].to_string(), "::1");
  EXPECT_EQ(alone->port, 1);
  EXPECT_EQ(alone->threads, 2U);
  EXPECT_EQ(alone->state_dir, "/x");
}

TEST(ConfigCombine, ExportsMustBeDirectoriesThatExist) {
  const storage::TempDir dir;
  const auto missing = parse_config_text("\nexport {\n path: '" + dir.path() + "/no' }", "f");
  auto refused = combine(*missing, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "f:3: " + dir.path() + "/no: No such file or directory");

  Settings settings;
  settings.exports.push_back(*parse_export_argument(tests::write_file(dir / "file", "")));
  refused = combine({}, settings);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "--export " + dir.path() + "/file: " + dir.path() + "/file: Not a directory");
}

TEST(ConfigCombine, DuplicatesAreRefusedAndNestedExportsAreNot) {
  const storage::TempDir dir;
  std::filesystem::create_directory(dir.path() + "/sub");
  const auto nested = parse_config_text(
      "export { path: '" + dir.path() + "' }\nexport { path: '" + dir.path() + "/sub' }", "f");
  EXPECT_TRUE(combine(*nested, {}));
  Settings again;
  again.exports.push_back(*parse_export_argument(dir.path() + "//sub/"));
  const auto refused = combine(*nested, again);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("sub: exported already (f:2)"));
}

TEST(ConfigCombine, SomethingMustBeServed) {
  const auto refused = combine({}, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("nothing to serve"));
}

class StateDir : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"STATE_DIRECTORY", "XDG_STATE_HOME"}) ::unsetenv(name);
  }
  void TearDown() override { SetUp(); }
};

TEST_F(StateDir, ComesFromSystemdFirst) {
  ::setenv("STATE_DIRECTORY", "/var/lib/a:/var/lib/b", 1);
  EXPECT_EQ(default_state_dir(), "/var/lib/a");
}

TEST_F(StateDir, OfRootIsTheSystemsOfOthersTheirOwn) {
  if (::geteuid() == 0) {
    EXPECT_EQ(default_state_dir(), "/var/lib/selvage");
    return;
  }
  ::setenv("XDG_STATE_HOME", "/home/x/state", 1);
  EXPECT_EQ(default_state_dir(), "/home/x/state/selvage");
}

}  // namespace
}  // namespace selvage::server
