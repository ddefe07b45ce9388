#include "cache/boundary_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace selvage::cache {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Time = BoundaryTracker::Time;

constexpr std::uint64_t file = 7;
constexpr std::uint32_t page = 4096;
const Time start{seconds(1000)};

class BoundaryTrackerTest : public ::testing::Test {
 protected:
  BoundaryTracker tracker{1024};

  Claim ask(std::uint64_t offset, std::uint64_t length, Time now = start) {
    return tracker.ask(file, page, offset, length, now);
  }
  std::vector<PageRun> written(Claim& claim, std::uint64_t bytes, Time now = start) {
    return tracker.release(std::move(claim), bytes, Outcome::written, now);
  }
  std::vector<PageRun> ended(Claim& claim, Outcome outcome) {
    return tracker.release(std::move(claim), 0, outcome, start);
  }
  std::vector<PageRun> write(std::uint64_t offset, std::uint64_t length, Time now = start) {
    Claim claim = ask(offset, length, now);
    return written(claim, length, now);
  }
  void expect_pages(std::uint64_t pages, std::uint64_t in_flight = 0) {
    EXPECT_EQ(tracker.gauges().pages, pages);
    EXPECT_EQ(tracker.gauges().in_flight, in_flight);
  }
};

TEST_F(BoundaryTrackerTest, TheSecondHalfCompletesThePage) {
  Claim first = ask(0, 1904);
  EXPECT_EQ(first.boundary_pages(), 1u);
  EXPECT_EQ(first.completing_pages(), 0u);
  EXPECT_THAT(written(first, 1904), IsEmpty());
  expect_pages(1);

  Claim second = ask(1904, page - 1904);
  EXPECT_EQ(second.boundary_pages(), 1u);
  EXPECT_EQ(second.completing_pages(), 1u);
  expect_pages(1, 1);
  EXPECT_THAT(written(second, page - 1904), ElementsAre(PageRun{0, page}));
  expect_pages(0);
}

TEST_F(BoundaryTrackerTest, OfTwoConcurrentHalvesTheLaterFinisherGetsThePage) {
  Claim first = ask(0, 100);
  Claim second = ask(100, page - 100);
  EXPECT_EQ(second.completing_pages(), 0u);
  EXPECT_THAT(written(second, page - 100), IsEmpty());
  EXPECT_THAT(written(first, 100), ElementsAre(PageRun{0, page}));
  expect_pages(0);
}

TEST_F(BoundaryTrackerTest, ACompletePageWaitsForAWriterInFlight) {
  EXPECT_THAT(write(0, 2000), IsEmpty());
  Claim over = ask(500, 100);
  EXPECT_THAT(write(2000, page - 2000), IsEmpty()) << "the other writer is still in flight";
  EXPECT_THAT(written(over, 100), ElementsAre(PageRun{0, page}));
}

TEST_F(BoundaryTrackerTest, APageMayTakeManyWrites) {
  for (std::uint64_t i = 0; i < page; i += 2) EXPECT_THAT(write(i, 1), IsEmpty());
  for (std::uint64_t i = 3; i < page; i += 2) EXPECT_THAT(write(i, 1), IsEmpty());
  EXPECT_THAT(write(1, 1), ElementsAre(PageRun{0, page}));
  expect_pages(0);
}

TEST_F(BoundaryTrackerTest, APageWithBothEndsIsAskedOnce) {
  Claim claim = ask(page + 10, 100);
  EXPECT_EQ(claim.boundary_pages(), 1u);
  expect_pages(1, 1);
  EXPECT_THAT(written(claim, 100), IsEmpty());
  EXPECT_THAT(write(page, 10), IsEmpty());
  EXPECT_THAT(write(page + 110, page - 110), ElementsAre(PageRun{page, page}));
}

TEST_F(BoundaryTrackerTest, AnUnsplitWriteHandsOutWhatItCoversWholly) {
  EXPECT_THAT(write(0, 10), IsEmpty());
  Claim claim = ask(10, 3 * page);
  EXPECT_EQ(claim.boundary_pages(), 2u);
  EXPECT_EQ(claim.completing_pages(), 1u);
  EXPECT_THAT(written(claim, 3 * page), ElementsAre(PageRun{0, 3 * page}));
  expect_pages(1);
  EXPECT_THAT(write(3 * page + 10, page - 10), ElementsAre(PageRun{3 * page, page}));
}

