// GETATTR, SETATTR and ACCESS over the wire (RFC 1813 3.3.1, 3.3.2, 3.3.4).
#include "tests/protocol/fixture.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace selvage::tests {
namespace {

using AttributesTest = ProtocolTest;

TEST_F(AttributesTest, GetattrSaysWhatStatSays) {
  const Bytes file = root_->make_file(top_, "f", 0640);
  ASSERT_OK(root_->write(file, 0, std::string(10000, 'x')));
  Sattr set;
  set.uid = alice_uid;
  set.gid = team_gid;
  set.atime = nfstime3{1000000000, 123456789};
  set.mtime = nfstime3{1100000000, 987654321};
  ASSERT_OK(root_->setattr(file, set));

  const auto answer = root_->getattr(file);
  ASSERT_OK(answer);
  const fattr3& attr = RESOK(answer, GETATTR).obj_attributes;
  struct stat st{};
  ASSERT_EQ(::stat(path("rw/f").c_str(), &st), 0);
  EXPECT_EQ(attr.type, NF3REG);
  EXPECT_EQ(attr.mode, 0640u);
  EXPECT_EQ(attr.nlink, 1u);
  EXPECT_EQ(attr.uid, alice_uid);
  EXPECT_EQ(attr.gid, team_gid);
  EXPECT_EQ(attr.size, 10000u);
  EXPECT_EQ(attr.used, static_cast<std::uint64_t>(st.st_blocks) * 512);
  EXPECT_EQ(attr.fileid, st.st_ino);
  EXPECT_EQ(attr.atime.seconds, 1000000000u);
  EXPECT_EQ(attr.atime.nseconds, 123456789u);
  EXPECT_EQ(attr.mtime.seconds, 1100000000u);
  EXPECT_EQ(attr.mtime.nseconds, 987654321u);
  EXPECT_EQ(attr.ctime.seconds, static_cast<std::uint32_t>(st.st_ctim.tv_sec));
  EXPECT_EQ(attr.ctime.nseconds, static_cast<std::uint32_t>(st.st_ctim.tv_nsec));
}

TEST_F(AttributesTest, GetattrOfEveryType) {
  EXPECT_EQ(RESOK(root_->getattr(top_), GETATTR).obj_attributes.type, NF3DIR);
  ASSERT_OK(root_->symlink(top_, "l", "target"));
  const auto link = root_->getattr(root_->look(top_, "l"));
  EXPECT_EQ(RESOK(link, GETATTR).obj_attributes.type, NF3LNK);
  EXPECT_EQ(RESOK(link, GETATTR).obj_attributes.size, 6u);
  ASSERT_OK(root_->mknod(top_, "p", NF3FIFO));
  EXPECT_EQ(RESOK(root_->getattr(root_->look(top_, "p")), GETATTR).obj_attributes.type, NF3FIFO);
  ASSERT_OK(root_->mknod(top_, "s", NF3SOCK));
  EXPECT_EQ(RESOK(root_->getattr(root_->look(top_, "s")), GETATTR).obj_attributes.type, NF3SOCK);
  for (const ftype3 type : {NF3CHR, NF3BLK}) {
    const std::string name = type == NF3CHR ? "c" : "b";
    ASSERT_OK(root_->mknod(top_, name, type, {}, 300, 70000));
    const auto device = root_->getattr(root_->look(top_, name));
    EXPECT_EQ(RESOK(device, GETATTR).obj_attributes.type, type);
    EXPECT_EQ(RESOK(device, GETATTR).obj_attributes.rdev.specdata1, 300u);
    EXPECT_EQ(RESOK(device, GETATTR).obj_attributes.rdev.specdata2, 70000u);
    struct stat st{};
    ASSERT_EQ(::lstat(path("rw/" + name).c_str(), &st), 0);
    EXPECT_EQ(major(st.st_rdev), 300u);
    EXPECT_EQ(minor(st.st_rdev), 70000u);
  }
}

TEST_F(AttributesTest, FsidIsOnePerExport) {
  const Bytes file = root_->make_file(top_, "f");
  const auto of_root = root_->getattr(top_);
  const auto of_file = root_->getattr(file);
  const auto of_other = root_->getattr(root_->root(path("ro")));
  EXPECT_EQ(RESOK(of_root, GETATTR).obj_attributes.fsid,
            RESOK(of_file, GETATTR).obj_attributes.fsid);
  EXPECT_NE(RESOK(of_root, GETATTR).obj_attributes.fsid,
            RESOK(of_other, GETATTR).obj_attributes.fsid);
}

TEST_F(AttributesTest, RemovedFileIsStaleAtOnceAlsoAfterIo) {
  const Bytes file = root_->make_file(top_, "f");
  ASSERT_OK(root_->write(file, 0, "data"));  // The server may still hold it open.
  ASSERT_OK(root_->read(file, 0, 4));
  ASSERT_OK(root_->remove(top_, "f"));
  EXPECT_STATUS(NFS3ERR_STALE, root_->getattr(file));
  EXPECT_STATUS(NFS3ERR_STALE, root_->read(file, 0, 4));
  EXPECT_STATUS(NFS3ERR_STALE, root_->write(file, 0, "more"));
  EXPECT_STATUS(NFS3ERR_STALE, root_->commit(file));
}

TEST_F(AttributesTest, SetattrSetsWhatIsAskedAndNothingElse) {
  const Bytes file = root_->make_file(top_, "f", 0600);
  ASSERT_OK(root_->write(file, 0, std::string(5000, 'a')));
  Sattr mode;
  mode.mode = 04751;
  const auto answer = root_->setattr(file, mode);
  ASSERT_OK(answer);
  const fattr3 now = after(RESOK(answer, SETATTR).obj_wcc);
  EXPECT_EQ(now.mode, 04751u);
  EXPECT_EQ(now.size, 5000u);
  EXPECT_EQ(now.uid, 0u);

  Sattr shrink;
  shrink.size = 777;
  const auto shrunk = root_->setattr(file, shrink);
  ASSERT_OK(shrunk);
  EXPECT_EQ(after(RESOK(shrunk, SETATTR).obj_wcc).size, 777u);
  EXPECT_EQ(root_->read_all(file), std::string(777, 'a'));
  Sattr grow;
  grow.size = 9000;
  ASSERT_OK(root_->setattr(file, grow));
  EXPECT_EQ(root_->read_all(file), std::string(777, 'a') + std::string(9000 - 777, '\0'));

  Sattr touch;
  touch.atime_now = touch.mtime_now = true;
  const auto before = RESOK(root_->getattr(file), GETATTR).obj_attributes.mtime;
  const auto touched = root_->setattr(file, touch);
  ASSERT_OK(touched);
  const nfstime3 mtime = after(RESOK(touched, SETATTR).obj_wcc).mtime;
  EXPECT_GE(std::make_pair(mtime.seconds, mtime.nseconds),
            std::make_pair(before.seconds, before.nseconds));
  ASSERT_OK(root_->setattr(file, Sattr{}));
}

TEST_F(AttributesTest, SetattrIsJudgedByTheKernel) {
  const Bytes file = root_->make_file(top_, "f", 0644);
  Sattr mode;
  mode.mode = 0777;
  const auto denied = alice_->setattr(file, mode);
  EXPECT_STATUS(NFS3ERR_PERM, denied);
  EXPECT_EQ(after(RESFAIL(denied, SETATTR).obj_wcc).mode, 0644u);
  Sattr size;
  size.size = 0;
  EXPECT_STATUS(NFS3ERR_ACCES, alice_->setattr(file, size));
  Sattr take;
  take.uid = alice_uid;
  EXPECT_STATUS(NFS3ERR_PERM, alice_->setattr(file, take));
  Sattr now;
  now.mtime_now = now.atime_now = true;
  EXPECT_STATUS(NFS3ERR_ACCES, alice_->setattr(file, now));
  Sattr then;
  then.mtime = nfstime3{5, 0};
  EXPECT_STATUS(NFS3ERR_PERM, alice_->setattr(file, then));

  // The owner may, and may give the file to a group that is one of his.
  ASSERT_OK(root_->setattr(file, take));
  ASSERT_OK(alice_->setattr(file, mode));
  Sattr group;
  group.gid = team_gid;
  ASSERT_OK(alice_->setattr(file, group));
  Sattr foreign;
  foreign.gid = 4711;
  EXPECT_STATUS(NFS3ERR_PERM, alice_->setattr(file, foreign));
  Sattr give;
  give.uid = bob_uid;
  EXPECT_STATUS(NFS3ERR_PERM, alice_->setattr(file, give));
}

TEST_F(AttributesTest, WriteClearsSetId) {
  const Bytes file = root_->make_file(top_, "f", 0777);
  Sattr owner;
  owner.uid = alice_uid;
  ASSERT_OK(root_->setattr(file, owner));
  Sattr setid;
  setid.mode = 06777;
  ASSERT_OK(root_->setattr(file, setid));
  const auto answer = bob_->write(file, 0, "x");
  ASSERT_OK(answer);
  EXPECT_EQ(after(RESOK(answer, WRITE).file_wcc).mode, 0777u);
}

TEST_F(AttributesTest, GuardedSetattr) {
  const Bytes file = root_->make_file(top_, "f", 0644);
  const nfstime3 ctime = RESOK(root_->getattr(file), GETATTR).obj_attributes.ctime;
  Sattr mode;
  mode.mode = 0600;
  nfstime3 wrong = ctime;
  wrong.nseconds ^= 1;
  const auto refused = root_->setattr(file, mode, wrong);
  EXPECT_STATUS(NFS3ERR_NOT_SYNC, refused);
  EXPECT_EQ(after(RESFAIL(refused, SETATTR).obj_wcc).mode, 0644u);
  ASSERT_OK(root_->setattr(file, mode, ctime));
  EXPECT_EQ(RESOK(root_->getattr(file), GETATTR).obj_attributes.mode, 0600u);
}

TEST_F(AttributesTest, SetattrRefusesWhatNoFileCanBe) {
  const Bytes file = root_->make_file(top_, "f");
  Sattr huge;
  huge.size = std::uint64_t{1} << 63;
  EXPECT_STATUS(NFS3ERR_FBIG, root_->setattr(file, huge));
  huge.size = ~std::uint64_t{0};
  EXPECT_STATUS(NFS3ERR_FBIG, root_->setattr(file, huge));
  Sattr size;
  size.size = 1;
  EXPECT_STATUS(NFS3ERR_INVAL, root_->setattr(top_, size));
  ASSERT_OK(root_->symlink(top_, "l", "f"));
  EXPECT_STATUS(NFS3ERR_INVAL, root_->setattr(root_->look(top_, "l"), size));
  ASSERT_OK(root_->mknod(top_, "p", NF3FIFO));
  EXPECT_STATUS(NFS3ERR_INVAL, root_->setattr(root_->look(top_, "p"), size));
  Sattr time;
  time.mtime = nfstime3{1, 1000000000};
  EXPECT_STATUS(NFS3ERR_INVAL, root_->setattr(file, time));
}

TEST_F(AttributesTest, SetattrOfASymlinkDoesNotFollowIt) {
  const Bytes file = root_->make_file(top_, "f", 0644);
  ASSERT_OK(root_->symlink(top_, "l", "f"));
  Sattr owner;
  owner.uid = alice_uid;
  ASSERT_OK(root_->setattr(root_->look(top_, "l"), owner));
  EXPECT_EQ(RESOK(root_->getattr(file), GETATTR).obj_attributes.uid, 0u);
  struct stat st{};
  ASSERT_EQ(::lstat(path("rw/l").c_str(), &st), 0);
  EXPECT_EQ(st.st_uid, alice_uid);
}

std::uint32_t allowed(Nfs3Client& client, const Bytes& object, std::uint32_t asked = 0x3f) {
  const auto answer = client.access(object, asked);
  EXPECT_STATUS(NFS3_OK, answer);
  EXPECT_NE(attributes_of(RESOK(answer, ACCESS).obj_attributes), nullptr);
  return RESOK(answer, ACCESS).access;
}

TEST_F(AttributesTest, AccessOfFiles) {
  constexpr std::uint32_t change = ACCESS3_MODIFY | ACCESS3_EXTEND;
  const Bytes file = root_->make_file(top_, "f", 0754);
  Sattr owner;
  owner.uid = bob_uid;
  owner.gid = team_gid;
  ASSERT_OK(root_->setattr(file, owner));
  EXPECT_EQ(allowed(*bob_, file), ACCESS3_READ | change | ACCESS3_EXECUTE);
  EXPECT_EQ(allowed(*alice_, file), ACCESS3_READ | ACCESS3_EXECUTE);  // By a supplementary group.
  Nfs3Client stranger(port(), Identity{4000, 4000, {}, false});
  EXPECT_EQ(allowed(stranger, file), static_cast<std::uint32_t>(ACCESS3_READ));
  EXPECT_EQ(allowed(*root_, file), ACCESS3_READ | change | ACCESS3_EXECUTE);
  EXPECT_EQ(allowed(*bob_, file, ACCESS3_READ), static_cast<std::uint32_t>(ACCESS3_READ));
  EXPECT_EQ(allowed(*bob_, file, 0), 0u);
  Sattr none;
  none.mode = 0;
  ASSERT_OK(root_->setattr(file, none));
  EXPECT_EQ(allowed(*bob_, file), 0u);
  EXPECT_EQ(allowed(*root_, file), ACCESS3_READ | change);  // Root executes only with an x bit.
}

TEST_F(AttributesTest, AccessOfDirectories) {
  constexpr std::uint32_t change = ACCESS3_MODIFY | ACCESS3_EXTEND | ACCESS3_DELETE;
  const Bytes directory = root_->make_directory(top_, "d", 0754);
  Sattr owner;
  owner.uid = bob_uid;
  owner.gid = team_gid;
  ASSERT_OK(root_->setattr(directory, owner));
  EXPECT_EQ(allowed(*bob_, directory), ACCESS3_READ | ACCESS3_LOOKUP | change);
  EXPECT_EQ(allowed(*alice_, directory), ACCESS3_READ | ACCESS3_LOOKUP);
  Nfs3Client stranger(port(), Identity{4000, 4000, {}, false});
  EXPECT_EQ(allowed(stranger, directory), static_cast<std::uint32_t>(ACCESS3_READ));
  // Write without search is no right to change a directory.
  Sattr mode;
  mode.mode = 0666;
  ASSERT_OK(root_->setattr(directory, mode));
  EXPECT_EQ(allowed(stranger, directory), static_cast<std::uint32_t>(ACCESS3_READ));
}

TEST_F(AttributesTest, AccessOfAReadOnlyExport) {
  const Bytes top = root_->root(path("ro"));
  EXPECT_EQ(allowed(*root_, top), ACCESS3_READ | ACCESS3_LOOKUP);
  EXPECT_EQ(allowed(*root_, root_->look(top, "file")) & (ACCESS3_MODIFY | ACCESS3_EXTEND), 0u);
}

TEST_F(AttributesTest, SquashedIdentities) {
  std::filesystem::permissions(path("root"), std::filesystem::perms{0777});
  std::filesystem::permissions(path("all"), std::filesystem::perms{0777});
  const auto owner_of = [this](Nfs3Client& who, const std::string& where, const std::string& name) {
    const Bytes file = who.make_file(who.root(path(where)), name);
    struct stat st{};
    EXPECT_EQ(::stat(path(where + "/" + name).c_str(), &st), 0);
    return std::make_pair(st.st_uid, st.st_gid);
  };
  EXPECT_EQ(owner_of(*root_, "root", "by_root"), std::make_pair(65534u, 65534u));
  EXPECT_EQ(owner_of(*alice_, "root", "by_alice"), std::make_pair(alice_uid, alice_uid));
  EXPECT_EQ(owner_of(*root_, "all", "by_root"), std::make_pair(3000u, 3001u));
  EXPECT_EQ(owner_of(*alice_, "all", "by_alice"), std::make_pair(3000u, 3001u));
  EXPECT_EQ(owner_of(*root_, "rw", "by_root"), std::make_pair(0u, 0u));
  Nfs3Client nobody(port(), Identity{0, 0, {}, true});
  EXPECT_EQ(owner_of(nobody, "root", "by_none"), std::make_pair(65534u, 65534u));
}

// 2^32-1 is nobody's id: the kernel takes it for "no change" or refuses it.
TEST_F(AttributesTest, IdsThatNobodyHasAreAnonymous) {
  constexpr std::uint32_t no_id = 0xffffffff;
  const std::vector<Identity> strangers{
      {no_id, no_id, {no_id}}, {no_id, alice_uid, {}}, {alice_uid, no_id, {}}, {1, 1, {no_id, 5}}};
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> owners{
      {65534, 65534}, {65534, alice_uid}, {alice_uid, 65534}, {1, 1}};
  for (const std::string where : {"rw", "root"}) {
    std::filesystem::permissions(path(where), std::filesystem::perms{0777});
    for (std::size_t i = 0; i < strangers.size(); ++i) {
      Nfs3Client stranger(port(), strangers[i]);
      const std::string name = "by_stranger_" + std::to_string(i);
      stranger.make_file(stranger.root(path(where)), name);
      struct stat st{};
      ASSERT_EQ(::stat(path(where + "/" + name).c_str(), &st), 0);
      EXPECT_EQ(std::make_pair(st.st_uid, st.st_gid), owners[i]) << where << " " << i;
    }
  }
}

}  // namespace
}  // namespace selvage::tests
