#include "storage/pool_device.h"

#include "storage/offsets.h"
#include "storage/thread_identity.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <system_error>

namespace selvage::storage {
namespace {

// Runs call() until it is not interrupted. errno is read on the thread that made the call.
template <class Call>
Result<std::size_t> call_kernel(Call call) {
  const ScopedDataIdentity identity;
  for (;;) {
    const auto result = call();
    if (result >= 0) return static_cast<std::size_t>(result);
    if (errno != EINTR) return errno_code(errno);
  }
}

template <class Call>
Awaitable<Result<std::size_t>> run(BlockingPool& pool, Call call) {
  try {
    auto job = [call] { return call_kernel(call); };
    co_return co_await pool.run(job);
  } catch (const std::system_error& error) {
    co_return errno_code(error.code().value());
  }
}

Result<> without_value(const Result<std::size_t>& result) {
  if (!result) return result.error();
  return {};
}

}  // namespace

Awaitable<Result<std::size_t>> PoolDevice::readv(int fd, std::span<const iovec> segments,
                                                 std::uint64_t offset, int rwf_flags) {
  if (offset > max_offset || segments.size() > IOV_MAX) co_return errno_code(EINVAL);
  auto call = [=] {
    return ::preadv2(fd, segments.data(), static_cast<int>(segments.size()),
                     static_cast<off_t>(offset), rwf_flags);
  };
  co_return co_await run(pool_, call);
}

Awaitable<Result<std::size_t>> PoolDevice::writev(int fd, std::span<const iovec> segments,
                                                  std::uint64_t offset, int rwf_flags) {
  if (offset > max_offset || segments.size() > IOV_MAX) co_return errno_code(EINVAL);
  auto call = [=] {
    return ::pwritev2(fd, segments.data(), static_cast<int>(segments.size()),
                      static_cast<off_t>(offset), rwf_flags);
  };
  co_return co_await run(pool_, call);
}

Awaitable<Result<>> PoolDevice::sync(int fd, SyncKind kind, std::uint64_t offset,
                                     std::uint64_t /*length*/) {
  if (offset > max_offset) co_return errno_code(EINVAL);
  auto call = [=] { return kind == SyncKind::data ? ::fdatasync(fd) : ::fsync(fd); };
  const Result<std::size_t> result = co_await run(pool_, call);
  co_return without_value(result);
}

Awaitable<Result<>> PoolDevice::allocate(int fd, int mode, std::uint64_t offset,
                                         std::uint64_t length) {
  if (offset > max_offset || length > max_offset) co_return errno_code(EINVAL);
  auto call = [=] {
    return ::fallocate(fd, mode, static_cast<off_t>(offset), static_cast<off_t>(length));
  };
  const Result<std::size_t> result = co_await run(pool_, call);
  co_return without_value(result);
}

}  // namespace selvage::storage