TEST_F(BoundaryTrackerTest, AWholePageWaitsForAWriterInFlight) {
  Claim over = ask(page + 5, 10);
  Claim whole = ask(0, 3 * page);
  EXPECT_EQ(whole.boundary_pages(), 0u);
  EXPECT_THAT(written(whole, 3 * page), ElementsAre(PageRun{0, page}, PageRun{2 * page, page}));
  EXPECT_THAT(written(over, 10), ElementsAre(PageRun{page, page}));
}

TEST_F(BoundaryTrackerTest, AShortWriteCompletesOnlyWhatItReached) {
  write(0, 1000);
  write(page + 1000, page - 1000);
  Claim claim = ask(1000, page);
  EXPECT_EQ(claim.completing_pages(), 2u);
  EXPECT_THAT(written(claim, page - 1000 + 1), ElementsAre(PageRun{0, page}));
  expect_pages(1);
  EXPECT_THAT(write(page + 1, 998), IsEmpty());
  EXPECT_THAT(write(page + 999, 1), ElementsAre(PageRun{page, page}));
}

TEST_F(BoundaryTrackerTest, AWriteOfNothingCompletesNothing) {
  write(0, 1000);
  Claim nothing = ask(1000, page - 1000);
  EXPECT_THAT(written(nothing, 0), IsEmpty());
  Claim rest = ask(1000, page - 1000);
  EXPECT_EQ(rest.completing_pages(), 1u);
  EXPECT_THAT(written(rest, page - 1000), ElementsAre(PageRun{0, page}));
}

TEST_F(BoundaryTrackerTest, MoreBytesThanAskedForDoNotCount) {
  Claim claim = ask(0, 1000);
  EXPECT_THAT(written(claim, page), IsEmpty());
}

TEST_F(BoundaryTrackerTest, AFailedWriteLeavesNoClaimAndGetsNoPage) {
  Claim claim = ask(0, 1000);
  EXPECT_THAT(ended(claim, Outcome::failed), IsEmpty());
  expect_pages(0);
  EXPECT_THAT(write(1000, page - 1000), IsEmpty()) << "the failed bytes must not count";
  expect_pages(1);
  EXPECT_THAT(write(0, 1000), ElementsAre(PageRun{0, page}));
}

TEST_F(BoundaryTrackerTest, AFailedWriteThatEndsLastGetsNoPage) {
  write(0, 1000);
  Claim failing = ask(500, 100);
  EXPECT_THAT(write(1000, page - 1000), IsEmpty());
  EXPECT_THAT(tracker.release(std::move(failing), 100, Outcome::failed, start), IsEmpty());
  expect_pages(1);
  EXPECT_THAT(write(500, 1), ElementsAre(PageRun{0, page})) << "others' bytes still count";
}

TEST_F(BoundaryTrackerTest, AFailedSyncForgetsThePage) {
  write(0, 1000);
  Claim other = ask(2000, page - 2000);
  Claim failing = ask(1000, 1000);
  EXPECT_THAT(tracker.release(std::move(failing), 1000, Outcome::sync_failed, start), IsEmpty());
  EXPECT_THAT(written(other, page - 2000), IsEmpty()) << "it may have lain in the lost write-back";
  expect_pages(0);
  EXPECT_THAT(write(1000, page - 1000), IsEmpty());
  EXPECT_THAT(write(0, 1000), ElementsAre(PageRun{0, page}));
}

TEST_F(BoundaryTrackerTest, AnAbandonedClaimHasFailed) {
  {
    const Claim claim = ask(0, 1000);
  }
  expect_pages(0);
  {
    Claim claim = ask(0, 1000);
    claim = ask(page, 1000);
    expect_pages(1, 1);
    const Claim moved = std::move(claim);
    expect_pages(1, 1);
  }
  expect_pages(0);
  EXPECT_THAT(tracker.release(Claim(), 10, Outcome::written, start), IsEmpty());
}

TEST_F(BoundaryTrackerTest, FilesAreApart) {
  write(0, 1000);
  Claim other = tracker.ask(file + 1, page, 1000, page - 1000, start);
  EXPECT_EQ(other.completing_pages(), 0u);
  EXPECT_THAT(written(other, page - 1000), IsEmpty());
  tracker.forget(file + 1);
  expect_pages(1);
}

