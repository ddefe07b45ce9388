// A sync that counts.
#pragma once

#include "storage/worker.h"

#include <cstdint>

namespace selvage::storage {

/// IoDevice::sync(), and EIO if the file system was found shut down after it. XFS answers fsync(2)
/// with success though a shutdown, at the same time, has thrown the change away: it looks first
/// whether it is up and then whether anything of the inode is left to write. fstat(2) tells.
Awaitable<Result<>> sync_durably(Worker& worker, int fd, SyncKind kind, std::uint64_t offset,
                                 std::uint64_t length);

/// The file system of `fd` has not shut down.
Result<> check_up(int fd);

}  // namespace selvage::storage
