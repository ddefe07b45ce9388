// A counting semaphore that coroutines wait at: how the front end bounds what it admits.
#pragma once

#include "storage/io_device.h"
#include "storage/parked.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

namespace selvage::server::rpc {

/// Hands out at most `permits` permits at a time, first come first served. Any thread; outlives its
/// permits and its waiters.
class Gate {
 public:
  /// The right to go on; gives itself back on destruction, on any thread.
  class Permit {
   public:
    Permit() = default;
    Permit(Permit&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Permit& operator=(Permit&& other) noexcept {
      if (this != &other) {
        reset();
        gate_ = std::exchange(other.gate_, nullptr);
      }
      return *this;
    }
    ~Permit() { reset(); }

    explicit operator bool() const { return gate_ != nullptr; }

   private:
    friend class Gate;
    explicit Permit(Gate* gate) : gate_(gate) {}
    void reset() {
      if (gate_) std::exchange(gate_, nullptr)->release();
    }
    Gate* gate_ = nullptr;
  };

  explicit Gate(std::size_t permits) : free_(permits), permits_(permits) {}
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// Waits for a permit; an empty one once stop() was called. Resumes on the caller's executor.
  storage::Awaitable<Permit> acquire();

  /// An empty permit if acquire() would have to wait.
  Permit try_acquire();

  std::size_t in_use() const;
  std::uint64_t waits() const;  ///< acquire() calls that had to wait, ever.
  bool awaited() const;         ///< Somebody waits now.

  /// Sends all waiters and later callers away.
  void stop();

 private:
  struct Waiter {
    storage::Parked parked;
    bool* granted;  ///< In the waiting coroutine.
  };
  void release();

  mutable std::mutex mutex_;
  std::size_t free_;
  const std::size_t permits_;
  std::uint64_t waits_ = 0;
  bool stopped_ = false;
  std::deque<Waiter> waiters_;
};

}  // namespace selvage::server::rpc
