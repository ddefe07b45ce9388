#include "storage/local/name_sync.h"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>

#include <cerrno>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace selvage::storage {
namespace {

/// What a waiter is woken with: the result of the sync made for it, or nothing if it is to sync.
using Turn = std::optional<ErrorCode>;
using Waiter = boost::asio::any_completion_handler<void(Turn)>;

void resume(Waiter waiter, Turn turn) {
  auto executor = boost::asio::get_associated_executor(waiter);
  boost::asio::post(executor,
                    [waiter = std::move(waiter), turn]() mutable { std::move(waiter)(turn); });
}

}  // namespace

struct NameSync::Impl {
  std::mutex mutex;
  /// An object is here as long as somebody leads a sync of it; with it who came meanwhile.
  std::unordered_map<ObjectId, std::vector<Waiter>, ObjectIdHash> led;

  bool try_lead(const ObjectId& id) {
    const std::lock_guard lock(mutex);
    return led.try_emplace(id).second;
  }

  void join(const ObjectId& id, Waiter waiter) {
    {
      const std::lock_guard lock(mutex);
      const auto [entry, lead] = led.try_emplace(id);
      if (!lead) {
        entry->second.push_back(std::move(waiter));
        return;
      }
    }
    resume(std::move(waiter), std::nullopt);
  }

  std::vector<Waiter> take(const ObjectId& id) {
    const std::lock_guard lock(mutex);
    return std::exchange(led.at(id), {});
  }

  /// Ends a lead: everyone in the group gets its result, and who came meanwhile a new leader.
  void finish(const ObjectId& id, std::vector<Waiter> group, ErrorCode error) {
    Waiter next;
    {
      const std::lock_guard lock(mutex);
      const auto entry = led.find(id);
      if (entry->second.empty()) {
        led.erase(entry);
      } else {
        next = std::move(entry->second.front());
        entry->second.erase(entry->second.begin());
      }
    }
    if (next) resume(std::move(next), std::nullopt);
    for (auto& waiter : group) resume(std::move(waiter), error);
  }
};

NameSync::NameSync() : impl_(std::make_unique<Impl>()) {}
NameSync::~NameSync() = default;

Awaitable<Result<>> NameSync::sync(Worker& worker, const ObjectId& id, int fd) {
  if (!impl_->try_lead(id)) {
    auto initiate = [this, &id](auto handler) { impl_->join(id, Waiter(std::move(handler))); };
    const Turn turn =
        co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(Turn)>(
            initiate, boost::asio::use_awaitable);
    if (turn) {
      if (*turn) co_return *turn;
      co_return Result<>();
    }
  }
  // Only who waits before the sync starts is served by it.
  auto group = impl_->take(id);
  Result<> result = errno_code(EIO);
  std::exception_ptr failure;
  try {
    result = co_await worker.device.sync(fd, SyncKind::all, 0, 0);
  } catch (...) {
    failure = std::current_exception();
  }
  impl_->finish(id, std::move(group), result ? ErrorCode() : result.error());
  if (failure) std::rethrow_exception(failure);
  co_return result;
}

}  // namespace selvage::storage
