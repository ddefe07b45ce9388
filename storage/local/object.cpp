#include "storage/local/object.h"

#include "storage/local/held_files.h"
#include "storage/local/path_table.h"

#include <fcntl.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace selvage::storage {
namespace {

constexpr unsigned wanted_stats = STATX_BASIC_STATS | STATX_MNT_ID;
constexpr int inside_depth = 4096;
// btrfs shows an object that a rename replaces without a link for as long as the rename takes.
constexpr int node_attempts = 14;
constexpr std::chrono::microseconds first_pause{50};

std::uint64_t device_of(const struct statx& stats) {
  return makedev(stats.stx_dev_major, stats.stx_dev_minor);
}

Result<struct statx> stat_at(int dirfd, const char* name, int flags) {
  struct statx stats{};
  if (::statx(dirfd, name, flags | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, wanted_stats, &stats) !=
      0) {
    return errno_code(errno);
  }
  return stats;
}

/// struct file_handle ends in a flexible array: this is one with room.
struct HandleBuffer {
  static constexpr std::size_t room = ObjectId::max_bytes;
  alignas(file_handle) std::array<unsigned char, sizeof(file_handle) + room> bytes{};
  file_handle* get() { return reinterpret_cast<file_handle*>(bytes.data()); }
};

Result<ObjectId> handle_at(int dirfd, const char* name, int& mount_id) {
  HandleBuffer buffer;
  file_handle* handle = buffer.get();
  handle->handle_bytes = HandleBuffer::room;
  const int flags = *name == '\0' ? AT_EMPTY_PATH : 0;
  if (::name_to_handle_at(dirfd, name, handle, &mount_id, flags) != 0) {
    return errno_code(errno == EOVERFLOW ? EOPNOTSUPP : errno);
  }
  const std::span<const std::uint8_t> value(buffer.bytes.data() + sizeof(file_handle),
                                            handle->handle_bytes);
  return ObjectId(handle->handle_type, value);
}

/// An id of our own: inode number and time of birth.
Result<ObjectId> made_up_id(int dirfd, const char* name, int& mount_id) {
  constexpr std::int32_t type = 0x7e1f;
  struct statx stats{};
  const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (*name == '\0' ? AT_EMPTY_PATH : 0);
  if (::statx(dirfd, name, flags, STATX_INO | STATX_BTIME | STATX_MNT_ID, &stats) != 0) {
    return errno_code(errno);
  }
  mount_id = static_cast<int>(stats.stx_mnt_id);
  std::array<std::uint8_t, 20> bytes{};
  std::memcpy(bytes.data(), &stats.stx_ino, 8);
  if ((stats.stx_mask & STATX_BTIME) != 0) {
    std::memcpy(bytes.data() + 8, &stats.stx_btime.tv_sec, 8);
    std::memcpy(bytes.data() + 16, &stats.stx_btime.tv_nsec, 4);
  }
  return ObjectId(type, bytes);
}

std::string count_of(std::size_t paths) {
  return "the " + std::to_string(paths) +
         " objects used last are remembered, handles of others become stale, and all at a restart";
}

}  // namespace

Result<ObjectOpener> ObjectOpener::open(const std::string& root_path, std::size_t max_paths) {
  ObjectOpener opener;
  opener.held_ = std::make_shared<HeldFiles>();
  opener.root_ = UniqueFd(::open(root_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opener.root_) return errno_code(errno);
  const auto stats = stat_at(opener.root_.get(), "", AT_EMPTY_PATH);
  if (!stats) return stats.error();
  opener.device_ = device_of(*stats);
  opener.root_inode_ = stats->stx_ino;
  int mount_id = 0;
  auto id = handle_at(opener.root_.get(), "", mount_id);
  opener.made_up_ = !id && id.error() == errno_code(EOPNOTSUPP);
  if (opener.made_up_) id = made_up_id(opener.root_.get(), "", mount_id);
  if (!id) return id.error();
  opener.root_id_ = *id;
  opener.mount_id_ = static_cast<std::uint64_t>(mount_id);
  if (!opener.made_up_) {
    const auto again = opener.open_path(*id);
    if (again) return opener;
    if (again.error() != errno_code(EPERM) && again.error() != errno_code(EOPNOTSUPP)) {
      return again.error();
    }
  }
  opener.paths_ = std::make_shared<PathTable>(max_paths);
  opener.paths_->add(*id, opener.root_.get(), true);
  opener.lost_ = opener.made_up_
                     ? "the file system has no file handles: " + count_of(max_paths)
                     : "no CAP_DAC_READ_SEARCH to open files by handle: " + count_of(max_paths);
  return opener;
}

Result<UniqueFd> ObjectOpener::open_known(const ObjectId& id, int flags) const {
  auto known = paths_->find(id);
  if (!known) known = held_->descriptor(id);
  if (!known) return errno_code(ESTALE);
  if ((flags & O_PATH) != 0) {
    UniqueFd copy(::fcntl(known->get(), F_DUPFD_CLOEXEC, 0));
    if (!copy) return errno_code(errno);
    return copy;
  }
  const std::string path = "/proc/self/fd/" + std::to_string(known->get());
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC));
  if (!fd) return errno_code(errno);
  return fd;
}

