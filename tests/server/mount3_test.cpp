// MOUNT over the wire, versions 1 and 3 (RFC 1813 Appendix I). Results are read word by word:
// libnfs's decoded lists are not aligned.
#include "tests/support/nfs3_client.h"
#include "tests/support/test_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nfsc/libnfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace selvage::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr std::uint32_t mount_program = 100005;
enum Procedure : std::uint32_t { null, mnt, dump, umnt, umntall, export_ };
enum Status : std::uint32_t {
  ok = 0,
  noent = 2,
  acces = 13,
  notdir = 20,
  nametoolong = 63,
};

/// Takes results apart; a test failure where they end too early.
class Words {
 public:
  explicit Words(const RpcReply& reply) : rest_(reply.results) {
    EXPECT_TRUE(reply.accepted);
    EXPECT_EQ(reply.status, 0U);
  }
  std::uint32_t number() {
    std::uint32_t value = 0;
    for (const char c : take(4)) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  std::string string() {
    const auto length = number();
    auto text = take(length);
    take((4 - length % 4) % 4);
    return text;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string take(std::size_t bytes) {
    EXPECT_LE(bytes, rest_.size());
    auto taken = rest_.substr(0, bytes);
    rest_.erase(0, bytes);
    return taken;
  }
  std::string rest_;
};

class MountTest : public ::testing::Test {
 protected:
  MountTest() : folder_(scratch_ / "") {
    ::chmod(scratch_.path().c_str(), 0755);
    for (const char* name : {"all", "all/sub", "all/sub/deep", "all/nested", "all/private",
                             "all/private/inside", "far", "home"}) {
      std::filesystem::create_directory(folder_ + name);
      ::chmod((folder_ + name).c_str(), 0755);
    }
    ::chmod((folder_ + "all/private").c_str(), 0700);
    write("all/file");
    std::filesystem::create_symlink(folder_ + "far", folder_ + "all/link");
    server_ = std::make_unique<TestServer>(std::vector<std::string>{
        folder_ + "all", folder_ + "all/nested:access=ro", folder_ + "far:clients=127.0.0.2",
        folder_ + "home:clients=127.0.0.1+10.0.0.0/8,squash=none"});
    client_ = std::make_unique<Nfs3Client>(server_->port());
  }

  void write(const std::string& name) {
    ASSERT_EQ(::mknod((folder_ + name).c_str(), S_IFREG | 0644, 0), 0);
  }
  std::uint32_t mount(const std::string& path) { return client_->mnt(path).first; }
  RpcReply call(std::uint32_t procedure, const Bytes& arguments = {}, std::uint32_t version = 3) {
    return client_->raw(procedure, arguments, mount_program, version);
  }
  static Bytes path_argument(const std::string& path) {
    XdrWriter writer;
    return writer.opaque(path).bytes();
  }
  std::uint64_t fileid(const Bytes& handle) {
    const auto answer = client_->getattr(handle);
    EXPECT_EQ(answer.status(), NFS3_OK);
    return answer->GETATTR3res_u.resok.obj_attributes.fileid;
  }
  std::uint64_t inode(const std::string& name) {
    struct stat status{};
    EXPECT_EQ(::stat((folder_ + name).c_str(), &status), 0);
    return status.st_ino;
  }
  std::vector<std::pair<std::string, std::string>> mounts(std::uint32_t version = 3);

  storage::TempDir scratch_;
  const std::string folder_;  ///< With a slash at its end.
  std::unique_ptr<TestServer> server_;
  std::unique_ptr<Nfs3Client> client_;
};

std::vector<std::pair<std::string, std::string>> MountTest::mounts(std::uint32_t version) {
  Words words(call(dump, {}, version));
  std::vector<std::pair<std::string, std::string>> list;
  while (words.number() == 1) {
    auto client = words.string();
    list.emplace_back(std::move(client), words.string());
  }
  EXPECT_TRUE(words.at_end());
  return list;
}

TEST_F(MountTest, NullOfBothVersions) {
  for (const std::uint32_t version : {1U, 3U}) {
    const auto reply = call(null, {}, version);
    EXPECT_TRUE(reply.accepted);
    EXPECT_EQ(reply.status, 0U);
    EXPECT_TRUE(reply.results.empty());
  }
}

TEST_F(MountTest, VersionTwoIsAMismatchOfOneToThree) {
  const auto reply = call(null, {}, 2);
  EXPECT_EQ(reply.status, 2U);  // PROG_MISMATCH
  EXPECT_EQ(reply.results, XdrWriter().u32(1).u32(3).bytes());
}

TEST_F(MountTest, ExportsByTheirPath) {
  const auto [status, handle] = client_->mnt(folder_ + "all");
  ASSERT_EQ(status, ok);
  EXPECT_EQ(fileid(handle), inode("all"));
  const auto [nested_status, nested] = client_->mnt(folder_ + "all/nested");
  ASSERT_EQ(nested_status, ok);
  EXPECT_EQ(fileid(nested), inode("all/nested"));
  // The nested export is the one that answers: it is read-only.
  EXPECT_EQ(client_->create(nested, "x").status(), NFS3ERR_ROFS);
}

TEST_F(MountTest, FlavoursAreSysAndNone) {
  Words words(call(mnt, path_argument(folder_ + "all")));
  EXPECT_EQ(words.number(), ok);
  EXPECT_FALSE(words.string().empty());
  EXPECT_EQ(words.number(), 2U);
  EXPECT_EQ(words.number(), 1U);  // AUTH_SYS, which clients without a wish of their own take
  EXPECT_EQ(words.number(), 0U);  // AUTH_NONE
  EXPECT_TRUE(words.at_end());
}

TEST_F(MountTest, DirectoriesBelowAnExport) {
  const auto [status, handle] = client_->mnt(folder_ + "all/sub/deep");
  ASSERT_EQ(status, ok);
  EXPECT_EQ(fileid(handle), inode("all/sub/deep"));
}

TEST_F(MountTest, PathsAreNormalised) {
  EXPECT_EQ(fileid(client_->mnt(folder_ + "all/").second), inode("all"));
  EXPECT_EQ(fileid(client_->mnt("//" + folder_ + "/./all//sub///").second), inode("all/sub"));
  EXPECT_EQ(fileid(client_->mnt(folder_ + "all/sub/deep/..").second), inode("all/sub"));
  EXPECT_EQ(fileid(client_->mnt(folder_ + "home/../all/sub/../nested").second),
            inode("all/nested"));
}

TEST_F(MountTest, DotDotDoesNotLeaveTheExports) {
  EXPECT_EQ(mount(folder_ + "all/.."), noent);
  EXPECT_EQ(mount(folder_ + "all/../.."), noent);
  EXPECT_EQ(mount(folder_ + "all/../../../../../etc"), noent);
  EXPECT_EQ(mount(folder_ + "all/../far"), acces);
}

TEST_F(MountTest, WhatNoExportCoversIsNotThere) {
  EXPECT_EQ(mount("/etc"), noent);
  EXPECT_EQ(mount("/"), noent);
  EXPECT_EQ(mount("/nonexistent"), noent);
  EXPECT_EQ(mount(folder_ + "al"), noent);
  EXPECT_EQ(mount(folder_ + "all2"), noent);
  EXPECT_EQ(mount(""), noent);
  EXPECT_EQ(mount("all"), noent);
  EXPECT_EQ(mount(std::string("/srv\0x", 6)), noent);
}

TEST_F(MountTest, WhatIsMissingBelowAnExport) {
  EXPECT_EQ(mount(folder_ + "all/missing"), noent);
  EXPECT_EQ(mount(folder_ + "all/missing/deep"), noent);
  EXPECT_EQ(mount(folder_ + "all/file"), notdir);
  EXPECT_EQ(mount(folder_ + "all/file/x"), notdir);
  EXPECT_EQ(mount(folder_ + "all/link"), notdir);
  EXPECT_EQ(mount(folder_ + "all/" + std::string(300, 'n')), nametoolong);
}

TEST_F(MountTest, UnlistedClientsAreRefusedBeforeAnythingIsLookedUp) {
  EXPECT_EQ(mount(folder_ + "far"), acces);
  EXPECT_EQ(mount(folder_ + "far/missing"), acces);
  EXPECT_EQ(mount(folder_ + "home"), ok);
  client_ = std::make_unique<Nfs3Client>(server_->port(), Identity{}, "127.0.0.2");
  EXPECT_EQ(mount(folder_ + "far"), ok);
  EXPECT_EQ(mount(folder_ + "home"), acces);
  EXPECT_THAT(mounts(),
              ElementsAre(Pair("127.0.0.1", folder_ + "home"), Pair("127.0.0.2", folder_ + "far")));
}

TEST_F(MountTest, WalksAsTheSquashedClient) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(mount(folder_ + "all/private/inside"), acces);
  EXPECT_EQ(mount(folder_ + "all/private"), ok);
}

TEST_F(MountTest, ListsMountsUntilTheyAreUndone) {
  EXPECT_THAT(mounts(), IsEmpty());
  mount(folder_ + "all/");
  mount(folder_ + "all");
  mount(folder_ + "all/sub");
  mount(folder_ + "missing");
  EXPECT_THAT(mounts(), ElementsAre(Pair("127.0.0.1", folder_ + "all"),
                                    Pair("127.0.0.1", folder_ + "all/sub")));
  EXPECT_EQ(mounts(1), mounts(3));
  auto reply = call(umnt, path_argument(folder_ + "all/"));
  EXPECT_EQ(reply.status, 0U);
  EXPECT_TRUE(reply.results.empty());
  EXPECT_THAT(mounts(), ElementsAre(Pair("127.0.0.1", folder_ + "all/sub")));
  call(umnt, path_argument("nonsense"));
  reply = call(umntall, {}, 1);
  EXPECT_EQ(reply.status, 0U);
  EXPECT_TRUE(reply.results.empty());
  EXPECT_THAT(mounts(), IsEmpty());
}

TEST_F(MountTest, ListsExportsWithTheirClients) {
  for (const std::uint32_t version : {1U, 3U}) {
    Words words(call(export_, {}, version));
    std::vector<std::pair<std::string, std::vector<std::string>>> list;
    while (words.number() == 1) {
      auto& [path, clients] = list.emplace_back();
      path = words.string();
      while (words.number() == 1) clients.push_back(words.string());
    }
    EXPECT_TRUE(words.at_end());
    EXPECT_THAT(
        list, ElementsAre(Pair(folder_ + "all", IsEmpty()), Pair(folder_ + "all/nested", IsEmpty()),
                          Pair(folder_ + "far", ElementsAre("127.0.0.2")),
                          Pair(folder_ + "home", ElementsAre("127.0.0.1", "10.0.0.0/8"))));
  }
}

TEST_F(MountTest, VersionOneHasHandlesOf32Bytes) {
  const auto [status, handle] = client_->mnt(folder_ + "all/sub");
  ASSERT_EQ(status, ok);
  const auto reply = call(mnt, path_argument(folder_ + "all/sub"), 1);
  XdrWriter expected;
  if (handle.size() <= 32) {
    Bytes padded = handle;
    padded.resize(32, '\0');
    expected.u32(0).fixed(padded);
  } else {
    expected.u32(EOPNOTSUPP);
  }
  EXPECT_EQ(reply.results, expected.bytes());
  EXPECT_EQ(call(mnt, path_argument("/etc"), 1).results, XdrWriter().u32(ENOENT).bytes());
  EXPECT_EQ(call(mnt, path_argument(folder_ + "far"), 1).results, XdrWriter().u32(EACCES).bytes());
}

TEST_F(MountTest, MalformedArgumentsAreGarbage) {
  constexpr std::uint32_t garbage_args = 4;
  const Bytes too_long = path_argument("/" + std::string(1024, 'a'));
  const std::vector<Bytes> bad{Bytes{},
                               Bytes("\0\0", 2),
                               XdrWriter().u32(0xffffffff).bytes(),
                               XdrWriter().u32(8).bytes(),
                               too_long,
                               path_argument(folder_ + "all") + Bytes(4, '\0')};
  for (const std::uint32_t version : {1U, 3U}) {
    for (const std::uint32_t procedure : {mnt, umnt}) {
      for (const auto& arguments : bad) {
        const auto reply = call(procedure, arguments, version);
        EXPECT_TRUE(reply.accepted);
        EXPECT_EQ(reply.status, garbage_args);
      }
    }
  }
  EXPECT_EQ(call(6).status, 3U);  // PROC_UNAVAIL
  EXPECT_EQ(mount(folder_ + "all"), ok);
}

TEST_F(MountTest, HandlesSurviveARestart) {
  const auto before = client_->mnt(folder_ + "all/sub");
  server_->restart();
  client_ = std::make_unique<Nfs3Client>(server_->port());
  EXPECT_EQ(client_->mnt(folder_ + "all/sub"), before);
  EXPECT_EQ(fileid(before.second), inode("all/sub"));
}

TEST_F(MountTest, LibnfsMounts) {
  const auto libnfs_mount = [&](const std::string& path) {
    auto* context = nfs_init_context();
    const auto port = std::to_string(server_->port());
    const auto url = "nfs://127.0.0.1" + path + "?version=3&nfsport=" + port + "&mountport=" + port;
    auto* parsed = nfs_parse_url_dir(context, url.c_str());
    EXPECT_NE(parsed, nullptr) << nfs_get_error(context);
    const int result = nfs_mount(context, parsed->server, parsed->path);
    nfs_destroy_url(parsed);
    nfs_destroy_context(context);
    return result;
  };
  EXPECT_EQ(libnfs_mount(folder_ + "all"), 0);
  EXPECT_EQ(libnfs_mount(folder_ + "all/sub"), 0);
}

}  // namespace
}  // namespace selvage::tests
