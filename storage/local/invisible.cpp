#include "storage/local/invisible.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>

namespace selvage::storage {
namespace {

// As in xfs_fs.h, which is not installed everywhere.
struct HandleRequest {
  std::uint32_t fd;
  void* path;
  std::uint32_t oflags;
  void* ihandle;
  std::uint32_t ihandlen;
  void* ohandle;
  std::uint32_t* ohandlen;
};

struct XfsHandle {
  std::array<std::uint8_t, 8> fsid;
  std::uint16_t fid_length;  // Of what follows.
  std::uint16_t pad;
  std::uint32_t generation;
  std::uint64_t inode;
};
static_assert(sizeof(XfsHandle) == 24);

constexpr unsigned long fd_to_handle = _IOWR('X', 106, HandleRequest);
constexpr unsigned long open_by_handle = _IOWR('X', 107, HandleRequest);

// exportfs.h FILEID_INO32_GEN, and XFS's flag for 64-bit inode numbers.
constexpr std::int32_t inode_generation = 1;
constexpr std::int32_t inode_is_64_bits = 0x80;

bool take_inode(const ObjectId& id, XfsHandle& handle) {
  const auto bytes = id.bytes();
  if (id.type() == (inode_generation | inode_is_64_bits) && bytes.size() >= 12) {
    std::memcpy(&handle.inode, bytes.data(), 8);
    std::memcpy(&handle.generation, bytes.data() + 8, 4);
    return true;
  }
  if (id.type() == inode_generation && bytes.size() >= 8) {
    std::uint32_t inode = 0;
    std::memcpy(&inode, bytes.data(), 4);
    std::memcpy(&handle.generation, bytes.data() + 4, 4);
    handle.inode = inode;
    return true;
  }
  return false;
}

}  // namespace

Result<UniqueFd> open_invisible(int root_fd, const ObjectId& id, int flags) {
  struct statfs status{};
  if (::fstatfs(root_fd, &status) != 0) return errno_code(errno);
  if (status.f_type != XFS_SUPER_MAGIC) return errno_code(EOPNOTSUPP);

  XfsHandle root{};
  std::uint32_t length = sizeof root;
  HandleRequest request{};
  request.fd = static_cast<std::uint32_t>(root_fd);
  request.ohandle = &root;
  request.ohandlen = &length;
  if (::ioctl(root_fd, fd_to_handle, &request) != 0) return errno_code(errno);

  XfsHandle file = root;
  if (!take_inode(id, file)) return errno_code(EOPNOTSUPP);
  HandleRequest open{};
  open.oflags = static_cast<std::uint32_t>(flags | O_CLOEXEC);
  open.ihandle = &file;
  open.ihandlen = sizeof file;
  const int fd = ::ioctl(root_fd, open_by_handle, &open);
  if (fd < 0) return errno_code(errno);
  // The ioctl knows nothing of O_CLOEXEC.
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return UniqueFd(fd);
}

}  // namespace selvage::storage
