// IoDevice on an io_uring of its own, driven by the worker's io_context (DESIGN 7).
#pragma once

#include "storage/counters.h"
#include "storage/io_device.h"

#include <boost/asio/io_context.hpp>

#include <memory>

namespace selvage::storage {

/// One per worker. Create, use and destroy it on the one thread that runs the io_context: the ring
/// is bound to it (IORING_SETUP_SINGLE_ISSUER). Operations run with that thread's credentials.
///
/// Operations queued in one turn of the io_context are submitted together. At most as many as the
/// completion queue holds are in the kernel; the rest waits in order. An operation that has been
/// queued always runs to its completion: cancelling the coroutine does not resume it earlier.
/// EINTR and, unless the caller said RWF_NOWAIT, EAGAIN are retried a bounded number of times.
///
/// sync() of a range is exact up to 4 GiB; a longer one, or one to the end, syncs the whole file
/// (IORING_OP_FSYNC has a 32 bit length).
class UringDevice final : public IoDevice {
 public:
  static constexpr unsigned default_entries = 256;

  /// Fails with the errno of io_uring_setup(2), e.g. EPERM or ENOSYS where it is forbidden.
  /// @param submits counts the system calls that submit; outlives the device.
  /// @param entries submission queue size; twice as many operations may be in the kernel.
  static Result<std::unique_ptr<UringDevice>> create(boost::asio::io_context& context,
                                                     Counter& submits,
                                                     unsigned entries = default_entries);
  /// @pre in_flight() == 0, and the io_context does not run any more.
  ~UringDevice() override;

  Awaitable<Result<std::size_t>> readv(int fd, std::span<const iovec> segments,
                                       std::uint64_t offset, int rwf_flags) override;
  Awaitable<Result<std::size_t>> writev(int fd, std::span<const iovec> segments,
                                        std::uint64_t offset, int rwf_flags) override;
  Awaitable<Result<>> sync(int fd, SyncKind kind, std::uint64_t offset,
                           std::uint64_t length) override;
  Awaitable<Result<>> allocate(int fd, int mode, std::uint64_t offset,
                               std::uint64_t length) override;

  /// Operations queued or in the kernel.
  std::size_t in_flight() const;

 private:
  struct Impl;
  explicit UringDevice(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace selvage::storage
