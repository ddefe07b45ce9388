// Exports are added, changed and removed while clients work.
#include "storage/handle_codec.h"
#include "tests/support/fault_device.h"
#include "tests/support/files.h"
#include "tests/support/nfs3_client.h"
#include "tests/support/test_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace selvage::tests {
namespace {

using ::testing::HasSubstr;

class ReloadTest : public ::testing::Test {
 protected:
  ReloadTest() {
    for (const char* name : {"a", "b", "c"}) {
      std::filesystem::create_directory(folder_ / name);
      ::chmod((folder_ / name).c_str(), 0777);
    }
    ::chmod(folder_.path().c_str(), 0755);
    server_ = std::make_unique<TestServer>(std::vector{at("a"), at("b")});
  }
  std::string at(const char* name, const std::string& keys = ":squash=none") const {
    return folder_ / name + keys;
  }

  storage::TempDir folder_;
  std::unique_ptr<TestServer> server_;
};

TEST_F(ReloadTest, AnExportIsAdded) {
  Nfs3Client client(server_->port());
  const Bytes a = client.root(folder_ / "a");
  EXPECT_EQ(client.mnt(folder_ / "c").first, static_cast<std::uint32_t>(MNT3ERR_NOENT));
  ASSERT_EQ(server_->reload({at("a"), at("b"), at("c")}), std::nullopt);
  const Bytes file = client.make_file(client.root(folder_ / "c"), "f");
  EXPECT_EQ(client.write(file, 0, "data").status(), NFS3_OK);
  EXPECT_EQ(client.getattr(a).status(), NFS3_OK);
}

TEST_F(ReloadTest, AChangedRuleHoldsForTheNextRequest) {
  Nfs3Client client(server_->port());
  const Bytes file = client.make_file(client.root(folder_ / "a"), "f");
  EXPECT_EQ(client.write(file, 0, "data", UNSTABLE).status(), NFS3_OK);
  const auto reload = [&](const std::string& keys) {
    EXPECT_EQ(server_->reload({at("a", keys), at("b")}), std::nullopt);
  };
  reload(":squash=none,access=ro");
  EXPECT_EQ(client.write(file, 0, "more").status(), NFS3ERR_ROFS);
  EXPECT_EQ(client.read_all(file), "data");
  reload(":squash=none,clients=127.0.0.2");
  EXPECT_EQ(client.getattr(file).status(), NFS3ERR_ACCES);
  reload(":squash=all,anonuid=1234,anongid=1235");
  const Bytes other = client.make_file(client.root(folder_ / "a"), "other");
  EXPECT_EQ(GETATTR3res(*client.getattr(other)).GETATTR3res_u.resok.obj_attributes.uid, 1234U);
  reload(":squash=none");
  // The file was open all the time: what was written before is still to be committed.
  EXPECT_EQ(client.write(file, 4, "more", UNSTABLE).status(), NFS3_OK);
  EXPECT_EQ(client.commit(file).status(), NFS3_OK);
  EXPECT_EQ(client.read_all(file), "datamore");
}

TEST_F(ReloadTest, ARemovedExportIsWrittenOutAndItsHandlesAreStale) {
  Nfs3Client client(server_->port());
  const Bytes root = client.root(folder_ / "a");
  const Bytes file = client.make_file(root, "f");
  // In memory of the server: not a whole page, not stable.
  ASSERT_EQ(client.write(file, 0, "data", UNSTABLE).status(), NFS3_OK);
  ASSERT_EQ(server_->reload({at("b")}), std::nullopt);
  EXPECT_EQ(read_file(folder_ / "a/f"), "data");
  EXPECT_EQ(client.getattr(file).status(), NFS3ERR_STALE);
  EXPECT_EQ(client.write(file, 0, "x").status(), NFS3ERR_STALE);
  EXPECT_EQ(client.mnt(folder_ / "a").first, static_cast<std::uint32_t>(MNT3ERR_NOENT));
  // Nothing of it is open any more, so that it could be unmounted.
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const auto target = std::filesystem::read_symlink(entry, ignored).string();
    EXPECT_FALSE(target.starts_with(folder_ / "a")) << target;
  }
  // Back again: the same handles.
  ASSERT_EQ(server_->reload({at("a"), at("b")}), std::nullopt);
  EXPECT_EQ(client.read_all(file), "data");
  EXPECT_EQ(client.root(folder_ / "a"), root);
}

