// A device that injects errors, short results and delays into another one.
#pragma once

#include "storage/worker.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

namespace selvage::storage {

enum class OpKind : std::uint8_t { readv, writev, sync, allocate };
inline constexpr std::size_t op_kinds = 4;

/// One operation as it was asked of the device.
struct Op {
  OpKind kind;
  int fd;
  std::uint64_t offset;
  std::uint64_t length;  ///< Bytes; of a sync 0: to the end.
  int flags;             ///< RWF flags, fallocate's mode, or a sync's SyncKind.
};

/// Which operations a rule is for: of those of its kind that `matches` accepts (empty: all), the
/// first `skip` pass, the next `times` are hit.
struct When {
  std::function<bool(const Op&)> matches{};
  std::uint64_t skip = 0;
  std::uint64_t times = std::numeric_limits<std::uint64_t>::max();
};

/// Operations that a test holds back. Any thread.
class Hold {
 public:
  virtual ~Hold() = default;
  /// Waits until `count` operations have arrived here since the start; false after the time-out.
  virtual bool wait_held(std::size_t count = 1,
                         std::chrono::seconds timeout = std::chrono::seconds(30)) = 0;
  /// Lets all held operations go on, in their order, and later ones pass.
  virtual void release() = 0;
  /// The same, but they fail, unperformed if held before (later ones pass).
  virtual void release_with_error(int error) = 0;
};

/// What happens to which operations, on all devices made with wrapper(). Thread-safe; of several
/// rules for one operation the first made takes it. Must outlive those devices.
class FaultScript {
 public:
  FaultScript();
  ~FaultScript();
  FaultScript(const FaultScript&) = delete;
  FaultScript& operator=(const FaultScript&) = delete;

  /// For Runtime::Options::wrap_device.
  std::function<std::unique_ptr<IoDevice>(std::unique_ptr<IoDevice>)> wrapper();

  /// Fails with this errno without being performed.
  void fail(OpKind kind, int error, When when = {});
  /// Is performed, then fails with this errno: as when a reply is lost.
  void fail_after(OpKind kind, int error, When when = {});
  /// readv, writev: reads or writes only the first `bytes`. 0: does nothing and returns 0.
  void shorten(OpKind kind, std::uint64_t bytes, When when = {});
  /// Waits before it is performed.
  std::shared_ptr<Hold> hold_before(OpKind kind, When when = {});
  /// Is performed, its completion waits.
  std::shared_ptr<Hold> hold_after(OpKind kind, When when = {});
  /// Removes all rules; what is held stays so until its Hold is released.
  void clear();

  /// Operations asked for, whatever became of them.
  std::uint64_t seen(OpKind kind) const;
  /// The same one by one, in the order of their arrival.
  std::vector<Op> log() const;
  /// Forgets what was seen.
  void reset_seen();

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace selvage::storage
