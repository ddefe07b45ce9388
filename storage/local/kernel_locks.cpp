#include "storage/local/kernel_locks.h"

#include <fcntl.h>

#include <cerrno>
#include <iterator>
#include <utility>

namespace selvage::storage {
namespace {

Result<> set_lock(int fd, std::uint64_t begin, std::uint64_t end, KernelLock lock) {
  struct flock range{};
  range.l_type = F_UNLCK;
  if (lock == KernelLock::shared) range.l_type = F_RDLCK;
  if (lock == KernelLock::exclusive) range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(begin);
  // 0: to the end, however large files may become.
  range.l_len = end == KernelLocks::end_of_files ? 0 : static_cast<off_t>(end - begin);
  if (::fcntl(fd, F_OFD_SETLK, &range) != 0) {
    return errno_code(errno == EACCES ? EAGAIN : errno);
  }
  return {};
}

Result<> set_all(int fd, const LockRanges& ranges) {
  Result<> all;
  ranges.for_each([&](std::uint64_t begin, std::uint64_t end, KernelLock lock) {
    const auto done = set_lock(fd, begin, end, lock);
    if (done.has_error() && all.has_value()) all = done;
  });
  return all;
}

}  // namespace

void LockRanges::split(std::uint64_t at) {
  auto after = ranges_.lower_bound(at);
  if (after == ranges_.begin()) return;
  Range& before = std::prev(after)->second;
  if (before.end <= at) return;
  ranges_.emplace_hint(after, at, before);
  before.end = at;
}

void LockRanges::set(std::uint64_t begin, std::uint64_t end, KernelLock lock) {
  split(begin);
  split(end);
  ranges_.erase(ranges_.lower_bound(begin), ranges_.lower_bound(end));
  if (lock == KernelLock::none) return;
  const auto after = ranges_.find(end);
  if (after != ranges_.end() && after->second.lock == lock) {
    end = after->second.end;
    ranges_.erase(after);
  }
  const auto next = ranges_.lower_bound(begin);
  if (next != ranges_.begin()) {
    Range& before = std::prev(next)->second;
    if (before.end == begin && before.lock == lock) {
      before.end = end;
      return;
    }
  }
  ranges_.emplace_hint(next, begin, Range{end, lock});
}

bool KernelLocks::has(const ObjectId& id) const {
  const std::lock_guard lock(mutex_);
  return files_.contains(id);
}

bool KernelLocks::can_set(const ObjectId& id, KernelLock lock) const {
  if (lock == KernelLock::none) return true;
  const std::lock_guard guard(mutex_);
  const auto found = files_.find(id);
  return found != files_.end() && (found->second.writable || lock == KernelLock::shared);
}

Result<> KernelLocks::set(const ObjectId& id, std::uint64_t begin, std::uint64_t end,
                          KernelLock lock, int data_fd) {
  std::shared_ptr<const UniqueFd> unneeded;  // Closed without the mutex.
  const std::lock_guard guard(mutex_);
  auto found = files_.find(id);
  const bool known = found != files_.end();
  if (!known && lock == KernelLock::none) return {};
  if (!known || (lock == KernelLock::exclusive && !found->second.writable)) {
    const int flags = ::fcntl(data_fd, F_GETFL);
    const int copy = ::fcntl(data_fd, F_DUPFD_CLOEXEC, 0);
    if (flags < 0 || copy < 0) return errno_code(errno);
    auto fd = std::make_shared<const UniqueFd>(copy);
    unneeded = fd;
    if (known) {
      const auto moved = move_to(found->second, std::move(fd));
      if (moved.has_error()) return moved;
    } else {
      found = files_.emplace(id, File{std::move(fd), false, {}}).first;
    }
    found->second.writable = (flags & O_ACCMODE) != O_RDONLY;
  }
  File& file = found->second;
  const auto done = set_lock(file.fd->get(), begin, end, lock);
  if (done.has_value()) file.ranges.set(begin, end, lock);
  if (file.ranges.empty()) {
    unneeded = std::move(file.fd);
    files_.erase(found);
  }
  return done;
}

/// The old description's locks are in the new one's way: they go first.
Result<> KernelLocks::move_to(File& file, std::shared_ptr<const UniqueFd> fd) {
  const int old = file.fd->get();
  (void)set_lock(old, 0, end_of_files, KernelLock::none);
  const auto moved = set_all(fd->get(), file.ranges);
  if (moved.has_error()) {
    (void)set_lock(fd->get(), 0, end_of_files, KernelLock::none);
    (void)set_all(old, file.ranges);
    return moved;
  }
  file.fd = std::move(fd);
  return moved;
}

void KernelLocks::give_back_lease(const ObjectId& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(id);
  if (found != files_.end()) ::fcntl(found->second.fd->get(), F_SETLEASE, F_UNLCK);
}

void KernelLocks::drop(const ObjectId& id) {
  std::shared_ptr<const UniqueFd> fd;  // Closed without the mutex.
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(id);
  if (found == files_.end()) return;
  // The description may be that of the data as well, which stays open.
  (void)set_lock(found->second.fd->get(), 0, end_of_files, KernelLock::none);
  fd = std::move(found->second.fd);
  files_.erase(found);
}

void KernelLocks::clear() {
  std::unordered_map<ObjectId, File, ObjectIdHash> files;
  {
    const std::lock_guard lock(mutex_);
    files.swap(files_);
  }
  for (const auto& [id, file] : files) {
    (void)set_lock(file.fd->get(), 0, end_of_files, KernelLock::none);
  }
}

}  // namespace selvage::storage
