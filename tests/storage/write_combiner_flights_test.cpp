// When a combiner has several batches in flight, and when it must not.
#include "storage/write_combiner.h"
#include "tests/storage/simulated_file.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <random>
#include <vector>

namespace selvage::storage {
namespace {

constexpr std::uint64_t record = 100;  // Bytes: shares its first and last page.

class WriteCombinerFlightsTest : public ::testing::Test {
 protected:
  void open(std::size_t size) {
    file_.bytes.assign(size, std::byte{1});
    WriteCombiner::Limits limits;
    limits.patience = 0;
    limits.most_flights = 2;
    limits.least_flight = 2;
    combiner_ = std::make_shared<WriteCombiner>(
        std::shared_ptr<CombinedFile>(std::shared_ptr<void>(), &file_), page_size, size, budget_,
        verifier_, data_counters_, counters_, waits_learned_, limits);
  }

  /// Record `number`, filled with that; returns its place in answered_.
  std::size_t send(std::uint64_t number, Stability stability = Stability::unstable) {
    const std::size_t place = answered_.size();
    answered_.push_back(false);
    // O_DIRECT memory: congruent with the offset.
    auto& memory = memory_.emplace_back(std::make_unique<Bytes>(2 * page_size + record));
    std::byte* data = memory->data();
    while (reinterpret_cast<std::uintptr_t>(data) % page_size != number * record % page_size)
      ++data;
    std::fill_n(data, record, static_cast<std::byte>(number));
    auto client = [this, place, number, data, stability]() -> Awaitable<> {
      const std::span<const std::byte> bytes(data, record);
      const auto done =
          co_await combiner_->write(worker_, number * record, bytes, stability, false);
      EXPECT_TRUE(done.has_value());
      answered_[place] = true;
    };
    boost::asio::co_spawn(context_, std::move(client), [](std::exception_ptr error) {
      if (error) std::rethrow_exception(error);
    });
    turn();
    return place;
  }

  void turn() {
    context_.restart();
    context_.poll();
  }
  /// Effect and completion of the operation that was started as the `i`th of those pending.
  void complete(std::size_t i) {
    file_.step(i);
    file_.step(i);
    turn();
  }
  void complete_all() {
    while (!file_.pending.empty()) complete(0);
  }
  bool holds(std::uint64_t number) const {
    const auto begin = file_.bytes.begin() + static_cast<std::ptrdiff_t>(number * record);
    return std::all_of(begin, begin + record,
                       [&](std::byte b) { return b == static_cast<std::byte>(number); });
  }
  std::ptrdiff_t answered() const { return std::ranges::count(answered_, true); }

