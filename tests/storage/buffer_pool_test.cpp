#include "storage/buffer_pool.h"

#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace selvage::storage {
namespace {

namespace asio = boost::asio;

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t pool_bytes = std::size_t{2} << 20;
constexpr std::size_t pool_pages = pool_bytes / page_bytes;

// What became of one acquire().
struct Request {
  std::optional<Result<Buffer>> result;
  bool done() const { return result.has_value(); }
};

class BufferPoolTest : public testing::Test {
 protected:
  void start(Request& request, std::size_t bytes) {
    auto coroutine = [this, &request, bytes]() -> Awaitable<> {
      request.result.emplace(co_await pool_.acquire(bytes));
    };
    asio::co_spawn(context_, std::move(coroutine), asio::detached);
    run_ready();
  }
  void run_ready() {
    context_.restart();
    context_.poll();
  }

  asio::io_context context_;
  BufferPool pool_{pool_bytes};
};

TEST_F(BufferPoolTest, SizesAreWholePagesAndAddressesPageAligned) {
  for (const std::size_t bytes : {std::size_t{1}, page_bytes, page_bytes + 1, 5 * page_bytes - 1}) {
    const Buffer buffer = pool_.try_acquire(bytes);
    ASSERT_TRUE(buffer);
    EXPECT_EQ(buffer.size(), (bytes + page_bytes - 1) / page_bytes * page_bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % page_bytes, 0U);
    std::memset(buffer.data(), 0x77, buffer.size());
  }
}

TEST_F(BufferPoolTest, StartsOnAHugePageAndRoundsUpToIt) {
  const Buffer buffer = pool_.try_acquire(1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % pool_bytes, 0U);
  EXPECT_EQ(BufferPool(1).gauges().bytes_limit, pool_bytes);
  EXPECT_EQ(BufferPool(pool_bytes + 1).gauges().bytes_limit, 2 * pool_bytes);
}

TEST_F(BufferPoolTest, ExhaustedTryGivesNothing) {
  std::vector<Buffer> buffers;
  while (Buffer buffer = pool_.try_acquire(page_bytes)) buffers.push_back(std::move(buffer));
  EXPECT_EQ(buffers.size(), pool_pages);
  buffers.pop_back();
  EXPECT_FALSE(pool_.try_acquire(page_bytes + 1));
  EXPECT_TRUE(pool_.try_acquire(page_bytes));
}

TEST_F(BufferPoolTest, NeighboursJoinInAnyOrderOfRelease) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<Buffer> buffers;
    while (Buffer buffer = pool_.try_acquire((1 + random() % 7) * page_bytes)) {
      buffers.push_back(std::move(buffer));
    }
    std::shuffle(buffers.begin(), buffers.end(), random);
    buffers.clear();
    EXPECT_TRUE(pool_.try_acquire(pool_bytes));
  }
}

TEST_F(BufferPoolTest, TheLowestAddressComesFirst) {
  Buffer first = pool_.try_acquire(page_bytes);
  const Buffer second = pool_.try_acquire(page_bytes);
  Buffer third = pool_.try_acquire(page_bytes);
  const Buffer fourth = pool_.try_acquire(page_bytes);
  std::byte* const lowest = first.data();
  third = Buffer();
  first = Buffer();
  EXPECT_EQ(pool_.try_acquire(page_bytes).data(), lowest);
}

TEST_F(BufferPoolTest, BuffersInUseNeverOverlap) {
  std::mt19937 random(2);
  std::map<std::byte*, Buffer> used;
  for (int step = 0; step < 5000; ++step) {
    if (random() % 2 == 0 || used.empty()) {
      Buffer buffer = pool_.try_acquire((1 + random() % 20) * page_bytes);
      if (!buffer) continue;
      const auto next = used.lower_bound(buffer.data());
      if (next != used.end()) {
        ASSERT_LE(buffer.data() + buffer.size(), next->first);
      }
      if (next != used.begin()) {
        const Buffer& previous = std::prev(next)->second;
        ASSERT_LE(previous.data() + previous.size(), buffer.data());
      }
      std::byte* const data = buffer.data();
      used.emplace(data, std::move(buffer));
    } else {
      used.erase(std::next(used.begin(), static_cast<std::ptrdiff_t>(random() % used.size())));
    }
  }
}

TEST_F(BufferPoolTest, AcquireWaitsForRoomInOrder) {
  Buffer low = pool_.try_acquire(pool_bytes / 2);
  Buffer high = pool_.try_acquire(pool_bytes / 2);
  Request large;
  Request small;
  start(large, pool_bytes);
  start(small, page_bytes);
  EXPECT_FALSE(large.done());

  // Room for the small one, which must not overtake; nor may those who only try.
  low = Buffer();
  run_ready();
  EXPECT_FALSE(small.done());
  EXPECT_FALSE(pool_.try_acquire(page_bytes));

  high = Buffer();
  run_ready();
  ASSERT_TRUE(large.done());
  EXPECT_EQ(large.result->value().size(), pool_bytes);
  EXPECT_FALSE(small.done());

  large.result.reset();
  run_ready();
  ASSERT_TRUE(small.done());
  EXPECT_TRUE(small.result->value());
  EXPECT_EQ(pool_.gauges().waits, 2U);
}

