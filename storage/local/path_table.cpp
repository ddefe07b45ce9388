#include "storage/local/path_table.h"

#include <fcntl.h>

#include <optional>
#include <string>
#include <utility>

namespace selvage::storage {

void PathTable::add(const ObjectId& id, int fd, bool pinned) {
  {
    const std::lock_guard lock(mutex_);
    if (table_.find(id) != nullptr) return;
  }
  // One that is open for data would keep others from a lease.
  const bool path_only = (::fcntl(fd, F_GETFL) & O_PATH) != 0;
  const std::string again = "/proc/self/fd/" + std::to_string(fd);
  UniqueFd copy(path_only ? ::fcntl(fd, F_DUPFD_CLOEXEC, 0)
                          : ::open(again.c_str(), O_PATH | O_CLOEXEC));
  if (!copy) return;  // Out of descriptors: the handle will be stale.
  Entry entry;
  entry.fd = std::make_shared<const UniqueFd>(std::move(copy));
  entry.pinned = pinned;
  // What leaves is closed after the mutex is free.
  std::optional<std::pair<ObjectId, Entry>> evicted;
  const std::lock_guard lock(mutex_);
  const auto may_leave = [](const ObjectId&, const Entry& one) { return !one.pinned; };
  evicted = std::move(table_.insert(id, std::move(entry), may_leave).evicted);
}

std::shared_ptr<const UniqueFd> PathTable::find(const ObjectId& id) {
  const std::lock_guard lock(mutex_);
  const Entry* entry = table_.find(id);
  return entry == nullptr ? nullptr : entry->fd;
}

void PathTable::remove(const ObjectId& id) {
  std::optional<std::pair<ObjectId, Entry>> removed;
  const std::lock_guard lock(mutex_);
  removed = table_.extract(id);
}

}  // namespace selvage::storage
