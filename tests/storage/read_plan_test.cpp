#include "storage/read_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace selvage::storage {
namespace {

constexpr DirectAlignment read_4096{.offset = 4096, .memory = 512, .read_offset = 0};
constexpr DirectAlignment small_reads{.offset = 65536, .memory = 512, .read_offset = 512};
constexpr std::uint64_t last_offset = 0x7fff'ffff'ffff'ffff;

struct Range {
  std::uint64_t offset, length, skip;
  bool operator==(const Range&) const = default;
};
Range range(const ReadPlan& plan) {
  return {plan.offset, plan.length, plan.skip};
}

TEST(ReadPlan, ExpandsToTheAlignment) {
  const IoMode direct = IoMode::direct;
  EXPECT_EQ(range(plan_read(0, 4096, read_4096, direct)), (Range{0, 4096, 0}));
  EXPECT_EQ(range(plan_read(47008, 47008, read_4096, direct)), (Range{45056, 49152, 1952}));
  EXPECT_EQ(range(plan_read(4095, 2, read_4096, direct)), (Range{0, 8192, 4095}));
  EXPECT_EQ(range(plan_read(1000, 100, small_reads, direct)), (Range{512, 1024, 488}));
  EXPECT_EQ(plan_read(0, 1, read_4096, direct).mode, direct);
  EXPECT_FALSE(plan_read(0, 1, read_4096, direct).fallback);
}

TEST(ReadPlan, OtherModesReadWhatIsAskedFor) {
  EXPECT_EQ(range(plan_read(5, 100, read_4096, IoMode::buffered)), (Range{5, 100, 0}));
  EXPECT_EQ(range(plan_read(5, 100, read_4096, IoMode::dontcache)), (Range{5, 100, 0}));
  EXPECT_EQ(plan_read(5, 100, {}, IoMode::dontcache).mode, IoMode::dontcache);
  EXPECT_FALSE(plan_read(5, 100, {}, IoMode::dontcache).fallback);
}

TEST(ReadPlan, FallsBackWithoutAlignment) {
  for (const DirectAlignment& none :
       {DirectAlignment{}, DirectAlignment{.offset = 4096}, DirectAlignment{.memory = 512}}) {
    const ReadPlan plan = plan_read(5, 100, none, IoMode::direct);
    EXPECT_EQ(plan.mode, IoMode::buffered);
    EXPECT_TRUE(plan.fallback);
    EXPECT_EQ(range(plan), (Range{5, 100, 0}));
  }
}

TEST(ReadPlan, StopsAtAKnownSize) {
  const IoMode direct = IoMode::direct;
  EXPECT_EQ(range(plan_read(0, 1 << 20, read_4096, direct, 5000)), (Range{0, 8192, 0}));
  EXPECT_EQ(range(plan_read(4999, 1 << 20, read_4096, direct, 5000)), (Range{4096, 4096, 903}));
  EXPECT_EQ(plan_read(5000, 10, read_4096, direct, 5000).length, 0u);
  EXPECT_EQ(plan_read(0, 10, read_4096, direct, 0).length, 0u);
  EXPECT_EQ(range(plan_read(10, 100, {}, IoMode::buffered, 50)), (Range{10, 40, 0}));
  EXPECT_EQ(plan_read(10, 0, read_4096, direct, 50).length, 0u);
}

TEST(ReadPlan, StopsAtTheLargestOffset) {
  for (const IoMode mode : {IoMode::buffered, IoMode::direct}) {
    for (const std::uint64_t offset : {last_offset - 10000, last_offset - 5000, last_offset - 1,
                                       last_offset, last_offset + 1, 2 * last_offset}) {
      const ReadPlan plan = plan_read(offset, 1 << 20, read_4096, mode);
      if (plan.length > 0) EXPECT_LE(plan.offset + plan.length, last_offset) << offset;
      EXPECT_TRUE(slice_read(plan, 0, 1000).eof);
    }
  }
}

TEST(ReadSlice, EndOfFile) {
  const ReadPlan plan = plan_read(4000, 1000, read_4096, IoMode::direct);  // [0, 8192)
  const auto slice = [&](std::uint64_t bytes, std::uint64_t size) {
    const ReadSlice s = slice_read(plan, bytes, size);
    EXPECT_EQ(s.begin, 4000u);
    EXPECT_FALSE(s.again);
    return std::pair(s.length, s.eof);
  };
  using P = std::pair<std::uint64_t, bool>;
  EXPECT_EQ(slice(8192, 10000), P(1000, false));
  EXPECT_EQ(slice(5001, 5001), P(1000, false));
  EXPECT_EQ(slice(5000, 5000), P(1000, true)) << "exactly to the end";
  EXPECT_EQ(slice(4999, 4999), P(999, true));
  EXPECT_EQ(slice(4001, 4001), P(1, true));
  EXPECT_EQ(slice(4000, 4000), P(0, true));
  EXPECT_EQ(slice(100, 100), P(0, true));
  EXPECT_EQ(slice(0, 0), P(0, true));
}

TEST(ReadSlice, TheSizeChangedMeanwhile) {
  const ReadPlan plan = plan_read(4000, 1000, read_4096, IoMode::direct);
  const ReadSlice grown = slice_read(plan, 4500, 9000);
  EXPECT_EQ(grown.length, 500u);
  EXPECT_FALSE(grown.eof);
  EXPECT_FALSE(grown.again);
  const ReadSlice grown_from_nothing = slice_read(plan, 3000, 9000);
  EXPECT_EQ(grown_from_nothing.length, 0u);
  EXPECT_FALSE(grown_from_nothing.eof);
  EXPECT_TRUE(grown_from_nothing.again);
  const ReadSlice shrunk = slice_read(plan, 8192, 4200);
  EXPECT_EQ(shrunk.length, 200u);
  EXPECT_TRUE(shrunk.eof);
  const ReadSlice gone = slice_read(plan, 8192, 0);
  EXPECT_EQ(gone.length, 0u);
  EXPECT_TRUE(gone.eof);
}

TEST(ReadSlice, CountZero) {
  const ReadPlan plan = plan_read(10, 0, read_4096, IoMode::direct);
  EXPECT_FALSE(slice_read(plan, 0, 11).eof);
  EXPECT_FALSE(slice_read(plan, 0, 11).again);
  EXPECT_TRUE(slice_read(plan, 0, 10).eof);
}

// A simulated device that reads aligned blocks of a byte array, against a direct copy out of it.
TEST(ReadSlice, EqualsAByteArray) {
  constexpr std::array units{512u, 1024u, 4096u, 16384u};
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<std::uint16_t> file(random() % 20000);
    for (std::uint64_t i = 0; i < file.size(); ++i) file[i] = static_cast<std::uint16_t>(i);
    const DirectAlignment alignment{
        .offset = units[random() % units.size()], .memory = 512, .read_offset = 0};
    const std::uint64_t offset = random() % 22000;
    const std::uint64_t count = random() % 9000;
    const auto mode = static_cast<IoMode>(random() % 3);
    std::optional<std::uint64_t> known;
    if (random() % 2 == 0) known = file.size();
    const ReadPlan plan = plan_read(offset, count, alignment, mode, known);

    if (plan.mode == IoMode::direct && plan.length > 0) {
      ASSERT_EQ(plan.offset % alignment.offset, 0u);
      ASSERT_EQ(plan.length % alignment.offset, 0u);
      ASSERT_LT(plan.length, count + 2 * alignment.offset) << "no more than it must";
    } else {
      ASSERT_LE(plan.length, count);
    }
    const std::uint64_t from = std::min<std::uint64_t>(plan.offset, file.size());
    std::uint64_t got = std::min<std::uint64_t>(plan.length, file.size() - from);
    const bool short_read = random() % 4 == 0;
    if (short_read) got = random() % (got + 1);
    const ReadSlice slice = slice_read(plan, got, file.size());

    const std::uint64_t right =
        offset < file.size() ? std::min<std::uint64_t>(count, file.size() - offset) : 0;
    if (short_read) {
      ASSERT_LE(slice.length, right);
      ASSERT_EQ(slice.again, slice.length == 0 && right > 0);
    } else {
      ASSERT_EQ(slice.length, right);
      ASSERT_FALSE(slice.again);
    }
    ASSERT_EQ(slice.eof, offset + slice.length >= file.size());
    ASSERT_LE(slice.length > 0 ? slice.begin + slice.length : 0, got);
    for (std::uint64_t i = 0; i < slice.length; ++i) {
      ASSERT_EQ(file[plan.offset + slice.begin + i], static_cast<std::uint16_t>(offset + i));
    }
  }
}

}  // namespace
}  // namespace selvage::storage
