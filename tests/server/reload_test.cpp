// Exports are added, changed and removed while clients work.
#include "storage/handle_codec.h"
#include "tests/support/files.h"
#include "tests/support/nfs3_client.h"
#include "tests/support/test_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
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
  const auto refused = [&](std::vector<std::string> exports) {
    const auto reason = server_->reload(std::move(exports));
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
  EXPECT_THAT(refused({at("a", ":edges=pagecache"), at("c")}), HasSubstr("takes a restart"));
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
    ASSERT_EQ(server_->reload(i % 2 == 0 ? std::vector{at("a"), at("c")}
                                         : std::vector{at("a", ":squash=none,anonuid=5"), at("b")}),
              std::nullopt);
    const int before = done;
    for (int tries = 0; done < before + 20 && tries < 1000; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  stop = true;
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(bad, 0);
}

}  // namespace
}  // namespace selvage::tests
