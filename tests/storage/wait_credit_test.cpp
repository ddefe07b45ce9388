// When WaitCredit lets requests wait, and how long.
#include "storage/wait_credit.h"

#include <gtest/gtest.h>

#include <chrono>

namespace selvage::storage {
namespace {

using std::chrono::milliseconds;

constexpr WaitCredit::Duration no_quiet{};
constexpr auto level_1 = milliseconds(2);
constexpr auto level_2 = milliseconds(8);
constexpr auto level_3 = milliseconds(32);

// How many batches it takes until it is tried.
unsigned until_tried(WaitCredit& credit) {
  for (unsigned batches = 1; batches <= 10000; ++batches) {
    credit.next();
    if (credit.left()) return batches;
  }
  return 0;
}

TEST(WaitCreditTest, WhoIsAloneDoesNotWait) {
  const WaitCredit credit;
  EXPECT_FALSE(credit.left());
  EXPECT_EQ(credit.longest_quiet(), no_quiet);
}

TEST(WaitCreditTest, WhereNobodyComesItIsTriedEverMoreRarely) {
  WaitCredit credit;
  EXPECT_EQ(until_tried(credit), 1U);
  EXPECT_EQ(credit.longest_quiet(), level_3);
  while (credit.left()) credit.in_vain();
  EXPECT_EQ(credit.longest_quiet(), no_quiet);
  for (const unsigned batches : {16U, 32U, 64U, 128U, 256U, 512U, 1024U, 2048U, 4096U, 4096U}) {
    EXPECT_EQ(until_tried(credit), batches);
    while (credit.left()) credit.in_vain();
  }
}

TEST(WaitCreditTest, ATrialIsOverAfterOneWaitInVainOfEachLevel) {
  WaitCredit credit;
  until_tried(credit);
  while (credit.left()) credit.in_vain();
  until_tried(credit);
  ASSERT_TRUE(credit.left());
  credit.in_vain();
  EXPECT_FALSE(credit.left()) << "the levels above are not yet due: they wait for this one";
}

TEST(WaitCreditTest, ALongQuietMustPayForItself) {
  WaitCredit credit;
  credit.next();
  // Neighbours come soon or not at all, as at the end of each phase of a program.
  for (int phase = 0; phase < 4; ++phase) {
    for (int i = 0; i < 31; ++i) credit.filled(milliseconds(1));
    credit.in_vain();
  }
  EXPECT_EQ(credit.longest_quiet(), level_1);
}

TEST(WaitCreditTest, NeighboursThatComeLateKeepALevelOpen) {
  WaitCredit credit;
  credit.next();
  for (int i = 0; i < 100; ++i) {
    credit.filled(milliseconds(20));
    credit.in_vain();
  }
  EXPECT_EQ(credit.longest_quiet(), level_3);
  // One that comes within the second level says nothing of the third.
  for (int i = 0; i < 100; ++i) {
    credit.filled(milliseconds(5));
    credit.in_vain();
  }
  EXPECT_EQ(credit.longest_quiet(), level_2);
}

TEST(WaitCreditTest, WhatWasEarnedIsSpentInEightBatches) {
  WaitCredit credit;
  for (int i = 0; i < 1000; ++i) credit.filled(milliseconds(1));
  EXPECT_EQ(credit.longest_quiet(), level_1) << "the higher levels have not been tried";
  for (int i = 0; i < 7; ++i) credit.in_vain();
  EXPECT_TRUE(credit.left());
  credit.in_vain();
  EXPECT_FALSE(credit.left());
  EXPECT_EQ(until_tried(credit), 1U) << "where it has paid it is tried again at once";
}

}  // namespace
}  // namespace selvage::storage
