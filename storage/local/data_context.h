// What the parts of one export's data path share. Private to storage/local.
#pragma once

#include "cache/boundary_tracker.h"
#include "cache/edge_pages.h"
#include "storage/counters.h"
#include "storage/local/data_modes.h"
#include "storage/local/export_options.h"
#include "storage/local/kernel_locks.h"
#include "storage/local/object.h"
#include "storage/wait_credit.h"
#include "storage/worker.h"
#include "storage/write_verifier.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace selvage::storage {

/// Why data goes another way than the export asks for.
enum class Fallback : std::uint8_t {
  no_direct,       ///< The file system states no O_DIRECT alignment.
  direct_refused,  ///< It does, and then answers EINVAL.
  no_dontcache,    ///< RWF_DONTCACHE is not supported.
  no_lease,        ///< The file system gives no leases, or has no O_DIRECT, for `assemble`.
};

/// Any thread.
struct DataContext {
  DataContext(const ObjectOpener& object_opener, const ExportOptions& export_options,
              DataCounters& data_counters, Worker& background_worker)
      : opener(object_opener),
        options(export_options),
        modes(export_options),
        counters(data_counters),
        verifier(data_counters),
        tracker(export_options.max_boundary_pages),
        edge_budget(export_options.max_edge_bytes),
        background(background_worker) {}

  const ObjectOpener& opener;
  const ExportOptions& options;  ///< For what does not change: not what DataModes has.
  CurrentModes modes;
  DataCounters& counters;
  WriteVerifier verifier;
  cache::BoundaryTracker tracker;
  cache::EdgePageBudget edge_budget;
  WaitsLearned waits_learned;
  KernelLocks locks;
  Worker& background;                           ///< Runs what no request waits for.
  std::atomic<std::uint64_t> next_file_key{1};  ///< Names open files to the tracker.

  /// Tells the export's `notice` once for each kind of fallback.
  void notice(Fallback kind, const std::string& message) {
    if (noticed_[static_cast<std::size_t>(kind)].exchange(true, std::memory_order_relaxed)) return;
    if (options.notice) options.notice(message);
  }

 private:
  std::array<std::atomic<bool>, 4> noticed_{};
};

}  // namespace selvage::storage
