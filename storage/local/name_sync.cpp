#include "storage/local/name_sync.h"

namespace selvage::storage {

/// Keeps an object's queue for as long as one sync() needs it.
class NameSync::Use {
 public:
  Use(NameSync& all, const ObjectId& id) : all_(all), id_(id) {
    const std::lock_guard lock(all_.mutex_);
    queue_ = &all_.queues_[id_];
    ++queue_->users;
  }
  ~Use() {
    const std::lock_guard lock(all_.mutex_);
    if (--queue_->users == 0) all_.queues_.erase(id_);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  SyncQueue& syncs() { return queue_->syncs; }

 private:
  NameSync& all_;
  const ObjectId id_;
  Queue* queue_;
};

Awaitable<Result<>> NameSync::sync(Worker& worker, const ObjectId& id, int fd) {
  Use use(*this, id);
  co_return co_await use.syncs().sync(worker, fd, SyncKind::all, 0, 0);
}

}  // namespace selvage::storage
