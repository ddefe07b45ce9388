// Random concurrent histories of several simulated writers against a model that keeps a flag per
// byte and recomputes from that, after every step, which pages must be handed out.

#include "cache/boundary_tracker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace selvage::cache {
namespace {

using std::chrono::seconds;
using Time = BoundaryTracker::Time;
using PageSet = std::set<std::uint64_t>;  // Indices.

constexpr std::uint64_t history_file = 3;

PageSet indices(const std::vector<PageRun>& runs, std::uint32_t page_size) {
  PageSet result;
  for (const PageRun& run : runs) {
    EXPECT_EQ(run.offset % page_size, 0u);
    EXPECT_EQ(run.length % page_size, 0u);
    for (std::uint64_t i = 0; i < run.length / page_size; ++i) {
      EXPECT_TRUE(result.insert(run.offset / page_size + i).second) << "handed out twice";
    }
  }
  return result;
}

PageSet indices(const std::vector<OrphanPage>& pages, std::uint32_t page_size) {
  PageSet result;
  for (const OrphanPage& page : pages) {
    EXPECT_EQ(page.file, history_file);
    EXPECT_EQ(page.length, page_size);
    EXPECT_TRUE(result.insert(page.offset / page_size).second) << "handed out twice";
  }
  return result;
}

class Model {
 public:
  Model(std::uint32_t page_size, std::uint64_t pages)
      : page_size_(page_size), acknowledged_(page_size * pages), touched_(pages) {}

  struct Writer {
    std::uint64_t offset, length;
    std::vector<bool> counts;  // By byte: false once a truncate or a failed sync has overtaken it.
  };

  std::uint64_t size() const { return acknowledged_.size(); }
  std::uint64_t pages() const { return touched_.size(); }

  void ask(int writer, std::uint64_t offset, std::uint64_t length) {
    writers_[writer] = {offset, length, std::vector<bool>(length, true)};
  }

  // What must be handed out, and forgets it.
  PageSet release(int id, std::uint64_t bytes, Outcome outcome, Time now) {
    const PageSet result = completed(id, bytes, outcome, now);
    forget(result);
    return result;
  }

  void forget(const PageSet& handed_out) {
    for (const std::uint64_t page : handed_out) {
      std::fill_n(acknowledged_.begin() + static_cast<std::ptrdiff_t>(page * page_size_),
                  page_size_, false);
    }
  }

  PageSet completed(int id, std::uint64_t bytes, Outcome outcome, Time now) {
    const Writer writer = writers_.at(id);
    writers_.erase(id);
    PageSet reached;
    for (std::uint64_t i = 0; i < writer.length; ++i) {
      const std::uint64_t byte = writer.offset + i;
      touched_[byte / page_size_] = now;
      if (outcome != Outcome::written || i >= bytes || !writer.counts[i]) continue;
      acknowledged_[byte] = true;
      reached.insert(byte / page_size_);
    }
    if (outcome == Outcome::sync_failed) {
      for (std::uint64_t page = writer.offset / page_size_;
           page <= (writer.offset + writer.length - 1) / page_size_; ++page) {
        discard(page * page_size_, (page + 1) * page_size_);
      }
    }
    PageSet result;
    for (const std::uint64_t page : reached) {
      if (complete(page) && !busy(page)) result.insert(page);
    }
    return result;
  }

  void truncate(std::uint64_t offset) { discard(offset, size()); }

  PageSet take(Time untouched_since) {
    PageSet result;
    for (std::uint64_t page = 0; page < pages(); ++page) {
      if (known(page) && !busy(page) && touched_[page] <= untouched_since) result.insert(page);
    }
    forget(result);
    return result;
  }

  bool complete(std::uint64_t page) const {
    for (std::uint64_t i = page * page_size_; i < (page + 1) * page_size_; ++i) {
      if (!acknowledged_[i]) return false;
    }
    return true;
  }
  bool known(std::uint64_t page) const {
    for (std::uint64_t i = page * page_size_; i < (page + 1) * page_size_; ++i) {
      if (acknowledged_[i]) return true;
    }
    return false;
  }
  bool busy(std::uint64_t page) const {
    for (const auto& [id, writer] : writers_) {
      for (std::uint64_t i = 0; i < writer.length; ++i) {
        if ((writer.offset + i) / page_size_ == page) return true;
      }
    }
    return false;
  }
  std::uint64_t in_play() const {
    std::uint64_t n = 0;
    for (std::uint64_t page = 0; page < pages(); ++page) n += busy(page) || known(page) ? 1 : 0;
    return n;
  }
  std::uint64_t busy_pages() const {
    std::uint64_t n = 0;
    for (std::uint64_t page = 0; page < pages(); ++page) n += busy(page) ? 1 : 0;
    return n;
  }

