// Whether every worker thread still answers: what feeds the service manager's watchdog.
#pragma once

#include "storage/worker.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace selvage::server {

/// Puts a task into each worker's queue at every beat, and feeds if all tasks of the beat before
/// have run: one worker that is stuck ends the feeding. The runtime outlives it.
class Watchdog {
 public:
  /// @param feed called on the watchdog's own thread, or by beat()
  Watchdog(storage::Runtime& runtime, std::function<void()> feed);
  /// stop()
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// From now on a beat every quarter of `interval`, the time in which one feeding is expected.
  void start(std::chrono::microseconds interval);
  void stop();

  /// One beat; true if it fed. Not while started.
  bool beat();

 private:
  struct Pending;

  storage::Runtime& runtime_;
  const std::function<void()> feed_;
  std::shared_ptr<Pending> pending_;  ///< Of the beat before; null before the first.
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace selvage::server
