// FSSTAT, FSINFO, PATHCONF.
#include "storage/local/local_impl.h"

#include <fcntl.h>
#include <sys/statvfs.h>

#include <cerrno>

namespace selvage::storage {

Awaitable<Result<FileSystemUsage>> LocalFileSystem::usage(Caller caller, ObjectId object) {
  auto job = [&]() -> Result<FileSystemUsage> {
    // Of the object and not of the root: XFS answers for the object's project quota.
    const auto opened = impl_->opener.open_object(object, O_PATH);
    if (!opened) return opened.error();
    struct statvfs stats{};
    if (::fstatvfs(opened->fd.get(), &stats) != 0) return errno_code(errno);
    const std::uint64_t unit = stats.f_frsize;
    FileSystemUsage usage{};
    usage.total_bytes = stats.f_blocks * unit;
    usage.free_bytes = stats.f_bfree * unit;
    usage.available_bytes = stats.f_bavail * unit;
    usage.total_files = stats.f_files;
    usage.free_files = stats.f_ffree;
    usage.available_files = stats.f_favail;
    return usage;
  };
  co_return co_await Impl::run(caller.worker, job);
}

Awaitable<Result<FileSystemLimits>> LocalFileSystem::limits(Caller caller, ObjectId object) {
  auto job = [&]() -> Result<FileSystemLimits> {
    const auto opened = impl_->opener.open_object(object, O_PATH);
    if (!opened) return opened.error();
    return impl_->limits;
  };
  co_return co_await Impl::run(caller.worker, job);
}

}  // namespace selvage::storage
