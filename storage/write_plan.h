// How one WRITE is cut into segments (DESIGN 3.4). Pure functions: no descriptor, no state.
#pragma once

#include "storage/counters.h"
#include "storage/io_mode.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace selvage::storage {

/// The unit of boundary pages, bytes: max(4096, the direct offset alignment). 4096 where the
/// alignment is none that such pages can be made of (0, or neither a divisor nor a multiple of it).
std::uint32_t boundary_page_size(const DirectAlignment& alignment);

enum class SegmentKind : std::uint8_t {
  direct,     ///< O_DIRECT. Offset and length are multiples of boundary_page_size().
  buffered,   ///< Buffered.
  dontcache,  ///< Buffered with RWF_DONTCACHE.
};

struct Segment {
  std::uint64_t offset = 0;  ///< In the file, bytes.
  std::uint64_t length = 0;  ///< Bytes, > 0.
  SegmentKind kind = SegmentKind::buffered;
  /// The boundary tracker is asked before it and told after it, and drops its complete pages.
  bool tracked = false;
};

struct WritePolicy {
  IoMode mode = IoMode::direct;
  EdgeMode edges = EdgeMode::pagecache;
  /// A misaligned WRITE with fewer whole pages inside goes as one segment. 0 counts as 1.
  std::uint32_t min_middle_pages = 1;
};

struct WritePlan {
  PlanReason reason = PlanReason::aligned;
  /// The payload of the direct segment does not lie at an address that O_DIRECT takes: copy that
  /// segment's part into an aligned buffer first.
  bool bounce = false;
  std::uint32_t page_size = 4096;  ///< boundary_page_size() of the file.
  std::size_t count = 0;
  std::array<Segment, 3> parts{};

  /// In ascending order, adjacent, together exactly the WRITE. None for length 0.
  std::span<const Segment> segments() const { return {parts.data(), count}; }
};

/// Plans a WRITE of `length` bytes at `offset` whose payload lies at `address`. Edges are cut at
/// page boundaries even where O_DIRECT would take less (512 bytes): a direct middle must not touch
/// a page that holds a cached edge. A WRITE of whole pages is `aligned`, whatever min_middle_pages.
/// One that ends beyond 2^63 - 1 (which no file system takes) is one buffered segment.
WritePlan plan_write(std::uint64_t offset, std::uint64_t length, std::uintptr_t address,
                     const DirectAlignment& alignment, const WritePolicy& policy);

}  // namespace selvage::storage
