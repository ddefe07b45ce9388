#include "storage/read_plan.h"

#include "storage/offsets.h"

#include <algorithm>

namespace selvage::storage {

namespace {

// Saturates at the last multiple below 2^63.
std::uint64_t align_up(std::uint64_t value, std::uint64_t unit) {
  const std::uint64_t down = value / unit * unit;
  if (down == value || down > max_offset - unit) return down;
  return down + unit;
}

}  // namespace

ReadPlan plan_read(std::uint64_t offset, std::uint64_t count, const DirectAlignment& alignment,
                   IoMode mode, std::optional<std::uint64_t> known_size) {
  ReadPlan plan;
  plan.mode = mode;
  plan.wanted_offset = offset;
  plan.wanted_count = count;
  std::uint64_t unit = 1;
  if (mode == IoMode::direct) {
    unit = alignment.read_offset != 0 ? alignment.read_offset : alignment.offset;
    if (alignment.memory == 0 || unit == 0) {
      plan.mode = IoMode::buffered;
      plan.fallback = true;
      unit = 1;
    }
  }
  const std::uint64_t limit = std::min(max_offset, known_size.value_or(max_offset));
  plan.offset = offset;
  if (count == 0 || offset >= limit) return plan;
  const std::uint64_t end = offset + std::min(count, limit - offset);
  plan.offset = offset / unit * unit;
  plan.skip = offset - plan.offset;
  plan.length = align_up(end, unit) - plan.offset;
  return plan;
}

ReadSlice slice_read(const ReadPlan& plan, std::uint64_t bytes_read, std::uint64_t file_size) {
  ReadSlice slice;
  slice.begin = plan.skip;
  if (plan.wanted_offset >= file_size) {
    slice.eof = true;
    return slice;
  }
  const std::uint64_t got = bytes_read > plan.skip ? bytes_read - plan.skip : 0;
  slice.length = std::min({got, plan.wanted_count, file_size - plan.wanted_offset});
  slice.eof = plan.wanted_offset + slice.length == file_size;
  slice.again = slice.length == 0 && plan.wanted_count > 0;
  return slice;
}

}  // namespace selvage::storage
