#include "storage/worker.h"

#include "tests/support/run_on.h"
#include "tests/support/temp_dir.h"

#include "storage/parked.h"
#include "storage/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace selvage::storage {
namespace {

TEST(Runtime, EveryWorkerHasItsOwnThread) {
  Runtime runtime({.workers = 3, .pool_threads = 1, .buffer_bytes = 1});
  ASSERT_EQ(runtime.size(), 3U);
  auto coroutine = []() -> Awaitable<std::thread::id> { co_return std::this_thread::get_id(); };
  std::set<std::thread::id> threads{std::this_thread::get_id()};
  for (unsigned i = 0; i < runtime.size(); ++i) {
    EXPECT_EQ(runtime.worker(i).index, i);
    EXPECT_EQ(&runtime.worker(i).runtime, &runtime);
    threads.insert(run_on(runtime.worker(i), coroutine));
  }
  EXPECT_EQ(threads.size(), 4U);
}

TEST(Runtime, AWrapperThatThrowsIsReportedAndLeavesNothingBehind) {
  const auto refuse = [](std::unique_ptr<IoDevice>) -> std::unique_ptr<IoDevice> {
    throw std::runtime_error("no device");
  };
  Runtime::Options options{.workers = 2, .pool_threads = 1, .buffer_bytes = 1};
  options.wrap_device = refuse;
  EXPECT_THROW(Runtime runtime(options), std::runtime_error);
}

TEST(Runtime, StopsTwiceAndMayStartAgain) {
  for (int round = 0; round < 3; ++round) {
    Runtime runtime({.workers = 2, .pool_threads = 2, .buffer_bytes = 1});
    runtime.stop();
    runtime.stop();
  }
}

TEST(Runtime, WritingToAClosedPipeKillsNobody) {
  Runtime runtime({.workers = 1, .pool_threads = 1, .buffer_bytes = 1});
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::close(ends[0]);
  auto coroutine = [&]() -> Awaitable<int> { co_return ::write(ends[1], "x", 1) < 0 ? errno : 0; };
  EXPECT_EQ(run_on(runtime.worker(0), coroutine), EPIPE);
  EXPECT_EQ(::write(ends[1], "x", 1), -1);
  ::close(ends[1]);
}

TEST(Runtime, WhatStillWaitsAtTheEndIsDestroyedNotResumed) {
  struct Flag {
    std::atomic<int>& count;
    ~Flag() { ++count; }
  };
  std::atomic<int> destroyed{0};
  std::atomic<bool> resumed{false};
  {
    Runtime runtime({.workers = 1, .pool_threads = 1, .buffer_bytes = 1});
    auto coroutine = [&]() -> Awaitable<> {
      const Flag flag{destroyed};
      boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor,
                                      std::chrono::hours(1));
      co_await timer.async_wait(boost::asio::use_awaitable);
      resumed = true;
    };
    boost::asio::co_spawn(runtime.worker(0).context, coroutine, boost::asio::detached);
    auto nothing = []() -> Awaitable<> { co_return; };
    run_on(runtime.worker(0), nothing);
  }
  EXPECT_EQ(destroyed, 1);
  EXPECT_FALSE(resumed);
}

TEST(Runtime, BufferWaitersAreRefusedAtTheEnd) {
  std::atomic<int> refused{0};
  Buffer all;
  Runtime runtime({.workers = 1, .pool_threads = 1, .buffer_bytes = 1});
  all = runtime.buffers().try_acquire(runtime.buffers().gauges().bytes_limit);
  auto coroutine = [&]() -> Awaitable<> {
    Result<Buffer> buffer = co_await runtime.buffers().acquire(1);
    if (!buffer) refused = buffer.error().value();
  };
  boost::asio::co_spawn(runtime.worker(0).context, coroutine, boost::asio::detached);
  auto nothing = []() -> Awaitable<> { co_return; };
  run_on(runtime.worker(0), nothing);
  runtime.stop();
  EXPECT_EQ(refused, ECANCELED);
  all = Buffer();
}

// As in many containers: io_uring_setup(2) gives EPERM, for the calling thread and those it starts.
bool forbid_io_uring() {
  std::array<sock_filter, 4> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{.len = program.size(), .filter = program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(Runtime, WorksWhereIoUringIsForbidden) {
  const TempDir dir;
  bool forbidden = false;
  std::thread container([&] {
    forbidden = forbid_io_uring();
    if (!forbidden) return;
    Runtime runtime({.workers = 2, .pool_threads = 1, .buffer_bytes = 1});
    EXPECT_FALSE(runtime.io_uring_active());
    const UniqueFd fd(::open((dir / "f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    auto coroutine = [&]() -> Awaitable<Result<std::size_t>> {
      std::string text = "content";
      const iovec segment{.iov_base = text.data(), .iov_len = text.size()};
      co_return co_await runtime.worker(1).device.writev(fd.get(), {&segment, 1}, 0, 0);
    };
    EXPECT_EQ(*run_on(runtime.worker(1), coroutine), 7U);
  });
  container.join();
  if (!forbidden) GTEST_SKIP() << "no seccomp here";
}

TEST(Parked, IsResumedOnItsOwnThread) {
  Runtime runtime({.workers = 2, .pool_threads = 1, .buffer_bytes = 1});
  std::optional<Parked> parked;
  std::promise<void> stored;
  auto waiter = [&]() -> Awaitable<bool> {
    const std::thread::id mine = std::this_thread::get_id();
    auto store = [&](Parked coroutine) {
      parked.emplace(std::move(coroutine));
      stored.set_value();
    };
    co_await park(store);
    co_return std::this_thread::get_id() == mine;
  };
  auto result = start_on(runtime.worker(0), waiter);
  stored.get_future().get();
  auto resume = [&]() -> Awaitable<> {
    std::move(*parked).resume();
    co_return;
  };
  run_on(runtime.worker(1), resume);
  EXPECT_TRUE(result.get());
}

}  // namespace
}  // namespace selvage::storage