TEST_F(ReloadTest, WhatIsRefusedChangesNothing) {
  Nfs3Client client(server_->port());
  const Bytes root = client.root(folder_ / "a");
  const auto refused = [&](std::vector<std::string> exports, const server::Settings& file = {}) {
    const auto reason = server_->reload(std::move(exports), file);
    EXPECT_TRUE(reason);
    EXPECT_EQ(client.getattr(root).status(), NFS3_OK);
    EXPECT_EQ(client.mnt(folder_ / "b").first, 0U);
    EXPECT_EQ(client.mnt(folder_ / "c").first, static_cast<std::uint32_t>(MNT3ERR_NOENT));
    return reason.value_or("");
  };
  EXPECT_THAT(refused({at("c"), folder_ / "gone"}), HasSubstr("No such file or directory"));
  EXPECT_THAT(refused({at("c"), at("c")}), HasSubstr("exported already"));
  EXPECT_THAT(refused({at("c"), at("a", ":acces=ro")}), HasSubstr("unknown key"));
  EXPECT_THAT(refused({}), HasSubstr("nothing to serve"));
  server::Settings file;
  file.nfs4_domain = "example.org";
  file.places["nfs4_domain"] = "conf:3";
  EXPECT_THAT(refused({at("a"), at("b"), at("c")}, file),
              HasSubstr("conf:3: nfs4_domain was changed: that takes a restart"));
  file = {};
  file.lease_time = 30;
  EXPECT_THAT(refused({at("a"), at("b"), at("c")}, file), HasSubstr("it may become longer"));
}

TEST_F(ReloadTest, ChangedModesHoldForTheNextRequest) {
  Nfs3Client client(server_->port());
  const Bytes root = client.root(folder_ / "a");
  const Bytes file = client.make_file(root, "f");
  const std::string old(70'000, 'o');
  // Its ends stay in the server's memory.
  ASSERT_EQ(client.write(file, 100, old, UNSTABLE).status(), NFS3_OK);
  EXPECT_EQ(server_->counter("writes_mode_buffered"), 0U);
  const auto closed = server_->counter("files_closed");
  ASSERT_EQ(server_->reload({at("a", ":squash=none,write=buffered"), at("b")}), std::nullopt);
  EXPECT_EQ(server_->counter("files_closed"), closed + 1) << "idle files are opened anew";
  EXPECT_EQ(read_file(folder_ / "a/f"), std::string(100, '\0') + old) << "and written out before";
  ASSERT_EQ(client.write(file, 50, "new", UNSTABLE).status(), NFS3_OK);
  EXPECT_EQ(server_->counter("writes_mode_buffered"), 1U);
  EXPECT_EQ(client.commit(file).status(), NFS3_OK);
  ASSERT_EQ(server_->reload({at("a", ":squash=none,edges=pagecache"), at("b")}), std::nullopt);
  ASSERT_EQ(client.write(file, 40, "newer", UNSTABLE).status(), NFS3_OK);
  ASSERT_EQ(server_->reload({at("a"), at("b")}), std::nullopt);
  ASSERT_EQ(client.write(file, 30, "newest", UNSTABLE).status(), NFS3_OK);
  EXPECT_EQ(server_->counter("writes_mode_buffered"), 1U);
  EXPECT_EQ(client.commit(file).status(), NFS3_OK);
  std::string expected = std::string(100, '\0') + old;
  expected.replace(50, 3, "new").replace(40, 5, "newer").replace(30, 6, "newest");
  EXPECT_EQ(client.read_all(file), expected);
  EXPECT_EQ(client.root(folder_ / "a"), root) << "the same handles";
  EXPECT_EQ(server_->counter("verifier_changes"), 0U);
}

TEST_F(ReloadTest, LimitsAreTakenOver) {
  server::Settings file;
  file.max_connections = 17;
  file.lease_time = 100;
  ASSERT_EQ(server_->reload({at("a"), at("b")}, file), std::nullopt);
  std::vector<std::unique_ptr<Nfs3Client>> clients;
  for (int i = 0; i < 17; ++i) {
    clients.push_back(std::make_unique<Nfs3Client>(server_->port()));
    EXPECT_EQ(clients.back()->mnt(folder_ / "a").first, 0U);
  }
  EXPECT_EQ(server_->counter("connections_open"), 17U);
  // One that is idle goes for it.
  Nfs3Client next(server_->port());
  EXPECT_EQ(next.mnt(folder_ / "a").first, 0U);
  EXPECT_LE(server_->counter("connections_open"), 17U);
  file.max_connections = 1000;
  ASSERT_EQ(server_->reload({at("a"), at("b")}, file), std::nullopt);
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<Nfs3Client>(server_->port()));
    EXPECT_EQ(clients.back()->mnt(folder_ / "a").first, 0U);
  }
  EXPECT_GT(server_->counter("connections_open"), 17U);
}

