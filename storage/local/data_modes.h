// What of an export's options may change while it is served. Private to storage/local.
#pragma once

#include "storage/local/export_options.h"

#include <atomic>
#include <cstdint>

namespace selvage::storage {

/// A request goes by one copy. As in ExportOptions.
struct DataModes {
  IoMode read;
  IoMode write;
  EdgeMode edges;
  Stability stable_floor;
  bool exclusive;
  bool sync;
  std::uint16_t min_middle_pages;  ///< Configured to at most 2048.

  explicit DataModes(const ExportOptions& options)
      : read(options.read),
        write(options.write),
        edges(options.edges),
        stable_floor(options.stable_floor),
        exclusive(options.exclusive),
        sync(options.sync),
        min_middle_pages(static_cast<std::uint16_t>(options.min_middle_pages)) {}
};

/// Any thread.
class CurrentModes {
 public:
  explicit CurrentModes(const ExportOptions& options) { set(options); }

  DataModes get() const { return modes_.load(std::memory_order_relaxed); }
  void set(const ExportOptions& options) {
    if (options.edges == EdgeMode::assemble) may_assemble_.store(true);
    modes_.store(DataModes(options), std::memory_order_relaxed);
  }
  /// There may be files in `assemble`, though it may no longer be the mode of those to come.
  bool may_assemble() const { return may_assemble_.load(std::memory_order_relaxed); }

 private:
  static_assert(std::atomic<DataModes>::is_always_lock_free);
  std::atomic<DataModes> modes_{DataModes(ExportOptions())};
  std::atomic<bool> may_assemble_{false};
};

}  // namespace selvage::storage
