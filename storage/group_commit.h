// Group commit: the syncs of one file that are wanted while one runs become one (DESIGN 5).
#pragma once

#include "storage/counters.h"
#include "storage/suspended.h"
#include "storage/write_verifier.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace selvage::storage {

/// The queue of syncs of one file. Any worker. An idle file is synced at once; a caller who comes
/// while a sync runs (which may have missed its bytes) waits for the next, shared by all who came
/// meanwhile: their strongest kind, over the union of their ranges.
class GroupCommit {
 public:
  GroupCommit(DataCounters& counters, WriteVerifier& verifier)
      : counters_(counters), verifier_(verifier) {}
  GroupCommit(const GroupCommit&) = delete;
  GroupCommit& operator=(const GroupCommit&) = delete;

  /// Everything written to [offset, offset + length) before the call is durable on return; length
  /// 0: to the end of the file. `fd` must be the description that carries the file's write-back
  /// errors, the same at every call, and stay open until this returns. A failure has changed the
  /// verifier, once, and goes to everyone who shared the sync.
  Awaitable<Result<>> sync(Worker& worker, int fd, SyncKind kind, std::uint64_t offset,
                           std::uint64_t length);

 private:
  struct Want {
    SyncKind kind;
    std::uint64_t first;
    std::uint64_t last;  // Exclusive; no_end: to the end of the file.
    void join(const Want& other);
  };
  struct Waiter final : Suspended {
    Waiter(Worker& worker, const Want& wanted) : Suspended(worker), want(wanted) {}
    Want want;
    bool leads = false;  // Runs the next sync itself, for all who wait by then.
    Result<> result;
  };
  static constexpr std::uint64_t no_end = ~std::uint64_t{0};

  Awaitable<Result<>> lead(Worker& worker, int fd, Want want,
                           std::vector<std::shared_ptr<Waiter>> others);
  void end_turn();

  DataCounters& counters_;
  WriteVerifier& verifier_;
  std::mutex mutex_;  // Never held across I/O.
  bool running_ = false;
  std::vector<std::shared_ptr<Waiter>> waiting_;
};

}  // namespace selvage::storage
