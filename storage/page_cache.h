// What the kernel's page cache holds of a file, and letting go of it. Plain system calls: any
// thread.
#pragma once

#include "cache/boundary_tracker.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace selvage::storage {

struct CachedPages {
  std::uint64_t cached = 0;      ///< Kernel pages.
  std::uint64_t dirty = 0;       ///< Of those, not yet being written back.
  std::uint64_t write_back = 0;  ///< Of those, being written back.
};

/// cachestat(2) of [offset, offset + length); length 0: to the end. Nothing before Linux 6.5.
std::optional<CachedPages> cached_pages(int fd, std::uint64_t offset, std::uint64_t length);

struct DropOutcome {
  std::uint64_t dropped = 0;              ///< Kernel pages that left the cache.
  std::uint64_t failed = 0;               ///< Clean ones that stayed (in use, or in a large folio).
  std::vector<cache::PageRun> stuck;      ///< The runs in which such are.
  std::vector<cache::PageRun> not_clean;  ///< Left alone: to be synced or written back first.
};

/// posix_fadvise(POSIX_FADV_DONTNEED) of those runs that are cached and clean. Never of dirty ones:
/// it would start their write-back, keep them, and drain every CPU's page lists for that.
DropOutcome drop_clean(int fd, std::span<const cache::PageRun> runs);

/// Starts write-back of the dirty pages of a run and waits for nothing: the waiting flags of
/// sync_file_range(2) would take the write-back error that the next fsync must report.
void start_write_back(int fd, const cache::PageRun& run);

}  // namespace selvage::storage
