#include "storage/sync_queue.h"

#include "storage/durable_sync.h"
#include "storage/probes.h"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

namespace selvage::storage {

void SyncQueue::Want::join(const Want& other) {
  kind = std::max(kind, other.kind);
  first = std::min(first, other.first);
  last = std::max(last, other.last);
}

Awaitable<Result<>> SyncQueue::sync(Worker& worker, int fd, SyncKind kind, std::uint64_t offset,
                                    std::uint64_t length) {
  const bool to_end = length == 0 || length > no_end - offset;
  const Want want{kind, offset, to_end ? no_end : offset + length};
  std::shared_ptr<Waiter> self;
  std::vector<std::shared_ptr<Waiter>> others;
  {
    const std::lock_guard lock(mutex_);
    if (running_) {
      self = std::make_shared<Waiter>(worker, want);
      waiting_.push_back(self);
    } else {
      running_ = true;
    }
  }
  if (self) {
    co_await self->wait();
    if (!self->leads) {
      shared();
      co_return self->result;
    }
    // Only who waits before the sync starts is served by it.
    const std::lock_guard lock(mutex_);
    others.swap(waiting_);
    std::erase(others, self);
  }
  co_return co_await lead(worker, fd, want, std::move(others));
}

Awaitable<Result<>> SyncQueue::lead(Worker& worker, int fd, Want want,
                                    std::vector<std::shared_ptr<Waiter>> others) {
  for (const auto& other : others) want.join(other->want);
  const std::uint64_t length = want.last == no_end ? 0 : want.last - want.first;
  Result<> result = errno_code(EIO);
  std::exception_ptr exception;
  SELVAGE_PROBE(sync_begin, this, static_cast<unsigned>(want.kind), others.size() + 1);
  try {
    result = co_await sync_durably(worker, fd, want.kind, want.first, length);
  } catch (...) {
    // Out of memory: nobody may wait for ever because of that.
    exception = std::current_exception();
  }
  SELVAGE_PROBE(sync_end, this, result.has_error() ? result.error().value() : 0);
  made(result);
  for (const auto& other : others) other->result = result;
  resume_all(others);
  end_turn();
  if (exception) std::rethrow_exception(exception);
  co_return result;
}

void SyncQueue::end_turn() {
  std::vector<std::shared_ptr<Waiter>> next;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
      running_ = false;
      return;
    }
    // It stays in the queue: those who come before it runs are taken along.
    waiting_.front()->leads = true;
    next.push_back(waiting_.front());
  }
  resume_all(next);
}

}  // namespace selvage::storage
