#include "server/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace selvage::server {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

Parsed<Options> parse(const std::vector<const char*>& arguments) {
  return parse_options(arguments);
}

TEST(Options, EverySwitch) {
  const auto options =
      parse({"--config", "/etc/x", "--listen", "127.0.0.1", "--listen=[::1]", "--port", "0",
             "--state-dir", "/s", "--export", "/a", "--export=/b", "--threads", "4"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->action, Options::Action::serve);
  EXPECT_EQ(options->config_file, "/etc/x");
  ASSERT_THAT(options->settings.listen, SizeIs(2));
  EXPECT_EQ(options->settings.listen[0].to_string(), "127.0.0.1");
  EXPECT_EQ(options->settings.listen[1].to_string(), "::1");
  EXPECT_EQ(options->settings.port, 0);
  EXPECT_EQ(options->settings.state_dir, "/s");
  EXPECT_EQ(options->settings.threads, 4U);
  ASSERT_THAT(options->settings.exports, SizeIs(2));
  EXPECT_EQ(options->settings.exports[0].path, "/a");
  EXPECT_EQ(options->settings.exports[1].path, "/b");
}

TEST(Options, WhatIsNotGivenIsAbsent) {
  const auto options = parse({});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_FALSE(options->config_file);
  EXPECT_FALSE(options->settings.port);
  EXPECT_FALSE(options->settings.state_dir);
  EXPECT_FALSE(options->settings.threads);
  EXPECT_TRUE(options->settings.listen.empty());
  EXPECT_TRUE(options->settings.exports.empty());
}

TEST(Options, OtherActions) {
  const auto version = parse({"--version"});
  ASSERT_TRUE(version);
  EXPECT_EQ(version->action, Options::Action::version);
  EXPECT_EQ(version->text, "selvaged " SELVAGE_VERSION "\n");
  const auto help = parse({"--help"});
  ASSERT_TRUE(help);
  EXPECT_EQ(help->action, Options::Action::help);
  for (const char* word : {"--config", "--listen", "--port", "--state-dir", "--export", "--threads",
                           "--check", "access=", "clients=", "squash=", "anonuid=", "anongid=",
                           "read=", "write=", "edges=", "min_middle=", "stable_floor=", "sync="}) {
    EXPECT_THAT(help->text, HasSubstr(word));
  }
  const auto check = parse({"--check", "--config", "x"});
  ASSERT_TRUE(check);
  EXPECT_EQ(check->action, Options::Action::check);
}

struct BadLine {
  std::vector<const char*> arguments;
  const char* message;
};

class OptionErrors : public ::testing::TestWithParam<BadLine> {};

TEST_P(OptionErrors, AreSaidClearly) {
  const auto options = parse(GetParam().arguments);
  ASSERT_FALSE(options);
  EXPECT_THAT(options.error().message, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Table, OptionErrors,
    ::testing::Values(BadLine{{"--prot", "1"}, "--prot"}, BadLine{{"stray"}, "stray"},
                      BadLine{{"--port"}, "--port"}, BadLine{{"--port", "x"}, "--port"},
                      BadLine{{"--port", "65536"}, "--port"}, BadLine{{"--port", "-1"}, "--port"},
                      BadLine{{"--port", "1", "--port", "2"}, "--port"},
                      BadLine{{"--threads", "0"}, "--threads"},
                      BadLine{{"--threads", "257"}, "--threads"},
                      BadLine{{"--listen", "localhost"}, "--listen: 'localhost' is not an"},
                      BadLine{{"--export", ""}, "an export needs a path"},
                      BadLine{{"--export", "srv"}, "'srv' is not an absolute path"},
                      BadLine{{"--export", "/a/../b"}, "'..'"},
                      BadLine{{"--export", "/a:color=red"}, "unknown key 'color'"},
                      BadLine{{"--export", "/a:rule=x"}, "unknown key 'rule'"},
                      BadLine{{"--export", "/a:path=/b"}, "unknown key 'path'"},
                      BadLine{{"--export", "/a:access=ro,"}, "'' is not key=value"},
                      BadLine{{"--export", "/a:access=ro,,sync=no"}, "'' is not key=value"},
                      BadLine{{"--export", "/a:access=ro,sync"}, "'sync' is not key=value"},
                      BadLine{{"--export", "/a:access=ro,access=rw"}, "access: given twice"},
                      BadLine{{"--export", "/a:access=x"}, "access: must be one of rw, ro"},
                      BadLine{
                          {"--export", "/a:edges=none"},
                          "edges: must be one of auto, pagecache, buffered, dontcache, assemble"},
                      BadLine{{"--export", "/a:sync=maybe"}, "sync: must be yes or no"},
                      BadLine{{"--export", "/a:anonuid=-1"}, "anonuid: must be a number"},
                      BadLine{{"--export", "/a:anonuid=4294967296"}, "anonuid: must be a number"},
                      BadLine{{"--export", "/a:anonuid=4294967295"}, "anonuid: not a user id"},
                      BadLine{{"--export", "/a:anonuid="}, "anonuid: must be a number"},
                      BadLine{{"--export", "/a:min_middle=2049"}, "min_middle: must be 1 to 2048"},
                      BadLine{{"--export", "/a:clients="}, "clients: an address is missing"},
                      BadLine{{"--export", "/a:clients=::1+"}, "clients: an address is missing"},
                      BadLine{{"--export", "/a:clients=10.0.0.1+10.0.0.300"},
                              "clients: '10.0.0.300' is neither"}));

struct GoodExport {
  const char* argument;
  const char* path;
};

class ExportPaths : public ::testing::TestWithParam<GoodExport> {};

TEST_P(ExportPaths, EndWhereTheKeysBegin) {
  const auto one = parse_export_argument(GetParam().argument);
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->path, GetParam().path);
}

INSTANTIATE_TEST_SUITE_P(
    Table, ExportPaths,
    ::testing::Values(GoodExport{"/srv", "/srv"}, GoodExport{"/", "/"},
                      GoodExport{"//srv//", "/srv"}, GoodExport{"/srv/./a/.", "/srv/a"},
                      GoodExport{"/srv:access=ro", "/srv"}, GoodExport{"/srv/a:b", "/srv/a:b"},
                      GoodExport{"/srv/a,b", "/srv/a,b"},
                      GoodExport{"/srv/a,b=c:d:access=ro", "/srv/a,b=c:d"},
                      GoodExport{"/srv/a:b=c:access=ro", "/srv/a:b=c"},
                      GoodExport{"/srv/a\\:b=c", "/srv/a:b=c"},
                      GoodExport{"/srv/a\\\\b", "/srv/a\\b"}, GoodExport{"/srv/a=b", "/srv/a=b"},
                      GoodExport{"/srv:clients=2001:db8::/32+::1,access=ro", "/srv"}));

TEST(ExportArgument, EveryKey) {
  const auto one = parse_export_argument(
      "/srv:access=ro,clients=2001:db8::/32+10.0.0.0/8,clients=::1,squash=none,anonuid=1,anongid=2,"
      "read=buffered,write=dontcache,edges=buffered,min_middle=3,stable_floor=file_sync,sync=no,"
      "secure=yes,manage_gids=yes");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->path, "/srv");
  ASSERT_THAT(one->rules, SizeIs(3));
  EXPECT_EQ(one->rules[0].client.text(), "::1");
  EXPECT_EQ(one->rules[1].client.text(), "2001:db8::/32");
  EXPECT_EQ(one->rules[2].client.text(), "10.0.0.0/8");
  for (const auto& rule : one->rules) {
    EXPECT_TRUE(rule.read_only);
    EXPECT_TRUE(rule.secure);
    EXPECT_EQ(rule.squash, Squash::none);
    EXPECT_EQ(rule.anonuid, 1U);
    EXPECT_EQ(rule.anongid, 2U);
  }
  EXPECT_TRUE(one->manage_gids);
  EXPECT_EQ(one->storage.read, storage::IoMode::buffered);
  EXPECT_EQ(one->storage.write, storage::IoMode::dontcache);
  EXPECT_EQ(one->storage.edges, storage::EdgeMode::buffered);
  EXPECT_EQ(one->storage.min_middle_pages, 3U);
  EXPECT_EQ(one->storage.stable_floor, storage::Stability::file_sync);
  EXPECT_FALSE(one->storage.sync);
}

TEST(ExportArgument, AutoEdgesAreAssemble) {
  const auto one = parse_export_argument("/srv:edges=auto,sync=yes,access=rw");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->storage.edges, storage::EdgeMode::assemble);
  EXPECT_TRUE(one->storage.sync);
  EXPECT_FALSE(one->rules.at(0).read_only);
}

}  // namespace
}  // namespace selvage::server
