// A suspended coroutine as a value: what queues of waiters are made of.
#pragma once

#include "storage/io_device.h"

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <utility>

namespace selvage::storage {

/// Owns a coroutine suspended in park() and keeps its io_context busy. Movable; resume() may be
/// called on any thread. Destroying it without resume() destroys the coroutine: only once nobody
/// runs its executor any more.
class Parked {
 public:
  using Handler = boost::asio::async_result<boost::asio::use_awaitable_t<>, void()>::handler_type;

  explicit Parked(Handler handler)
      : work_(boost::asio::get_associated_executor(handler)), handler_(std::move(handler)) {}

  /// Continues the coroutine on its own executor, never inside this call. Once.
  void resume() && {
    const auto executor = work_.get_executor();
    boost::asio::post(executor, std::move(handler_));
  }

  /// Continues the coroutine inside this call: on its own executor's thread only. Once.
  void resume_here() && {
    Handler handler = std::move(handler_);
    std::move(handler)();
  }

 private:
  boost::asio::executor_work_guard<boost::asio::any_io_executor> work_;
  Handler handler_;
};

/// Suspends the caller, then calls store(Parked) to hand it over. `store` must live until then
/// (a local of the caller). Not affected by Asio's cancellation: only resume() continues.
template <class Store>
Awaitable<> park(Store& store) {
  auto initiate = [&store](Parked::Handler handler) { store(Parked(std::move(handler))); };
  return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void()>(
      initiate, boost::asio::use_awaitable);
}

}  // namespace selvage::storage
