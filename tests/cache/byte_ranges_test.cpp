#include "cache/byte_ranges.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace selvage::cache {
namespace {

TEST(ByteRanges, StartsEmpty) {
  const ByteRanges ranges(4096);
  EXPECT_TRUE(ranges.empty());
  EXPECT_FALSE(ranges.complete());
  EXPECT_TRUE(ranges.covers(7, 7));
  EXPECT_FALSE(ranges.covers(0, 1));
}

TEST(ByteRanges, HalvesMakeAWhole) {
  ByteRanges ranges(4096);
  ranges.add(1952, 4096);
  EXPECT_FALSE(ranges.complete());
  EXPECT_TRUE(ranges.covers(1952, 4096));
  EXPECT_FALSE(ranges.covers(1951, 4096));
  ranges.add(0, 1952);
  EXPECT_TRUE(ranges.complete());
}

TEST(ByteRanges, IgnoresWhatLiesOutside) {
  ByteRanges ranges(100);
  ranges.add(100, 200);
  ranges.add(60, 50);
  EXPECT_TRUE(ranges.empty());
  ranges.add(50, 200);
  EXPECT_TRUE(ranges.covers(50, 100));
  EXPECT_FALSE(ranges.covers(50, 101));
}

TEST(ByteRanges, ManyPiecesInAnyOrderComplete) {
  ByteRanges ranges(4096);
  for (std::uint32_t i = 0; i < 4096; i += 2) ranges.add(i, i + 1);
  EXPECT_FALSE(ranges.complete());
  for (std::uint32_t i = 4095; i > 1; i -= 2) ranges.add(i, i + 1);
  EXPECT_FALSE(ranges.complete());
  ranges.add(1, 2);
  EXPECT_TRUE(ranges.complete());
  ranges.erase_from(0);
  EXPECT_TRUE(ranges.empty());
}

// Random operations against a plain array, with sizes that are no multiple of a word too.
TEST(ByteRanges, EqualsAByteArray) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::uint32_t size = 1 + random() % 200;
    ByteRanges ranges(size);
    std::vector<bool> model(size);
    for (int step = 0; step < 40; ++step) {
      const std::uint32_t begin = random() % size;
      const std::uint32_t end = begin + random() % (1 + (step % 3 == 0 ? size : 5));
      switch (random() % 12) {
        case 0:
          ranges.erase_from(begin);
          for (std::uint32_t i = begin; i < size; ++i) model[i] = false;
          break;
        case 1:
          if (random() % 4 != 0) break;
          ranges.clear();
          model.assign(size, false);
          break;
        default:
          ranges.add(begin, end);
          for (std::uint32_t i = begin; i < end && i < size; ++i) model[i] = true;
      }
      bool any = false;
      for (std::uint32_t i = 0; i < size; ++i) {
        ASSERT_EQ(ranges.covers(i, i + 1), model[i]) << "byte " << i << " of " << size;
        any = any || model[i];
      }
      ASSERT_EQ(ranges.empty(), !any);
      const std::uint32_t from = random() % size;
      const std::uint32_t to = from + random() % (size - from + 1);
      bool all = true;
      for (std::uint32_t i = from; i < to; ++i) all = all && model[i];
      ASSERT_EQ(ranges.covers(from, to), all);
    }
  }
}

}  // namespace
}  // namespace selvage::cache
