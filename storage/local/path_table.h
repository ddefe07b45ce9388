// Descriptors in the place of handles, where the kernel does not open by handle (DESIGN 8).
#pragma once

#include "cache/lru.h"
#include "storage/object_id.h"
#include "storage/unique_fd.h"

#include <cstddef>
#include <memory>
#include <mutex>

namespace selvage::storage {

/// Remembers, by its id, an O_PATH descriptor of each object that a client was told of; the one
/// used longest ago leaves when there are too many. Any thread.
class PathTable {
 public:
  explicit PathTable(std::size_t capacity) : table_(capacity) {}

  std::size_t capacity() const { return table_.capacity(); }

  /// Keeps an O_PATH descriptor of what `fd` is, unless the object is known. `pinned`: it never
  /// leaves.
  void add(const ObjectId& id, int fd, bool pinned = false);

  /// nullptr: not, or not any more.
  std::shared_ptr<const UniqueFd> find(const ObjectId& id);

  /// The object has lost its last link: its space becomes free.
  void remove(const ObjectId& id);

 private:
  struct Entry {
    std::shared_ptr<const UniqueFd> fd;
    bool pinned = false;
  };
  std::mutex mutex_;
  cache::Lru<ObjectId, Entry, ObjectIdHash> table_;
};

}  // namespace selvage::storage
