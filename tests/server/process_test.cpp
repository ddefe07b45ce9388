// selvaged as its users start it: command line, signals, exit status.
#include "tests/support/process.h"
#include "tests/support/files.h"
#include "tests/support/nfs3_client.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace selvage::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ProcessTest : public ::testing::Test {
 protected:
  ProcessTest() { std::filesystem::create_directory(scratch_ / "export"); }

  std::string exported() const { return scratch_ / "export"; }
  std::vector<std::string> arguments(std::uint16_t port = 0,
                                     const std::string& keys = ":squash=none") const {
    return {"--listen",    "127.0.0.1",
            "--port",      std::to_string(port),
            "--state-dir", scratch_ / "a/b/state",
            "--export",    exported() + keys,
            "--threads",   "1"};
  }

  storage::TempDir scratch_;
};

TEST_F(ProcessTest, CheckSaysOkOrWhereItIsWrong) {
  const auto good = write_file(scratch_ / "good", "export { path: '" + exported() + "' }\n");
  Process right({"--check", "--config", good});
  EXPECT_EQ(right.wait(), 0);
  EXPECT_EQ(right.output(), "OK\n");

  const auto bad = write_file(scratch_ / "bad", "port: 1\nexport { pathh: '/' }\n");
  Process wrong({"--check", "--config", bad});
  EXPECT_EQ(wrong.wait(), 1);
  EXPECT_THAT(wrong.output(), StartsWith(bad + ":2: "));

  const auto gone = write_file(scratch_ / "gone", "export {\n path: '/nonexistent' }\n");
  Process missing({"--check", "--config", gone});
  EXPECT_EQ(missing.wait(), 1);
  EXPECT_EQ(missing.output(), gone + ":2: /nonexistent: No such file or directory\n");
}

TEST_F(ProcessTest, WhatAFileSaysDoesNotSteerTheTerminal) {
  const auto bad = write_file(scratch_ / "bad", R"(export { path: '/none\033[31m' })");
  Process wrong({"--check", "--config", bad});
  EXPECT_EQ(wrong.wait(), 1);
  EXPECT_EQ(wrong.output(), bad + ":1: /none?[31m: No such file or directory\n");
}

TEST_F(ProcessTest, CheckRefusesWhatAStartWould) {
  const auto conf = write_file(
      scratch_ / "conf", "export { path: '" + exported() + "' }\ncontrol_group: 'no such group'\n");
  std::vector<std::string> checking{"--check", "--config", conf, "--state-dir", scratch_ / "state"};
  Process check(checking);
  EXPECT_EQ(check.wait(), 1);
  EXPECT_EQ(check.output(), conf + ":2: there is no group 'no such group'\n");
  checking.erase(checking.begin());
  Process start(checking);
  EXPECT_EQ(start.wait(), 1);
  EXPECT_THAT(start.output(), HasSubstr(conf + ":2: there is no group 'no such group'"));
}

TEST_F(ProcessTest, CommandLineErrorsExitWithTwo) {
  for (const auto& bad : std::vector<std::vector<std::string>>{
           {}, {"--prot", "1"}, {"--export", "/nonexistent"}, {"--export", "relative"}}) {
    Process process(bad);
    EXPECT_EQ(process.wait(), 2) << process.output();
  }
  Process help({"--help"});
  EXPECT_EQ(help.wait(), 0);
  EXPECT_THAT(help.output(), HasSubstr("--export"));
  Process version({"--version"});
  EXPECT_EQ(version.wait(), 0);
  EXPECT_EQ(version.output(), "selvaged " SELVAGE_VERSION "\n");
}

