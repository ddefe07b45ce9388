// The server's byte-range locks as local processes meet them.
#include "storage/local/kernel_locks.h"
#include "tests/storage/state_fixture.h"

#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <limits>
#include <random>

namespace selvage::storage {
namespace {

/// Another process: opens the file and asks for one lock (fcntl(2)), which it keeps until it is
/// ended.
class LocalProcess {
 public:
  LocalProcess(const std::string& directory, const std::string& name, short type, off_t start,
               off_t length) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      struct flock range{};
      range.l_type = type;
      range.l_whence = SEEK_SET;
      range.l_start = start;
      range.l_len = length;
      // Without a copy of any of the server's descriptors, which would keep its leases.
      ::dup2(pipe[1], 900);
      ::dup2(::open(directory.c_str(), O_PATH | O_DIRECTORY), 901);
      ::syscall(SYS_close_range, 3U, 899U, 0U);
      ::syscall(SYS_close_range, 902U, ~0U, 0U);
      const int fd = ::openat(901, name.c_str(), O_RDWR);
      int result = fd < 0 ? errno : 0;
      if (result == 0 && ::fcntl(fd, F_SETLK, &range) != 0) result = errno;
      if (::write(900, &result, sizeof result) < 0) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(pipe[1]);
    EXPECT_EQ(::read(pipe[0], &result_, sizeof result_), static_cast<ssize_t>(sizeof result_));
    ::close(pipe[0]);
  }
  ~LocalProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  LocalProcess(const LocalProcess&) = delete;
  LocalProcess& operator=(const LocalProcess&) = delete;
  /// 0, or what fcntl(2) said.
  int result() const { return result_; }

