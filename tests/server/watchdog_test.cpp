// What keeps a service in bounds: watchdog, memory budget.
#include "server/watchdog.h"
#include "server/memory_budget.h"
#include "tests/support/run_on.h"

#include <boost/asio/post.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace selvage::server {
namespace {

void flush(storage::Runtime& runtime) {
  for (unsigned i = 0; i < runtime.size(); ++i) {
    std::promise<void> done;
    boost::asio::post(runtime.worker(i).context, [&] { done.set_value(); });
    done.get_future().wait();
  }
}

TEST(Watchdog, IsFedOnlyIfEveryWorkerHasAnswered) {
  storage::Runtime::Options options;
  options.workers = 3;
  options.buffer_bytes = 16U << 20;
  storage::Runtime runtime(options);
  std::atomic<int> fed{0};
  Watchdog watchdog(runtime, [&] { ++fed; });
  EXPECT_FALSE(watchdog.beat());  // Nobody has been asked before.
  flush(runtime);
  EXPECT_TRUE(watchdog.beat());
  flush(runtime);
  EXPECT_EQ(fed, 1);

  std::promise<void> release;
  std::promise<void> stuck;
  boost::asio::post(runtime.worker(1).context, [&] {
    stuck.set_value();
    release.get_future().wait();
  });
  stuck.get_future().wait();
  EXPECT_TRUE(watchdog.beat());  // All had answered the beat before.
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(watchdog.beat());
  release.set_value();
  flush(runtime);
  EXPECT_TRUE(watchdog.beat());
  EXPECT_EQ(fed, 3);
  runtime.stop();
}

TEST(Watchdog, BeatsByItself) {
  storage::Runtime::Options options;
  options.workers = 1;
  options.buffer_bytes = 16U << 20;
  storage::Runtime runtime(options);
  std::promise<void> third;
  std::atomic<int> fed{0};
  {
    Watchdog watchdog(runtime, [&] {
      if (++fed == 3) third.set_value();
    });
    watchdog.start(std::chrono::milliseconds(20));
    third.get_future().wait();
  }
  runtime.stop();
}

TEST(MemoryBudget, TheSharesDoNotExceedTheLimit) {
  for (const std::uint64_t limit : {smallest_memory_limit, std::uint64_t{1} << 30,
                                    std::uint64_t{3} << 31, std::uint64_t{1} << 40}) {
    const auto budget = memory_budget(limit);
    const std::uint64_t record = 64U << 10;
    const std::uint64_t large = (8U << 20) + record;
    const std::uint64_t all = budget.buffer_bytes + budget.edge_bytes +
                              budget.max_connections * record + budget.max_in_flight * record +
                              budget.max_large_records * large + budget.duplicate_bytes +
                              budget.duplicate_entries * 512 + budget.session_reply_bytes +
                              budget.max_clients * (16U << 10);
    EXPECT_LE(all, limit);
    // None is so small that nothing works.
    EXPECT_GE(budget.buffer_bytes, std::uint64_t{64} << 20);
    EXPECT_GE(budget.max_connections, 256U);
    EXPECT_GE(budget.max_in_flight, 128U);
    EXPECT_GE(budget.max_large_records, 1U);
    EXPECT_GE(budget.max_clients, 256U);
  }
}

}  // namespace
}  // namespace selvage::server