class SlowClose : public ReloadTest {
 protected:
  SlowClose() {
    server::ServerHooks hooks;
    hooks.wrap_device = faults_.wrapper();
    hooks.reload_deadline = std::chrono::milliseconds(50);
    server_.reset();
    server_ = std::make_unique<TestServer>(std::vector{at("a"), at("b")}, hooks);
    Nfs3Client client(server_->port());
    file_ = client.make_file(client.root(folder_ / "a"), "f");
    EXPECT_EQ(client.write(file_, 0, "data", UNSTABLE).status(), NFS3_OK);
    // Of the export that is closed: nothing else syncs data now.
    held_ = faults_.hold_before(storage::OpKind::sync, {.times = 1});
    EXPECT_THAT(server_->reload({at("b")}).value_or(""), HasSubstr("still being closed"));
    EXPECT_TRUE(held_->wait_held());
  }
  ~SlowClose() override { held_->release(); }

  storage::FaultScript faults_;
  std::shared_ptr<storage::Hold> held_;
  Bytes file_;
};

TEST_F(SlowClose, OthersAreServedAndReloadsGoOn) {
  Nfs3Client client(server_->port());
  EXPECT_EQ(client.getattr(file_).status(), NFS3ERR_STALE);
  const Bytes other = client.make_file(client.root(folder_ / "b"), "g");
  EXPECT_EQ(client.write(other, 0, "b", FILE_SYNC).status(), NFS3_OK);
  EXPECT_THAT(server_->reload({at("b"), at("c")}).value_or(""), HasSubstr("still being closed"));
  EXPECT_EQ(client.mnt(folder_ / "c").first, 0U) << "what else the reload says is done";
  EXPECT_THAT(server_->reload({at("a"), at("b")}).value_or(""),
              testing::AllOf(HasSubstr("refused"), HasSubstr("is still being closed")));
  held_->release();
  std::optional<std::string> amiss = "";
  for (int tries = 0; amiss && tries < 200; ++tries) amiss = server_->reload({at("b")});
  EXPECT_EQ(amiss, std::nullopt);
  ASSERT_EQ(server_->reload({at("a"), at("b")}), std::nullopt);
  EXPECT_EQ(client.read_all(file_), "data");
}

TEST_F(SlowClose, TheEndWaitsForIt) {
  std::thread release([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    held_->release();
  });
  EXPECT_TRUE(server_->stop());
  release.join();
  EXPECT_EQ(read_file(folder_ / "a/f"), "data");
}

TEST_F(SlowClose, AFailureIsTold) {
  held_->release_with_error(EIO);
  std::string told;
  for (int tries = 0; tries < 200; ++tries) {
    const auto amiss = server_->reload({at("b")});
    if (!amiss) break;
    told = *amiss;
  }
  EXPECT_THAT(told, testing::AnyOf(HasSubstr("still being closed"), HasSubstr("may be lost")));
  EXPECT_EQ(server_->reload({at("a"), at("b")}), std::nullopt);
}

TEST_F(ReloadTest, RulesOfAnExportsFile) {
  const auto exports =
      write_file(folder_ / "exports", folder_ / "a" +
                                          " 127.0.0.1(rw,insecure,no_root_squash) "
                                          "127.0.0.0/8(ro,insecure,all_squash,anonuid=77)\n");
  server::Settings file;
  file.exports_files.push_back(exports);
  ASSERT_EQ(server_->reload({at("b")}, file), std::nullopt);
  Nfs3Client one(server_->port());
  Nfs3Client two(server_->port(), {}, "127.0.0.2");
  const Bytes root = one.root(folder_ / "a");
  const Bytes made = one.make_file(root, "f", 0600);
  EXPECT_EQ(one.write(made, 0, "x").status(), NFS3_OK);
  EXPECT_EQ(two.root(folder_ / "a"), root);
  EXPECT_EQ(two.write(made, 0, "y").status(), NFS3ERR_ROFS);
  EXPECT_EQ(two.read(made, 0, 1).status(), NFS3ERR_ACCES);  // As 77.
  EXPECT_EQ(two.create(root, "g").status(), NFS3ERR_ROFS);
}

TEST_F(ReloadTest, SecureAsksForAReservedPort) {
  ASSERT_EQ(server_->reload({at("a", ":squash=none,secure=yes"), at("b")}), std::nullopt);
  Nfs3Client user(server_->port());
  EXPECT_EQ(user.mnt(folder_ / "a").first, static_cast<std::uint32_t>(MNT3ERR_ACCES));
  Nfs3Client root(server_->port(), {}, "127.0.0.1:997");
  const Bytes top = root.root(folder_ / "a");
  EXPECT_EQ(root.getattr(top).status(), NFS3_OK);
  EXPECT_EQ(user.getattr(top).status(), NFS3ERR_PERM);
  EXPECT_EQ(user.mnt(folder_ / "b").first, 0U);
}