void ObjectOpener::forget(const ObjectId& id) const {
  if (paths_) paths_->remove(id);
}

Result<UniqueFd> ObjectOpener::open_handle(const ObjectId& id, int flags) const {
  const auto value = id.bytes();
  if (value.empty()) return errno_code(ESTALE);
  if (paths_) return open_known(id, flags);
  HandleBuffer buffer;
  file_handle* handle = buffer.get();
  handle->handle_bytes = static_cast<unsigned>(value.size());
  handle->handle_type = id.type();
  std::memcpy(buffer.bytes.data() + sizeof(file_handle), value.data(), value.size());
  UniqueFd fd(::open_by_handle_at(root_.get(), handle, flags | O_CLOEXEC));
  if (!fd) return errno_code(errno);
  return fd;
}

Result<OpenObject> ObjectOpener::open_object(const ObjectId& id, int flags) const {
  auto fd = open_handle(id, flags);
  if (!fd) return fd.error();
  const auto attributes = attributes_of(fd->get());
  if (!attributes) return attributes.error();
  // Whoever holds a removed file open keeps its handle alive for the kernel, not for us.
  if (attributes->nlink == 0 && !held_->usable(id)) return errno_code(ESTALE);
  return OpenObject{std::move(*fd), *attributes};
}

Result<UniqueFd> ObjectOpener::open_path(const ObjectId& id) const {
  auto object = open_object(id, O_PATH);
  if (!object) return object.error();
  return std::move(object->fd);
}

Result<OpenObject> ObjectOpener::open_directory(const ObjectId& id) const {
  auto object = open_object(id, O_RDONLY | O_DIRECTORY | O_NOATIME);
  // O_NOATIME is for the owner and for CAP_FOWNER.
  if (!object && object.error() == errno_code(EPERM)) {
    object = open_object(id, O_RDONLY | O_DIRECTORY);
  }
  // The kernel's word for a symlink.
  if (!object && object.error() == errno_code(ELOOP)) return errno_code(ENOTDIR);
  return object;
}

Result<Attributes> ObjectOpener::attributes_inside(int fd) const {
  const auto stats = stat_at(fd, "", AT_EMPTY_PATH);
  if (!stats) return stats.error();
  const bool knows_mount = (stats->stx_mask & STATX_MNT_ID) != 0;
  if (device_of(*stats) != device_ || (knows_mount && stats->stx_mnt_id != mount_id_)) {
    return errno_code(EXDEV);
  }
  return to_attributes(*stats);
}

Result<OpenObject> ObjectOpener::open_at(int dirfd, const std::string& name) const {
  UniqueFd fd(::openat(dirfd, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return errno_code(errno);
  const auto attributes = attributes_inside(fd.get());
  if (!attributes) return attributes.error();
  if (attributes->nlink == 0) return errno_code(ESTALE);
  return OpenObject{std::move(fd), *attributes};
}

Result<ObjectId> ObjectOpener::id_of(int dirfd, const std::string& name) const {
  int mount_id = 0;
  const auto id = made_up_ ? made_up_id(dirfd, name.c_str(), mount_id)
                           : handle_at(dirfd, name.c_str(), mount_id);
  if (!id) return id.error();
  if (static_cast<std::uint64_t>(mount_id) != mount_id_) return errno_code(EXDEV);
  // Whoever is told of it comes back with it.
  if (paths_ && name.empty()) paths_->add(*id, dirfd);
  return *id;
}

Result<Node> ObjectOpener::node_at(int dirfd, const std::string& name) const {
  for (int attempt = 0; attempt < node_attempts; ++attempt) {
    const auto object = open_at(dirfd, name);
    if (!object) {
      // It was removed or renamed over between open and stat: the name may have a new object.
      if (object.error() != errno_code(ESTALE)) return object.error();
      std::this_thread::sleep_for(first_pause * (1 << attempt));
      continue;
    }
    const auto id = id_of(object->fd.get(), "");
    if (!id) return id.error();
    return Node{*id, object->attributes};
  }
  return errno_code(ENOENT);
}

bool ObjectOpener::inside(int dirfd) const {
  UniqueFd above;
  int current = dirfd;
  std::uint64_t below_inode = 0;
  for (int depth = 0; depth < inside_depth; ++depth) {
    const auto stats = stat_at(current, "", AT_EMPTY_PATH);
    if (!stats || device_of(*stats) != device_) return false;
    if (stats->stx_ino == root_inode_) return true;
    // The parent of the file system's root is itself.
    if (stats->stx_ino == below_inode) return false;
    below_inode = stats->stx_ino;
    UniqueFd next(::openat(current, "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!next) return false;
    above = std::move(next);
    current = above.get();
  }
  return false;
}

Result<Attributes> attributes_of(int fd) {
  const auto stats = stat_at(fd, "", AT_EMPTY_PATH);
  if (!stats) return stats.error();
  return to_attributes(*stats);
}

Result<Attributes> attributes_of(int dirfd, const std::string& name) {
  const auto stats = stat_at(dirfd, name.c_str(), 0);
  if (!stats) return stats.error();
  return to_attributes(*stats);
}

}  // namespace selvage::storage