 private:
  void discard(std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) acknowledged_[i] = false;
    for (auto& [id, writer] : writers_) {
      for (std::uint64_t i = 0; i < writer.length; ++i) {
        if (writer.offset + i >= begin && writer.offset + i < end) writer.counts[i] = false;
      }
    }
  }

  std::uint64_t page_size_;
  std::vector<bool> acknowledged_;  // Since the page was last handed out or its bytes discarded.
  std::vector<Time> touched_;
  std::map<int, Writer> writers_;
};

// One seed: a history, then everything is written once more, all at once, in random order.
void run_history(unsigned seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const std::uint32_t page_size = seed % 4 == 0 ? 24 : 8;
  Model model(page_size, 5);
  BoundaryTracker tracker(1000, 1 + seed % 5);
  std::map<int, std::pair<Claim, Time>> claims;
  Time now{seconds(1)};
  int next_writer = 0;
  const unsigned writers = 1 + seed % 8;

  const auto ask = [&](std::uint64_t offset, std::uint64_t length) {
    PageSet boundary;
    PageSet completing;
    for (const std::uint64_t page : {offset / page_size, (offset + length - 1) / page_size}) {
      if (offset <= page * page_size && offset + length >= (page + 1) * page_size) continue;
      boundary.insert(page);
      Model alone = model;
      alone.ask(-1, offset, length);
      if (alone.completed(-1, length, Outcome::written, now).contains(page)) {
        completing.insert(page);
      }
    }
    Claim claim = tracker.ask(history_file, page_size, offset, length, now);
    ASSERT_EQ(claim.boundary_pages(), boundary.size());
    ASSERT_EQ(claim.completing_pages(), completing.size());
    ASSERT_EQ(claim.untracked_pages(), 0u);
    model.ask(next_writer, offset, length);
    claims.emplace(next_writer++, std::pair(std::move(claim), now));
  };
  const auto check_gauges = [&] {
    const auto gauges = tracker.gauges();
    ASSERT_EQ(gauges.pages, model.in_play());
    ASSERT_EQ(gauges.in_flight, model.busy_pages());
  };

  for (int step = 0; step < 60; ++step) {
    if (below(4) == 0) now += seconds(1);
    const std::uint64_t what = below(40);
    if (what < 18) {
      if (claims.size() >= writers) continue;
      const std::uint64_t offset = below(model.size());
      const std::uint64_t length =
          1 + below(std::min<std::uint64_t>(model.size() - offset, below(3) == 0 ? 40 : 10));
      ASSERT_NO_FATAL_FAILURE(ask(offset, length));
    } else if (what < 37) {
      if (claims.empty()) continue;
      auto ending = claims.begin();
      std::advance(ending, below(claims.size()));
      auto& [claim, asked] = ending->second;
      const std::uint64_t kind = below(16);
      const Outcome outcome = kind == 0   ? Outcome::failed
                              : kind == 1 ? Outcome::sync_failed
                                          : Outcome::written;
      const std::uint64_t bytes = kind == 2 ? below(10) : 1000;
      if (outcome == Outcome::failed && asked == now && below(2) == 0) {
        claim = Claim();
        model.release(ending->first, bytes, outcome, now);
      } else {
        const auto runs = tracker.release(std::move(claim), bytes, outcome, now);
        ASSERT_EQ(indices(runs, page_size), model.release(ending->first, bytes, outcome, now));
      }
      claims.erase(ending);
    } else if (what == 37) {
      if (below(2) == 0) continue;
      const std::uint64_t offset = below(3) == 0 ? 0 : below(model.size());
      tracker.forget_from(history_file, offset);
      model.truncate(offset);
    } else if (what == 38) {
      const seconds idle(1 + below(8));
      ASSERT_EQ(indices(tracker.take_idle(now, idle), page_size), model.take(now - idle));
    } else {
      const PageRun all{0, model.size()};
      PageSet idle;
      for (std::uint64_t page = 0; page < model.pages(); ++page) {
        if (!model.busy(page) && !model.known(page)) idle.insert(page);
      }
      ASSERT_EQ(indices(tracker.droppable(history_file, page_size, all), page_size), idle);
    }
    ASSERT_NO_FATAL_FAILURE(check_gauges());
  }

  for (std::uint64_t offset = 0; offset < model.size();) {
    const std::uint64_t length = std::min<std::uint64_t>(model.size() - offset, 1 + below(20));
    ASSERT_NO_FATAL_FAILURE(ask(offset, length));
    offset += length;
  }
  std::vector<int> order;
  for (const auto& [writer, claim] : claims) order.push_back(writer);
  std::shuffle(order.begin(), order.end(), random);
  PageSet handed_out;
  for (const int writer : order) {
    const auto runs =
        tracker.release(std::move(claims.at(writer).first), 1000, Outcome::written, now);
    const PageSet pages = indices(runs, page_size);
    ASSERT_EQ(pages, model.release(writer, 1000, Outcome::written, now));
    for (const std::uint64_t page : pages) ASSERT_TRUE(handed_out.insert(page).second);
  }
  // A page whose last finisher wrote before a truncate stays for take_idle().
  const PageSet left = indices(tracker.take_idle(now, seconds(0)), page_size);
  for (const std::uint64_t page : left) ASSERT_TRUE(handed_out.insert(page).second);
  EXPECT_EQ(handed_out.size(), model.pages());
  EXPECT_EQ(tracker.gauges().pages, 0u);
}

