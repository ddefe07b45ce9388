#include "server/nfs3/convert.h"

#include <algorithm>
#include <cerrno>
#include <limits>

namespace selvage::server::nfs3 {
namespace {

using storage::Errc;
using storage::errno_code;
using storage::FileType;
using storage::Result;
using storage::SetTime;

xdr::ftype3 to_ftype3(FileType type) {
  switch (type) {
    case FileType::regular:
      return xdr::NF3REG;
    case FileType::directory:
      return xdr::NF3DIR;
    case FileType::block:
      return xdr::NF3BLK;
    case FileType::character:
      return xdr::NF3CHR;
    case FileType::symlink:
      return xdr::NF3LNK;
    case FileType::socket:
      return xdr::NF3SOCK;
    case FileType::fifo:
      return xdr::NF3FIFO;
  }
  return xdr::NF3REG;
}

Result<SetTime> to_set_time(const xdr::set_time3& wire) {
  SetTime set;
  switch (wire.tag) {
    case xdr::DONT_CHANGE:
      break;
    case xdr::SET_TO_SERVER_TIME:
      set.how = SetTime::How::server_time;
      break;
    case xdr::SET_TO_CLIENT_TIME: {
      const auto* given = wire.get_if<xdr::nfstime3>();
      const Result<timespec> time = to_timespec(given != nullptr ? *given : xdr::nfstime3{});
      if (!time) return time.error();
      set.how = SetTime::How::client_time;
      set.time = *time;
      break;
    }
  }
  return set;
}

}  // namespace

xdr::nfstime3 to_nfstime3(const timespec& time) {
  constexpr std::int64_t last = std::numeric_limits<std::uint32_t>::max();
  xdr::nfstime3 wire;
  wire.seconds = static_cast<std::uint32_t>(std::clamp<std::int64_t>(time.tv_sec, 0, last));
  wire.nseconds = static_cast<std::uint32_t>(time.tv_nsec);
  return wire;
}

xdr::fattr3 to_fattr3(const storage::Attributes& attributes, std::uint64_t fsid) {
  xdr::fattr3 wire;
  wire.type = to_ftype3(attributes.type);
  wire.mode = attributes.mode;
  wire.nlink = attributes.nlink;
  wire.uid = attributes.uid;
  wire.gid = attributes.gid;
  wire.size = attributes.size;
  wire.used = attributes.used;
  wire.rdev = {attributes.rdev_major, attributes.rdev_minor};
  wire.fsid = fsid;
  wire.fileid = attributes.fileid;
  wire.atime = to_nfstime3(attributes.atime);
  wire.mtime = to_nfstime3(attributes.mtime);
  wire.ctime = to_nfstime3(attributes.ctime);
  return wire;
}

Result<storage::SetAttributes> to_set_attributes(const xdr::sattr3& wire) {
  storage::SetAttributes set;
  if (wire.mode) set.mode = *wire.mode & 07777U;
  set.uid = wire.uid;
  set.gid = wire.gid;
  set.size = wire.size;
  if (set.size > max_offset) return errno_code(EFBIG);
  const Result<SetTime> atime = to_set_time(wire.atime);
  if (!atime) return atime.error();
  const Result<SetTime> mtime = to_set_time(wire.mtime);
  if (!mtime) return mtime.error();
  set.atime = *atime;
  set.mtime = *mtime;
  return set;
}

Result<timespec> to_timespec(const xdr::nfstime3& wire) {
  if (wire.nseconds >= 1'000'000'000) return errno_code(EINVAL);
  timespec time{};
  time.tv_sec = wire.seconds;
  time.tv_nsec = wire.nseconds;
  return time;
}

}  // namespace selvage::server::nfs3
