// Boundary pages of misaligned WRITEs (DESIGN 4): who has written which bytes of them, who is about
// to, and which may leave the page cache.
//
// Use, for each segment that goes through the page cache and whose pages shall not stay there:
//
//   Claim claim = tracker.ask(file, page_size, segment.offset, segment.length, now);
//   ... write the segment; write the others; sync, if the WRITE is stable ...
//   auto drop = tracker.release(std::move(claim), bytes_written, Outcome::written, now);
//
// A stable WRITE drops `drop` at once; an UNSTABLE one puts it on the file's drop list, and COMMIT,
// after its sync, drops what droppable() still lets it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace selvage::cache {

/// How a WRITE ended, its sync included.
enum class Outcome : std::uint8_t {
  written,      ///< Bytes were written, fewer than asked for perhaps, and synced if they had to be.
  failed,       ///< The WRITE is answered with an error. Its bytes do not count.
  sync_failed,  ///< The cache may hold the only copy: what was known of its pages is forgotten.
};

/// Bytes of a file, whole pages.
struct PageRun {
  std::uint64_t offset;  ///< Bytes.
  std::uint64_t length;  ///< Bytes.
  bool operator==(const PageRun&) const = default;
};

/// A page that nobody completed in time, or that had to make room.
struct OrphanPage {
  std::uint64_t file;
  std::uint64_t offset;  ///< Bytes.
  std::uint32_t length;  ///< Bytes: the page size.
  bool operator==(const OrphanPage&) const = default;
};

class BoundaryTracker;

/// The pages of one segment while its WRITE is in flight. Movable; destroyed without release(), it
/// releases itself as failed. The tracker must outlive it.
class Claim {
 public:
  Claim() = default;
  Claim(Claim&& other) noexcept { swap(other); }
  Claim& operator=(Claim&& other) noexcept {
    Claim taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~Claim();

  /// Boundary pages of the segment, 0 to 2: those that it covers only partly. A page that holds
  /// both ends of the segment is one.
  std::uint32_t boundary_pages() const { return boundary_pages_; }
  /// Of those, the ones whose other bytes all were written by completed WRITEs, with no other
  /// writer in flight, at the time of ask(): this segment will complete them.
  std::uint32_t completing_pages() const { return completing_pages_; }
  /// Pages (any) that the tracker had no room for. They will never be handed out by release().
  std::uint32_t untracked_pages() const { return untracked_pages_; }

 private:
  friend class BoundaryTracker;
  void swap(Claim& other) noexcept;

  BoundaryTracker* tracker_ = nullptr;
  std::uint64_t id_ = 0;
  std::uint64_t file_ = 0;
  std::uint64_t offset_ = 0;
  std::uint64_t length_ = 0;
  std::uint32_t page_size_ = 0;
  std::uint32_t boundary_pages_ = 0;
  std::uint32_t completing_pages_ = 0;
  std::uint32_t untracked_pages_ = 0;
  std::chrono::steady_clock::time_point asked_;
};

/// Any thread; each call holds one shard's mutex at a time. Memory is bounded by `max_pages`
/// entries (and as many orphans), of at most page_size / 8 bytes and a few words for each WRITE in
/// flight. Contains no clock: callers pass the time.
class BoundaryTracker {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  /// Larger pages are not tracked.
  static constexpr std::uint32_t max_page_size = 65536;

  struct Gauges {
    std::uint64_t pages = 0;      ///< In play now.
    std::uint64_t in_flight = 0;  ///< Of those, with a writer in flight.
    std::uint64_t orphans = 0;    ///< Evicted and not yet taken by take_idle().
    std::uint64_t evicted = 0;    ///< Ever: pages that had to make room.
    std::uint64_t untracked = 0;  ///< Ever: pages asked about without room to track them.
  };

  /// Each of the `shards` (made fewer if there are fewer pages) holds its part of `max_pages`.
  explicit BoundaryTracker(std::size_t max_pages, std::size_t shards = 16);
  ~BoundaryTracker();
  BoundaryTracker(const BoundaryTracker&) = delete;
  BoundaryTracker& operator=(const BoundaryTracker&) = delete;

  /// To be called *immediately* before the segment [offset, offset + length) is written: earlier
  /// would miss what a neighbour writes meanwhile. Registers all pages that it touches as in flight
  /// (those it covers wholly too: they are handed out like the others). `page_size`: max(4096, the
  /// file's direct offset alignment), bytes. Never fails; see Claim::untracked_pages.
  Claim ask(std::uint64_t file, std::uint32_t page_size, std::uint64_t offset, std::uint64_t length,
            Time now);

  /// To be called once the whole WRITE has ended, its sync included. `bytes_written` counts from
  /// the segment's start; with Outcome::written exactly those bytes become known. Returns the pages
  /// this WRITE wrote to that now are complete and have no writer in flight, adjacent ones joined,
  /// in ascending order; the tracker forgets them. Of two concurrent halves the later finisher gets
  /// the page. `failed` and `sync_failed` get none: a page that such a one leaves complete waits
  /// for the next WRITE to it, or for take_idle().
  std::vector<PageRun> release(Claim claim, std::uint64_t bytes_written, Outcome outcome, Time now);

  /// The part of `run` of which no page is in play (again): what a drop list may still drop.
  std::vector<PageRun> droppable(std::uint64_t file, std::uint32_t page_size, PageRun run) const;

  /// Takes out the pages that have had no writer in flight for `idle` (their neighbour's WRITE
  /// never came), and those evicted since the last call that are not in play again.
  std::vector<OrphanPage> take_idle(Time now, Duration idle);

  /// Takes out all pages of a file that have no writer in flight, evicted ones too: before its
  /// descriptor is closed.
  std::vector<OrphanPage> take_file(std::uint64_t file);

  /// The file was removed or its content replaced, or a sync of it failed: nothing about its pages
  /// is known any more. Writers in flight stay counted as such, but their bytes will not count.
  void forget(std::uint64_t file) { forget_from(file, 0); }
  /// The same for the bytes at or after `offset`: the file was truncated (or a hole punched) there.
  void forget_from(std::uint64_t file, std::uint64_t offset);

  Gauges gauges() const;

  struct FilePages {
    std::uint64_t pages = 0;      ///< In play now.
    std::uint64_t in_flight = 0;  ///< Of those, with a writer in flight.
  };
  /// By file. Visits every page, one shard at a time: for people who ask, not for every second.
  std::unordered_map<std::uint64_t, FilePages> pages_by_file() const;

 private:
  friend class Claim;
  struct Shard;

  Shard& shard(std::uint64_t file, std::uint64_t page_offset) const;
  void abandon(Claim& claim) noexcept;
  std::vector<PageRun> end(const Claim& claim, std::uint64_t bytes_written, Outcome outcome,
                           Time now);

  std::atomic<std::uint64_t> next_claim_{1};
  std::size_t shard_count_;
  std::unique_ptr<Shard[]> shards_;
};

}  // namespace selvage::cache
