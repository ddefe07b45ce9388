// Durable names and attributes: one fsync for all who wait for the same object (DESIGN 5).
#pragma once

#include "storage/object_id.h"
#include "storage/worker.h"

#include <memory>

namespace selvage::storage {

/// fsync(2) of directories and objects, shared among the operations that wait for the same object
/// at the same time. Any worker. No added wait when nobody else syncs the object.
///
/// While one sync of an object runs, all who come wait for the next one: theirs must start after
/// their change was made. The first of them then syncs for all who wait at that moment. Waiters
/// are bounded by the requests in flight; each is resumed on its own executor.
class NameSync {
 public:
  NameSync();
  ~NameSync();
  NameSync(const NameSync&) = delete;
  NameSync& operator=(const NameSync&) = delete;

  /// Everything done to the object before this call is durable on return. `fd` is a descriptor
  /// that fsync(2) takes (not O_PATH) and that stays open until this returns. The sync goes
  /// through the device of the worker; its error is everyone's who waited for it.
  Awaitable<Result<>> sync(Worker& worker, const ObjectId& id, int fd);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace selvage::storage
