#include "server/exports.h"

#include "server/nfs3/context.h"
#include "storage/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <thread>

namespace selvage::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

storage::Result<std::shared_ptr<storage::FileSystem>> open_nothing(const ExportConfig&) {
  return std::shared_ptr<storage::FileSystem>();
}

std::shared_ptr<const ExportTable> table_of(const std::vector<std::string>& paths) {
  std::vector<ExportConfig> configs;
  for (const auto& path : paths) configs.push_back(*parse_export_argument(path));
  return *ExportTable::make(configs, open_nothing);
}

TEST(Exports, IdsDependOnThePathAlone) {
  // Part of every file handle: a change makes all handles of all clients stale.
  EXPECT_EQ(export_id("/srv/data"), export_id("/srv/data"));
  EXPECT_NE(export_id("/srv/data"), export_id("/srv/data2"));
  EXPECT_NE(export_fsid("/srv/data"), export_fsid("/srv/data2"));
  EXPECT_EQ(export_id("/srv/data"), 0x6f138bf6U);
  EXPECT_EQ(export_fsid("/srv/data"), 0x293ec62e9dfb7635U);
}

TEST(Exports, FoundById) {
  const auto table = table_of({"/a", "/b"});
  ASSERT_EQ(table->all().size(), 2U);
  EXPECT_EQ(table->by_id(export_id("/b")), table->all()[1].get());
  EXPECT_EQ(table->by_id(export_id("/c")), nullptr);
}

TEST(Exports, LongestPathCovers) {
  const auto table = table_of({"/srv", "/srv/data/deep", "/srv/data"});
  const auto covering = [&](std::string_view path) {
    const auto found = table->covering(path);
    return found.found == nullptr ? "none"
                                  : found.found->config.path + "|" + std::string(found.below);
  };
  EXPECT_EQ(covering("/srv"), "/srv|");
  EXPECT_EQ(covering("/srv/x/y"), "/srv|x/y");
  EXPECT_EQ(covering("/srv/data"), "/srv/data|");
  EXPECT_EQ(covering("/srv/database"), "/srv|database");
  EXPECT_EQ(covering("/srv/data/x"), "/srv/data|x");
  EXPECT_EQ(covering("/srv/data/deep/z"), "/srv/data/deep|z");
  EXPECT_EQ(covering("/srvx"), "none");
  EXPECT_EQ(covering("/"), "none");
  EXPECT_EQ(covering(""), "none");
}

TEST(Exports, RootCoversEverything) {
  const auto table = table_of({"/", "/srv"});
  const auto etc = table->covering("/etc/x");
  ASSERT_NE(etc.found, nullptr);
  EXPECT_EQ(etc.found->config.path, "/");
  EXPECT_EQ(etc.below, "etc/x");
  EXPECT_EQ(table->covering("/").below, "");
  EXPECT_EQ(table->covering("/srv/x").found->config.path, "/srv");
}

TEST(Exports, SameIdTwiceIsRefused) {
  auto config = *parse_export_argument("/a");
  const auto refused = ExportTable::make({config, config}, open_nothing);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("same export id as /a"));
}

TEST(Exports, WhatCannotBeOpenedIsNamed) {
  const auto message_of = [](int error) {
    const auto refused = ExportTable::make(
        {*parse_export_argument("/a")},
        [error](const ExportConfig&) -> storage::Result<std::shared_ptr<storage::FileSystem>> {
          return storage::errno_code(error);
        });
    return refused ? std::string() : refused.error().message;
  };
  EXPECT_EQ(message_of(EIO), "--export /a: /a: Input/output error");
  // What users meet, and could not make out from the error's own name.
  EXPECT_THAT(message_of(EOPNOTSUPP), HasSubstr("--export /a: /a: its file system has no file"));
  EXPECT_THAT(message_of(EPERM), HasSubstr("start selvaged as root"));
}

TEST(Exports, ClientsByAnyRule) {
  const auto table = table_of({"/a:clients=10.0.0.0/8+::1"});
  const auto& one = *table->all()[0];
  EXPECT_NE(one.rule_for(boost::asio::ip::make_address("10.1.1.1")), nullptr);
  EXPECT_NE(one.rule_for(boost::asio::ip::make_address("::1")), nullptr);
  EXPECT_EQ(one.rule_for(boost::asio::ip::make_address("127.0.0.1")), nullptr);
}

