#include "storage/suspended.h"

#include <boost/asio/post.hpp>

#include <utility>

namespace selvage::storage {

Awaitable<> Suspended::wait() {
  auto store = [this](Parked::Handler handler) {
    Parked parked(std::move(handler));
    if (resumed_) {
      std::move(parked).resume();
    } else {
      coroutine_.emplace(std::move(parked));
    }
  };
  return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void()>(
      store, boost::asio::use_awaitable);
}

void Suspended::resume() {
  resumed_ = true;
  if (!coroutine_) return;
  Parked coroutine = std::move(*coroutine_);
  coroutine_.reset();
  std::move(coroutine).resume_here();
}

void Suspended::post_resume(const std::vector<std::shared_ptr<Suspended>>& waiting) {
  std::vector<std::vector<std::shared_ptr<Suspended>>> by_worker;
  for (const auto& one : waiting) {
    if (by_worker.size() <= one->worker_.index) by_worker.resize(one->worker_.index + 1);
    by_worker[one->worker_.index].push_back(one);
  }
  for (auto& group : by_worker) {
    if (group.empty()) continue;
    Worker& worker = group.front()->worker_;
    boost::asio::post(worker.context, [group = std::move(group)] {
      for (const auto& one : group) one->resume();
    });
  }
}

}  // namespace selvage::storage
