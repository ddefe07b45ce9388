// Regular files that stay usable by handle without a link (NFSv4 OPEN): FileSystem::hold().
// Private to storage/local.
#pragma once

#include "storage/io_device.h"
#include "storage/object_id.h"
#include "storage/suspended.h"
#include "storage/unique_fd.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace selvage::storage {

/// Counts who holds a file, and keeps one O_PATH descriptor of each: with it the kernel opens the
/// file by handle though it has no link. Any thread.
class HeldFiles : public std::enable_shared_from_this<HeldFiles> {
 public:
  /// What is done, on `worker`, with a file that nobody holds any more and that has no link.
  using Gone = std::function<Awaitable<>(const ObjectId& id)>;

  /// Before any hold(). `gone` is called until stop() has returned.
  void start(Worker& worker, Gone gone);

  /// Adds a holder. `fd`: an O_PATH descriptor of the file, kept if it is the first. ESTALE if the
  /// file has no link and nobody held it while it still had one. Blocks (a statx(2)).
  Result<std::shared_ptr<void>> hold(const ObjectId& id, UniqueFd fd);

  /// Whether the file is usable without a link.
  bool usable(const ObjectId& id) const;
  /// Whether anybody holds it, or is about to: its data is not to be thrown away.
  bool held(const ObjectId& id) const;

  /// What it is held by; nullptr if it is not.
  std::shared_ptr<const UniqueFd> descriptor(const ObjectId& id) const;

  /// Ends all holds; returns once nobody calls `gone` any more. Those who still have a hold may
  /// release it whenever they like.
  Awaitable<> stop(Worker& worker);
  /// The same without waiting, after the worker's thread has ended. Blocks.
  void abandon();

 private:
  class Holder;
  struct Entry {
    std::shared_ptr<const UniqueFd> fd;
    std::size_t holders = 0;
    bool had_link = false;  // When somebody began to hold it.
  };
  struct Released {
    ObjectId id;
    std::shared_ptr<const UniqueFd> fd;
  };

  void release(const ObjectId& id);
  static Awaitable<> look_after(std::shared_ptr<HeldFiles> self);

  mutable std::mutex mutex_;  // Never held across I/O.
  std::unordered_map<ObjectId, Entry, ObjectIdHash> files_;
  Worker* worker_ = nullptr;
  bool stopped_ = false;
  Gone gone_;
  std::vector<Released> released_;  // Without a link.
  bool looking_ = false;
  std::vector<std::shared_ptr<Suspended>> stoppers_;
};

}  // namespace selvage::storage
