// Counters of one export's data path (DESIGN 10). Relaxed atomics: read for display only.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace selvage::storage {

/// Why a WRITE was planned as it was; see write_plan.h.
enum class PlanReason : std::uint8_t {
  aligned,         ///< All of it went O_DIRECT.
  split,           ///< Edges apart, middle O_DIRECT.
  too_small,       ///< A middle, but of fewer pages than min_middle: one buffered segment.
  no_middle,       ///< No whole page inside: one buffered segment.
  no_alignment,    ///< The file does not do O_DIRECT.
  mode_buffered,   ///< write=buffered
  mode_dontcache,  ///< write=dontcache
};
inline constexpr std::size_t plan_reasons = 7;
std::string_view to_string(PlanReason reason);

struct Counter {
  std::atomic<std::uint64_t> value{0};
  void add(std::uint64_t n = 1) { value.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t get() const { return value.load(std::memory_order_relaxed); }
};

/// Times by power of two of microseconds: bucket 0 counts those below 1 us, bucket n those in
/// [2^(n-1), 2^n) us; the last one also everything above. Two relaxed additions for each.
struct Histogram {
  static constexpr std::size_t buckets = 32;
  std::array<Counter, buckets> counts;
  Counter nanoseconds;  ///< The sum of all.

  void add(std::chrono::nanoseconds value) {
    const auto ns = static_cast<std::uint64_t>(value.count() < 0 ? 0 : value.count());
    const auto bucket = static_cast<std::size_t>(std::bit_width(ns / 1000));
    counts[bucket < buckets ? bucket : buckets - 1].add();
    nanoseconds.add(ns);
  }
};

/// Edge mode `assemble` (write_combiner.h).
struct CombinerCounters {
  Counter batches;
  Counter batches_together;  ///< Of those, those that started while another of the file flew.
  Counter batch_writes;      ///< WRITEs in them.
  Counter runs;              ///< O_DIRECT writes issued.
  Counter run_pieces;        ///< Segments in them.
  Counter pages_whole;       ///< Edge pages written whole.
  Counter pages_read;        ///< Read from the device to be merged.
  Counter pages_partial;     ///< Written before they were whole.
  Counter tails;             ///< Buffered writes at the end of the file.
  Counter held_back;         ///< WRITEs held back from a batch (hold_back.h), once for each batch.
  Counter waits;             ///< Requests that waited for one more batch (grace).
  Counter barriers;
};

struct DataCounters {
  std::array<Counter, plan_reasons> writes_by_reason;
  Counter writes, write_bytes, write_errors, short_writes;
  Counter reads, read_bytes, read_errors;
  Counter commits;
  Histogram write_latency;  ///< Of WRITEs, from the decoded request to its result.
  Histogram read_latency;
  Histogram commit_latency;
  std::array<Counter, 3> stable_asked;    ///< By Stability: UNSTABLE, DATA_SYNC, FILE_SYNC.
  std::array<Counter, 3> stable_reached;  ///< The same, as answered.
  Counter syncs;                          ///< fsync and fdatasync calls on data.
  Counter syncs_shared;                   ///< WRITEs and COMMITs served by another's sync.
  Counter sync_errors;
  Counter verifier_changes;
  Counter boundary_asked;        ///< Boundary pages asked about.
  Counter boundary_completed;    ///< Pages completed by a WRITE of ours.
  Counter boundary_dropped;      ///< Pages released from the page cache.
  Counter boundary_drop_failed;  ///< Pages that were still cached after posix_fadvise.
  Counter boundary_orphaned;     ///< Pages whose neighbour never came.
  Counter direct_fallbacks;      ///< WRITEs and READs that could not go O_DIRECT though asked to.
  Counter bounce_copies;         ///< Payloads copied because memory and file were not congruent.
  Counter files_opened, files_closed, close_errors;
  CombinerCounters combiner;
  Counter leases_held;     ///< Ever taken.
  Counter leases_refused;  ///< Somebody else had the file open.
  Counter leases_broken;   ///< Given up because somebody opened the file.
  Counter leases_late;     ///< Given up too late: the kernel had let the opener in.
};

}  // namespace selvage::storage
