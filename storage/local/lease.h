// Write leases (fcntl(2), F_SETLEASE): proof that this server alone has a file open.
//
// The kernel grants one only to the sole opener, and tells us by a signal when somebody else opens
// the file; the opener then waits until the lease is given back, lease-break-time (45 s) at most.
#pragma once

#include "storage/result.h"

#include <functional>
#include <memory>

namespace selvage::storage {

/// Blocks the signals by which breaks arrive, in the calling thread and in those it starts later.
/// To be called before the process's first thread is started: a thread that does not block them
/// would be killed by them.
void block_lease_signals();

/// Dispatches lease breaks; one for the process. Thread-safe.
class LeaseBreaks {
 public:
  /// Called on the dispatcher's own thread; must not block.
  using Callback = std::function<void()>;

  /// The process's dispatcher, started with the first reference and stopped with the last.
  static std::shared_ptr<LeaseBreaks> instance();
  ~LeaseBreaks();
  LeaseBreaks(const LeaseBreaks&) = delete;
  LeaseBreaks& operator=(const LeaseBreaks&) = delete;

  /// Takes a write lease on the description of `fd` (opened for writing, and the only one of the
  /// file). `broken` may be called from here on, more than once. EAGAIN: somebody else has the
  /// file open.
  Result<> take(int fd, Callback broken);
  /// No call of `broken` starts after this returns. The lease itself ends with the description.
  void forget(int fd);
  /// Whether the kernel still counts the lease as ours: false once a break went unanswered for
  /// lease-break-time.
  static bool held(int fd);

 private:
  LeaseBreaks();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace selvage::storage