  Runtime runtime_{simulation_options()};
  boost::asio::io_context context_{1};
  Worker worker_{runtime_,          0, context_, runtime_.worker(0).device, runtime_.pool(),
                 runtime_.buffers()};
  std::mt19937_64 random_{1};
  DataCounters data_counters_;
  CombinerCounters counters_;
  WriteVerifier verifier_{data_counters_};
  cache::EdgePageBudget budget_{1 << 20};
  WaitsLearned waits_learned_;
  SimulatedFile file_{random_, 0};
  std::shared_ptr<WriteCombiner> combiner_;
  std::vector<bool> answered_;
  std::vector<std::unique_ptr<Bytes>> memory_;
};

TEST_F(WriteCombinerFlightsTest, InsideTheFileTwoBatchesOfNeighboursAreWrittenAtOnce) {
  open(20 * record);
  send(10);  // Finds nobody leading: a batch of its own.
  ASSERT_EQ(file_.pending.size(), 1U);
  for (const unsigned number : {3U, 1U, 4U, 2U}) send(number);
  ASSERT_EQ(file_.pending.size(), 1U);
  complete(0);
  ASSERT_EQ(answered(), 1);
  ASSERT_EQ(file_.pending.size(), 2U);  // Records 1 and 2, records 3 and 4.
  EXPECT_EQ(counters_.batches.get(), 3U);

  complete(1);  // The upper half first: its clients go on, the others wait.
  EXPECT_EQ(answered(), 3);
  EXPECT_TRUE(answered_[1]);
  EXPECT_TRUE(answered_[3]);
  send(5);
  send(6);
  EXPECT_EQ(file_.pending.size(), 1U);  // They queue until a batch ends.
  complete(0);
  EXPECT_EQ(answered(), 5);
  complete_all();
  EXPECT_EQ(answered(), 7);

  auto flush = [this]() -> Awaitable<> {
    const auto done = co_await combiner_->write_out(worker_, true);
    EXPECT_TRUE(done.has_value());
  };
  boost::asio::co_spawn(context_, flush, [](std::exception_ptr error) { EXPECT_FALSE(error); });
  turn();
  complete_all();
  for (const unsigned number : {1U, 2U, 3U, 4U, 5U, 6U, 10U}) EXPECT_TRUE(holds(number)) << number;
  EXPECT_EQ(file_.bytes[0], std::byte{1});
  EXPECT_EQ(file_.bytes[7 * record], std::byte{1});
}

TEST_F(WriteCombinerFlightsTest, AWriteOfPagesThatAreBeingWrittenWaitsForThem) {
  open(20 * record);
  send(10);
  for (const unsigned number : {1U, 2U, 3U, 4U}) send(number);
  complete(0);
  ASSERT_EQ(file_.pending.size(), 2U);
  send(1);
  send(12);  // Nothing against this one, but it came with the other.
  complete(1);
  EXPECT_EQ(file_.pending.size(), 1U);
  complete_all();
  EXPECT_EQ(answered(), 7);
  EXPECT_TRUE(holds(1));
}

TEST_F(WriteCombinerFlightsTest, AGrowingFileHasOneBatchInFlight) {
  open(0);
  send(0);
  for (const unsigned number : {1U, 2U, 3U, 4U, 5U, 6U}) send(number);
  EXPECT_EQ(file_.pending.size(), 1U);
  while (!file_.pending.empty()) {
    EXPECT_EQ(file_.pending.size(), 1U);
    complete(0);
  }
  EXPECT_EQ(answered(), 7);
}

TEST_F(WriteCombinerFlightsTest, StableWritesShareOneBatchAndItsSync) {
  open(20 * record);
  send(10, Stability::file_sync);
  while (!answered_[0]) complete(0);
  const int syncs = file_.syncs;
  send(12);
  for (const unsigned number : {1U, 2U, 3U, 4U}) send(number, Stability::file_sync);
  complete_all();
  EXPECT_EQ(answered(), 6);
  // Its own, and one more for those that waited for a neighbour of their last page.
  EXPECT_LE(file_.syncs - syncs, 2);
  for (const unsigned number : {1U, 2U, 3U, 4U}) EXPECT_TRUE(holds(number)) << number;
}

// Waits whose length no clock decides; `filled` times they have been worth it.
WaitsLearned::Credits waits_learned(std::size_t filled) {
  WaitCredit::Levels forever;
  forever.fill(std::chrono::hours(1));
  WaitsLearned::Credits credits{WaitCredit(forever), WaitCredit(forever)};
  for (std::size_t i = 0; i < filled; ++i) {
    credits.writes.filled({});
    credits.commits.filled({});
  }
  return credits;
}

TEST_F(WriteCombinerFlightsTest, ALoneStableWriteDoesNotWait) {
  open(20 * record);
  send(10, Stability::file_sync);
  complete_all();
  EXPECT_EQ(answered(), 1);
  EXPECT_EQ(counters_.waits.get(), 0U);
}

TEST_F(WriteCombinerFlightsTest, AStableWriteWaitsForTheNeighbourWhoFillsItsPages) {
  waits_learned_.set(waits_learned(WaitCredit::most));
  open(20 * record);
  send(10, Stability::file_sync);
  ASSERT_EQ(file_.pending.size(), 1U);  // Its middle.
  send(9);
  send(11);
  complete_all();
  EXPECT_EQ(answered(), 3);
  EXPECT_EQ(counters_.waits.get(), 1U);
  EXPECT_EQ(counters_.pages_read.get(), 0U);
  EXPECT_TRUE(holds(10));
}

TEST_F(WriteCombinerFlightsTest, AWaitAfterWhichThePageIsWrittenPartialWasInVain) {
  waits_learned_.set(waits_learned(WaitCredit::cost));
  open(20 * record);
  auto flush = [this]() -> Awaitable<> {
    const auto done = co_await combiner_->write_out(worker_, false);
    EXPECT_TRUE(done.has_value());
  };
  // Two for each of the levels that others in flight have opened, one for what was learned.
  unsigned round = 0;
  for (const unsigned number : {3U, 5U, 8U, 10U, 17U}) {  // Each has a whole page and two edges.
    ++round;
    EXPECT_TRUE(waits_learned_.get().writes.left());
    send(number, Stability::file_sync);
    ASSERT_EQ(file_.pending.size(), 1U);
    boost::asio::co_spawn(context_, flush, [](std::exception_ptr error) { EXPECT_FALSE(error); });
    turn();
    complete_all();
    EXPECT_EQ(answered(), round);
    EXPECT_EQ(counters_.waits.get(), round);
    EXPECT_EQ(counters_.pages_read.get(), 2 * round);
  }
  EXPECT_FALSE(waits_learned_.get().writes.left());
  EXPECT_TRUE(waits_learned_.get().commits.left()) << "it was no COMMIT that waited";
}

}  // namespace
}  // namespace selvage::storage
