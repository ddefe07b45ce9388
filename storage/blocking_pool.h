// Threads for calls that block: everything that io_uring does not do well (DESIGN 7).
#pragma once

#include "storage/credentials.h"
#include "storage/io_device.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace selvage::storage {

/// A fixed number of threads. The queue is bounded by the callers: each queued call belongs to a
/// request in flight, and the RPC front end bounds those.
class BlockingPool {
 public:
  explicit BlockingPool(unsigned threads) : pool_(threads) {}

  /// Runs f() on a pool thread, as the server's own identity, and resumes the caller on the
  /// executor it runs on. What f throws is rethrown to the caller. f returns a value, not void.
  template <class F>
  Awaitable<std::invoke_result_t<F&>> run(F f);

  /// Calls accepted and not yet finished.
  std::size_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

  void stop() { pool_.join(); }

 private:
  boost::asio::thread_pool pool_;
  std::atomic<std::size_t> in_flight_{0};
};

template <class F>
Awaitable<std::invoke_result_t<F&>> BlockingPool::run(F f) {
  using Value = std::invoke_result_t<F&>;
  using Signature = void(std::exception_ptr, std::optional<Value>);
  auto initiate = [this, &f](auto handler) {
    in_flight_.fetch_add(1, std::memory_order_relaxed);
    auto work = [this, &f, handler = std::move(handler)]() mutable {
      std::exception_ptr error;
      std::optional<Value> value;
      try {
        value.emplace(f());
      } catch (...) {
        error = std::current_exception();
      }
      in_flight_.fetch_sub(1, std::memory_order_relaxed);
      auto executor = boost::asio::get_associated_executor(handler);
      auto resume = [handler = std::move(handler), error, value = std::move(value)]() mutable {
        std::move(handler)(error, std::move(value));
      };
      boost::asio::post(executor, std::move(resume));
    };
    boost::asio::post(pool_, std::move(work));
  };
  auto value = co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, Signature>(
      initiate, boost::asio::use_awaitable);
  co_return std::move(*value);
}

/// Puts the calling pool thread under a client's fsuid, fsgid and supplementary groups, and back
/// to the server's on destruction. Per thread (raw system calls; setgroups(2) of glibc is not).
/// Without the privilege to switch (an ordinary user's server) it does nothing: every client is
/// then the server's own user.
class ScopedIdentity {
 public:
  explicit ScopedIdentity(const Credentials& credentials);
  ~ScopedIdentity();
  ScopedIdentity(const ScopedIdentity&) = delete;
  ScopedIdentity& operator=(const ScopedIdentity&) = delete;
};

}  // namespace selvage::storage