TEST(ManageGids, TheServersGroupsCountForUsersThatItKnows) {
  storage::TempDir folder;
  ::chmod(folder.path().c_str(), 0755);
  for (const auto& [name, group] : {std::pair{"g70", 70U}, std::pair{"g80", 80U}}) {
    std::filesystem::create_directory(folder / name);
    ASSERT_EQ(::chown((folder / name).c_str(), 0, group), 0);
    ASSERT_EQ(::chmod((folder / name).c_str(), 0770), 0);
  }
  server::ServerHooks hooks;
  hooks.groups = [](uid_t user) -> std::optional<server::GroupDirectory::Groups> {
    if (user != 7) return std::nullopt;
    return server::GroupDirectory::Groups{70};
  };
  TestServer server({folder.path() + ":manage_gids=yes"}, hooks);
  Identity known;
  known.uid = 7;
  known.gid = 7;
  known.groups = {80};
  Identity unknown = known;
  unknown.uid = 8;
  Nfs3Client one(server.port(), known);
  Nfs3Client two(server.port(), unknown);
  const Bytes root = one.root(folder.path());
  const Bytes g70 = one.look(root, "g70");
  const Bytes g80 = one.look(root, "g80");
  EXPECT_EQ(one.create(g70, "f").status(), NFS3_OK);
  EXPECT_EQ(one.create(g80, "f").status(), NFS3ERR_ACCES);
  EXPECT_EQ(two.create(g70, "g").status(), NFS3ERR_ACCES);
  EXPECT_EQ(two.create(g80, "g").status(), NFS3_OK);
}

TEST(NamedClients, AreIdentifiedBeforeTheirFirstRequest) {
  storage::TempDir folder;
  ::chmod(folder.path().c_str(), 0755);
  std::atomic<int> questions{0};
  server::ServerHooks hooks;
  hooks.resolver.names = [&](const boost::asio::ip::address& address) {
    ++questions;
    std::vector<std::string> names;
    if (address.to_string() == "127.0.0.1") names.push_back("one.lab.org");
    return std::optional(names);
  };
  hooks.resolver.addresses = [](const std::string&) {
    return std::optional(std::vector<boost::asio::ip::address>());
  };
  hooks.resolver.in_netgroup = [](const std::string&, const std::string&) { return false; };
  TestServer server({folder.path() + ":clients=*.lab.org"}, hooks);
  Nfs3Client one(server.port());
  Nfs3Client two(server.port(), {}, "127.0.0.2");
  const Bytes root = one.root(folder.path());
  EXPECT_EQ(two.mnt(folder.path()).first, static_cast<std::uint32_t>(MNT3ERR_ACCES));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(one.getattr(root).status(), NFS3_OK);
  EXPECT_EQ(two.getattr(root).status(), NFS3ERR_ACCES);
  EXPECT_EQ(questions, 2);
}

TEST_F(ReloadTest, UnderLoadNobodyNotices) {
  std::atomic<bool> stop{false};
  std::atomic<int> bad{0};
  std::vector<std::thread> writers;
  std::atomic<int> done{0};
  for (int i = 0; i < 3; ++i) {
    writers.emplace_back([&, i] {
      Nfs3Client client(server_->port());
      const Bytes file = client.make_file(client.root(folder_ / "a"), "w" + std::to_string(i));
      const std::string data(5000, static_cast<char>('a' + i));
      for (std::uint64_t n = 0; !stop; ++n, ++done) {
        const auto stable = n % 3 == 0 ? FILE_SYNC : UNSTABLE;
        if (client.write(file, n % 50 * data.size(), data, stable).status() != NFS3_OK) ++bad;
        if (n % 7 == 0 && client.commit(file).status() != NFS3_OK) ++bad;
      }
    });
  }
  for (int i = 0; i < 12; ++i) {
    // Rules, modes and other exports change while files are in use.
    const std::vector<std::string> keys{":squash=none", ":squash=none,write=buffered",
                                        ":squash=none,anonuid=5",
                                        ":squash=none,edges=pagecache,min_middle=2"};
    const std::string& other = i % 3 == 0 ? keys[2] : keys[0];
    ASSERT_EQ(server_->reload({at("a", keys[static_cast<std::size_t>(i) % keys.size()]),
                               at(i % 2 == 0 ? "b" : "c", other)}),
              std::nullopt);
    const int before = done;
    for (int tries = 0; done < before + 20 && tries < 1000; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  stop = true;
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(bad, 0);
  // All of it is there: what only memory had is written out at the end.
  EXPECT_TRUE(server_->stop());
  for (int i = 0; i < 3; ++i) {
    const std::string data = read_file(folder_ / ("a/w" + std::to_string(i)));
    EXPECT_EQ(data.find_first_not_of(static_cast<char>('a' + i)), std::string::npos);
    EXPECT_EQ(data.size() % 5000, 0U);
  }
}

}  // namespace
}  // namespace selvage::tests
