#include "storage/attributes.h"

namespace selvage::storage {
namespace {

FileType type_of(std::uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return FileType::directory;
    case S_IFBLK:
      return FileType::block;
    case S_IFCHR:
      return FileType::character;
    case S_IFLNK:
      return FileType::symlink;
    case S_IFSOCK:
      return FileType::socket;
    case S_IFIFO:
      return FileType::fifo;
    default:
      return FileType::regular;
  }
}

timespec to_timespec(const statx_timestamp& from) {
  timespec to{};
  to.tv_sec = from.tv_sec;
  to.tv_nsec = from.tv_nsec;
  return to;
}

}  // namespace

Attributes to_attributes(const struct statx& from) {
  Attributes to;
  to.type = type_of(from.stx_mode);
  to.mode = from.stx_mode & 07777U;
  to.nlink = from.stx_nlink;
  to.uid = from.stx_uid;
  to.gid = from.stx_gid;
  to.size = from.stx_size;
  to.used = from.stx_blocks * 512;
  to.rdev_major = from.stx_rdev_major;
  to.rdev_minor = from.stx_rdev_minor;
  to.fileid = from.stx_ino;
  to.atime = to_timespec(from.stx_atime);
  to.mtime = to_timespec(from.stx_mtime);
  to.ctime = to_timespec(from.stx_ctime);
  return to;
}

}  // namespace selvage::storage