constexpr std::uint32_t no_id = 0xffffffff;

struct SquashCase {
  const char* squash;
  std::uint32_t uid, gid;
  std::vector<std::uint32_t> groups;
  storage::Credentials expected;
};

class SquashTable : public ::testing::TestWithParam<SquashCase> {};

TEST_P(SquashTable, Maps) {
  const auto& given = GetParam();
  const auto table = table_of({std::string("/a:anonuid=99,anongid=98,squash=") + given.squash});
  xdr::AuthSys client;
  client.uid = given.uid;
  client.gid = given.gid;
  client.gids.items = given.groups;
  const auto who = credentials_for(*table->all()[0], table->all()[0]->config.rules[0], &client);
  EXPECT_EQ(who.uid, given.expected.uid);
  EXPECT_EQ(who.gid, given.expected.gid);
  EXPECT_EQ(who.groups, given.expected.groups);
}

INSTANTIATE_TEST_SUITE_P(
    Table, SquashTable,
    ::testing::Values(SquashCase{"root", 0, 0, {}, {99, 98, {}}},
                      SquashCase{"root", 0, 5, {}, {99, 5, {}}},
                      SquashCase{"root", 5, 0, {}, {5, 98, {}}},
                      SquashCase{"root", 5, 6, {9, 0, 7}, {5, 6, {7, 9, 98}}},
                      SquashCase{"root", 5, 6, {7, 7, 3}, {5, 6, {3, 7}}},
                      SquashCase{"root", no_id, no_id, {no_id}, {99, 98, {98}}},
                      SquashCase{"all", 0, 0, {1}, {99, 98, {}}},
                      SquashCase{"all", 5, 6, {7}, {99, 98, {}}},
                      SquashCase{"none", 0, 0, {0, 1}, {0, 0, {0, 1}}},
                      SquashCase{"none", 5, 6, {8, 7}, {5, 6, {7, 8}}},
                      SquashCase{"none", no_id, no_id, {no_id}, {99, 98, {98}}}));

TEST(Squash, WithoutCredentialsIsAnonymousAlways) {
  for (const char* squash : {"root", "all", "none"}) {
    const auto table = table_of({std::string("/a:anonuid=99,anongid=98,squash=") + squash});
    const auto who = credentials_for(*table->all()[0], table->all()[0]->config.rules[0], nullptr);
    EXPECT_EQ(who.uid, 99U);
    EXPECT_EQ(who.gid, 98U);
    EXPECT_TRUE(who.groups.empty());
  }
}

// A reload while requests look for their exports; for ThreadSanitizer above all.
TEST(CurrentExports, RequestsKeepTheTableTheyTook) {
  CurrentExports current(table_of({"/a"}));
  const nfs3::Service service{current, storage::HandleCodec(storage::HandleKey{})};
  const auto one = current.get();
  const storage::ObjectId object(1, std::vector<std::uint8_t>(8));
  xdr::nfs_fh3 handle;
  handle.data = decltype(handle.data)(service.handles.encode(one->all()[0]->id, object));
  storage::Runtime runtime({.workers = 1, .pool_threads = 1, .buffer_bytes = 2 << 20});
  std::atomic<bool> ended{false};
  std::array<int, 3> served{};
  std::vector<std::thread> clients;
  for (int& count : served) {
    clients.emplace_back([&] {
      const rpc::Call call{runtime.worker(0), {}, 0, 0, 0, nullptr, xdr::Source()};
      do {
        const auto target = nfs3::resolve(&service, call, handle);
        if (target) {
          count += target->served->config.path == "/a" ? 1 : 1'000'000;
        } else if (target.error() != storage::errno_code(ESTALE)) {
          count += 1'000'000;
        }
      } while (!ended);
    });
  }
  int replaced = 0;
  while (replaced < 2000) {
    const auto before = current.replace(table_of({replaced % 2 == 0 ? "/b" : "/a"}));
    EXPECT_EQ(before->all()[0]->config.path, replaced % 2 == 0 ? "/a" : "/b");
    ++replaced;
  }
  ended = true;
  for (auto& client : clients) client.join();
  for (const int count : served) EXPECT_LT(count, 1'000'000);
  EXPECT_EQ(one.use_count(), 1) << "a request has kept a table for ever";
}

}  // namespace
}  // namespace selvage::server
