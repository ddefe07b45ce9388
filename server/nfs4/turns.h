// One coroutine after the other, by key.
#pragma once

#include "storage/suspended.h"
#include "storage/worker.h"

#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace selvage::server::nfs4 {

/// Any worker. Bounded by the requests in flight. Outlives its turns.
template <class Key, class Hash>
class Turns {
 public:
  /// The turn ends with it.
  class Turn {
   public:
    Turn(Turns& turns, const Key& key) : turns_(&turns), key_(key) {}
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)), key_(other.key_) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_ != nullptr) turns_->end(key_);
    }

   private:
    Turns* turns_;
    Key key_;
  };

  storage::Awaitable<Turn> take(storage::Worker& worker, Key key) {
    std::shared_ptr<storage::Suspended> wait;
    {
      const std::lock_guard lock(mutex_);
      const auto [place, first] = queues_.try_emplace(key);
      if (!first) {
        wait = std::make_shared<storage::Suspended>(worker);
        place->second.push_back(wait);
      }
    }
    if (wait) co_await wait->wait();
    co_return Turn(*this, key);
  }

 private:
  void end(const Key& key) {
    std::vector<std::shared_ptr<storage::Suspended>> next;
    {
      const std::lock_guard lock(mutex_);
      const auto place = queues_.find(key);
      if (place->second.empty()) {
        queues_.erase(place);
        return;
      }
      next.push_back(std::move(place->second.front()));
      place->second.pop_front();
    }
    storage::resume_all(next);
  }

  std::mutex mutex_;
  /// Who waits, by key; a key that is there has its turn taken.
  std::unordered_map<Key, std::deque<std::shared_ptr<storage::Suspended>>, Hash> queues_;
};

}  // namespace selvage::server::nfs4
