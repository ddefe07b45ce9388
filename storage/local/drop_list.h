// Pages of one file that leave the page cache as soon as they are clean (DESIGN 4).
#pragma once

#include "cache/boundary_tracker.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace selvage::storage {

/// Any thread. Bounded: beyond max_runs separate runs the lowest is left to the kernel's reclaim.
class DropList {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t max_runs = 32768;

  /// Joins what touches; a joined run is as old as its oldest part.
  void add(std::span<const cache::PageRun> runs, Time since);

  /// Takes out what lies in [first, last), bytes.
  std::vector<cache::PageRun> take(std::uint64_t first, std::uint64_t last);

  /// Takes out what was added at or before `time`.
  std::vector<cache::PageRun> take_older(Time time);

  void clear();
  bool empty() const { return size() == 0; }
  std::size_t size() const;  ///< Runs.

 private:
  struct Item {
    std::uint64_t last;  // Exclusive.
    Time since;
  };
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Item> runs_;  // By first byte; disjoint, not touching.
};

}  // namespace selvage::storage