TEST(BoundaryTrackerHistory, EqualsTheByteArrayModel) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    run_history(seed);
    ASSERT_FALSE(HasFailure());
  }
}

// Interleaved records, each byte written once and successfully: every page is handed out exactly
// once, to a WRITE that finds all of its bytes acknowledged, and nothing remains.
TEST(BoundaryTrackerHistory, InterleavedRecordsLeaveNothing) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::uint64_t record = 1 + random() % 9000;
    constexpr std::uint32_t page_size = 4096;
    constexpr std::uint64_t size = 16 * page_size;
    BoundaryTracker tracker(64);
    std::vector<bool> acknowledged(size);
    std::vector<std::pair<std::uint64_t, Claim>> in_flight;
    std::uint64_t next = 0;
    PageSet handed_out;
    while (next < size || !in_flight.empty()) {
      if (next < size && in_flight.size() < 8 && random() % 2 == 0) {
        in_flight.emplace_back(next, tracker.ask(history_file, page_size, next,
                                                 std::min(record, size - next), Time()));
        next += record;
        continue;
      }
      if (in_flight.empty()) continue;
      const std::size_t i = random() % in_flight.size();
      std::swap(in_flight[i], in_flight.back());
      const std::uint64_t offset = in_flight.back().first;
      const std::uint64_t length = std::min(record, size - offset);
      for (std::uint64_t b = offset; b < offset + length; ++b) acknowledged[b] = true;
      const PageSet pages = indices(
          tracker.release(std::move(in_flight.back().second), length, Outcome::written, Time()),
          page_size);
      in_flight.pop_back();
      for (const std::uint64_t page : pages) {
        ASSERT_TRUE(handed_out.insert(page).second);
        for (std::uint64_t b = page * page_size; b < (page + 1) * page_size; ++b) {
          ASSERT_TRUE(acknowledged[b]);
        }
      }
    }
    ASSERT_EQ(handed_out.size(), size / page_size);
    ASSERT_EQ(tracker.gauges().pages, 0u);
    ASSERT_EQ(tracker.gauges().untracked, 0u);
  }
}

// With too little room: never more than the bound, and what is handed out is still right. Each
// WRITE lies in one page, so that its claim says whether it is tracked.
TEST(BoundaryTrackerHistory, TightBoundHandsOutNothingWrong) {
  std::uint64_t evicted = 0;
  std::uint64_t untracked = 0;
  std::uint64_t completed = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    constexpr std::uint32_t page_size = 8;
    constexpr std::uint64_t pages = 8;
    const std::size_t bound = 2 + seed % 4;
    Model model(page_size, pages);  // Of the tracked ones; it knows at least what the tracker does.
    BoundaryTracker tracker(bound, 1);
    std::map<int, Claim> claims;
    const Time now{seconds(1)};
    for (int step = 0; step < 100; ++step) {
      if (random() % 2 == 0 && claims.size() < 6) {
        const std::uint64_t page = random() % pages;
        const std::uint64_t begin = random() % page_size;
        const std::uint64_t length = 1 + random() % (page_size - begin);
        Claim claim = tracker.ask(history_file, page_size, page * page_size + begin, length, now);
        if (claim.untracked_pages() != 0) {
          ASSERT_TRUE(tracker.release(std::move(claim), length, Outcome::written, now).empty());
          continue;
        }
        model.ask(step, page * page_size + begin, length);
        claims.emplace(step, std::move(claim));
      } else if (!claims.empty()) {
        auto ending = claims.begin();
        std::advance(ending, random() % claims.size());
        const Outcome outcome = random() % 10 == 0 ? Outcome::failed : Outcome::written;
        const PageSet got =
            indices(tracker.release(std::move(ending->second), 100, outcome, now), page_size);
        const PageSet right = model.completed(ending->first, 100, outcome, now);
        model.forget(got);
        ASSERT_TRUE(std::includes(right.begin(), right.end(), got.begin(), got.end()));
        completed += got.size();
        claims.erase(ending);
      }
      if (random() % 20 == 0) {
        for (const std::uint64_t page : indices(tracker.take_idle(now, seconds(1)), page_size)) {
          ASSERT_FALSE(model.busy(page));
        }
      }
      const auto gauges = tracker.gauges();
      ASSERT_LE(gauges.pages, bound);
      ASSERT_LE(gauges.orphans, bound);
      ASSERT_EQ(gauges.in_flight, model.busy_pages());
    }
    evicted += tracker.gauges().evicted;
    untracked += tracker.gauges().untracked;
  }
  EXPECT_GT(evicted, 0u);
  EXPECT_GT(untracked, 0u);
  EXPECT_GT(completed, 0u);
}

