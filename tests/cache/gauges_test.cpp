// What the structures say of themselves.
#include "cache/boundary_tracker.h"
#include "cache/edge_pages.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>

namespace selvage::cache {
namespace {

TEST(EdgePagesGauges, DirtyBytes) {
  EdgePageBudget budget(1 << 20);
  EdgePages pages(4096, budget);
  EXPECT_EQ(pages.dirty_bytes(), 0U);
  const std::array<std::byte, 100> bytes{};
  pages.write(10, bytes, 1);
  pages.write(60, bytes, 1);    // Overlaps the first.
  pages.write(9000, bytes, 1);  // Another page.
  EXPECT_EQ(pages.dirty_bytes(), 150U + 100U);
  EXPECT_EQ(pages.size(), 2U);
  pages.find(0)->dirty.clear();
  EXPECT_EQ(pages.dirty_bytes(), 100U);
}

TEST(BoundaryTrackerGauges, PagesByFile) {
  BoundaryTracker tracker(64);
  const BoundaryTracker::Time now{};
  auto first = tracker.ask(1, 4096, 100, 5000, now);   // Two pages.
  auto second = tracker.ask(2, 4096, 100, 1000, now);  // One.
  tracker.release(std::move(second), 1000, Outcome::written, now);
  const auto all = tracker.pages_by_file();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all.at(1).pages, 2U);
  EXPECT_EQ(all.at(1).in_flight, 2U);
  EXPECT_EQ(all.at(2).pages, 1U);
  EXPECT_EQ(all.at(2).in_flight, 0U);
}

}  // namespace
}  // namespace selvage::cache
