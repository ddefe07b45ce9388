// The kernel's view of this server's byte-range locks: OFD locks (fcntl(2)). Private to
// storage/local.
#pragma once

#include "storage/filesystem.h"
#include "storage/unique_fd.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace selvage::storage {

/// Which lock each byte of a file has. Neighbours that are alike are one range.
class LockRanges {
 public:
  /// `end` is exclusive. @pre begin < end
  void set(std::uint64_t begin, std::uint64_t end, KernelLock lock);
  bool empty() const { return ranges_.empty(); }

  /// visit(begin, end, lock) for each range, in order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [begin, range] : ranges_) visit(begin, range.end, range.lock);
  }

 private:
  struct Range {
    std::uint64_t end;
    KernelLock lock;
  };
  void split(std::uint64_t at);
  std::map<std::uint64_t, Range> ranges_;  // By first byte; disjoint, without `none`.
};

/// OFD locks belong to an open file description, all of one description to one owner. That of a
/// file's locks is shared with its data (in edge mode `assemble` a second one would break the
/// lease), but outlives it: a descriptor of its own keeps it open while the file has locks. So no
/// local process can slip in between when the data goes on through another description.
///
/// Any thread; fcntl(2) does not block here.
class KernelLocks {
 public:
  static constexpr std::uint64_t end_of_files = std::uint64_t{1} << 63U;  ///< Exclusive.

  /// Whether the file has locks, or a call for it is under way.
  bool has(const ObjectId& id) const;
  /// Whether set() can do without a data descriptor.
  bool can_set(const ObjectId& id, KernelLock lock) const;

  /// `data_fd`, unless can_set(): a descriptor of the file, opened for writing if lock is
  /// exclusive. EAGAIN: a local process has a lock in the way. @pre begin < end <= end_of_files
  Result<> set(const ObjectId& id, std::uint64_t begin, std::uint64_t end, KernelLock lock,
               int data_fd);

  /// Gives up the lease on the locks' description, which closing its other descriptors did not.
  void give_back_lease(const ObjectId& id) const;

  /// Ends all locks of the file, or of all files. May block: it closes descriptors.
  void drop(const ObjectId& id);
  void clear();

 private:
  struct File {
    std::shared_ptr<const UniqueFd> fd;
    bool writable = false;
    LockRanges ranges;
  };
  static Result<> move_to(File& file, std::shared_ptr<const UniqueFd> fd);

  mutable std::mutex mutex_;
  std::unordered_map<ObjectId, File, ObjectIdHash> files_;
};

}  // namespace selvage::storage