 private:
  pid_t pid_ = -1;
  int result_ = -1;
};

class StateLocks : public StateTest {
 protected:
  bool can_lock(short type, off_t start, off_t length, const std::string& name = "f") {
    const LocalProcess other(export_path, name, type, start, length);
    EXPECT_TRUE(other.result() == 0 || other.result() == EAGAIN || other.result() == EACCES);
    return other.result() == 0;
  }
};

constexpr std::uint64_t end_of_files = KernelLocks::end_of_files;

TEST_P(StateLocks, LocalProcessesSeeThem) {
  const ObjectId id = make("f");
  ASSERT_EQ(errno_of(write(id, 0, pattern(10'000, 1))), 0);
  ASSERT_EQ(errno_of(lock_range(id, 100, 50, KernelLock::exclusive)), 0);
  ASSERT_EQ(errno_of(lock_range(id, 200, 50, KernelLock::shared)), 0);
  // In edge mode assemble a local opener breaks the lease. That it is not given back would show
  // only by the kernel's taking it, later than this.
  const auto opens = [&] {
    return UniqueFd(::open(path_of("f").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC)).get() >= 0;
  };
  EXPECT_TRUE(eventually(opens));
  EXPECT_FALSE(can_lock(F_WRLCK, 0, 0));
  EXPECT_FALSE(can_lock(F_RDLCK, 149, 1));
  EXPECT_FALSE(can_lock(F_WRLCK, 200, 1));
  EXPECT_TRUE(can_lock(F_RDLCK, 200, 50));
  EXPECT_TRUE(can_lock(F_WRLCK, 0, 100));
  EXPECT_TRUE(can_lock(F_WRLCK, 150, 50));
  EXPECT_TRUE(can_lock(F_WRLCK, 250, 0));
  if (assembles()) EXPECT_EQ(fs->counters().leases_broken.get(), 1U);
  // The data goes on, by whatever way it takes now, and so do the locks.
  ASSERT_EQ(errno_of(write(id, 10'000, pattern(10'000, 2))), 0);
  ASSERT_EQ(errno_of(commit(id)), 0);
  EXPECT_FALSE(can_lock(F_RDLCK, 149, 1));
  // Downgrade, split, release.
  ASSERT_EQ(errno_of(lock_range(id, 100, 10, KernelLock::shared)), 0);
  ASSERT_EQ(errno_of(lock_range(id, 120, 10, KernelLock::none)), 0);
  EXPECT_TRUE(can_lock(F_RDLCK, 100, 10));
  EXPECT_FALSE(can_lock(F_RDLCK, 110, 10));
  EXPECT_TRUE(can_lock(F_WRLCK, 120, 10));
  EXPECT_FALSE(can_lock(F_RDLCK, 130, 1));
  ASSERT_EQ(errno_of(lock_range(id, 0, 0, KernelLock::none)), 0);
  EXPECT_TRUE(can_lock(F_WRLCK, 0, 0));
  EXPECT_EQ(content(id, 10'000), pattern(10'000, 1));
}

TEST_P(StateLocks, ALocalProcesssLockIsInTheWay) {
  const ObjectId id = make("f");
  ASSERT_EQ(errno_of(write(id, 0, pattern(10'000, 1))), 0);
  {
    const LocalProcess other(export_path, "f", F_WRLCK, 100, 100);
    ASSERT_EQ(other.result(), 0);
    EXPECT_EQ(errno_of(lock_range(id, 150, 100, KernelLock::exclusive)), EAGAIN);
    EXPECT_EQ(errno_of(lock_range(id, 0, 0, KernelLock::shared)), EAGAIN);
    EXPECT_EQ(errno_of(lock_range(id, 200, 0, KernelLock::exclusive)), 0);
    // A refused one changes nothing.
    EXPECT_EQ(errno_of(lock_range(id, 150, 100, KernelLock::shared)), EAGAIN);
    EXPECT_FALSE(can_lock(F_RDLCK, 220, 1));
  }
  EXPECT_EQ(errno_of(lock_range(id, 150, 100, KernelLock::exclusive)), 0);
  EXPECT_FALSE(can_lock(F_RDLCK, 150, 1));
}

TEST_P(StateLocks, TheyOutliveTheDatasDescriptors) {
  options.max_open_files = 1;
  reopen();
  const ObjectId id = make("f");
  const ObjectId other = make("other");
  ASSERT_EQ(errno_of(write(id, 0, pattern(10'000, 1))), 0);
  ASSERT_EQ(errno_of(lock_range(id, 0, 10, KernelLock::exclusive)), 0);
  ASSERT_EQ(errno_of(write(other, 0, pattern(10'000, 2))), 0);  // Takes the only place.
  EXPECT_FALSE(can_lock(F_RDLCK, 0, 1));
  ASSERT_EQ(errno_of(write(id, 10'000, pattern(10'000, 1))), 0);
  EXPECT_FALSE(can_lock(F_RDLCK, 0, 1));
  ASSERT_EQ(errno_of(lock_range(id, 5, 10, KernelLock::exclusive)), 0) << "they are our own";
  ASSERT_EQ(errno_of(lock_range(id, 0, 0, KernelLock::none)), 0);
  EXPECT_TRUE(can_lock(F_WRLCK, 0, 0));
}

TEST_P(StateLocks, WithThemAFileStaysInItsEdgeMode) {
  if (!assembles()) GTEST_SKIP() << "of edge mode assemble";
  const ObjectId id = make("f");
  ASSERT_EQ(errno_of(lock_range(id, 0, 10, KernelLock::exclusive)), 0);
  ASSERT_EQ(errno_of(write(id, 0, pattern(10'000, 1))), 0);
  ASSERT_EQ(errno_of(lock_range(id, 20, 10, KernelLock::shared)), 0);
  EXPECT_EQ(fs->counters().leases_held.get(), 1U);
  EXPECT_EQ(fs->counters().leases_broken.get(), 0U);
  EXPECT_EQ(fs->counters().leases_refused.get(), 0U);
  EXPECT_GT(fs->counters().combiner.batches.get(), 0U);
  // Once unlocked nothing of ours is left to keep the file from being alone.
  ASSERT_EQ(errno_of(lock_range(id, 0, 0, KernelLock::none)), 0);
  reopen();
  ASSERT_EQ(errno_of(write(id, 0, pattern(10'000, 1))), 0);
  EXPECT_EQ(fs->counters().leases_held.get(), 1U);
}

TEST_P(StateLocks, TheyEndWithTheFileAndWithTheServer) {
  const ObjectId id = make("f");
  const ObjectId other = make("other");
  {
    const auto held = hold(id);
    ASSERT_EQ(errno_of(lock_range(id, 0, 0, KernelLock::exclusive)), 0);
    ASSERT_EQ(errno_of(remove(root_user, root, "f")), 0);
    EXPECT_EQ(errno_of(lock_range(id, 0, 10, KernelLock::shared)), 0);
    EXPECT_GT(deleted_descriptors(), 0U);
  }
  EXPECT_TRUE(eventually([&] { return deleted_descriptors() == 0; }));
  EXPECT_EQ(errno_of(lock_range(id, 0, 10, KernelLock::shared)), ESTALE);
  EXPECT_EQ(errno_of(lock_range(id, 0, 10, KernelLock::none)), 0);
  ASSERT_EQ(errno_of(lock_range(other, 0, 0, KernelLock::exclusive)), 0);
  reopen();
  EXPECT_TRUE(can_lock(F_WRLCK, 0, 0, "other"));
}

TEST_P(StateLocks, OffsetsThatNoLocalProcessHas) {
  const ObjectId id = make("f");
  constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
  constexpr off_t last = std::numeric_limits<off_t>::max();
  EXPECT_EQ(errno_of(lock_range(id, end_of_files, 10, KernelLock::exclusive)), 0);
  EXPECT_EQ(errno_of(lock_range(id, all, 0, KernelLock::exclusive)), 0);
  EXPECT_TRUE(can_lock(F_WRLCK, 0, 0));
  EXPECT_EQ(errno_of(lock_range(id, end_of_files - 1, all, KernelLock::exclusive)), 0);
  EXPECT_FALSE(can_lock(F_WRLCK, last, 1));
  EXPECT_TRUE(can_lock(F_WRLCK, 0, last));
  EXPECT_EQ(errno_of(lock_range(id, 0, all, KernelLock::exclusive)), 0);
  EXPECT_FALSE(can_lock(F_WRLCK, 0, 1));
}

TEST_P(StateLocks, OnAReadOnlyExportOnlySharedOnes) {
  const ObjectId id = make("f");
  options.read_only = true;
  reopen();
  EXPECT_EQ(errno_of(lock_range(id, 0, 10, KernelLock::exclusive)), EROFS);
  ASSERT_EQ(errno_of(lock_range(id, 0, 10, KernelLock::shared)), 0);
  EXPECT_FALSE(can_lock(F_WRLCK, 0, 1));
  EXPECT_TRUE(can_lock(F_RDLCK, 0, 1));
  EXPECT_EQ(errno_of(lock_range(root, 0, 10, KernelLock::shared)), EISDIR);
}

INSTANTIATE_TEST_SUITE_P(Places, StateLocks, all_places, place_name);

TEST(LockRanges, AreWhatAnArrayOfBytesSays) {
  std::mt19937_64 random(7);
  std::array<KernelLock, 64> model{};
  LockRanges ranges;
  for (int n = 0; n < 5000; ++n) {
    const std::size_t first = random() % model.size();
    const std::size_t last = first + 1 + random() % (model.size() - first);
    const auto lock = static_cast<KernelLock>(random() % 3);
    std::fill(model.begin() + static_cast<std::ptrdiff_t>(first),
              model.begin() + static_cast<std::ptrdiff_t>(last), lock);
    ranges.set(first, last, lock);
    std::array<KernelLock, 64> seen{};
    std::size_t count = 0;
    ranges.for_each([&](std::uint64_t from, std::uint64_t to, KernelLock what) {
      ++count;
      for (std::uint64_t at = from; at < to; ++at) seen[at] = what;
    });
    ASSERT_EQ(seen, model);
    // No more ranges than there are.
    std::size_t runs = 0;
    for (std::size_t at = 0; at < model.size(); ++at) {
      if (model[at] != KernelLock::none && (at == 0 || model[at] != model[at - 1])) ++runs;
    }
    ASSERT_EQ(count, runs);
    ASSERT_EQ(ranges.empty(), runs == 0);
  }
}

}  // namespace
}  // namespace selvage::storage
