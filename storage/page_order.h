// WRITEs through the page cache and past it that meet in a page, one after the other.
#pragma once

#include "cache/boundary_tracker.h"
#include "storage/suspended.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace selvage::storage {

/// Keeps O_DIRECT writes and buffered ones of the same pages of a file apart. Linux does not: a
/// buffered write of a part of a page may read the page before a direct write of the whole of it
/// reaches the device, and write the old bytes back over it later. (It notices mostly, logs "Page
/// cache invalidation failure on direct I/O", and fails the next fsync with EIO.) Only WRITEs whose
/// bytes overlap meet in such a page. Any thread; entries are bounded by the requests in flight.
class PageOrder {
 public:
  enum class Way : std::uint8_t { direct, cached };

 private:
  struct Entry;

 public:
  /// The right to write; given back on destruction, on any thread.
  class Turn {
   public:
    Turn(PageOrder& order, std::uint64_t file, std::shared_ptr<Entry> entry)
        : order_(&order), file_(file), entry_(std::move(entry)) {}
    Turn(Turn&&) noexcept = default;
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (entry_) order_->leave(file_, entry_);
    }

   private:
    PageOrder* order_;
    std::uint64_t file_;
    std::shared_ptr<Entry> entry_;
  };

  /// Waits for those who came before, go the other way, and share a page with `pages`. Who holds a
  /// turn must not wait for another.
  Awaitable<Turn> enter(Worker& worker, std::uint64_t file, cache::PageRun pages, Way way);

 private:
  using Entries = std::vector<std::shared_ptr<Entry>>;
  static bool blocked(const Entries& entries, std::size_t index);
  void leave(std::uint64_t file, const std::shared_ptr<Entry>& entry);

  std::mutex mutex_;
  std::unordered_map<std::uint64_t, Entries> files_;  // In order of arrival.
};

}  // namespace selvage::storage
