// The combiner against a simulated device that chooses every interleaving by seed. The file's
// bytes, as READs and as crashes show them, are compared with what a history of the requests
// allows, byte by byte: a byte holds what the last WRITE or truncate before it left, or what one
// in flight at the same time did.

#include "storage/write_combiner.h"
#include "tests/storage/simulated_file.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <algorithm>
#include <limits>
#include <random>

namespace selvage::storage {
namespace {

constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

// One WRITE (value > 0) or truncate (value 0, to the end of everything).
struct Change {
  std::uint64_t begin, end;
  std::byte value;
  std::uint64_t sent;
  std::uint64_t answered = never;  // never: in flight, or failed: its bytes may be there or not.
  std::uint64_t durable = never;   // When its stability was promised.
  bool truncate = false;
  std::uint64_t verifier = 0;
};

class History {
 public:
  // What was done to a byte, for a failed check.
  std::string of(std::uint64_t at) const {
    std::string out;
    for (const Change& change : changes) {
      if (at < change.begin || change.end <= at) continue;
      out += "\n  " + std::to_string(static_cast<int>(change.value)) + " [" +
             std::to_string(change.begin) + ", " + std::to_string(change.end) + ") sent " +
             std::to_string(change.sent) + " answered " + std::to_string(change.answered) +
             " durable " + std::to_string(change.durable) + " verifier " +
             std::to_string(change.verifier);
    }
    return out;
  }
  std::uint64_t now() { return ++clock_; }
  std::size_t add(Change change) {
    changes.push_back(change);
    return changes.size() - 1;
  }

  // Whether a byte may be `value` for a reader active from `from` to `to`. `ordered`: the time at
  // which a change counts as having happened for sure.
  template <class Ordered>
  bool allowed(std::uint64_t at, std::byte value, std::uint64_t from, std::uint64_t to,
               Ordered ordered) const {
    std::vector<const Change*> mine;
    for (const Change& change : changes) {
      if (change.begin <= at && at < change.end && change.sent < to) mine.push_back(&change);
    }
    const auto overwritten = [&](std::uint64_t answered) {
      return std::ranges::any_of(mine, [&](const Change* other) {
        return answered < other->sent && ordered(*other) < from;
      });
    };
    if (value == std::byte{0} && !overwritten(0)) return true;
    return std::ranges::any_of(mine, [&](const Change* change) {
      return change->value == value && !overwritten(change->answered);
    });
  }

  std::vector<Change> changes;

 private:
  std::uint64_t clock_ = 0;
};

struct Scenario {
  int clients = 4;
  int operations = 12;
  double fault_rate = 0;
  bool truncates = false;
  bool short_writes = false;
  bool inside = false;  ///< The file is as long as it ever gets; most WRITEs are UNSTABLE.
};

class Simulation {
 public:
  Simulation(Runtime& runtime, std::uint64_t seed, const Scenario& setup)
      : seed_(seed),
        setup_(setup),
        random_(seed),
        worker_{runtime, 0, context_, runtime.worker(0).device, runtime.pool(), runtime.buffers()},
        verifier_(data_counters_),
        budget_(1 << 20),
        file_(random_, setup.fault_rate) {
    file_.short_writes = setup.short_writes;
    // Some files exist before: their old bytes count as written by one stable WRITE.
    if (setup.inside || random_() % 2 == 0) {
      file_.bytes.assign(setup.inside ? 1024 : random_() % 700, std::byte{1});
      file_.durable = file_.bytes;
      Change old{0, file_.bytes.size(), std::byte{1}, history_.now()};
      old.answered = old.durable = history_.now();
      history_.add(old);
      next_value_ = 2;
    }
    WriteCombiner::Limits limits;
    limits.max_requests = 1 + random_() % 20;
    limits.clean_pages = random_() % 8;
    limits.patience = 0;  // Other threads have no part in the simulation.
    limits.most_holds = random_() % 4;
    limits.most_flights = 1 + random_() % 3;
    limits.least_flight = 1 + random_() % 3;
    WaitCredit::Levels forever;  // No clock decides.
    forever.fill(std::chrono::hours(1));
    limits.longest_wait = std::chrono::hours(1);
    WaitsLearned::Credits credits{WaitCredit(forever), WaitCredit(forever)};
    for (auto n = random_() % WaitCredit::most; n > 0; --n) credits.writes.filled({});
    for (auto n = random_() % WaitCredit::most; n > 0; --n) credits.commits.filled({});
    waits_learned_.set(credits);
    limits.most_waits = 1 + random_() % 4;
    combiner_ = std::make_shared<WriteCombiner>(
        std::shared_ptr<CombinedFile>(std::shared_ptr<void>(), &file_), page_size,
        file_.bytes.size(), budget_, verifier_, data_counters_, counters_, waits_learned_, limits);
  }

