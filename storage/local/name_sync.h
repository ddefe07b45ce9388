// Durable names and attributes: one fsync for all who wait for the same object (DESIGN 5).
#pragma once

#include "storage/object_id.h"
#include "storage/sync_queue.h"

#include <cstddef>
#include <mutex>
#include <unordered_map>

namespace selvage::storage {

/// fsync(2) of directories and objects, shared among the operations that wait for the same object
/// at the same time: a SyncQueue for each object that anybody syncs now. Any worker.
class NameSync {
 public:
  /// Everything done to the object before this call is durable on return. `fd` is a descriptor
  /// that fsync(2) takes (not O_PATH) and that stays open until this returns.
  Awaitable<Result<>> sync(Worker& worker, const ObjectId& id, int fd);

 private:
  struct Queue {
    SyncQueue syncs;
    std::size_t users = 0;
  };
  class Use;

  std::mutex mutex_;
  std::unordered_map<ObjectId, Queue, ObjectIdHash> queues_;
};

}  // namespace selvage::storage
