#include "storage/durable_sync.h"

#include <sys/stat.h>

#include <cerrno>

namespace selvage::storage {

Awaitable<Result<>> sync_durably(Worker& worker, int fd, SyncKind kind, std::uint64_t offset,
                                 std::uint64_t length) {
  const auto synced = co_await worker.device.sync(fd, kind, offset, length);
  if (synced.has_error()) co_return synced;
  co_return check_up(fd);
}

Result<> check_up(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return errno_code(errno);
  return {};
}

}  // namespace selvage::storage
