// What the structures say of themselves.
#include "cache/boundary_tracker.h"
#include "cache/edge_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
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

TEST(EdgePageBudget, MemoryComesBackZeroed) {
  EdgePageBudget budget(1 << 20);
  EdgePages pages(4096, budget);
  std::array<std::byte, 4096> bytes{};
  bytes.fill(std::byte{0x5a});
  pages.write(0, bytes, 1);
  const std::byte* memory = pages.find(0)->data;
  EXPECT_EQ(budget.bytes(), 4096U);
  pages.erase(0);
  EXPECT_EQ(budget.bytes(), 0U);
  const EdgePage& again = pages.get(8192);
  EXPECT_EQ(again.data, memory);
  EXPECT_TRUE(
      std::all_of(again.data, again.data + 4096, [](std::byte b) { return b == std::byte{}; }));
  EXPECT_TRUE(again.valid.empty());
}

TEST(EdgePageBudget, PagesOfAnotherSizeAndMoreThanAreKept) {
  EdgePageBudget budget(std::size_t{64} << 20);
  {
    EdgePages small(4096, budget);
    EdgePages large(16384, budget);
    large.get(0);
    for (std::uint64_t i = 0; i < 2 * EdgePageBudget::max_spare; ++i) small.get(i * 4096);
    EXPECT_EQ(budget.bytes(), 16384U + 2 * EdgePageBudget::max_spare * 4096);
    small.clear();
    EXPECT_EQ(budget.bytes(), 16384U);
    large.clear();
  }
  EXPECT_EQ(budget.bytes(), 0U);
  EdgePages large(16384, budget);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large.get(16384).data) % 16384, 0U);
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
