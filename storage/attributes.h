// What the server knows of a file system object, and what a client may ask to set.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>
#include <optional>

namespace selvage::storage {

enum class FileType : std::uint8_t { regular, directory, block, character, symlink, socket, fifo };

/// Attributes of one object at one moment, as statx(2) gives them.
struct Attributes {
  FileType type = FileType::regular;
  std::uint32_t mode = 0;  ///< Permission, set-id and sticky bits only (07777).
  std::uint32_t nlink = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t size = 0;  ///< Bytes.
  std::uint64_t used = 0;  ///< Bytes allocated.
  std::uint32_t rdev_major = 0;
  std::uint32_t rdev_minor = 0;
  std::uint64_t fileid = 0;
  timespec atime{};
  timespec mtime{};
  timespec ctime{};
};

/// From statx(2) with STATX_BASIC_STATS.
Attributes to_attributes(const struct statx& from);

inline bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/// How a SETATTR wants a time changed.
struct SetTime {
  enum class How : std::uint8_t { keep, server_time, client_time } how = How::keep;
  timespec time{};  ///< With client_time.
};

/// RFC 1813 sattr3: what is absent stays as it is.
struct SetAttributes {
  std::optional<std::uint32_t> mode;  ///< 07777 at most; other bits are ignored.
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::optional<std::uint64_t> size;  ///< Bytes.
  SetTime atime;
  SetTime mtime;

  bool nothing() const {
    return !mode && !uid && !gid && !size && atime.how == SetTime::How::keep &&
           mtime.how == SetTime::How::keep;
  }
};

}  // namespace selvage::storage
