// What the NFSv4 program needs of the rest of the server.
#pragma once

#include "server/nfs4/namespace.h"
#include "server/nfs4/owner_names.h"
#include "server/nfs4/state/state.h"
#include "server/nfs4/turns.h"
#include "server/rpc/counters.h"
#include "storage/handle_codec.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace selvage::server::nfs4 {

struct Options {
  std::uint32_t lease_seconds = 90;
  std::string domain;  ///< Of owners and groups; empty: numbers.
};

/// Outlives the RPC server it is given to. Any worker.
class Service {
 public:
  Service(std::shared_ptr<const Namespace> names, storage::HandleCodec handles, state::State& state,
          const Options& options)
      : handles(handles),
        state(state),
        lease_seconds(options.lease_seconds),
        owners(options.domain),
        names_(std::move(names)) {}

  const storage::HandleCodec handles;
  state::State& state;
  std::atomic<std::uint32_t> lease_seconds;  ///< As clients are told.
  OwnerNames owners;

  /// By file: its locks in the kernel are changed by one request at a time.
  Turns<state::FileKey, state::FileKeyHash> kernel_locks;

  /// A COMPOUND uses one snapshot from its first operation to its last.
  std::shared_ptr<const Namespace> names() const {
    const std::lock_guard lock(mutex_);
    return names_;
  }
  /// For COMPOUNDs to come.
  void replace(std::shared_ptr<const Namespace> names) {
    const std::lock_guard lock(mutex_);
    names_ = std::move(names);
  }

  /// By operation number; [0] is for those that do not exist.
  struct OperationCounters {
    rpc::Counter calls;
    rpc::Counter errors;
    rpc::Histogram latency;  ///< From the end of the operation before it to its own.
  };
  std::array<OperationCounters, 76> operations;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Namespace> names_;
};

}  // namespace selvage::server::nfs4