  void run(bool crash) {
    for (int i = 0; i < setup_.clients; ++i) {
      auto client = [this]() -> Awaitable<> { co_await play(); };
      ++running_;
      boost::asio::co_spawn(context_, std::move(client), [this](std::exception_ptr error) {
        if (error) std::rethrow_exception(error);
        --running_;
      });
    }
    const std::uint64_t crash_after = crash ? random_() % 200 : never;
    for (std::uint64_t steps = 0; running_ > 0; ++steps) {
      turn();
      if (steps >= crash_after) {
        check_crash(file_.crash());
        abandoned_ = true;
      }
      if (running_ > 0 && file_.pending.empty()) {
        ASSERT_FALSE(stuck_) << "nothing in flight and clients wait";
        stuck_ = true;
        continue;
      }
      stuck_ = false;
      if (!file_.pending.empty()) file_.step();
      if (::testing::Test::HasFailure()) break;
    }
    drain();
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << seed_;
      return;
    }
    check_end();
  }

  SimulatedFile& file() { return file_; }
  CombinerCounters& counters() { return counters_; }

 private:
  void turn() {
    context_.restart();
    context_.poll();
  }
  void drain() {
    for (int i = 0; i < 100000 && (running_ > 0 || !file_.pending.empty()); ++i) {
      turn();
      if (!file_.pending.empty()) file_.step();
    }
    turn();
  }

  Awaitable<> play() {
    for (int i = 0; i < setup_.operations && !abandoned_; ++i) {
      const auto dice = random_() % 100;
      if (dice < 60) {
        co_await write();
      } else if (dice < 75) {
        co_await read();
      } else if (dice < 85) {
        co_await commit();
      } else if (dice < 90) {
        co_await combiner_->write_out(worker_, random_() % 2 == 0);
      } else if (setup_.truncates) {
        co_await truncate();
      }
    }
  }

  Awaitable<> write() {
    if (next_value_ > 255) co_return;
    const std::uint64_t offset = random_() % 600;
    const std::uint64_t length = 1 + random_() % 250;
    const auto value = static_cast<std::byte>(next_value_++);
    // The payload where its address is congruent with the offset, as the receiver puts it.
    auto memory = std::make_unique<std::byte[]>(length + 2 * page_size);
    auto* at = memory.get();
    while (reinterpret_cast<std::uintptr_t>(at) % page_size != offset % page_size) ++at;
    std::fill_n(at, length, value);
    const auto stability = setup_.inside && random_() % 8 != 0
                               ? Stability::unstable
                               : static_cast<Stability>(random_() % 3);
    Change change{offset, offset + length, value, history_.now()};
    const std::size_t index = history_.add(change);
    const std::span<const std::byte> data(at, length);
    const bool through = random_() % 16 == 0;
    const Result<WriteResult> result =
        co_await combiner_->write(worker_, offset, data, stability, through);
    if (result.has_error()) co_return;
    EXPECT_EQ(result->count, length);
    EXPECT_GE(result->after.size, setup_.truncates ? 0 : offset + length);
    Change& done = history_.changes[index];
    done.verifier = result->verifier;
    done.answered = history_.now();
    if (stability != Stability::unstable) done.durable = done.answered;
  }

  Awaitable<> read() {
    const std::uint64_t offset = random_() % 10 * page_size;
    const std::uint64_t from = history_.now();
    Bytes out((1 + random_() % 6) * page_size, std::byte{0xEE});
    const Result<std::size_t> got = co_await combiner_->read(worker_, out, offset);
    if (got.has_error()) co_return;
    const std::uint64_t to = history_.now();
    for (std::size_t i = 0; i < *got; ++i) {
      check(offset + i, out[i], from, to, "READ");
    }
  }

  Awaitable<> commit() {
    const std::uint64_t before = history_.now();
    const Result<CommitResult> result = co_await combiner_->commit(worker_, 0, 0);
    if (result.has_error()) co_return;
    for (Change& change : history_.changes) {
      if (change.answered < before && change.verifier == result->verifier && !change.truncate) {
        change.durable = std::min(change.durable, history_.now());
      }
    }
  }

  Awaitable<> truncate() {
    const std::uint64_t size = random_() % 700;
    Change change{size, never, std::byte{0}, history_.now()};
    change.truncate = true;
    const std::size_t index = history_.add(change);
    WriteCombiner::Work work = [this, size](Worker& worker) -> Awaitable<Result<std::uint64_t>> {
      co_return co_await file_.truncate(worker, size);
    };
    const Result<> result = co_await combiner_->exclusive(worker_, std::move(work));
    if (result.has_error()) co_return;
    history_.changes[index].answered = history_.changes[index].durable = history_.now();
  }

  // With faults, an UNSTABLE WRITE under an older verifier may be gone.
  void check(std::uint64_t at, std::byte value, std::uint64_t from, std::uint64_t to,
             const char* what) {
    const std::uint64_t verifier = verifier_.get();
    const auto ordered = [&](const Change& change) {
      const bool kept = change.durable != never || change.verifier == verifier || change.truncate;
      return kept ? change.answered : never;
    };
    EXPECT_TRUE(history_.allowed(at, value, from, to, ordered))
        << what << ": byte " << at << " is " << static_cast<int>(value) << ", seed " << seed_
        << ", asked " << from << " to " << to << history_.of(at);
  }

