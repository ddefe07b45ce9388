#include "storage/page_cache.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace selvage::storage {
namespace {

// cachestat(2), Linux 6.5; Debian 12's headers do not have it yet.
constexpr long cachestat_number = 451;
struct CachestatRange {
  std::uint64_t offset;
  std::uint64_t length;
};
struct Cachestat {
  std::uint64_t cached;
  std::uint64_t dirty;
  std::uint64_t write_back;
  std::uint64_t evicted;
  std::uint64_t recently_evicted;
};

void advise_unneeded(int fd, const cache::PageRun& run) {
  ::posix_fadvise(fd, static_cast<off_t>(run.offset), static_cast<off_t>(run.length),
                  POSIX_FADV_DONTNEED);
}

}  // namespace

std::optional<CachedPages> cached_pages(int fd, std::uint64_t offset, std::uint64_t length) {
  CachestatRange range{offset, length};
  Cachestat found{};
  if (::syscall(cachestat_number, fd, &range, &found, 0) != 0) return std::nullopt;
  return CachedPages{found.cached, found.dirty, found.write_back};
}

DropOutcome drop_clean(int fd, std::span<const cache::PageRun> runs) {
  DropOutcome outcome;
  for (const cache::PageRun& run : runs) {
    const auto before = cached_pages(fd, run.offset, run.length);
    if (!before) {  // An older kernel: the caller has synced, that must do.
      advise_unneeded(fd, run);
      outcome.dropped += run.length / 4096;
      continue;
    }
    if (before->cached == 0) continue;
    if (before->dirty + before->write_back > 0) {
      outcome.not_clean.push_back(run);
      continue;
    }
    advise_unneeded(fd, run);
    const auto after = cached_pages(fd, run.offset, run.length);
    const std::uint64_t left = after ? after->cached : 0;
    outcome.failed += left;
    if (left > 0) outcome.stuck.push_back(run);
    if (before->cached > left) outcome.dropped += before->cached - left;
  }
  return outcome;
}

void start_write_back(int fd, const cache::PageRun& run) {
  ::sync_file_range(fd, static_cast<off_t>(run.offset), static_cast<off_t>(run.length),
                    SYNC_FILE_RANGE_WRITE);
}

}  // namespace selvage::storage
