// Runs coroutines on a worker from a test's thread.
#pragma once

#include "storage/worker.h"

#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <type_traits>
#include <utility>

namespace selvage::storage {

/// Starts it on the worker; it must not throw. Not a template: Asio's are slow to compile.
void spawn_on(Worker& worker, std::function<Awaitable<>()> coroutine);

/// Starts f(), which returns an Awaitable<T>, on the worker; f lives until it is done.
template <class F>
auto start_on(Worker& worker, F f) {
  using T = typename std::invoke_result_t<F&>::value_type;
  const auto work = std::make_shared<F>(std::move(f));
  const auto promise = std::make_shared<std::promise<T>>();
  spawn_on(worker, [work, promise]() -> Awaitable<> {
    try {
      if constexpr (std::is_void_v<T>) {
        co_await (*work)();
        promise->set_value();
      } else {
        promise->set_value(co_await (*work)());
      }
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  });
  return promise->get_future();
}

/// The same, and waits for its value. What the coroutine throws is rethrown.
template <class F>
auto run_on(Worker& worker, F f) {
  return start_on(worker, std::move(f)).get();
}

}  // namespace selvage::storage