void run_threads(unsigned count, const auto& body) {
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < count; ++t) threads.emplace_back([&body, t] { body(t); });
}

// Real threads write interleaved records, each byte once: as above.
TEST(BoundaryTrackerThreads, InterleavedRecordsLeaveNothing) {
  constexpr unsigned threads = 4;
  constexpr std::uint64_t record = 1500;
  constexpr std::uint64_t records = 8192;
  constexpr std::uint32_t page_size = 4096;
  constexpr std::uint64_t pages = record * records / page_size;
  static_assert(pages * page_size == record * records);
  BoundaryTracker tracker(4096, 4);
  std::vector<std::atomic<unsigned>> acknowledged(records);
  std::vector<std::atomic<unsigned>> handed_out(pages);
  std::atomic<unsigned> too_early{0};
  run_threads(threads, [&](unsigned t) {
    for (std::uint64_t r = t; r < records; r += threads) {
      Claim claim = tracker.ask(history_file, page_size, r * record, record, Time());
      acknowledged[r].store(1, std::memory_order_relaxed);
      for (const PageRun& run :
           tracker.release(std::move(claim), record, Outcome::written, Time())) {
        for (std::uint64_t p = run.offset / page_size; p < (run.offset + run.length) / page_size;
             ++p) {
          handed_out[p].fetch_add(1);
          const std::uint64_t last = ((p + 1) * page_size - 1) / record;
          for (std::uint64_t i = p * page_size / record; i <= last; ++i) {
            if (acknowledged[i].load(std::memory_order_relaxed) == 0) too_early.fetch_add(1);
          }
        }
      }
    }
  });
  EXPECT_EQ(too_early.load(), 0u);
  for (const auto& times : handed_out) ASSERT_EQ(times.load(), 1u);
  EXPECT_EQ(tracker.gauges().pages, 0u);
}

// Everything at once, over the bound too: for the sanitizers, and nothing stays claimed.
TEST(BoundaryTrackerThreads, NothingStaysClaimed) {
  constexpr unsigned threads = 4;
  constexpr std::uint32_t page_size = 4096;
  BoundaryTracker tracker(24, 4);
  run_threads(threads, [&](unsigned t) {
    std::mt19937 random(t);
    std::vector<Claim> claims;
    for (int step = 0; step < 10000; ++step) {
      const Time now{seconds(step / 100)};
      const std::uint64_t of_file = random() % 2;
      switch (random() % 16) {
        case 0:
          tracker.forget_from(of_file, random() % (16 * page_size));
          break;
        case 1:
          tracker.take_idle(now, seconds(1));
          break;
        case 2:
          tracker.take_file(of_file);
          break;
        case 3:
          tracker.droppable(of_file, page_size, {0, 4 * page_size});
          break;
        case 4:
          ASSERT_LE(tracker.gauges().pages, 24u);
          break;
        default:
          if (claims.size() < 4) {
            claims.push_back(tracker.ask(of_file, page_size, random() % (16 * page_size),
                                         random() % (2 * page_size), now));
          } else {
            std::swap(claims[random() % claims.size()], claims.back());
            if (random() % 8 != 0) {
              tracker.release(std::move(claims.back()), random() % (2 * page_size),
                              static_cast<Outcome>(random() % 3), now);
            }
            claims.pop_back();
          }
      }
    }
  });
  EXPECT_EQ(tracker.gauges().in_flight, 0u);
  tracker.forget(0);
  tracker.forget(1);
  EXPECT_EQ(tracker.gauges().pages, 0u);
  EXPECT_EQ(tracker.gauges().orphans, 0u);
}

}  // namespace
}  // namespace selvage::cache
