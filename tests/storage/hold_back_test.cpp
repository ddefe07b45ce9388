#include "storage/hold_back.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace selvage::storage {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t window = 1000;
constexpr unsigned most = 2;

TEST(HoldBackTest, WhatIsContiguousGoesTogether) {
  const HoldCandidate candidates[] = {{100, 100}, {0, 100}, {200, 50}};
  EXPECT_THAT(hold_back(candidates, window, most).held, ElementsAre(false, false, false));
}

TEST(HoldBackTest, TheLowestGoesEvenIfItIsBehindAGap) {
  const HoldCandidate candidates[] = {{5000, 100}};
  EXPECT_THAT(hold_back(candidates, window, most).held, ElementsAre(false));
}

TEST(HoldBackTest, WhatIsBehindASmallGapIsHeld) {
  // Two runs behind a gap each: [300, 500) and [600, 700).
  const HoldCandidate candidates[] = {{300, 100}, {600, 100}, {0, 200}, {400, 100}};
  EXPECT_THAT(hold_back(candidates, window, most).held, ElementsAre(true, true, false, true));
}

TEST(HoldBackTest, AWideGapIsNotWaitedFor) {
  const HoldCandidate candidates[] = {{0, 100}, {100 + window, 100}, {201 + 2 * window, 100}};
  EXPECT_THAT(hold_back(candidates, window, most).held, ElementsAre(false, true, false));
}

TEST(HoldBackTest, WhatContinuesWhatIsKnownGoes) {
  const HoldCandidate candidates[] = {
      {0, 100}, {200, 100, true}, {300, 100}, {500, 100}, {600, 100, true}};
  EXPECT_THAT(hold_back(candidates, window, most).held,
              ElementsAre(false, false, false, true, true));
}

TEST(HoldBackTest, NobodyIsHeldForever) {
  // The second has been held often enough, and takes its neighbour along.
  const HoldCandidate candidates[] = {
      {0, 100}, {200, 100, false, most}, {300, 100, false, 1}, {500, 100, false, 1}};
  const HeldBack hold = hold_back(candidates, window, most);
  EXPECT_THAT(hold.held, ElementsAre(false, false, false, true));
  EXPECT_EQ(hold.in_vain, 1U);
  EXPECT_EQ(hold.filled, 1U);
}

TEST(HoldBackTest, NothingIsHeldWithoutCredit) {
  const HoldCandidate candidates[] = {{0, 100}, {200, 100}};
  EXPECT_THAT(hold_back(candidates, window, 0).held, ElementsAre(false, false));
}

TEST(HoldBackTest, AGapThatWasFilledIsTold) {
  const HoldCandidate candidates[] = {
      {0, 100}, {100, 100, false, 1}, {200, 100, false, 1}, {400, 100, true, 1}};
  const HeldBack hold = hold_back(candidates, window, most);
  EXPECT_EQ(hold.filled, 3U);
  EXPECT_EQ(hold.in_vain, 0U);
}

unsigned tries(HoldCredit& credit, unsigned batches) {
  unsigned count = 0;
  for (unsigned i = 0; i < batches; ++i) count += credit.next() ? 1 : 0;
  return count;
}

TEST(HoldCreditTest, WhereGapsStayOpenItIsTriedRarely) {
  HoldCredit credit;
  EXPECT_EQ(tries(credit, 100), 100U);
  credit.in_vain(1000);
  EXPECT_FALSE(credit.left());
  const unsigned few = tries(credit, 1024);
  EXPECT_GT(few, 0U);
  EXPECT_LT(few, 256U);
}

TEST(HoldCreditTest, OneFilledGapBringsItBack) {
  HoldCredit credit;
  credit.in_vain(1000);
  credit.note({.held = {}, .filled = 10, .in_vain = 3});
  EXPECT_TRUE(credit.left());
  EXPECT_EQ(tries(credit, 100), 100U);
  credit.note({.held = {}, .filled = 0, .in_vain = 7});
  EXPECT_FALSE(credit.left());
}

}  // namespace
}  // namespace selvage::storage
