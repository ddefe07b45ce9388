#include "server/rpc/gate.h"

#include <optional>

namespace selvage::server::rpc {

Gate::Permit Gate::try_acquire() {
  const std::lock_guard lock(mutex_);
  // Not past those who wait already.
  if (stopped_ || free_ == 0 || !waiters_.empty()) return {};
  --free_;
  return Permit(this);
}

storage::Awaitable<Gate::Permit> Gate::acquire() {
  Permit at_once = try_acquire();
  if (at_once) co_return at_once;
  bool granted = false;
  auto store = [this, &granted](storage::Parked parked) {
    std::unique_lock lock(mutex_);
    if (!stopped_ && (free_ == 0 || !waiters_.empty())) {
      ++waits_;
      waiters_.push_back(Waiter{std::move(parked), &granted});
      return;
    }
    if (!stopped_) {
      --free_;
      granted = true;
    }
    lock.unlock();
    std::move(parked).resume();
  };
  co_await storage::park(store);
  co_return granted ? Permit(this) : Permit();
}

void Gate::release() {
  std::optional<Waiter> next;
  {
    const std::lock_guard lock(mutex_);
    if (waiters_.empty()) {
      ++free_;
      return;
    }
    next.emplace(std::move(waiters_.front()));
    waiters_.pop_front();
  }
  *next->granted = true;
  std::move(next->parked).resume();
}

std::size_t Gate::in_use() const {
  const std::lock_guard lock(mutex_);
  return permits_ - free_;
}

std::uint64_t Gate::waits() const {
  const std::lock_guard lock(mutex_);
  return waits_;
}

bool Gate::awaited() const {
  const std::lock_guard lock(mutex_);
  return !waiters_.empty();
}

void Gate::stop() {
  std::deque<Waiter> waiters;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    waiters.swap(waiters_);
  }
  for (Waiter& waiter : waiters) std::move(waiter.parked).resume();
}

}  // namespace selvage::server::rpc
