// What NFSv4 state needs of a file: it stays while it is open, and its locks count locally.
#include "storage/local/local_impl.h"

#include "storage/local/held_files.h"
#include "storage/local/kernel_locks.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace selvage::storage {

Awaitable<Result<std::shared_ptr<void>>> LocalFileSystem::hold(Caller caller, ObjectId file) {
  auto job = [&]() -> Result<std::shared_ptr<void>> {
    auto object = impl_->opener.open_object(file, O_PATH);
    if (!object) return object.error();
    const FileType type = object->attributes.type;
    if (type == FileType::directory) return errno_code(EISDIR);
    if (type != FileType::regular) return errno_code(EINVAL);
    return impl_->opener.held().hold(file, std::move(object->fd));
  };
  co_return co_await Impl::run(caller.worker, job);
}

Awaitable<Result<>> LocalFileSystem::lock_range(Worker& worker, ObjectId file, std::uint64_t offset,
                                                std::uint64_t length, KernelLock lock) {
  constexpr std::uint64_t last = KernelLocks::end_of_files;
  if (offset >= last) co_return Result<>();
  const std::uint64_t end = length == 0 ? last : offset + std::min(length, last - offset);
  if (lock == KernelLock::exclusive) {
    const auto writable = impl_->check_writable();
    if (!writable) co_return writable.error();
  }
  KernelLocks& locks = impl_->data.locks();
  for (;;) {
    if (locks.can_set(file, lock)) {
      // The data's description is not needed, nor a moment without I/O.
      auto job = [&] { return locks.set(file, offset, end, lock, -1); };
      const auto done = co_await Impl::run(worker, job);
      if (done || done.error() != errno_code(EBADF)) co_return done;
    }
    // For writing even where reading would do: an exclusive lock may follow.
    Result<std::shared_ptr<File>> opened = errno_code(EROFS);
    if (!impl_->options.read_only) {
      opened = co_await impl_->data.files().open(worker, file, OpenFor::writing);
    }
    if (!opened && lock == KernelLock::shared && opened.error() != errno_code(ESTALE)) {
      opened = co_await impl_->data.files().open(worker, file, OpenFor::reading);
    }
    if (!opened) co_return opened.error();
    const auto open = std::move(*opened);
    auto job = [&] { return locks.set(file, offset, end, lock, open->fd()); };
    const File::Work work = [&]() -> Awaitable<Result<>> {
      co_return co_await Impl::run(worker, job);
    };
    // In edge mode `assemble` the description is being replaced, or it is not: no third.
    const auto done = co_await open->exclusive(worker, work);
    if (done || done.error() != errno_code(ECANCELED)) co_return done;
  }
}

}  // namespace selvage::storage
