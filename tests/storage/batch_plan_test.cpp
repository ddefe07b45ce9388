// What one batch becomes: plan_batch() by example. Random batches are in write_combiner_test.cpp.
#include "storage/batch_plan.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace selvage::storage {
namespace {

constexpr std::uint32_t plan_page_size = 64;

BatchRequest stable_write(std::uint64_t offset, std::uint64_t length, const std::byte* memory) {
  BatchRequest request;
  request.offset = offset;
  request.length = length;
  request.data = memory + offset;
  request.stable = true;
  return request;
}

// A page beyond the end of the file, though not its last: were it written before what lies behind
// it, a crash would leave the file ending with zeros that nobody wrote.
TEST(BatchPlan, APaddedPageWaitsForTheSize) {
  alignas(plan_page_size) const std::array<std::byte, 512> memory{};
  cache::EdgePageBudget budget(1 << 20);
  cache::EdgePages pages(plan_page_size, budget);
  const std::vector<BatchRequest> requests{stable_write(130, 10, memory.data()),
                                           stable_write(256, 256, memory.data())};
  const BatchPlan plan = plan_batch(requests, pages, 100, 1);
  ASSERT_EQ(plan.runs.size(), 1U);
  EXPECT_EQ(plan.runs[0].offset, 256U);
  EXPECT_EQ(plan.runs[0].length, 256U);
  ASSERT_EQ(plan.padded.size(), 1U);
  EXPECT_EQ(plan.padded[0].offset, 128U);
  EXPECT_EQ(plan.padded[0].length, plan_page_size);
  EXPECT_TRUE(plan.tails.empty());
  EXPECT_TRUE(plan.reads.empty()) << "beyond the end there is nothing to read";
}

// The last page goes out as exactly its bytes.
TEST(BatchPlan, TheLastPageIsNotPadded) {
  alignas(plan_page_size) const std::array<std::byte, 512> memory{};
  cache::EdgePageBudget budget(1 << 20);
  cache::EdgePages pages(plan_page_size, budget);
  const std::vector<BatchRequest> requests{stable_write(0, 200, memory.data())};
  const BatchPlan plan = plan_batch(requests, pages, 0, 1);
  ASSERT_EQ(plan.runs.size(), 1U);
  EXPECT_EQ(plan.runs[0].length, 192U);
  EXPECT_TRUE(plan.padded.empty());
  ASSERT_EQ(plan.tails.size(), 1U);
  EXPECT_EQ(plan.tails[0].offset, 192U);
  EXPECT_EQ(plan.tails[0].data.size(), 8U);
}

// A COMMIT waits for pages with neighbours; but who continues the file may never come.
TEST(BatchPlan, ACommitThatWaitsHasTheLastPageWritten) {
  alignas(plan_page_size) const std::array<std::byte, 512> memory{};
  cache::EdgePageBudget budget(1 << 20);
  cache::EdgePages pages(plan_page_size, budget);
  std::vector<BatchRequest> requests{stable_write(0, 100, memory.data()),
                                     stable_write(140, 60, memory.data())};
  for (BatchRequest& request : requests) request.stable = false;
  plan_batch(requests, pages, 0, 1);  // Pages of 100 to 140, and from 192, are partial.

  BatchRequest commit;
  commit.kind = BatchRequest::Kind::flush;
  commit.length = ~std::uint64_t{0};
  commit.before = 2;
  commit.stable = commit.may_wait = true;
  const BatchPlan plan = plan_batch({&commit, 1}, pages, 192, 2);
  ASSERT_EQ(plan.partial.size(), 1U);
  EXPECT_EQ(plan.partial[0]->offset, 192U);
  ASSERT_EQ(plan.tails.size(), 1U);
  EXPECT_EQ(plan.tails[0].data.size(), 8U);
  EXPECT_TRUE(plan.reads.empty());
  EXPECT_TRUE(plan.waits[0]) << "the other pages' neighbours are due";
}

}  // namespace
}  // namespace selvage::storage
