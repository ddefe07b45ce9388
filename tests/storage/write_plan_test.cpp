#include "storage/write_plan.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace selvage::storage {
namespace {

constexpr DirectAlignment blocks_4096{.offset = 4096, .memory = 512, .read_offset = 0};
constexpr DirectAlignment blocks_512{.offset = 512, .memory = 512, .read_offset = 0};
constexpr DirectAlignment extents_16k{.offset = 16384, .memory = 512, .read_offset = 4096};

// "direct 4096+8192": what the segments are, for comparison and in messages.
std::string text(const WritePlan& plan) {
  std::string result(to_string(plan.reason));
  if (plan.bounce) result += " bounce";
  for (const Segment& segment : plan.segments()) {
    switch (segment.kind) {
      case SegmentKind::direct:
        result += " direct ";
        break;
      case SegmentKind::buffered:
        result += " buffered ";
        break;
      case SegmentKind::dontcache:
        result += " dontcache ";
        break;
    }
    if (segment.tracked) result += "tracked ";
    result += std::to_string(segment.offset) + "+" + std::to_string(segment.length);
  }
  return result;
}

std::string plan(std::uint64_t offset, std::uint64_t length, const DirectAlignment& alignment,
                 const WritePolicy& policy) {
  return text(plan_write(offset, length, offset % 4096, alignment, policy));
}

TEST(WritePlan, Table) {
  const WritePolicy pagecache{};
  const WritePolicy buffered{.edges = EdgeMode::buffered};
  const WritePolicy dontcache{.edges = EdgeMode::dontcache};

  // Whole pages.
  EXPECT_EQ(plan(0, 49152, blocks_4096, pagecache), "aligned direct 0+49152");
  EXPECT_EQ(plan(4096, 4096, blocks_4096, dontcache), "aligned direct 4096+4096");

  // The records this is about: 47008 bytes, the first, second and third.
  EXPECT_EQ(plan(0, 47008, blocks_4096, pagecache),
            "split direct 0+45056 buffered tracked 45056+1952");
  EXPECT_EQ(plan(47008, 47008, blocks_4096, pagecache),
            "split buffered tracked 47008+2144 direct 49152+40960 buffered tracked 90112+3904");
  EXPECT_EQ(plan(47008, 47008, blocks_4096, buffered),
            "split buffered 47008+2144 direct 49152+40960 buffered 90112+3904");
  EXPECT_EQ(plan(94016, 47008, blocks_4096, dontcache),
            "split dontcache 94016+192 direct 94208+45056 dontcache 139264+1760");
  EXPECT_EQ(plan(4000, 96 + 8192, blocks_4096, pagecache),
            "split buffered tracked 4000+96 direct 4096+8192");

  // 6000 bytes have no middle, or one of a page.
  EXPECT_EQ(plan(6000, 6000, blocks_4096, pagecache), "no_middle buffered tracked 6000+6000");
  EXPECT_EQ(plan(18000, 6000, blocks_4096, dontcache), "no_middle dontcache 18000+6000");
  EXPECT_EQ(plan(2400, 6000, blocks_4096, pagecache),
            "split buffered tracked 2400+1696 direct 4096+4096 buffered tracked 8192+208");
  EXPECT_EQ(plan(10, 20, blocks_4096, buffered), "no_middle buffered 10+20");
  EXPECT_EQ(plan(4095, 1, blocks_4096, pagecache), "no_middle buffered tracked 4095+1");
  EXPECT_EQ(plan(4095, 2, blocks_4096, pagecache), "no_middle buffered tracked 4095+2");

  // A disk of 512-byte blocks: still cut at pages, the neighbour's edge may be cached.
  EXPECT_EQ(plan(512, 8192, blocks_512, pagecache),
            "split buffered tracked 512+3584 direct 4096+4096 buffered tracked 8192+512");
  EXPECT_EQ(plan(512, 512, blocks_512, pagecache), "no_middle buffered tracked 512+512");
  EXPECT_EQ(plan(8192, 8192, blocks_512, pagecache), "aligned direct 8192+8192");

  // Larger blocks than pages.
  EXPECT_EQ(plan(4096, 49152, extents_16k, pagecache),
            "split buffered tracked 4096+12288 direct 16384+32768 buffered tracked 49152+4096");
  EXPECT_EQ(plan(16384, 16384, extents_16k, pagecache), "aligned direct 16384+16384");
  EXPECT_EQ(plan(4096, 16384, extents_16k, pagecache), "no_middle buffered tracked 4096+16384");
}

TEST(WritePlan, MinMiddle) {
  const WritePolicy three{.min_middle_pages = 3};
  EXPECT_EQ(plan(100, 3 * 4096, blocks_4096, three), "too_small buffered tracked 100+12288");
  EXPECT_EQ(plan(4000, 96 + 3 * 4096, blocks_4096, three),
            "split buffered tracked 4000+96 direct 4096+12288");
  EXPECT_EQ(plan(4096, 4096, blocks_4096, three), "aligned direct 4096+4096");
  const WritePolicy zero{.min_middle_pages = 0};
  EXPECT_EQ(plan(100, 100, blocks_4096, zero), "no_middle buffered tracked 100+100");
  EXPECT_EQ(plan(4096, 4097, blocks_4096, zero), "split direct 4096+4096 buffered tracked 8192+1");
  const WritePolicy naive{.edges = EdgeMode::dontcache, .min_middle_pages = 3};
  EXPECT_EQ(plan(100, 3 * 4096, blocks_4096, naive), "too_small dontcache 100+12288");
}

TEST(WritePlan, Modes) {
  const WritePolicy buffered{.mode = IoMode::buffered};
  const WritePolicy dontcache{.mode = IoMode::dontcache};
  EXPECT_EQ(plan(0, 8192, blocks_4096, buffered), "mode_buffered buffered 0+8192");
  EXPECT_EQ(plan(5, 8192, blocks_4096, buffered), "mode_buffered buffered 5+8192");
  EXPECT_EQ(plan(0, 8192, blocks_4096, dontcache), "mode_dontcache dontcache 0+8192");
  EXPECT_EQ(plan(5, 8192, {}, dontcache), "mode_dontcache dontcache 5+8192");
}

TEST(WritePlan, NoAlignment) {
  EXPECT_EQ(plan(5, 8192, {}, {}), "no_alignment buffered 5+8192");
  EXPECT_EQ(plan(0, 8192, {.offset = 4096}, {}), "no_alignment buffered 0+8192");
  EXPECT_EQ(plan(0, 8192, {.memory = 512}, {}), "no_alignment buffered 0+8192");
  EXPECT_EQ(plan(0, 12000, {.offset = 6000, .memory = 512}, {}), "no_alignment buffered 0+12000");
  EXPECT_EQ(boundary_page_size({.offset = 6000, .memory = 512}), 4096u);
}

TEST(WritePlan, PageSize) {
  EXPECT_EQ(boundary_page_size({}), 4096u);
  EXPECT_EQ(boundary_page_size(blocks_512), 4096u);
  EXPECT_EQ(boundary_page_size(blocks_4096), 4096u);
  EXPECT_EQ(boundary_page_size(extents_16k), 16384u);
  EXPECT_EQ(boundary_page_size({.offset = 12288, .memory = 512}), 12288u);
  EXPECT_EQ(plan_write(0, 1, 0, extents_16k, {}).page_size, 16384u);
}

TEST(WritePlan, BouncesOnlyWhatTheDirectSegmentNeeds) {
  // The middle starts 2144 bytes into the payload.
  EXPECT_FALSE(plan_write(47008, 47008, 8192 - 2144, blocks_4096, {}).bounce);
  EXPECT_FALSE(plan_write(47008, 47008, 512 * 21 - 2144, blocks_4096, {}).bounce);
  EXPECT_TRUE(plan_write(47008, 47008, 8192, blocks_4096, {}).bounce);
  EXPECT_TRUE(plan_write(0, 4096, 4, blocks_4096, {}).bounce);
  EXPECT_FALSE(plan_write(0, 100, 4, blocks_4096, {}).bounce) << "nothing direct";
  EXPECT_FALSE(plan_write(0, 4096, 4, blocks_4096, {.mode = IoMode::buffered}).bounce);
}

TEST(WritePlan, NothingToWrite) {
  EXPECT_EQ(plan(0, 0, blocks_4096, {}), "aligned");
  EXPECT_EQ(plan(17, 0, blocks_4096, {.min_middle_pages = 5}), "aligned");
  EXPECT_EQ(plan(17, 0, {}, {}), "no_alignment");
}

TEST(WritePlan, BeyondTheLargestFile) {
  constexpr std::uint64_t max = 0x7fff'ffff'ffff'ffff;
  EXPECT_EQ(plan(max - 4095, 4096, blocks_4096, {}),
            "no_middle buffered tracked 9223372036854771712+4096");
  EXPECT_EQ(plan(max - 8191, 8191, blocks_4096, {}),
            "split direct 9223372036854767616+4096 buffered tracked 9223372036854771712+4095");
  const WritePlan wrapped = plan_write(~std::uint64_t{0} - 1, 100, 0, blocks_4096, {});
  ASSERT_EQ(wrapped.count, 1u);
  EXPECT_EQ(wrapped.parts[0].kind, SegmentKind::buffered);
}

// For each byte of the WRITE, what the rules say about its page, found page by page.
TEST(WritePlan, EqualsAByteArray) {
  constexpr std::array offset_alignments{512u, 1024u, 4096u, 8192u, 12288u, 16384u};
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const DirectAlignment alignment{
        .offset = offset_alignments[random() % offset_alignments.size()],
        .memory = random() % 2 == 0 ? 512u : 4096u,
        .read_offset = 0};
    const WritePolicy policy{.mode = IoMode::direct,
                             .edges = static_cast<EdgeMode>(random() % 3),
                             .min_middle_pages = static_cast<std::uint32_t>(random() % 4)};
    const std::uint64_t page = alignment.offset < 4096 ? 4096 : alignment.offset;
    const std::uint64_t unit = random() % 3 == 0 ? page : random() % 3 == 0 ? 512 : 1;
    const std::uint64_t offset = random() % 100000 / unit * unit;
    const std::uint64_t length = (1 + random() % 60000 / unit) * unit;
    const std::uintptr_t address = random() % 8192;
    const WritePlan plan = plan_write(offset, length, address, alignment, policy);

    // Whole pages inside, counted one by one.
    std::uint64_t whole = 0;
    for (std::uint64_t p = offset / page; p * page < offset + length; ++p) {
      if (p * page >= offset && (p + 1) * page <= offset + length) ++whole;
    }
    const bool all_whole = whole * page == length;
    const bool direct = whole > 0 && (all_whole || whole >= policy.min_middle_pages);
    ASSERT_EQ(plan.reason, all_whole    ? PlanReason::aligned
                           : direct     ? PlanReason::split
                           : whole == 0 ? PlanReason::no_middle
                                        : PlanReason::too_small);

    std::vector<int> kinds(length, -1);
    std::uint64_t next = offset;
    ASSERT_LE(plan.count, 3u);
    for (const Segment& segment : plan.segments()) {
      ASSERT_EQ(segment.offset, next) << "in order, without gap or overlap";
      ASSERT_GT(segment.length, 0u);
      next += segment.length;
      ASSERT_LE(next, offset + length);
      for (std::uint64_t i = segment.offset; i < next; ++i) {
        kinds[i - offset] = static_cast<int>(segment.kind);
      }
      const bool is_direct = segment.kind == SegmentKind::direct;
      ASSERT_EQ(segment.tracked, !is_direct && policy.edges == EdgeMode::pagecache);
      if (!is_direct) continue;
      ASSERT_EQ(segment.offset % page, 0u);
      ASSERT_EQ(segment.length % page, 0u);
      ASSERT_EQ(plan.bounce, (address + segment.offset - offset) % alignment.memory != 0);
    }
    ASSERT_EQ(next, offset + length);

    const int edge = static_cast<int>(policy.edges == EdgeMode::dontcache ? SegmentKind::dontcache
                                                                          : SegmentKind::buffered);
    for (std::uint64_t i = 0; i < length; ++i) {
      const std::uint64_t page_begin = (offset + i) / page * page;
      const bool in_whole = page_begin >= offset && page_begin + page <= offset + length;
      const int right = in_whole && direct ? static_cast<int>(SegmentKind::direct) : edge;
      if (kinds[i] != right) FAIL() << "byte " << i << ": " << text(plan);
    }
  }
}

TEST(PlanReason, Names) {
  EXPECT_EQ(to_string(PlanReason::aligned), "aligned");
  EXPECT_EQ(to_string(PlanReason::no_middle), "no_middle");
  EXPECT_EQ(to_string(PlanReason::no_alignment), "no_alignment");
  EXPECT_EQ(to_string(static_cast<PlanReason>(200)), "unknown");
}

}  // namespace
}  // namespace selvage::storage
