// Several asynchronous operations at once on one worker.
#pragma once

#include "storage/suspended.h"

#include <boost/asio/co_spawn.hpp>

#include <cstddef>
#include <exception>
#include <memory>

namespace selvage::storage {

/// Starts f(0) ... f(count - 1), coroutines on this worker, all in this turn of its loop (so that a
/// ring submits them together), and returns when all have ended. The first exception is rethrown.
template <class F>
Awaitable<> join(Worker& worker, std::size_t count, F& f) {
  if (count == 1) {
    co_await f(0);
    co_return;
  }
  const auto done = std::make_shared<Suspended>(worker);
  std::size_t left = count;
  std::exception_ptr error;
  for (std::size_t i = 0; i < count; ++i) {
    auto one = [&f, i]() -> Awaitable<> { co_await f(i); };
    auto ended = [&left, &error, done](std::exception_ptr e) {
      if (e && !error) error = e;
      if (--left == 0) {
        const std::vector<std::shared_ptr<Suspended>> waiting{done};
        resume_all(waiting);
      }
    };
    boost::asio::co_spawn(worker.context, std::move(one), std::move(ended));
  }
  co_await done->wait();
  if (error) std::rethrow_exception(error);
}

}  // namespace selvage::storage
