// SETATTR and ACCESS of a local file system: who may, what else changes, what is durable.
#include "tests/storage/names_fixture.h"

#include <sys/sysmacros.h>

namespace selvage::storage {
namespace {

class NamesSetattr : public Names {
 protected:
  static SetAttributes mode(std::uint32_t value) {
    SetAttributes set;
    set.mode = value;
    return set;
  }
  static SetAttributes size(std::uint64_t value) {
    SetAttributes set;
    set.size = value;
    return set;
  }
  static SetAttributes owner(std::uint32_t uid, std::uint32_t gid) {
    SetAttributes set;
    set.uid = uid;
    set.gid = gid;
    return set;
  }
  static SetTime at(time_t seconds) { return {SetTime::How::client_time, {seconds, 123'456'789}}; }
  static SetTime now() { return {SetTime::How::server_time, {}}; }

  Node make(const std::string& name, std::uint32_t mode_bits) {
    const auto made = create(alice, root, name, mode_bits);
    EXPECT_EQ(errno_of(made), 0);
    return made->node;
  }
};

TEST_F(NamesSetattr, EverythingAtOnce) {
  const Node file = make("file", 0644);
  SetAttributes set;
  set.mode = 04711;
  set.uid = 1002;
  set.gid = 7;
  set.size = 100;
  set.atime = at(1'000'000'000);
  set.mtime = at(4'000'000'000);
  const auto after = setattr(root_user, file.id, set);
  ASSERT_EQ(errno_of(after), 0);
  struct stat stats{};
  ASSERT_EQ(::stat(path_of("file").c_str(), &stats), 0);
  // Not cleared by the size or the owner: the mode comes after them.
  EXPECT_EQ(stats.st_mode & 07777U, 04711U);
  EXPECT_EQ(stats.st_uid, 1002U);
  EXPECT_EQ(stats.st_gid, 7U);
  EXPECT_EQ(stats.st_size, 100);
  EXPECT_EQ(stats.st_atim.tv_sec, 1'000'000'000);
  EXPECT_EQ(stats.st_atim.tv_nsec, 123'456'789);
  EXPECT_EQ(stats.st_mtim.tv_sec, 4'000'000'000);
  EXPECT_EQ(after->mode, 04711U);
  EXPECT_EQ(after->uid, 1002U);
  EXPECT_EQ(after->size, 100U);
  EXPECT_TRUE(same_time(after->mtime, stats.st_mtim));
  EXPECT_TRUE(same_time(after->ctime, stats.st_ctim));
}

TEST_F(NamesSetattr, ModeIsForTheOwner) {
  const Node file = make("file", 0666);
  EXPECT_EQ(errno_of(setattr(bob, file.id, mode(0777))), EPERM);
  EXPECT_EQ(getattr(file.id)->mode, 0666U);
  ASSERT_EQ(errno_of(setattr(alice, file.id, mode(0170604))), 0);
  EXPECT_EQ(getattr(file.id)->mode, 0604U);
  EXPECT_EQ(getattr(file.id)->type, FileType::regular);
}

TEST_F(NamesSetattr, OwnerIsGivenByRootOnly) {
  const Node file = make("file", 0666);
  EXPECT_EQ(errno_of(setattr(alice, file.id, owner(1002, 1001))), EPERM);
  EXPECT_EQ(errno_of(setattr(alice, file.id, owner(1001, 2000))), EPERM);
  EXPECT_EQ(getattr(file.id)->uid, 1001U);
  EXPECT_EQ(errno_of(setattr(root_user, file.id, owner(1003, 1003))), 0);
  // A group that carol is in by the supplementary list, and one that she is not in.
  EXPECT_EQ(errno_of(setattr(carol, file.id, owner(1003, 2001))), 0);
  EXPECT_EQ(getattr(file.id)->gid, 2001U);
  EXPECT_EQ(errno_of(setattr(carol, file.id, owner(1003, 1002))), EPERM);
  EXPECT_EQ(errno_of(setattr(root_user, file.id, owner(UINT32_MAX, 5))), EINVAL);
}

TEST_F(NamesSetattr, NewOwnerClearsSetIdBits) {
  const Node file = make("file", 06755);
  ASSERT_EQ(errno_of(setattr(root_user, file.id, owner(1002, 1002))), 0);
  EXPECT_EQ(getattr(file.id)->mode, 0755U);
}

TEST_F(NamesSetattr, SizeClearsSetIdBits) {
  const Node file = make("file", 06777);
  ASSERT_EQ(errno_of(setattr(bob, file.id, size(10))), 0);
  EXPECT_EQ(getattr(file.id)->mode, 0777U);
  EXPECT_EQ(getattr(file.id)->size, 10U);
}

TEST_F(NamesSetattr, SetGroupIdOfAForeignGroupIsDropped) {
  const Node file = make("file", 0755);
  ASSERT_EQ(errno_of(setattr(root_user, file.id, owner(1001, 3000))), 0);
  ASSERT_EQ(errno_of(setattr(alice, file.id, mode(02755))), 0);
  EXPECT_EQ(getattr(file.id)->mode, 0755U);
}

TEST_F(NamesSetattr, SizeNeedsTheRightToWrite) {
  const Node file = make("file", 0444);
  write_file("file", "");
  ASSERT_EQ(::truncate(path_of("file").c_str(), 50), 0);
  EXPECT_EQ(errno_of(setattr(bob, file.id, size(0))), EACCES);
  EXPECT_EQ(getattr(file.id)->size, 50U);
  // The owner may have opened it before he took the right from himself.
  EXPECT_EQ(errno_of(setattr(alice, file.id, size(20))), 0);
  EXPECT_EQ(getattr(file.id)->size, 20U);
  ASSERT_EQ(errno_of(setattr(alice, file.id, mode(0666))), 0);
  EXPECT_EQ(errno_of(setattr(bob, file.id, size(30))), 0);
  EXPECT_EQ(getattr(file.id)->size, 30U);
}

TEST_F(NamesSetattr, SizeOfWhatHasNone) {
  EXPECT_EQ(errno_of(setattr(root_user, root, size(0))), EISDIR);
  ASSERT_EQ(::mkfifo(path_of("fifo").c_str(), 0666), 0);
  ASSERT_EQ(::symlink("x", path_of("link").c_str()), 0);
  EXPECT_EQ(errno_of(setattr(root_user, lookup(alice, root, "fifo")->node.id, size(0))), EINVAL);
  EXPECT_EQ(errno_of(setattr(root_user, lookup(alice, root, "link")->node.id, size(0))), EINVAL);
  const Node file = make("file", 0644);
  EXPECT_EQ(errno_of(setattr(alice, file.id, size(std::uint64_t{1} << 63U))), EFBIG);
  EXPECT_EQ(errno_of(setattr(alice, file.id, size(UINT64_MAX))), EFBIG);
}

TEST_F(NamesSetattr, TimesOfTheClientAreForTheOwner) {
  const Node file = make("file", 0666);
  SetAttributes set;
  set.mtime = at(1'000'000'000);
  EXPECT_EQ(errno_of(setattr(bob, file.id, set)), EPERM);
  ASSERT_EQ(errno_of(setattr(alice, file.id, set)), 0);
  EXPECT_EQ(getattr(file.id)->mtime.tv_sec, 1'000'000'000);
  EXPECT_TRUE(same_time(getattr(file.id)->atime, file.attributes.atime));
  for (const long nanoseconds : {-1L, 1'000'000'000L, long{UTIME_NOW}, long{UTIME_OMIT}}) {
    set.mtime.time.tv_nsec = nanoseconds;
    EXPECT_EQ(errno_of(setattr(alice, file.id, set)), EINVAL) << nanoseconds;
  }
}

TEST_F(NamesSetattr, TimesOfTheServerAreForWriters) {
  const Node file = make("file", 0646);
  SetAttributes old;
  old.atime = at(1000);
  old.mtime = at(1000);
  SetAttributes both;
  both.atime = now();
  both.mtime = now();
  SetAttributes only_mtime;
  only_mtime.mtime = now();
  SetAttributes only_atime;
  only_atime.atime = now();

  ASSERT_EQ(errno_of(setattr(alice, file.id, old)), 0);
  ASSERT_EQ(errno_of(setattr(bob, file.id, both)), 0);
  EXPECT_GT(getattr(file.id)->atime.tv_sec, 1000);
  EXPECT_GT(getattr(file.id)->mtime.tv_sec, 1000);

  ASSERT_EQ(errno_of(setattr(alice, file.id, old)), 0);
  ASSERT_EQ(errno_of(setattr(bob, file.id, only_mtime)), 0);
  EXPECT_EQ(getattr(file.id)->atime.tv_sec, 1000);
  EXPECT_GT(getattr(file.id)->mtime.tv_sec, 1000);

  ASSERT_EQ(errno_of(setattr(alice, file.id, old)), 0);
  ASSERT_EQ(errno_of(setattr(bob, file.id, only_atime)), 0);
  EXPECT_GT(getattr(file.id)->atime.tv_sec, 1000);
  EXPECT_EQ(getattr(file.id)->mtime.tv_sec, 1000);

  SetAttributes mixed;
  mixed.atime = at(2000);
  mixed.mtime = now();
  EXPECT_EQ(errno_of(setattr(bob, file.id, mixed)), EPERM);

  // What a Linux client sends for ftruncate(2).
  SetAttributes cut = only_mtime;
  cut.size = 0;
  EXPECT_EQ(errno_of(setattr(bob, file.id, cut)), 0);

  ASSERT_EQ(errno_of(setattr(alice, file.id, mode(0644))), 0);
  EXPECT_EQ(errno_of(setattr(bob, file.id, both)), EACCES);
  EXPECT_EQ(errno_of(setattr(bob, file.id, only_mtime)), EACCES);
}

TEST_F(NamesSetattr, GuardMustMatch) {
  const Node file = make("file", 0644);
  timespec other = file.attributes.ctime;
  other.tv_nsec ^= 1;
  EXPECT_TRUE(is(setattr(alice, file.id, mode(0600), other), Errc::not_sync));
  EXPECT_EQ(getattr(file.id)->mode, 0644U);
  EXPECT_TRUE(is(setattr(alice, file.id, size(9), other), Errc::not_sync));
  EXPECT_EQ(getattr(file.id)->size, 0U);
  EXPECT_TRUE(is(setattr(alice, file.id, SetAttributes{}, other), Errc::not_sync));
  EXPECT_EQ(errno_of(setattr(alice, file.id, mode(0600), getattr(file.id)->ctime)), 0);
  EXPECT_EQ(getattr(file.id)->mode, 0600U);
  EXPECT_TRUE(is(setattr(alice, file.id, mode(0644), file.attributes.ctime), Errc::not_sync));
}

TEST_F(NamesSetattr, OfTwoWithTheSameGuardOneWins) {
  for (int round = 0; round < 30; ++round) {
    const Node file = make("file" + std::to_string(round), 0644);
    std::vector<std::future<Result<Attributes>>> calls;
    for (unsigned i = 0; i < 4; ++i) {
      Worker& worker = runtime->worker(i % 2);
      const SetAttributes set = mode(0600 + i);
      const std::optional<timespec> guard = file.attributes.ctime;
      calls.push_back(start_on(worker, [this, &worker, set, guard, id = file.id] {
        return fs->setattr(Caller{worker, alice}, id, set, guard);
      }));
    }
    int won = 0;
    for (auto& each : calls) won += each.get() ? 1 : 0;
    EXPECT_EQ(won, 1);
  }
}

TEST_F(NamesSetattr, NothingToSetChangesNothing) {
  const Node file = make("file", 0644);
  const auto after = setattr(bob, file.id, SetAttributes{});
  ASSERT_EQ(errno_of(after), 0);
  EXPECT_TRUE(same_time(after->ctime, file.attributes.ctime));
}

TEST_F(NamesSetattr, EveryTypeOfObject) {
  ASSERT_EQ(::mkfifo(path_of("fifo").c_str(), 0600), 0);
  ASSERT_EQ(::mknod(path_of("socket").c_str(), S_IFSOCK | 0600, 0), 0);
  // Opening this one as a device would fail: there is no such driver.
  ASSERT_EQ(::mknod(path_of("device").c_str(), S_IFCHR | 0600, makedev(400, 1)), 0);
  ASSERT_EQ(::symlink("fifo", path_of("link").c_str()), 0);
  ASSERT_EQ(::mkdir(path_of("directory").c_str(), 0700), 0);
  for (const char* name : {"fifo", "socket", "device", "link", "directory"}) {
    const ObjectId id = lookup(root_user, root, name)->node.id;
    SetAttributes set = owner(1001, 1001);
    set.mode = 01751;
    set.mtime = at(1'000'000'000);
    ASSERT_EQ(errno_of(setattr(root_user, id, set)), 0) << name;
    struct stat stats{};
    ASSERT_EQ(::lstat(path_of(name).c_str(), &stats), 0);
    EXPECT_EQ(stats.st_uid, 1001U) << name;
    EXPECT_EQ(stats.st_mtim.tv_sec, 1'000'000'000) << name;
    if (std::string(name) != "link") EXPECT_EQ(stats.st_mode & 07777U, 01751U) << name;
  }
  // Nothing of it went through the link.
  struct stat fifo{};
  ASSERT_EQ(::stat(path_of("fifo").c_str(), &fifo), 0);
  EXPECT_TRUE(S_ISFIFO(fifo.st_mode));
  EXPECT_TRUE(is(setattr(alice, lookup(alice, root, "link")->node.id, mode(0), timespec{1, 1}),
                 Errc::not_sync));
}

TEST_F(NamesSetattr, FailedSyncIsReported) {
  const Node file = make("file", 0644);
  const auto directory = mkdir(alice, root, "directory");
  ASSERT_EQ(errno_of(directory), 0);
  faults.fail(OpKind::sync, EIO);
  EXPECT_EQ(errno_of(setattr(alice, file.id, mode(0600))), EIO);
  EXPECT_EQ(errno_of(setattr(alice, directory->node.id, mode(0700))), EIO);
  faults.clear();
  faults.reset_seen();
  EXPECT_EQ(errno_of(setattr(alice, directory->node.id, mode(0711))), 0);
  EXPECT_EQ(faults.seen(OpKind::sync), 1U);
}

TEST_F(NamesSetattr, AccessIsWhatTheKernelSays) {
  const Node file = make("file", 0640);
  ASSERT_EQ(errno_of(setattr(root_user, file.id, owner(1001, 2001))), 0);
  const auto expect = [&](const Credentials& who, const ObjectId& id, bool r, bool w, bool x) {
    const auto rights = access(who, id);
    ASSERT_EQ(errno_of(rights), 0);
    EXPECT_EQ(rights->read, r);
    EXPECT_EQ(rights->write, w);
    EXPECT_EQ(rights->execute, x);
  };
  expect(alice, file.id, true, true, false);
  expect(carol, file.id, true, false, false);  // Group member.
  expect(bob, file.id, false, false, false);
  expect(root_user, file.id, true, true, false);
  ASSERT_EQ(errno_of(setattr(alice, file.id, mode(0077))), 0);
  expect(alice, file.id, false, false, false);
  expect(carol, file.id, true, true, true);
  ASSERT_EQ(errno_of(setattr(root_user, file.id, mode(01))), 0);
  expect(root_user, file.id, true, true, true);
  const auto directory = mkdir(alice, root, "directory", 0751);
  expect(bob, directory->node.id, false, false, true);
}

}  // namespace
}  // namespace selvage::storage
