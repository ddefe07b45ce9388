// Looks after what no request looks after (DESIGN 4 and 5). Private to storage/local.
#pragma once

#include "storage/local/open_file_table.h"
#include "storage/suspended.h"

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <memory>
#include <mutex>

namespace selvage::storage {

/// Once a second, on one worker: writes back UNSTABLE pages that nobody COMMITs and drops them once
/// clean, drops boundary pages whose neighbour never came, closes files that nobody uses.
class Janitor {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Context and table must outlive the end of stop(), or of the runtime.
  Janitor(DataContext& context, OpenFileTable& table, Worker& worker);
  /// stop() must have ended, or the worker's thread.
  ~Janitor();
  Janitor(const Janitor&) = delete;
  Janitor& operator=(const Janitor&) = delete;

  /// Ends it, and returns when it has ended. Once.
  Awaitable<> stop(Worker& worker);

  /// One round, as it would be at `now`.
  Awaitable<> tend(Worker& worker, Time now);

 private:
  struct Shared;
  static Awaitable<> run(std::shared_ptr<Shared> shared, Worker& worker);

  DataContext& context_;
  OpenFileTable& table_;
  Worker& worker_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace selvage::storage
