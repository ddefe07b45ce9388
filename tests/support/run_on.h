// Runs coroutines on a worker from a test's thread.
#pragma once

#include "storage/worker.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <utility>

namespace selvage::storage {

/// Starts f(), which returns an Awaitable<T>, on the worker; f lives until it is done.
template <class F>
auto start_on(Worker& worker, F f) {
  return boost::asio::co_spawn(worker.context, std::move(f), boost::asio::use_future);
}

/// The same, and waits for its value. What the coroutine throws is rethrown.
template <class F>
auto run_on(Worker& worker, F f) {
  return start_on(worker, std::move(f)).get();
}

}  // namespace selvage::storage
