// Data operations on open descriptors: the seam between planning and the kernel.
//
// Implementations: UringDevice (one ring per worker), PoolDevice (the blocking pool, where io_uring
// is forbidden), and in tests a device that injects faults and delays.
#pragma once

#include "storage/result.h"

#include <boost/asio/awaitable.hpp>

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace selvage::storage {

template <class T = void>
using Awaitable = boost::asio::awaitable<T>;

enum class SyncKind : std::uint8_t {
  data,  ///< fdatasync(2): data and what is needed to read it back.
  all,   ///< fsync(2): every attribute as well.
};

/// Not shared: call it on the worker thread that owns it only. Descriptors and memory given to an
/// operation must stay valid until it completes.
class IoDevice {
 public:
  virtual ~IoDevice() = default;

  /// preadv2(2). Returns bytes read; fewer than asked only at the end of file or as the kernel
  /// says. At most IOV_MAX (1024) segments.
  virtual Awaitable<Result<std::size_t>> readv(int fd, std::span<const iovec> segments,
                                               std::uint64_t offset, int rwf_flags) = 0;

  /// pwritev2(2). Returns bytes written, possibly fewer than asked. At most IOV_MAX segments.
  virtual Awaitable<Result<std::size_t>> writev(int fd, std::span<const iovec> segments,
                                                std::uint64_t offset, int rwf_flags) = 0;

  /// fsync(2) or fdatasync(2) of the pages in [offset, offset + length), and of the metadata that
  /// `kind` names. length 0: to the end of the file.
  virtual Awaitable<Result<>> sync(int fd, SyncKind kind, std::uint64_t offset,
                                   std::uint64_t length) = 0;

  /// fallocate(2).
  virtual Awaitable<Result<>> allocate(int fd, int mode, std::uint64_t offset,
                                       std::uint64_t length) = 0;
};

}  // namespace selvage::storage