TEST_F(BoundaryTrackerTest, LargerPages) {
  constexpr std::uint32_t big = 16384;
  Claim first = tracker.ask(file, big, 0, 5000, start);
  EXPECT_EQ(first.boundary_pages(), 1u);
  EXPECT_THAT(written(first, 5000), IsEmpty());
  Claim second = tracker.ask(file, big, 5000, big - 5000, start);
  EXPECT_THAT(written(second, big - 5000), ElementsAre(PageRun{0, big}));
  Claim untracked = tracker.ask(file, 2 * BoundaryTracker::max_page_size, 10, 5000, start);
  EXPECT_EQ(untracked.untracked_pages(), 1u);
  EXPECT_EQ(tracker.gauges().untracked, 1u);
}

TEST_F(BoundaryTrackerTest, OddArgumentsDoNoHarm) {
  constexpr std::uint64_t max = ~std::uint64_t{0};
  Claim empty = ask(5, 0);
  EXPECT_EQ(empty.boundary_pages(), 0u);
  EXPECT_THAT(written(empty, 0), IsEmpty());
  Claim no_page_size = tracker.ask(file, 0, 5, 10, start);
  EXPECT_THAT(written(no_page_size, 10), IsEmpty());
  Claim at_the_end = ask(max - 10, max);
  EXPECT_EQ(at_the_end.boundary_pages(), 1u);
  EXPECT_THAT(written(at_the_end, max), IsEmpty());
  tracker.forget_from(file, max);
  tracker.forget(file);
  expect_pages(0);
}

TEST_F(BoundaryTrackerTest, ForgottenFileLeavesHarmlessClaims) {
  write(0, 1000);
  write(page, 10);
  Claim claim = ask(1000, page - 1000);
  tracker.forget(file);
  expect_pages(1, 1);
  EXPECT_THAT(written(claim, page - 1000), IsEmpty());
  expect_pages(0);
}

TEST_F(BoundaryTrackerTest, AWriterOfTheForgottenContentStillHoldsThePage) {
  Claim old = ask(0, 1000);
  tracker.forget(file);
  EXPECT_THAT(write(0, page), IsEmpty()) << "the old writer is still in flight";
  EXPECT_THAT(written(old, 1000), IsEmpty()) << "its bytes do not count, so it completes nothing";
  EXPECT_THAT(tracker.take_idle(start, seconds(0)), ElementsAre(OrphanPage{file, 0, page}));
}

TEST_F(BoundaryTrackerTest, ATruncateCutsThePageItEndsIn) {
  write(0, 1000);
  write(page, 1000);
  write(2 * page, 1000);
  Claim crossing = ask(page + 1000, page - 1000);
  tracker.forget_from(file, page + 2000);
  expect_pages(2, 1);
  EXPECT_THAT(written(crossing, page - 1000), IsEmpty());
  EXPECT_THAT(write(page + 2001, page - 2001), IsEmpty());
  EXPECT_THAT(write(page + 2000, 1), ElementsAre(PageRun{page, page}));
  EXPECT_THAT(write(2 * page + 1000, page - 1000), IsEmpty());
  EXPECT_THAT(write(1000, page - 1000), ElementsAre(PageRun{0, page}));
}

TEST_F(BoundaryTrackerTest, IdlePagesAreHandedOutOnce) {
  write(0, 10, start);
  write(page, 10, start + seconds(5));
  Claim claim = ask(2 * page, 10, start);
  EXPECT_THAT(tracker.take_idle(start + seconds(9), seconds(10)), IsEmpty());
  EXPECT_THAT(tracker.take_idle(start + seconds(10), seconds(10)),
              ElementsAre(OrphanPage{file, 0, page}));
  EXPECT_THAT(tracker.take_idle(start + seconds(100), seconds(10)),
              ElementsAre(OrphanPage{file, page, page}))
      << "a page in flight is not idle";
  EXPECT_THAT(written(claim, 10, start + seconds(100)), IsEmpty());
  EXPECT_THAT(tracker.take_idle(start + seconds(109), seconds(10)), IsEmpty());
  EXPECT_THAT(tracker.take_idle(start + seconds(110), seconds(10)),
              ElementsAre(OrphanPage{file, 2 * page, page}));
  expect_pages(0);
}

