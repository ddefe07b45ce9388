#include "storage/local/name_sync.h"

#include "storage/local/object.h"
#include "storage/parked.h"

#include <cerrno>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace selvage::storage {
namespace {

/// What a waiter is woken with: the result of the sync made for it, or nothing if it is to sync.
using Turn = std::optional<ErrorCode>;

/// A suspended sync() and where, in its frame, it finds its turn.
struct Waiter {
  Turn* turn;
  Parked coroutine;
};

void resume(Waiter waiter, Turn turn) {
  *waiter.turn = turn;
  std::move(waiter.coroutine).resume();
}

}  // namespace

struct NameSync::Impl {
  std::mutex mutex;
  /// An object is here as long as somebody leads a sync of it; with it who came meanwhile.
  std::unordered_map<ObjectId, std::list<Waiter>, ObjectIdHash> led;

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

  std::list<Waiter> take(const ObjectId& id) {
    const std::lock_guard lock(mutex);
    return std::exchange(led.at(id), {});
  }

  /// Ends a lead: everyone in the group gets its result, and who came meanwhile a new leader.
  void finish(const ObjectId& id, std::list<Waiter> group, ErrorCode error) {
    std::optional<Waiter> next;
    {
      const std::lock_guard lock(mutex);
      const auto entry = led.find(id);
      if (entry->second.empty()) {
        led.erase(entry);
      } else {
        next.emplace(std::move(entry->second.front()));
        entry->second.pop_front();
      }
    }
    if (next) resume(std::move(*next), std::nullopt);
    for (auto& waiter : group) resume(std::move(waiter), error);
  }
};

NameSync::NameSync() : impl_(std::make_unique<Impl>()) {}
NameSync::~NameSync() = default;

Awaitable<Result<>> NameSync::sync(Worker& worker, const ObjectId& id, int fd) {
  if (!impl_->try_lead(id)) {
    Turn turn;
    auto store = [&](Parked coroutine) { impl_->join(id, Waiter{&turn, std::move(coroutine)}); };
    co_await park(store);
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
    // XFS answers fsync(2) of a directory with success though it has shut down meanwhile and thrown
    // the change away. statx(2) tells.
    if (result) {
      const auto alive = attributes_of(fd);
      if (!alive) result = alive.error();
    }
  } catch (...) {
    failure = std::current_exception();
  }
  impl_->finish(id, std::move(group), result ? ErrorCode() : result.error());
  if (failure) std::rethrow_exception(failure);
  co_return result;
}

}  // namespace selvage::storage
