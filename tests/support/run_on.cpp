#include "tests/support/run_on.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

namespace selvage::storage {

void spawn_on(Worker& worker, std::function<Awaitable<>()> coroutine) {
  boost::asio::co_spawn(worker.context, std::move(coroutine), boost::asio::detached);
}

}  // namespace selvage::storage