TEST_F(BoundaryTrackerTest, TakeFileLeavesWritersInFlight) {
  write(0, 10);
  Claim claim = ask(page, 10);
  Claim other = tracker.ask(file + 1, page, 0, 10, start);
  EXPECT_THAT(written(other, 10), IsEmpty());
  EXPECT_THAT(tracker.take_file(file), ElementsAre(OrphanPage{file, 0, page}));
  expect_pages(2, 1);
  EXPECT_THAT(written(claim, 10), IsEmpty());
  EXPECT_THAT(tracker.take_file(file), ElementsAre(OrphanPage{file, page, page}));
}

TEST_F(BoundaryTrackerTest, DroppableLeavesOutPagesInPlay) {
  write(page, 10);
  const Claim claim = ask(3 * page + 1, 10);
  EXPECT_THAT(tracker.droppable(file, page, {0, 5 * page}),
              ElementsAre(PageRun{0, page}, PageRun{2 * page, page}, PageRun{4 * page, page}));
  EXPECT_THAT(tracker.droppable(file + 1, page, {0, 5 * page}), ElementsAre(PageRun{0, 5 * page}));
}

TEST(BoundaryTrackerBound, TheOldestIdlePageMakesRoom) {
  BoundaryTracker tracker(2, 1);
  const auto write = [&](std::uint64_t offset) {
    return tracker.release(tracker.ask(file, page, offset, 10, start), 10, Outcome::written, start);
  };
  write(0);
  write(page);
  write(0);  // Now page 1 is the oldest.
  write(2 * page);
  EXPECT_EQ(tracker.gauges().pages, 2u);
  EXPECT_EQ(tracker.gauges().evicted, 1u);
  EXPECT_EQ(tracker.gauges().orphans, 1u);
  EXPECT_THAT(tracker.take_idle(start, seconds(1)), ElementsAre(OrphanPage{file, page, page}));
  EXPECT_EQ(tracker.gauges().orphans, 0u);
  EXPECT_THAT(tracker.take_idle(start, seconds(1)), IsEmpty());
}

TEST(BoundaryTrackerBound, AnEvictedPageInPlayAgainIsNoOrphan) {
  BoundaryTracker tracker(1, 1);
  const auto write = [&](std::uint64_t offset) {
    return tracker.release(tracker.ask(file, page, offset, 10, start), 10, Outcome::written, start);
  };
  write(0);
  write(page);
  write(0);
  EXPECT_THAT(tracker.take_idle(start, seconds(1)), ElementsAre(OrphanPage{file, page, page}));
  write(page);
  tracker.forget(file);
  EXPECT_THAT(tracker.take_idle(start, seconds(0)), IsEmpty());
  write(0);
  write(page);
  EXPECT_THAT(tracker.take_file(file),
              UnorderedElementsAre(OrphanPage{file, 0, page}, OrphanPage{file, page, page}));
}

TEST(BoundaryTrackerBound, FullOfWritersInFlightTracksNothingMore) {
  BoundaryTracker tracker(1, 1);
  Claim first = tracker.ask(file, page, 0, 10, start);
  EXPECT_EQ(first.untracked_pages(), 0u);
  Claim second = tracker.ask(file, page, page, 10, start);
  EXPECT_EQ(second.boundary_pages(), 1u);
  EXPECT_EQ(second.untracked_pages(), 1u);
  EXPECT_EQ(tracker.gauges().untracked, 1u);
  EXPECT_EQ(tracker.gauges().pages, 1u);
  EXPECT_THAT(tracker.release(std::move(second), 10, Outcome::written, start), IsEmpty());
  EXPECT_THAT(tracker.release(std::move(first), 10, Outcome::written, start), IsEmpty());
  Claim third = tracker.ask(file, page, page, 10, start);
  EXPECT_EQ(third.untracked_pages(), 0u);
}

TEST(BoundaryTrackerBound, NoRoomAtAll) {
  BoundaryTracker tracker(0);
  Claim claim = tracker.ask(file, page, 0, page + 1, start);
  EXPECT_EQ(claim.untracked_pages(), 2u);
  EXPECT_THAT(tracker.release(std::move(claim), page + 1, Outcome::written, start), IsEmpty());
}

}  // namespace
}  // namespace selvage::cache
