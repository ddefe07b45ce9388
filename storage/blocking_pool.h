// Threads for calls that block: everything that io_uring does not do well (DESIGN 7).
#pragma once

#include "storage/counters.h"
#include "storage/credentials.h"
#include "storage/io_device.h"
#include "storage/thread_identity.h"

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace selvage::storage {

/// A fixed number of threads, with all signals blocked. The queue is bounded by the callers: each
/// queued call belongs to a request in flight, and the RPC front end bounds those.
class BlockingPool {
 public:
  explicit BlockingPool(unsigned threads);
  /// stop(), if not called before.
  ~BlockingPool();
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  /// Runs f() on a pool thread, as the server's own identity, and resumes the caller on the
  /// executor it runs on, whose io_context does not run out of work meanwhile. What f throws is
  /// rethrown to the caller. f is destroyed on the caller's executor; it may return void. Once
  /// started it cannot be cancelled. After stop(): std::system_error (ECANCELED).
  template <class F>
  Awaitable<std::invoke_result_t<F&>> run(F f);

  /// Calls accepted and not yet finished.
  std::size_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

  /// Calls ever accepted: each costs two switches of threads.
  std::uint64_t calls() const { return calls_.get(); }

  /// Runs all accepted calls to their end, joins the threads and refuses later calls. The callers
  /// still have to be resumed by their io_contexts.
  void stop();

 private:
  /// A call and where its outcome goes, in the frame of the coroutine that waits for it.
  class Job {
   public:
    virtual ~Job() = default;
    virtual void run() = 0;
    std::exception_ptr error;
  };
  template <class F>
  class JobOf;

  Awaitable<> perform(Job& job);

  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::atomic<std::size_t> in_flight_{0};
  Counter calls_;
};

template <class F>
class BlockingPool::JobOf final : public BlockingPool::Job {
 public:
  using Value = std::invoke_result_t<F&>;
  explicit JobOf(F&& f) : f_(std::move(f)) {}

  void run() override {
    if constexpr (std::is_void_v<Value>) {
      f_();
    } else {
      value_.emplace(f_());
    }
  }
  Value take() {
    if constexpr (!std::is_void_v<Value>) return std::move(*value_);
  }

 private:
  struct Nothing {};
  F f_;
  std::optional<std::conditional_t<std::is_void_v<Value>, Nothing, Value>> value_;
};

template <class F>
Awaitable<std::invoke_result_t<F&>> BlockingPool::run(F f) {
  JobOf<F> job(std::move(f));
  co_await perform(job);
  co_return job.take();
}

}  // namespace selvage::storage
