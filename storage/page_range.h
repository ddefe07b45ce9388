// Arithmetic on whole pages.
#pragma once

#include "cache/boundary_tracker.h"

#include <cstdint>

namespace selvage::storage {

/// The whole pages that [offset, offset + length) touches. length > 0; the end is at most 2^63.
inline cache::PageRun whole_pages(std::uint64_t offset, std::uint64_t length,
                                  std::uint64_t page_size) {
  const std::uint64_t first = offset / page_size * page_size;
  const std::uint64_t last = (offset + length + page_size - 1) / page_size * page_size;
  return {first, last - first};
}

}  // namespace selvage::storage
