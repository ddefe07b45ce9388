#include "storage/write_plan.h"

#include "storage/offsets.h"

#include <algorithm>
#include <limits>

namespace selvage::storage {

namespace {

constexpr std::uint32_t cache_page = 4096;

bool fits_pages(std::uint32_t alignment) {
  return alignment != 0 && (cache_page % alignment == 0 || alignment % cache_page == 0);
}

void add(WritePlan& plan, std::uint64_t begin, std::uint64_t end, SegmentKind kind, bool tracked) {
  if (begin == end) return;
  plan.parts[plan.count] = {begin, end - begin, kind, tracked};
  ++plan.count;
}

}  // namespace

std::uint32_t boundary_page_size(const DirectAlignment& alignment) {
  return fits_pages(alignment.offset) ? std::max(cache_page, alignment.offset) : cache_page;
}

WritePlan plan_write(std::uint64_t offset, std::uint64_t length, std::uintptr_t address,
                     const DirectAlignment& alignment, const WritePolicy& policy) {
  WritePlan plan;
  plan.page_size = boundary_page_size(alignment);
  if (length > std::numeric_limits<std::uint64_t>::max() - offset) {
    length = std::numeric_limits<std::uint64_t>::max() - offset;
  }
  const std::uint64_t end = offset + length;

  if (policy.mode == IoMode::buffered) {
    plan.reason = PlanReason::mode_buffered;
    add(plan, offset, end, SegmentKind::buffered, false);
    return plan;
  }
  if (policy.mode == IoMode::dontcache) {
    plan.reason = PlanReason::mode_dontcache;
    add(plan, offset, end, SegmentKind::dontcache, false);
    return plan;
  }
  if (!fits_pages(alignment.offset) || alignment.memory == 0) {
    plan.reason = PlanReason::no_alignment;
    add(plan, offset, end, SegmentKind::buffered, false);
    return plan;
  }

  const SegmentKind edge =
      policy.edges == EdgeMode::dontcache ? SegmentKind::dontcache : SegmentKind::buffered;
  const bool tracked = policy.edges == EdgeMode::pagecache;
  const std::uint64_t page = plan.page_size;
  const std::uint64_t middle_begin = (offset / page + (offset % page != 0 ? 1 : 0)) * page;
  const std::uint64_t middle_end = end / page * page;

  if (end > max_offset || (middle_begin >= middle_end && length > 0)) {
    plan.reason = PlanReason::no_middle;
    add(plan, offset, end, edge, tracked);
    return plan;
  }
  const bool aligned = offset == middle_begin && end == middle_end;
  if (!aligned && length > 0 && (middle_end - middle_begin) / page < policy.min_middle_pages) {
    plan.reason = PlanReason::too_small;
    add(plan, offset, end, edge, tracked);
    return plan;
  }
  if (length == 0) return plan;

  plan.reason = aligned ? PlanReason::aligned : PlanReason::split;
  plan.bounce = (address + (middle_begin - offset)) % alignment.memory != 0;
  add(plan, offset, middle_begin, edge, tracked);
  add(plan, middle_begin, middle_end, SegmentKind::direct, false);
  add(plan, middle_end, end, edge, tracked);
  return plan;
}

}  // namespace selvage::storage
