#include "server/watchdog.h"

#include <boost/asio/post.hpp>

#include <atomic>
#include <utility>

namespace selvage::server {

struct Watchdog::Pending {
  std::atomic<unsigned> workers;
};

Watchdog::Watchdog(storage::Runtime& runtime, std::function<void()> feed)
    : runtime_(runtime), feed_(std::move(feed)) {}

Watchdog::~Watchdog() {
  stop();
}

void Watchdog::start(std::chrono::microseconds interval) {
  const auto pause = interval / 4;
  thread_ = std::thread([this, pause] {
    std::unique_lock lock(mutex_);
    while (!stopped_.wait_for(lock, pause, [this] { return stop_; })) beat();
  });
}

void Watchdog::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Watchdog::beat() {
  if (pending_ && pending_->workers.load() != 0) return false;
  const bool fed = pending_ != nullptr;
  if (fed) feed_();
  pending_ = std::make_shared<Pending>();
  pending_->workers = runtime_.size();
  for (unsigned index = 0; index < runtime_.size(); ++index) {
    boost::asio::post(runtime_.worker(index).context,
                      [pending = pending_] { pending->workers.fetch_sub(1); });
  }
  return fed;
}

}  // namespace selvage::server
