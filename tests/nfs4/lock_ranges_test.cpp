#include "server/nfs4/state/lock_ranges.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace selvage::server::nfs4::state {
namespace {

constexpr std::uint64_t end = ~std::uint64_t{0};

TEST(LockRange, LengthsOfTheProtocol) {
  EXPECT_EQ(byte_range(0, 0).status(), xdr::NFS4ERR_INVAL);
  EXPECT_EQ(byte_range(end, 0).status(), xdr::NFS4ERR_INVAL);
  EXPECT_EQ(*byte_range(0, 1), (ByteRange{0, 0}));
  EXPECT_EQ(*byte_range(10, end), (ByteRange{10, end}));
  EXPECT_EQ(*byte_range(0, end - 1), (ByteRange{0, end - 2}));
  EXPECT_EQ(byte_range(end, 1).status(), xdr::NFS4ERR_INVAL);
  EXPECT_EQ(*byte_range(end, end), (ByteRange{end, end}));
  EXPECT_EQ(byte_range(end, 2).status(), xdr::NFS4ERR_INVAL);
  EXPECT_EQ(byte_range(2, end - 1).status(), xdr::NFS4ERR_INVAL);
  EXPECT_EQ(*byte_range(1, end - 1), (ByteRange{1, end - 1}));
  EXPECT_EQ(*byte_range(2, end - 2), (ByteRange{2, end - 1}));
  EXPECT_EQ(*byte_range(2, end - 3), (ByteRange{2, end - 2}));
  EXPECT_EQ(length_of({5, 5}), 1U);
  EXPECT_EQ(length_of({5, end}), end);
}

TEST(LockRange, SplitsMergesUpgrades) {
  LockRanges ranges;
  ranges.set({100, 199}, LockMode::read);
  ranges.set({120, 139}, LockMode::write);
  EXPECT_EQ(ranges.size(), 3U);
  EXPECT_EQ(ranges.within({0, end}), (std::vector<LockedRange>{{{100, 119}, LockMode::read},
                                                               {{120, 139}, LockMode::write},
                                                               {{140, 199}, LockMode::read}}));
  ranges.set({120, 139}, LockMode::read);
  EXPECT_EQ(ranges.within({0, end}), (std::vector<LockedRange>{{{100, 199}, LockMode::read}}));
  EXPECT_TRUE(ranges.splits({150, 160}));
  EXPECT_FALSE(ranges.splits({100, 160}));
  EXPECT_FALSE(ranges.splits({150, 199}));
  ranges.set({150, 160}, LockMode::none);
  EXPECT_EQ(ranges.size(), 2U);
  ranges.set({0, end}, LockMode::none);
  EXPECT_TRUE(ranges.empty());
  ranges.set({end, end}, LockMode::write);
  ranges.set({end - 1, end - 1}, LockMode::write);
  EXPECT_EQ(ranges.within({0, end}), (std::vector<LockedRange>{{{end - 1, end}, LockMode::write}}));
}

// Against a mode per byte, at both ends of the address space.
TEST(LockRange, AgreesWithAByteModel) {
  constexpr std::uint64_t bytes = 48;
  std::mt19937 random(4);
  const auto pick = [&](std::uint64_t below) {
    return std::uniform_int_distribution<std::uint64_t>(0, below - 1)(random);
  };
  for (const std::uint64_t base : {std::uint64_t{0}, end - (bytes - 1)}) {
    std::array<LockRanges, 3> owners;
    std::array<std::array<LockMode, bytes>, 3> model{};
    LockSum sum;
    for (int step = 0; step < 5'000; ++step) {
      const std::size_t who = pick(3);
      std::uint64_t first = pick(bytes);
      std::uint64_t last = pick(bytes);
      if (first > last) std::swap(first, last);
      const auto mode = static_cast<LockMode>(pick(3));
      const ByteRange range{base + first, base + last};

      // Conflicts.
      bool refused = false;
      for (std::size_t other = 0; other < 3; ++other) {
        if (other == who) continue;
        bool expected = false;
        for (std::uint64_t i = first; i <= last; ++i) {
          const LockMode held = model[other][i];
          expected = expected || (mode != LockMode::none && held != LockMode::none &&
                                  (mode == LockMode::write || held == LockMode::write));
        }
        const auto conflict = owners[other].conflict(range, mode);
        ASSERT_EQ(conflict.has_value(), expected);
        if (conflict) {
          ASSERT_LE(conflict->range.first, range.last);
          ASSERT_GE(conflict->range.last, range.first);
          ASSERT_EQ(conflict->mode, model[other][std::max(conflict->range.first - base, first)]);
        }
        refused = refused || expected;
      }
      ASSERT_EQ(sum.blocks(range, mode, &owners[who]), refused);
      if (refused) continue;
      bool splits = first > 0 && last + 1 < bytes;
      for (std::uint64_t i = first > 0 ? first - 1 : 0; splits && i <= last + 1; ++i) {
        splits = model[who][i] != LockMode::none && model[who][i] == model[who][first];
      }
      ASSERT_EQ(owners[who].splits(range), splits);
      for (const LockedRange& piece : owners[who].touching(range)) sum.remove(piece);
      owners[who].set(range, mode);
      for (const LockedRange& piece : owners[who].touching(range)) sum.add(piece);
      for (std::uint64_t i = first; i <= last; ++i) model[who][i] = mode;

      // The pieces are what the model says, and as few as possible.
      std::vector<LockedRange> expected;
      for (std::uint64_t i = 0; i < bytes; ++i) {
        const LockMode held = model[who][i];
        if (held == LockMode::none) continue;
        if (!expected.empty() && expected.back().mode == held &&
            expected.back().range.last + 1 == base + i) {
          expected.back().range.last = base + i;
        } else {
          expected.push_back({{base + i, base + i}, held});
        }
      }
      ASSERT_EQ(owners[who].within({base, base + bytes - 1}), expected);
      ASSERT_EQ(owners[who].size(), expected.size());

      // The union, again in as few pieces as possible.
      std::uint64_t next = range.first;
      std::optional<LockMode> before;
      for (const LockedRange& piece : sum.within(range)) {
        ASSERT_EQ(piece.range.first, next);
        ASSERT_NE(piece.mode, before);
        before = piece.mode;
        for (std::uint64_t i = piece.range.first - base; i <= piece.range.last - base; ++i) {
          ASSERT_EQ(piece.mode, std::max({model[0][i], model[1][i], model[2][i]}));
        }
        next = piece.range.last + 1;
      }
      ASSERT_EQ(next, range.last + 1);
      const bool all_free = owners[0].empty() && owners[1].empty() && owners[2].empty();
      ASSERT_EQ(sum.empty(), all_free);
    }
  }
}

// An owner does not stand in its own way, whatever its neighbours hold.
TEST(LockSum, OwnRangesDoNotCount) {
  LockRanges mine;
  mine.set({10, 19}, LockMode::read);
  LockSum sum;
  sum.add({{10, 19}, LockMode::read});
  EXPECT_FALSE(sum.blocks({0, end}, LockMode::write, &mine));
  EXPECT_TRUE(sum.blocks({0, end}, LockMode::write, nullptr));
  EXPECT_FALSE(sum.blocks({0, end}, LockMode::read, nullptr));
  sum.add({{20, 29}, LockMode::read});
  EXPECT_FALSE(sum.blocks({0, 19}, LockMode::write, &mine));
  EXPECT_TRUE(sum.blocks({0, 20}, LockMode::write, &mine));
  sum.add({{0, end}, LockMode::read});
  EXPECT_TRUE(sum.blocks({15, 15}, LockMode::write, &mine));
  sum.remove({{0, end}, LockMode::read});
  sum.remove({{20, 29}, LockMode::read});
  sum.remove({{10, 19}, LockMode::read});
  EXPECT_TRUE(sum.empty());
  EXPECT_EQ(sum.within({5, 6}), (std::vector<LockedRange>{{{5, 6}, LockMode::none}}));
}

}  // namespace
}  // namespace selvage::server::nfs4::state
