// IoDevice on the blocking pool, for where io_uring is forbidden (DESIGN 7).
#pragma once

#include "storage/blocking_pool.h"
#include "storage/io_device.h"

namespace selvage::storage {

/// Each operation is one blocking call on a pool thread, made with the same restricted identity as
/// the worker threads have (ScopedDataIdentity): preadv2, pwritev2, fsync or fdatasync of the whole
/// file whatever range is asked, fallocate. EINTR is retried. After the pool's stop(): ECANCELED.
class PoolDevice final : public IoDevice {
 public:
  /// @param pool must outlive it.
  explicit PoolDevice(BlockingPool& pool) : pool_(pool) {}

  Awaitable<Result<std::size_t>> readv(int fd, std::span<const iovec> segments,
                                       std::uint64_t offset, int rwf_flags) override;
  Awaitable<Result<std::size_t>> writev(int fd, std::span<const iovec> segments,
                                        std::uint64_t offset, int rwf_flags) override;
  Awaitable<Result<>> sync(int fd, SyncKind kind, std::uint64_t offset,
                           std::uint64_t length) override;
  Awaitable<Result<>> allocate(int fd, int mode, std::uint64_t offset,
                               std::uint64_t length) override;

 private:
  BlockingPool& pool_;
};

}  // namespace selvage::storage
