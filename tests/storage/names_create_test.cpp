// CREATE, MKDIR, SYMLINK, MKNOD of a local file system.
#include "tests/storage/names_fixture.h"

#include <sys/sysmacros.h>

#include <climits>

namespace selvage::storage {
namespace {

struct stat stat_of(const std::string& path) {
  struct stat stats{};
  EXPECT_EQ(::lstat(path.c_str(), &stats), 0) << path;
  return stats;
}

class NamesCreate : public Names {};

TEST_F(NamesCreate, GuardedMakesAFileOfTheClient) {
  const auto made = create(alice, root, "file", 0640);
  ASSERT_EQ(errno_of(made), 0);
  const auto stats = stat_of(path_of("file"));
  EXPECT_EQ(stats.st_mode, static_cast<mode_t>(S_IFREG | 0640));
  EXPECT_EQ(stats.st_uid, 1001U);
  EXPECT_EQ(stats.st_gid, 1001U);
  EXPECT_EQ(made->node.attributes.fileid, stats.st_ino);
  EXPECT_EQ(lookup(alice, root, "file")->node.id, made->node.id);
  EXPECT_TRUE(same_time(made->directory.mtime, getattr(root)->mtime));
  EXPECT_EQ(errno_of(create(alice, root, "file")), EEXIST);
}

TEST_F(NamesCreate, WithoutAModeOnlyTheOwnerGetsIn) {
  ASSERT_EQ(errno_of(create(alice, root, "file", CreateRequest{})), 0);
  ASSERT_EQ(errno_of(mkdir(alice, root, "directory", SetAttributes{})), 0);
  EXPECT_EQ(stat_of(path_of("file")).st_mode & 07777U, 0600U);
  EXPECT_EQ(stat_of(path_of("directory")).st_mode & 07777U, 0700U);
}

TEST_F(NamesCreate, UncheckedTakesWhatIsThere) {
  write_file("file", "content");
  ASSERT_EQ(::chmod(path_of("file").c_str(), 0666), 0);
  CreateRequest request;
  request.attributes.mode = 0600;
  const auto kept = create(alice, root, "file", request);
  ASSERT_EQ(errno_of(kept), 0);
  EXPECT_EQ(kept->node.attributes.size, 7U);
  EXPECT_EQ(stat_of(path_of("file")).st_mode & 07777U, 0666U);
  request.attributes.size = 0;
  const auto cut = create(alice, root, "file", request);
  ASSERT_EQ(errno_of(cut), 0);
  EXPECT_EQ(cut->node.attributes.size, 0U);
  EXPECT_EQ(cut->node.id, kept->node.id);
  EXPECT_EQ(stat_of(path_of("file")).st_size, 0);
}

TEST_F(NamesCreate, UncheckedTruncatesOnlyForWriters) {
  write_file("file", "content");
  ASSERT_EQ(::chmod(path_of("file").c_str(), 0644), 0);
  CreateRequest request;
  request.attributes.size = 0;
  EXPECT_EQ(errno_of(create(alice, root, "file", request)), EACCES);
  EXPECT_EQ(stat_of(path_of("file")).st_size, 7);
}

TEST_F(NamesCreate, OtherTypesAreInTheWay) {
  ASSERT_EQ(errno_of(mkdir(alice, root, "directory")), 0);
  ASSERT_EQ(::symlink("file", path_of("link").c_str()), 0);
  ASSERT_EQ(::mkfifo(path_of("fifo").c_str(), 0666), 0);
  for (const char* name : {"directory", "link", "fifo"}) {
    EXPECT_EQ(errno_of(create(alice, root, name, 0644, CreateMode::unchecked)), EEXIST) << name;
    EXPECT_EQ(errno_of(create(alice, root, name, 0644, CreateMode::guarded)), EEXIST) << name;
    EXPECT_EQ(errno_of(create_exclusive(alice, name, 5)), EEXIST) << name;
  }
  // The symlink was not followed.
  EXPECT_NE(::access(path_of("file").c_str(), F_OK), 0);
}

TEST_F(NamesCreate, InitialAttributes) {
  CreateRequest request;
  request.attributes.mode = 06755;
  request.attributes.size = 1000;
  request.attributes.gid = 2001;
  request.attributes.atime = {SetTime::How::client_time, {1'000'000'000, 5}};
  request.attributes.mtime = {SetTime::How::client_time, {1'100'000'000, 6}};
  const auto made = create(carol, root, "file", request);
  ASSERT_EQ(errno_of(made), 0);
  const Attributes& a = made->node.attributes;
  EXPECT_EQ(a.mode, 06755U);
  EXPECT_EQ(a.uid, 1003U);
  EXPECT_EQ(a.gid, 2001U);
  EXPECT_EQ(a.size, 1000U);
  EXPECT_EQ(a.atime.tv_sec, 1'000'000'000);
  EXPECT_EQ(a.mtime.tv_sec, 1'100'000'000);
  EXPECT_EQ(stat_of(path_of("file")).st_mode & 07777U, 06755U);
}

TEST_F(NamesCreate, OwnersThatTheClientMayNotGiveLeaveNothing) {
  SetAttributes set;
  set.mode = 0755;
  set.uid = 1002;
  CreateRequest request;
  request.attributes = set;
  EXPECT_EQ(errno_of(create(alice, root, "file", request)), EPERM);
  EXPECT_EQ(errno_of(mkdir(alice, root, "directory", set)), EPERM);
  EXPECT_EQ(errno_of(symlink(alice, root, "link", "to", set)), EPERM);
  MknodRequest fifo;
  fifo.attributes = set;
  EXPECT_EQ(errno_of(mknod(alice, root, "fifo", fifo)), EPERM);
  EXPECT_TRUE(std::filesystem::is_empty(export_path));
  // Its own is no change, and root may.
  set.uid = 1001;
  EXPECT_EQ(errno_of(mkdir(alice, root, "own", set)), 0);
  EXPECT_EQ(errno_of(mkdir(root_user, root, "given", set)), 0);
  EXPECT_EQ(stat_of(path_of("given")).st_uid, 1001U);
}

TEST_F(NamesCreate, ValuesNoKernelTakes) {
  CreateRequest request;
  request.attributes.uid = UINT32_MAX;
  EXPECT_EQ(errno_of(create(root_user, root, "file", request)), EINVAL);
  request = {};
  request.attributes.gid = UINT32_MAX;
  EXPECT_EQ(errno_of(create(root_user, root, "file", request)), EINVAL);
  request = {};
  request.attributes.size = std::uint64_t{1} << 63U;
  EXPECT_EQ(errno_of(create(root_user, root, "file", request)), EFBIG);
  request = {};
  request.attributes.mtime = {SetTime::How::client_time, {1, 1'000'000'000}};
  EXPECT_EQ(errno_of(create(root_user, root, "file", request)), EINVAL);
  EXPECT_TRUE(std::filesystem::is_empty(export_path));
}

TEST_F(NamesCreate, SetGroupIdDirectoryHandsItsGroupDown) {
  ASSERT_EQ(::chown(export_path.c_str(), 0, 3000), 0);
  ASSERT_EQ(::chmod(export_path.c_str(), 02777), 0);
  ASSERT_EQ(errno_of(create(alice, root, "file", 0664)), 0);
  ASSERT_EQ(errno_of(mkdir(alice, root, "directory", 0755)), 0);
  EXPECT_EQ(stat_of(path_of("file")).st_gid, 3000U);
  EXPECT_EQ(stat_of(path_of("directory")).st_gid, 3000U);
  EXPECT_EQ(stat_of(path_of("directory")).st_mode & 07777U, 02755U);
  // The set-gid bit of a group that the client is not in.
  ASSERT_EQ(errno_of(create(alice, root, "program", 02775)), 0);
  EXPECT_EQ(stat_of(path_of("program")).st_mode & 07777U, 0775U);
}

TEST_F(NamesCreate, BadNames) {
  const std::vector<std::pair<std::string, Errc>> names{{"", Errc::bad_name},
                                                        {"a/b", Errc::bad_name},
                                                        {std::string("a\0", 2), Errc::bad_name},
                                                        {".", Errc::reserved_name},
                                                        {"..", Errc::reserved_name}};
  for (const auto& [name, error] : names) {
    EXPECT_TRUE(is(create(alice, root, name), error)) << name;
    EXPECT_TRUE(is(create_exclusive(alice, name, 1), error)) << name;
    EXPECT_TRUE(is(mkdir(alice, root, name), error)) << name;
    EXPECT_TRUE(is(symlink(alice, root, name, "to"), error)) << name;
    EXPECT_TRUE(is(mknod(alice, root, name, MknodRequest{}), error)) << name;
  }
  EXPECT_EQ(errno_of(create(alice, root, std::string(256, 'n'))), ENAMETOOLONG);
  EXPECT_EQ(errno_of(create(alice, root, std::string(255, 'n'))), 0);
  EXPECT_EQ(errno_of(mkdir(alice, root, std::string(256, 'n'))), ENAMETOOLONG);
}

TEST_F(NamesCreate, DirectoryMustBeOneThatTheClientMayWrite) {
  const auto closed = mkdir(alice, root, "closed", 0755);
  const auto file = create(alice, root, "file");
  ASSERT_EQ(errno_of(closed), 0);
  EXPECT_EQ(errno_of(create(bob, closed->node.id, "x")), EACCES);
  EXPECT_EQ(errno_of(mkdir(bob, closed->node.id, "x")), EACCES);
  EXPECT_EQ(errno_of(symlink(bob, closed->node.id, "x", "to")), EACCES);
  EXPECT_EQ(errno_of(mknod(bob, closed->node.id, "x", MknodRequest{})), EACCES);
  EXPECT_EQ(errno_of(create(alice, file->node.id, "x")), ENOTDIR);
  EXPECT_EQ(errno_of(mkdir(alice, file->node.id, "x")), ENOTDIR);
  CreateRequest exclusive;
  exclusive.mode = CreateMode::exclusive;
  EXPECT_EQ(errno_of(create(bob, closed->node.id, "x", exclusive)), EACCES);
}

TEST_F(NamesCreate, ReadOnlyExport) {
  ASSERT_EQ(errno_of(create(root_user, root, "file", 0666)), 0);
  options.read_only = true;
  reopen();
  const auto file = lookup(alice, root, "file");
  ASSERT_EQ(errno_of(file), 0);
  EXPECT_EQ(errno_of(create(alice, root, "x")), EROFS);
  EXPECT_EQ(errno_of(create_exclusive(alice, "x", 1)), EROFS);
  EXPECT_EQ(errno_of(mkdir(alice, root, "x")), EROFS);
  EXPECT_EQ(errno_of(symlink(alice, root, "x", "to")), EROFS);
  EXPECT_EQ(errno_of(mknod(alice, root, "x", MknodRequest{})), EROFS);
  EXPECT_EQ(errno_of(remove(alice, root, "file")), EROFS);
  EXPECT_EQ(errno_of(rmdir(alice, root, "file")), EROFS);
  EXPECT_EQ(errno_of(rename(alice, root, "file", root, "x")), EROFS);
  EXPECT_EQ(errno_of(link(alice, file->node.id, root, "x")), EROFS);
  EXPECT_EQ(errno_of(setattr(alice, file->node.id, SetAttributes{})), EROFS);
  const auto rights = access(alice, file->node.id);
  EXPECT_TRUE(rights->read);
  EXPECT_FALSE(rights->write);
}

TEST_F(NamesCreate, Symlinks) {
  const auto made = symlink(alice, root, "link", "../some/where");
  ASSERT_EQ(errno_of(made), 0);
  EXPECT_EQ(made->node.attributes.type, FileType::symlink);
  EXPECT_EQ(made->node.attributes.uid, 1001U);
  EXPECT_EQ(readlink(bob, made->node.id)->target, "../some/where");
  EXPECT_TRUE(is(symlink(alice, root, "x", ""), Errc::bad_name));
  EXPECT_TRUE(is(symlink(alice, root, "x", std::string("a\0b", 3)), Errc::bad_name));
  EXPECT_EQ(errno_of(symlink(alice, root, "x", std::string(PATH_MAX, 'a'))), ENAMETOOLONG);
  EXPECT_EQ(errno_of(symlink(alice, root, "link", "other")), EEXIST);
  SetAttributes owner;
  owner.uid = 1002;
  const auto given = symlink(root_user, root, "given", "to", owner);
  ASSERT_EQ(errno_of(given), 0);
  EXPECT_EQ(stat_of(path_of("given")).st_uid, 1002U);
}

TEST_F(NamesCreate, SpecialFiles) {
  MknodRequest request;
  request.attributes.mode = 0620;
  const std::vector<std::pair<FileType, mode_t>> anyone{{FileType::fifo, S_IFIFO},
                                                        {FileType::socket, S_IFSOCK}};
  for (const auto& [type, format] : anyone) {
    request.type = type;
    const std::string name = std::to_string(format);
    const auto made = mknod(alice, root, name, request);
    ASSERT_EQ(errno_of(made), 0);
    EXPECT_EQ(made->node.attributes.type, type);
    EXPECT_EQ(stat_of(path_of(name)).st_mode, format | 0620U);
    EXPECT_EQ(errno_of(mknod(alice, root, name, request)), EEXIST);
  }
  request.type = FileType::character;
  request.major = 1;
  request.minor = 0x3ffff;  // As much as XFS takes.
  EXPECT_EQ(errno_of(mknod(alice, root, "device", request)), EPERM);
  const auto device = mknod(root_user, root, "device", request);
  ASSERT_EQ(errno_of(device), 0);
  EXPECT_EQ(device->node.attributes.rdev_minor, 0x3ffffU);
  EXPECT_EQ(stat_of(path_of("device")).st_rdev, makedev(1, 0x3ffff));
  request.minor = 0x100000;
  EXPECT_EQ(errno_of(mknod(root_user, root, "larger", request)), EINVAL);
  for (const FileType type : {FileType::regular, FileType::directory, FileType::symlink}) {
    request.type = type;
    EXPECT_TRUE(is(mknod(root_user, root, "other", request), Errc::bad_type));
  }
}

// On each of these file systems.
class NamesExclusive : public Names, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) == "xfs") {
      xfs_.emplace();
      if (!xfs_->mounted()) GTEST_SKIP() << "cannot mount XFS";
    }
    Names::SetUp();
  }
  std::string base() override { return xfs_ ? xfs_->path() : Names::base(); }

 private:
  std::optional<XfsMount> xfs_;
};

TEST_P(NamesExclusive, AllBitsOfTheVerifierCount) {
  const std::vector<std::uint64_t> verifiers{
      0, 1, 0x8000000000000000U, 0xffffffffffffffffU, 0x7fffffff00000000U, 0x0123456789abcdefU};
  for (const std::uint64_t verifier : verifiers) {
    const std::string name = std::to_string(verifier);
    const auto made = create_exclusive(alice, name, verifier);
    ASSERT_EQ(errno_of(made), 0) << name;
    EXPECT_EQ(made->node.attributes.uid, 1001U);
    EXPECT_EQ(made->node.attributes.nlink, 1U);
    reopen();
    const auto retried = create_exclusive(alice, name, verifier);
    ASSERT_EQ(errno_of(retried), 0) << name;
    EXPECT_EQ(retried->node.id, made->node.id);
    for (unsigned bit = 0; bit < 64; ++bit) {
      const std::uint64_t other = verifier ^ (std::uint64_t{1} << bit);
      ASSERT_EQ(errno_of(create_exclusive(alice, name, other)), EEXIST) << name << " bit " << bit;
    }
  }
  EXPECT_EQ(errno_of(create(alice, root, "0")), EEXIST);
}

TEST_P(NamesExclusive, VerifierOutlivesTheInodeCache) {
  const auto made = create_exclusive(alice, "file", 0xfedcba9876543210U);
  ASSERT_EQ(errno_of(made), 0);
  std::ofstream("/proc/sys/vm/drop_caches") << "2";
  EXPECT_EQ(errno_of(create_exclusive(alice, "file", 0xfedcba9876543210U)), 0);
  EXPECT_EQ(errno_of(create_exclusive(alice, "file", 0xfedcba9876543211U)), EEXIST);
}

TEST_P(NamesExclusive, OneOfManyWins) {
  std::vector<std::future<Result<CreateResult>>> calls;
  for (unsigned i = 0; i < 16; ++i) {
    Worker& worker = runtime->worker(i % 2);
    CreateRequest request;
    request.mode = CreateMode::exclusive;
    request.verifier = i;
    calls.push_back(start_on(worker, [this, &worker, request] {
      return fs->create(Caller{worker, alice}, root, "file", request);
    }));
  }
  int made = 0;
  for (auto& each : calls) {
    const auto result = each.get();
    if (result)
      ++made;
    else
      EXPECT_EQ(errno_of(result), EEXIST);
  }
  EXPECT_EQ(made, 1);
}

INSTANTIATE_TEST_SUITE_P(FileSystems, NamesExclusive, ::testing::Values("own", "xfs"));

TEST_F(NamesCreate, ExclusiveNameAppearsWithItsVerifier) {
  const auto hold = faults.hold_before(OpKind::sync);
  Worker& worker = runtime->worker(0);
  CreateRequest request;
  request.mode = CreateMode::exclusive;
  request.verifier = 77;
  auto creating =
      start_on(worker, [&] { return fs->create(Caller{worker, alice}, root, "file", request); });
  ASSERT_TRUE(hold->wait_held());
  // The verifier is not safe yet, so there is no name either.
  EXPECT_EQ(::access(path_of("file").c_str(), F_OK), -1);
  hold->release();
  EXPECT_EQ(errno_of(creating.get()), 0);
  EXPECT_EQ(::access(path_of("file").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace selvage::storage
