// The syncs of one file or directory that are wanted while one runs become one (DESIGN 5).
#pragma once

#include "storage/suspended.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace selvage::storage {

/// The queue of syncs of one object. Any worker. An idle object is synced at once; a caller who
/// comes while a sync runs (which may have missed its change) waits for the next, shared by all who
/// came meanwhile: their strongest kind, over the union of their ranges. Waiters are bounded by the
/// requests in flight; each is resumed on its own worker.
class SyncQueue {
 public:
  SyncQueue() = default;
  virtual ~SyncQueue() = default;
  SyncQueue(const SyncQueue&) = delete;
  SyncQueue& operator=(const SyncQueue&) = delete;

  /// What was written to [offset, offset + length) before the call is durable on return; length 0:
  /// to the end of the file. `fd` must be of the object and stay open until this returns. The sync
  /// goes through the device of the worker; a failure goes to everyone who shared the sync.
  Awaitable<Result<>> sync(Worker& worker, int fd, SyncKind kind, std::uint64_t offset,
                           std::uint64_t length);

 protected:
  /// Called for every sync made, before anybody learns of its result and before the next starts.
  virtual void made(const Result<>& /*result*/) {}
  /// Called for every caller who was served by another's sync.
  virtual void shared() {}

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

  std::mutex mutex_;  // Never held across I/O.
  bool running_ = false;
  std::vector<std::shared_ptr<Waiter>> waiting_;
};

}  // namespace selvage::storage
