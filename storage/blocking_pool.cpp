#include "storage/blocking_pool.h"

#include "storage/parked.h"

#include <boost/asio/thread_pool.hpp>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace selvage::storage {

struct BlockingPool::Impl {
  explicit Impl(unsigned threads) : pool(std::max(threads, 1U)) {}
  boost::asio::thread_pool pool;
  std::atomic<bool> stopped{false};
};

BlockingPool::BlockingPool(unsigned threads) {
  const ScopedSignalBlock blocked;
  impl_ = std::make_unique<Impl>(threads);
}

BlockingPool::~BlockingPool() {
  stop();
}

void BlockingPool::stop() {
  impl_->stopped.store(true);
  impl_->pool.join();
}

Awaitable<> BlockingPool::perform(Job& job) {
  if (impl_->stopped.load()) {
    throw std::system_error(ECANCELED, std::system_category(), "the pool has been stopped");
  }
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  calls_.add();
  auto start = [this, &job](Parked caller) {
    auto work = [this, &job, caller = std::move(caller)]() mutable {
      try {
        job.run();
      } catch (...) {
        job.error = std::current_exception();
      }
      in_flight_.fetch_sub(1, std::memory_order_relaxed);
      // Nothing of the job may be touched after this: the caller may be gone.
      std::move(caller).resume();
    };
    boost::asio::post(impl_->pool, std::move(work));
  };
  co_await park(start);
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace selvage::storage