TEST_F(BufferPoolTest, OneReleaseServesAllThatFit) {
  Buffer all = pool_.try_acquire(pool_bytes);
  std::array<Request, 5> requests;
  for (Request& each : requests) start(each, pool_bytes / 4);
  all = Buffer();
  run_ready();
  EXPECT_TRUE(requests[0].done());
  EXPECT_TRUE(requests[1].done());
  EXPECT_TRUE(requests[2].done());
  EXPECT_TRUE(requests[3].done());
  EXPECT_FALSE(requests[4].done());
  requests[1].result.reset();
  run_ready();
  EXPECT_TRUE(requests[4].done());
}

TEST_F(BufferPoolTest, AWaiterKeepsItsContextBusy) {
  Buffer all = pool_.try_acquire(pool_bytes);
  Request request;
  start(request, page_bytes);
  EXPECT_FALSE(context_.stopped());
  all = Buffer();
  run_ready();
  EXPECT_TRUE(request.done());
  EXPECT_TRUE(context_.stopped());
}

TEST_F(BufferPoolTest, WhatCanNeverBeHadIsRefusedAtOnce) {
  Request request;
  start(request, pool_bytes + 1);
  ASSERT_TRUE(request.done());
  EXPECT_EQ(request.result->error(), errno_code(ENOMEM));
  EXPECT_FALSE(pool_.try_acquire(pool_bytes + 1));
  EXPECT_FALSE(pool_.try_acquire(SIZE_MAX));
  Request nothing;
  start(nothing, 0);
  ASSERT_TRUE(nothing.done());
  EXPECT_EQ(nothing.result->error(), errno_code(EINVAL));
}

TEST_F(BufferPoolTest, StopRefusesWaitersAndLaterCalls) {
  const Buffer all = pool_.try_acquire(pool_bytes);
  Request waiting;
  start(waiting, page_bytes);
  EXPECT_FALSE(waiting.done());
  pool_.stop();
  run_ready();
  ASSERT_TRUE(waiting.done());
  EXPECT_EQ(waiting.result->error(), errno_code(ECANCELED));
  Request later;
  start(later, page_bytes);
  ASSERT_TRUE(later.done());
  EXPECT_EQ(later.result->error(), errno_code(ECANCELED));
  EXPECT_FALSE(pool_.try_acquire(page_bytes));
}

TEST_F(BufferPoolTest, Gauges) {
  Buffer one = pool_.try_acquire(3 * page_bytes);
  Buffer two = pool_.try_acquire(5 * page_bytes);
  one = Buffer();
  const BufferPool::Gauges gauges = pool_.gauges();
  EXPECT_EQ(gauges.bytes_limit, pool_bytes);
  EXPECT_EQ(gauges.bytes_used, 5 * page_bytes);
  EXPECT_EQ(gauges.bytes_peak, 8 * page_bytes);
  EXPECT_EQ(gauges.waits, 0U);
}

TEST_F(BufferPoolTest, MovedBuffersAreGivenBackOnce) {
  Buffer one = pool_.try_acquire(page_bytes);
  Buffer two = std::move(one);
  EXPECT_EQ(pool_.gauges().bytes_used, page_bytes);
  two = pool_.try_acquire(2 * page_bytes);
  EXPECT_EQ(pool_.gauges().bytes_used, 2 * page_bytes);
  two = Buffer();
  EXPECT_EQ(pool_.gauges().bytes_used, 0U);
}

// Several contexts contend for less memory than they want: all get theirs in the end, and no two
// see each other's bytes.
TEST(BufferPoolThreads, ContendingWorkersAllGetOn) {
  BufferPool pool(pool_bytes);
  std::atomic<unsigned> good{0};
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&pool, &good, thread] {
      asio::io_context context(1);
      for (unsigned i = 0; i < 8; ++i) {
        auto coroutine = [&pool, &good, mark = static_cast<int>(thread * 8 + i)]() -> Awaitable<> {
          for (int round = 0; round < 100; ++round) {
            Result<Buffer> buffer = co_await pool.acquire(pool_bytes / 5);
            if (!buffer) co_return;
            std::memset(buffer->data(), mark, 64);
            std::this_thread::yield();
            const auto all = [mark](std::byte b) { return b == static_cast<std::byte>(mark); };
            if (std::all_of(buffer->data(), buffer->data() + 64, all)) ++good;
          }
        };
        asio::co_spawn(context, std::move(coroutine), asio::detached);
      }
      context.run();
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(good, 3U * 8U * 100U);
  EXPECT_EQ(pool.gauges().bytes_used, 0U);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
TEST_F(BufferPoolTest, UseAfterReleaseIsFound) {
  const auto use_after_release = [this] {
    volatile std::byte* data = pool_.try_acquire(page_bytes).data();
    data[0] = std::byte{1};
  };
  EXPECT_DEATH(use_after_release(), "use-after-poison");
}
#endif
#endif

}  // namespace
}  // namespace selvage::storage