TEST_F(ProcessTest, ServesOnAFreePortAndEndsInOrder) {
  Process process(arguments());
  const auto port = process.port();
  ASSERT_NE(port, 0) << process.output();
  EXPECT_THAT(process.output(), HasSubstr("export " + exported() + ": *(rw,squash=none)"));
  struct stat status{};
  ASSERT_EQ(::stat((scratch_ / "a/b/state").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  ASSERT_EQ(::stat((scratch_ / "a/b/state/handle.key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);

  Nfs3Client client(port);
  const auto root = client.root(exported());
  const auto file = client.make_file(root, "f", 0666);
  const std::string data(100000, 'd');
  EXPECT_EQ(client.write(file, 0, data, UNSTABLE).status(), NFS3_OK);
  // The client stays connected and never says COMMIT.
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), 0) << process.output();
  EXPECT_EQ(read_file(exported() + "/f"), data);
  ASSERT_EQ(::stat((exported() + "/f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0666U) << "the umask must not take part";
  EXPECT_THAT(process.output(), AllOf(HasSubstr("NFSv3.WRITE"), HasSubstr("stopped")));
}

TEST_F(ProcessTest, SameUnixSignalsInAnyState) {
  Process process(arguments());
  ASSERT_NE(process.port(), 0) << process.output();
  process.signal(SIGHUP);
  EXPECT_TRUE(process.wait_for("reloaded"));
  process.signal(SIGUSR1);
  EXPECT_TRUE(process.wait_for("buffer_waits"));
  EXPECT_THAT(process.output(), AllOf(HasSubstr("counters of selvaged"), HasSubstr(exported()),
                                      HasSubstr("writes_split"), HasSubstr("boundary_completed")));
  process.signal(SIGINT);
  EXPECT_EQ(process.wait(), 0) << process.output();
}

TEST_F(ProcessTest, ReloadsItsFilesOnSighup) {
  const auto exports = write_file(scratch_ / "exports", exported() + " *(ro,insecure)\n");
  const auto config = write_file(
      scratch_ / "conf", "exports: '" + exports + "'\nthreads: 1\nport: 0\n" +
                             "listen: '127.0.0.1'\nstate_dir: '" + scratch_ / "state" + "'\n");
  Process process({"--config", config});
  const auto port = process.port();
  ASSERT_NE(port, 0) << process.output();
  Nfs3Client client(port);
  const Bytes root = client.root(exported());
  EXPECT_EQ(client.mkdir(root, "d").status(), NFS3ERR_ROFS);
  write_file(exports, exported() + " *(rw,insecure,no_root_squash)\n");
  process.signal(SIGHUP);
  ASSERT_TRUE(process.wait_for("reloaded")) << process.output();
  EXPECT_EQ(client.mkdir(root, "d").status(), NFS3_OK);
  write_file(exports, "\n" + exported() + " *(rw,async)\n");
  process.signal(SIGHUP);
  ASSERT_TRUE(process.wait_for("reload refused, all goes on as before: " + exports + ":2: async"))
      << process.output();
  EXPECT_EQ(client.mkdir(root, "e").status(), NFS3_OK);
}

TEST_F(ProcessTest, SecondStartOnTheSamePortWorksAtOnce) {
  auto first = std::make_unique<Process>(arguments());
  const auto port = first->port();
  ASSERT_NE(port, 0) << first->output();
  Nfs3Client client(port);
  const auto root = client.root(exported());

  // While it serves nobody else gets the port.
  auto others = arguments(port);
  *(std::ranges::find(others, "--state-dir") + 1) = scratch_ / "other";
  Process intruder(others);
  EXPECT_EQ(intruder.wait(), 1);
  EXPECT_THAT(intruder.output(), HasSubstr("cannot listen on port " + std::to_string(port)));
  // Nor what it must remember.
  Process sharer(arguments());
  EXPECT_EQ(sharer.wait(), 1);
  EXPECT_THAT(sharer.output(), HasSubstr("another selvaged is using it"));

  first->signal(SIGTERM);
  EXPECT_EQ(first->wait(), 0) << first->output();
  Process second(arguments(port));
  ASSERT_EQ(second.port(), port) << second.output();
  Nfs3Client again(port);
  EXPECT_EQ(again.getattr(root).status(), NFS3_OK) << "handles survive";

  // So it does after a crash.
  second.signal(SIGKILL);
  EXPECT_EQ(second.wait(), 128 + SIGKILL);
  Process third(arguments(port));
  EXPECT_EQ(third.port(), port) << third.output();
}

TEST_F(ProcessTest, SaysWhatSyncNoGivesUp) {
  Process process(arguments(0, ":sync=no"));
  ASSERT_NE(process.port(), 0) << process.output();
  EXPECT_THAT(process.output(), HasSubstr("sync=no: a crash may lose"));
}

TEST_F(ProcessTest, DamagedKeyIsAnErrorNotANewKey) {
  std::filesystem::create_directories(scratch_ / "a/b/state");
  write_file(scratch_ / "a/b/state/handle.key", "short");
  Process process(arguments());
  EXPECT_EQ(process.wait(), 1);
  EXPECT_THAT(process.output(), HasSubstr("handle.key: Invalid argument"));
}

}  // namespace
}  // namespace selvage::tests
