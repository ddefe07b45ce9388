#include "storage/local/janitor.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <unordered_map>
#include <utility>
#include <vector>

namespace selvage::storage {
namespace {

constexpr std::chrono::seconds period{1};

}  // namespace

/// What the coroutine and its owner agree by. The timer is touched on the worker's thread only.
struct Janitor::Shared {
  Shared(Janitor& its_janitor, Worker& worker) : janitor(its_janitor), timer(worker.context) {}
  Janitor& janitor;
  boost::asio::steady_timer timer;
  std::mutex mutex;
  bool stopping = false;
  bool ended = false;
  std::vector<std::shared_ptr<Suspended>> stoppers;

  bool stop_wanted() {
    const std::lock_guard lock(mutex);
    return stopping;
  }
};

Janitor::Janitor(DataContext& context, OpenFileTable& table, Worker& worker)
    : context_(context),
      table_(table),
      worker_(worker),
      shared_(std::make_shared<Shared>(*this, worker)) {
  boost::asio::co_spawn(worker.context, run(shared_, worker), boost::asio::detached);
}

Janitor::~Janitor() = default;

Awaitable<> Janitor::run(std::shared_ptr<Shared> shared, Worker& worker) {
  while (!shared->stop_wanted()) {
    shared->timer.expires_after(period);
    boost::system::error_code ignored;
    auto token = boost::asio::redirect_error(boost::asio::use_awaitable, ignored);
    co_await shared->timer.async_wait(token);
    if (shared->stop_wanted()) break;
    co_await shared->janitor.tend(worker, std::chrono::steady_clock::now());
  }
  std::vector<std::shared_ptr<Suspended>> stoppers;
  {
    const std::lock_guard lock(shared->mutex);
    shared->ended = true;
    stoppers.swap(shared->stoppers);
  }
  resume_all(stoppers);
}

Awaitable<> Janitor::stop(Worker& worker) {
  auto self = std::make_shared<Suspended>(worker);
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
    if (shared_->ended) co_return;
    shared_->stoppers.push_back(self);
  }
  boost::asio::post(worker_.context, [shared = shared_] { shared->timer.cancel(); });
  co_await self->wait();
}

Awaitable<> Janitor::tend(Worker& worker, Time now) {
  const ExportOptions& options = context_.options;
  const std::chrono::seconds boundary_idle(options.boundary_idle_seconds);
  const std::chrono::seconds write_back_age(options.write_back_seconds);
  {
    auto files = table_.files();
    std::unordered_map<std::uint64_t, OpenFile*> by_key;
    for (const auto& file : files) by_key.emplace(file->key(), file.get());
    // Pages of files that have been closed are left to the kernel's reclaim.
    for (const cache::OrphanPage& page : context_.tracker.take_idle(now, boundary_idle)) {
      context_.counters.boundary_orphaned.add();
      const auto found = by_key.find(page.file);
      if (found == by_key.end()) continue;
      const cache::PageRun run{page.offset, page.length};
      found->second->drop_list().add({&run, 1}, {});
    }
    // A file that is referred to cannot make room for another.
    std::erase_if(files,
                  [](const auto& file) { return !file->wants_write_back() && !file->combiner(); });
    for (const auto& file : files) {
      co_await file->tend(worker, now);
      if (!file->wants_write_back()) continue;
      auto work = [&file, time = now - write_back_age] {
        file->write_back(time);
        return true;
      };
      co_await worker.pool.run(work);
    }
  }
  co_await table_.close_idle(worker, now - std::chrono::seconds(options.idle_close_seconds));
}

}  // namespace selvage::storage
