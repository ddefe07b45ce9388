// Group commit: the syncs of one file's data, and what follows when they fail (DESIGN 5).
#pragma once

#include "storage/counters.h"
#include "storage/sync_queue.h"
#include "storage/write_verifier.h"

#include <atomic>
#include <cstdint>

namespace selvage::storage {

/// The queue of syncs of one file. `fd` must be the description that carries the file's write-back
/// errors, the same at every call. A failure has changed the verifier, once, before anybody learns
/// of it.
class GroupCommit final : public SyncQueue {
 public:
  GroupCommit(DataCounters& counters, WriteVerifier& verifier)
      : counters_(counters), verifier_(verifier) {}

  /// Syncs made so far. Any thread.
  std::uint64_t syncs() const { return syncs_.load(std::memory_order_acquire); }

 private:
  void made(const Result<>& result) override;
  void shared() override { counters_.syncs_shared.add(); }

  DataCounters& counters_;
  WriteVerifier& verifier_;
  std::atomic<std::uint64_t> syncs_{0};
};

}  // namespace selvage::storage
