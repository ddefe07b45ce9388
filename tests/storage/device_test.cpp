// Both devices against the plain system calls.

#include "tests/support/run_on.h"
#include "tests/support/temp_dir.h"

#include "storage/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <future>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace selvage::storage {
namespace {

using Octets = std::vector<std::uint8_t>;

Octets random_octets(std::size_t size, unsigned seed) {
  Octets bytes(size);
  std::uint32_t state = seed * 2654435761U + 1;
  for (auto& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return bytes;
}

iovec segment(Octets& bytes, std::size_t from, std::size_t size) {
  return {.iov_base = bytes.data() + from, .iov_len = size};
}

class DeviceTest : public testing::TestWithParam<bool> {
 protected:
  static Runtime::Options options() {
    return {.workers = 1, .pool_threads = 4, .buffer_bytes = 16 << 20, .use_io_uring = GetParam()};
  }
  UniqueFd open(const std::string& name, int flags) {
    return UniqueFd(::open((dir_ / name).c_str(), flags | O_CREAT | O_CLOEXEC, 0644));
  }
  Result<std::size_t> write(int fd, std::vector<iovec> segments, std::uint64_t offset,
                            int flags = 0) {
    return run_on(worker_, [&] { return worker_.device.writev(fd, segments, offset, flags); });
  }
  Result<std::size_t> read(int fd, std::vector<iovec> segments, std::uint64_t offset,
                           int flags = 0) {
    return run_on(worker_, [&] { return worker_.device.readv(fd, segments, offset, flags); });
  }
  Result<> sync(int fd, SyncKind kind, std::uint64_t offset, std::uint64_t length) {
    return run_on(worker_, [&] { return worker_.device.sync(fd, kind, offset, length); });
  }
  Result<> allocate(int fd, int mode, std::uint64_t offset, std::uint64_t length) {
    return run_on(worker_, [&] { return worker_.device.allocate(fd, mode, offset, length); });
  }

  TempDir dir_;
  Runtime runtime_{options()};
  Worker& worker_ = runtime_.worker(0);
};

TEST_P(DeviceTest, TheAskedDeviceIsUsed) {
  EXPECT_EQ(runtime_.io_uring_active(), GetParam());
}

TEST_P(DeviceTest, WritesWhatPreadReads) {
  const UniqueFd fd = open("f", O_RDWR);
  Octets bytes = random_octets(100'000, 1);
  const auto written = write(
      fd.get(), {segment(bytes, 0, 1), segment(bytes, 1, 4096), segment(bytes, 4097, 95'903)}, 123);
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_EQ(*written, 100'000U);
  Octets found(100'000);
  ASSERT_EQ(::pread(fd.get(), found.data(), found.size(), 123), 100'000);
  EXPECT_EQ(found, bytes);
}

TEST_P(DeviceTest, ReadsWhatPwriteWrote) {
  const UniqueFd fd = open("f", O_RDWR);
  const Octets bytes = random_octets(50'000, 2);
  ASSERT_EQ(::pwrite(fd.get(), bytes.data(), bytes.size(), 7), 50'000);
  Octets found(50'000);
  EXPECT_EQ(*read(fd.get(), {segment(found, 0, 20'000), segment(found, 20'000, 30'000)}, 7),
            50'000U);
  EXPECT_EQ(found, bytes);
  Octets single(10);
  EXPECT_EQ(*read(fd.get(), {segment(single, 0, 10)}, 107), 10U);
  EXPECT_EQ(0, std::memcmp(single.data(), bytes.data() + 100, 10));
}

TEST_P(DeviceTest, ReadEndsAtTheEndOfTheFile) {
  const UniqueFd fd = open("f", O_RDWR);
  Octets bytes = random_octets(100, 3);
  ASSERT_EQ(*write(fd.get(), {segment(bytes, 0, 100)}, 0), 100U);
  Octets found(200);
  EXPECT_EQ(*read(fd.get(), {segment(found, 0, 200)}, 40), 60U);
  EXPECT_EQ(*read(fd.get(), {segment(found, 0, 200)}, 100), 0U);
  EXPECT_EQ(*read(fd.get(), {segment(found, 0, 200)}, 1 << 30), 0U);
}

TEST_P(DeviceTest, ErrorsAreTheKernels) {
  const UniqueFd read_only = open("f", O_RDONLY);
  Octets bytes(8192);
  EXPECT_EQ(write(read_only.get(), {segment(bytes, 0, 10)}, 0).error(), errno_code(EBADF));
  EXPECT_EQ(read(-1, {segment(bytes, 0, 10)}, 0).error(), errno_code(EBADF));
  EXPECT_EQ(sync(-1, SyncKind::all, 0, 0).error(), errno_code(EBADF));
  EXPECT_EQ(allocate(read_only.get(), 0, 0, 10).error(), errno_code(EBADF));
  const UniqueFd fd = open("f", O_RDWR);
  EXPECT_EQ(allocate(fd.get(), 0, 0, 0).error(), errno_code(EINVAL));
  EXPECT_EQ(write(fd.get(), {segment(bytes, 0, 1)}, 0, 0x40000000).error(), errno_code(EOPNOTSUPP));
}

TEST_P(DeviceTest, OffsetsPastTheLargestAreRefused) {
  const UniqueFd fd = open("f", O_RDWR);
  Octets bytes(16);
  constexpr auto none = std::numeric_limits<std::uint64_t>::max();  // -1: the file position.
  EXPECT_EQ(write(fd.get(), {segment(bytes, 0, 1)}, none).error(), errno_code(EINVAL));
  EXPECT_EQ(read(fd.get(), {segment(bytes, 0, 1)}, none).error(), errno_code(EINVAL));
  EXPECT_EQ(sync(fd.get(), SyncKind::all, none, 1).error(), errno_code(EINVAL));
  EXPECT_EQ(allocate(fd.get(), 0, none, 1).error(), errno_code(EINVAL));
  struct stat status{};
  ASSERT_EQ(::fstat(fd.get(), &status), 0);
  EXPECT_EQ(status.st_size, 0);
}

TEST_P(DeviceTest, MoreSegmentsThanTheKernelTakesAreRefused) {
  const UniqueFd fd = open("f", O_RDWR);
  Octets bytes(2000);
  std::vector<iovec> segments;
  for (std::size_t i = 0; i < 1024; ++i) segments.push_back(segment(bytes, i, 1));
  EXPECT_EQ(*write(fd.get(), segments, 0), 1024U);
  segments.push_back(segment(bytes, 0, 1));
  EXPECT_EQ(write(fd.get(), segments, 0).error(), errno_code(EINVAL));
}

TEST_P(DeviceTest, MisalignedDirectIoIsRefused) {
  const UniqueFd fd = open("f", O_RDWR | O_DIRECT);
  if (!fd) GTEST_SKIP() << "no O_DIRECT in the directory for temporary files";
  const Buffer buffer = worker_.buffers.try_acquire(8192);
  std::memset(buffer.data(), 0x5a, 8192);
  EXPECT_EQ(*write(fd.get(), {{buffer.data(), 8192}}, 0), 8192U);
  EXPECT_EQ(write(fd.get(), {{buffer.data() + 1, 4096}}, 0).error(), errno_code(EINVAL));
  EXPECT_EQ(write(fd.get(), {{buffer.data(), 4096}}, 100).error(), errno_code(EINVAL));
  EXPECT_EQ(*read(fd.get(), {{buffer.data(), 8192}}, 4096), 4096U);
}

TEST_P(DeviceTest, ManyMoreAtOnceThanTheRingHolds) {
  constexpr unsigned count = 3000;  // The ring takes 256 at a time, 512 in the kernel.
  constexpr std::size_t size = 100;
  const UniqueFd fd = open("f", O_RDWR);
  Octets bytes = random_octets(count * size, 4);
  std::vector<iovec> segments;
  for (std::size_t i = 0; i < count; ++i) segments.push_back(segment(bytes, i * size, size));
  std::vector<std::future<Result<std::size_t>>> results;
  for (std::size_t i = 0; i < count; ++i) {
    auto one = [this, &fd, &segments, i] {
      return worker_.device.writev(fd.get(), {&segments[i], 1}, i * size, 0);
    };
    results.push_back(start_on(worker_, one));
  }
  for (auto& each : results) EXPECT_EQ(*each.get(), size);
  Octets found(bytes.size());
  ASSERT_EQ(::pread(fd.get(), found.data(), found.size(), 0), static_cast<ssize_t>(bytes.size()));
  EXPECT_EQ(found, bytes);
}

TEST_P(DeviceTest, AnOperationStartedByACompletionIsSubmitted) {
  const UniqueFd fd = open("f", O_RDWR);
  Octets bytes = random_octets(50 * 10, 5);
  auto chain = [&]() -> Awaitable<std::size_t> {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const iovec one = segment(bytes, done, 10);
      const Result<std::size_t> written =
          co_await worker_.device.writev(fd.get(), {&one, 1}, done, 0);
      if (!written) co_return done;
      done += *written;
    }
    co_return done;
  };
  EXPECT_EQ(run_on(worker_, chain), bytes.size());
}

TEST_P(DeviceTest, SyncsRangesAndWholeFiles) {
  const UniqueFd fd = open("f", O_RDWR);
  Octets bytes = random_octets(3 * 4096, 6);
  ASSERT_TRUE(write(fd.get(), {segment(bytes, 0, bytes.size())}, 0));
  EXPECT_TRUE(sync(fd.get(), SyncKind::data, 4096, 4096));
  EXPECT_TRUE(sync(fd.get(), SyncKind::data, 0, 1));
  EXPECT_TRUE(sync(fd.get(), SyncKind::all, 4096, 0));
  EXPECT_TRUE(sync(fd.get(), SyncKind::all, 4096, std::uint64_t{1} << 40));
  EXPECT_TRUE(sync(fd.get(), SyncKind::all, 1, std::numeric_limits<std::uint64_t>::max()));
}

// cachestat(2) of one page: is it dirty? nullopt on kernels before 6.5.
std::optional<bool> page_is_dirty(int fd, std::uint64_t page) {
  constexpr long cachestat_number = 451;
  struct {
    std::uint64_t offset, length;
  } const range{page * 4096, 4096};
  struct {
    std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
  } found{};
  if (::syscall(cachestat_number, fd, &range, &found, 0) != 0) return std::nullopt;
  return found.dirty > 0;
}

TEST_P(DeviceTest, ASyncOfARangeLeavesOtherPagesToOthers) {
  if (!GetParam()) GTEST_SKIP() << "fsync(2) knows no ranges";
  const UniqueFd fd = open("f", O_RDWR);
  Octets bytes = random_octets(4096, 9);
  // Far apart: a large folio is dirty and written as a whole.
  for (const std::uint64_t page : {0U, 100U, 200U}) {
    ASSERT_TRUE(write(fd.get(), {segment(bytes, 0, bytes.size())}, page * 4096));
  }
  if (!page_is_dirty(fd.get(), 0).value_or(false)) GTEST_SKIP() << "dirty pages cannot be seen";
  ASSERT_TRUE(sync(fd.get(), SyncKind::data, 100 * 4096, 4096));
  EXPECT_EQ(page_is_dirty(fd.get(), 0), true);
  EXPECT_EQ(page_is_dirty(fd.get(), 100), false);
  EXPECT_EQ(page_is_dirty(fd.get(), 200), true);
  ASSERT_TRUE(sync(fd.get(), SyncKind::data, 100 * 4096, 0));
  EXPECT_EQ(page_is_dirty(fd.get(), 200), false);
}

TEST_P(DeviceTest, AllocatesBeyondTheEndWithoutChangingTheSize) {
  const UniqueFd fd = open("f", O_RDWR);
  ASSERT_TRUE(allocate(fd.get(), FALLOC_FL_KEEP_SIZE, 0, 1 << 20));
  struct stat status{};
  ASSERT_EQ(::fstat(fd.get(), &status), 0);
  EXPECT_EQ(status.st_size, 0);
  EXPECT_GE(status.st_blocks * 512, 1 << 20);
}

TEST_P(DeviceTest, AWriteClearsSetIdBits) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root would keep them";
  for (const bool allocating : {false, true}) {
    const UniqueFd fd = open("f", O_RDWR);
    ASSERT_EQ(::fchmod(fd.get(), 06777), 0);
    Octets bytes(10);
    if (allocating) {
      ASSERT_TRUE(allocate(fd.get(), 0, 0, 4096));
    } else {
      ASSERT_TRUE(write(fd.get(), {segment(bytes, 0, 10)}, 0));
    }
    struct stat status{};
    ASSERT_EQ(::fstat(fd.get(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0777U);
  }
}

// The file and its directory admit nobody but root: what counts is how the descriptor was opened.
TEST_P(DeviceTest, AnOpenDescriptorSufficesForEveryOperation) {
  const UniqueFd fd = open("f", O_RDWR);
  ASSERT_EQ(::fchmod(fd.get(), 0), 0);
  Octets bytes = random_octets(4096, 7);
  EXPECT_EQ(*write(fd.get(), {segment(bytes, 0, 4096)}, 0), 4096U);
  EXPECT_EQ(*read(fd.get(), {segment(bytes, 0, 4096)}, 0), 4096U);
  EXPECT_TRUE(sync(fd.get(), SyncKind::all, 0, 0));
  EXPECT_TRUE(allocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
}

TEST_P(DeviceTest, StopWaitsForOperationsInFlight) {
  const UniqueFd fd = open("f", O_RDWR);
  Octets bytes = random_octets(1 << 20, 8);
  const iovec one = segment(bytes, 0, bytes.size());
  std::vector<std::future<Result<std::size_t>>> results;
  for (std::uint64_t i = 0; i < 8; ++i) {
    auto write_one = [this, &fd, &one, i]() -> Awaitable<Result<std::size_t>> {
      return worker_.device.writev(fd.get(), {&one, 1}, i << 20, 0);
    };
    results.push_back(start_on(worker_, write_one));
  }
  runtime_.stop();
  struct stat status{};
  ASSERT_EQ(::fstat(fd.get(), &status), 0);
  EXPECT_EQ(status.st_size, 8 << 20);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceTest, testing::Values(true, false),
                         [](const auto& device) { return device.param ? "Uring" : "Pool"; });

}  // namespace
}  // namespace selvage::storage