  // Some WRITE ends or, of one that nobody was promised, breaks off there.
  bool possible_size(std::uint64_t size) const {
    return size == 0 || std::ranges::any_of(history_.changes, [&](const Change& change) {
             return change.begin <= size && size <= change.end;
           });
  }

  void check_crash(const Bytes& left) {
    const std::uint64_t now = history_.now();
    const auto ordered = [](const Change& change) { return change.durable; };
    std::uint64_t least = 0;
    for (const Change& change : history_.changes) {
      if (!change.truncate && change.durable < now) least = std::max(least, change.end);
    }
    if (!setup_.truncates) {
      EXPECT_GE(left.size(), least) << "after a crash, seed " << seed_;
      if (!setup_.short_writes) {
        EXPECT_TRUE(possible_size(left.size()))
            << "size " << left.size() << " after a crash, seed " << seed_;
      }
    }
    for (std::size_t i = 0; i < left.size(); i += 1 + random_() % 4) {
      EXPECT_TRUE(history_.allowed(i, left[i], now, now, ordered))
          << "after a crash: byte " << i << " is " << static_cast<int>(left[i]) << ", seed "
          << seed_ << history_.of(i);
    }
  }

  void check_end() {
    auto out = [this]() -> Awaitable<> {
      Result<> done = errno_code(EIO);
      for (int i = 0; i < 100 && done.has_error(); ++i) {
        done = co_await combiner_->write_out(worker_, true);
      }
      EXPECT_TRUE(done.has_value()) << "seed " << seed_;
    };
    ++running_;
    boost::asio::co_spawn(context_, std::move(out), [this](std::exception_ptr) { --running_; });
    drain();
    EXPECT_FALSE(combiner_->busy() && setup_.fault_rate == 0) << "seed " << seed_;
    const std::uint64_t from = history_.now();
    const std::uint64_t to = history_.now();
    for (std::size_t i = 0; i < file_.bytes.size(); ++i) {
      check(i, file_.bytes[i], from, to, "at the end");
    }
    if (setup_.truncates) return;
    std::uint64_t size = 0;
    for (const Change& change : history_.changes) size = std::max(size, change.end);
    if (setup_.fault_rate == 0) {
      EXPECT_EQ(file_.bytes.size(), size) << "seed " << seed_;
      EXPECT_EQ(combiner_->shown_size(), size);
    }
    EXPECT_TRUE(possible_size(file_.bytes.size()))
        << "size " << file_.bytes.size() << ", seed " << seed_;
  }

  const std::uint64_t seed_;
  const Scenario setup_;
  std::mt19937_64 random_;
  boost::asio::io_context context_;
  Worker worker_;
  DataCounters data_counters_;
  CombinerCounters counters_;
  WriteVerifier verifier_;
  cache::EdgePageBudget budget_;
  WaitsLearned waits_learned_;
  SimulatedFile file_;
  std::shared_ptr<WriteCombiner> combiner_;
  History history_;
  int next_value_ = 1;
  int running_ = 0;
  bool abandoned_ = false;
  bool stuck_ = false;
};

class WriteCombinerTest : public ::testing::Test {
 protected:
  void play(std::uint64_t first, std::uint64_t count, const Scenario& setup, bool crash) {
    for (std::uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
      Scenario varied = setup;
      varied.clients = 1 + static_cast<int>(seed % 7);
      Simulation simulation(runtime_, seed, varied);
      simulation.run(crash);
      held_back_ += simulation.counters().held_back.get();
      together_ += simulation.counters().batches_together.get();
    }
  }

  Runtime runtime_{simulation_options()};
  std::uint64_t held_back_ = 0;
  std::uint64_t together_ = 0;
};

TEST_F(WriteCombinerTest, EveryByteIsAsSomeOrderOfTheRequestsLeavesIt) {
  play(1, 700, {}, false);
  EXPECT_GT(held_back_, 100U);
}

TEST_F(WriteCombinerTest, InsideTheFileBatchesInFlightTogetherKeepTheOrder) {
  Scenario setup;
  setup.inside = true;
  setup.truncates = true;
  play(70001, 250, setup, false);
  setup.truncates = false;
  setup.fault_rate = 0.03;
  play(80001, 120, setup, false);
  play(90001, 120, setup, true);
  EXPECT_GT(together_, 60U);
}

TEST_F(WriteCombinerTest, ShortWritesAreContinued) {
  Scenario setup;
  setup.short_writes = true;
  play(10001, 300, setup, false);
}

TEST_F(WriteCombinerTest, TruncatesAreOrderedWithTheWrites) {
  Scenario setup;
  setup.truncates = true;
  play(20001, 400, setup, false);
}

TEST_F(WriteCombinerTest, StableBytesAndSizesSurviveACrash) {
  play(30001, 250, {}, true);
}

TEST_F(WriteCombinerTest, AfterAFaultNobodyIsToldThatLostBytesAreSafe) {
  Scenario setup;
  setup.fault_rate = 0.03;
  setup.truncates = true;
  play(40001, 400, setup, false);
  play(50001, 150, setup, true);
  setup.truncates = false;
  play(60001, 300, setup, false);
}

}  // namespace
}  // namespace selvage::storage
