// ALLOCATE, DEALLOCATE, SEEK: a file's room and its holes.
#include "storage/local/local_impl.h"
#include "storage/local/open_file.h"
#include "storage/page_range.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <limits>
#include <utility>

namespace selvage::storage {
namespace {

constexpr auto last_offset = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

/// The kernel clears the rest of a block that keeps data through the page cache: those pages are
/// not to stay there. Clean ones leave at once, others when they have been written back.
Awaitable<> drop_ends(Worker& worker, OpenFile& file, std::array<std::uint64_t, 2> ends) {
  auto work = [&] {
    for (const std::uint64_t end : ends) {
      const std::uint64_t page_size = file.page_size();
      if (end % page_size == 0) continue;
      const cache::PageRun page = whole_pages(end, 1, page_size);
      file.drop_list().add({&page, 1}, std::chrono::steady_clock::now());
      file.drop_listed(page.offset, page.offset + page.length);
    }
  };
  co_await worker.pool.run(work);
}

Result<SeekResult> seek_in(int fd, std::uint64_t offset, SeekTo what) {
  const int whence = what == SeekTo::data ? SEEK_DATA : SEEK_HOLE;
  const off_t at = ::lseek(fd, static_cast<off_t>(offset), whence);
  const ErrorCode error = errno_code(at < 0 ? errno : 0);
  if (error && error != errno_code(ENXIO)) return error;
  const auto now = attributes_of(fd);
  if (now.has_error()) return now.error();
  SeekResult result;
  if (error) {
    // Also where no more data comes before the end of the file.
    if (offset >= now->size) return error;
    result.offset = now->size;
    result.eof = true;
    return result;
  }
  result.found = true;
  result.offset = static_cast<std::uint64_t>(at);
  result.eof = result.offset >= now->size;
  return result;
}

}  // namespace

Awaitable<Result<Attributes>> LocalFileSystem::Impl::change_space(Caller caller, const ObjectId& id,
                                                                  int mode, std::uint64_t offset,
                                                                  std::uint64_t length) {
  const auto writable = check_writable();
  if (!writable) co_return writable.error();
  for (;;) {
    const auto opened = co_await data.open(caller, id, OpenFor::writing, Right::write);
    if (!opened) co_return opened.error();
    const auto& file = *opened;
    if (length == 0) co_return errno_code(EINVAL);
    if (offset > limits.max_file_size || length > limits.max_file_size - offset) {
      co_return errno_code(EFBIG);
    }
    std::uint64_t size_before = 0;
    auto job = [&]() -> Result<> {
      const std::lock_guard lock(attribute_locks.of(id));
      const auto before = attributes_of(file->fd());
      if (!before) return before.error();
      size_before = before->size;
      {
        // Set-id bits, quota and reserved blocks are the client's affair.
        const ScopedIdentity identity(caller.credentials);
        if (::fallocate(file->fd(), mode, static_cast<off_t>(offset), static_cast<off_t>(length)) !=
            0) {
          return errno_code(errno);
        }
      }
      return file->stamp_if_invisible();
    };
    Result<> changed = errno_code(ECANCELED);
    const File::Work work = [&]() -> Awaitable<Result<>> {
      changed = co_await run(caller.worker, job);
      // Though it failed, the size may have moved: it is to be looked at.
      co_return Result<>();
    };
    const auto done = co_await file->exclusive(caller.worker, work);
    file->attributes_changed();
    // It was taken from under us by a local opener: once more, by another way.
    if (!done && done.error() == errno_code(ECANCELED)) continue;
    if (!done) co_return done.error();
    if (!changed) co_return changed.error();
    const auto after = file->attributes_after();
    if (!after) co_return after.error();
    const DataModes modes = data.modes().get();
    if (modes.sync) {
      const auto durable = co_await file->sync(caller.worker, SyncKind::all, 0, 0);
      if (!durable) co_return durable.error();
    }
    const bool keeps_pages = modes.write != IoMode::direct || modes.edges == EdgeMode::buffered;
    if (!keeps_pages) {
      const bool punch = (mode & FALLOC_FL_PUNCH_HOLE) != 0;
      std::array<std::uint64_t, 2> ends{size_before, size_before};
      if (punch) ends = {offset, offset + length};
      co_await drop_ends(caller.worker, *file, ends);
    }
    co_return after;
  }
}

Awaitable<Result<Attributes>> LocalFileSystem::allocate(Caller caller, ObjectId file,
                                                        std::uint64_t offset,
                                                        std::uint64_t length) {
  co_return co_await impl_->change_space(caller, file, 0, offset, length);
}

Awaitable<Result<Attributes>> LocalFileSystem::deallocate(Caller caller, ObjectId file,
                                                          std::uint64_t offset,
                                                          std::uint64_t length) {
  constexpr int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  co_return co_await impl_->change_space(caller, file, mode, offset, length);
}

Awaitable<Result<SeekResult>> LocalFileSystem::seek(Caller caller, ObjectId file,
                                                    std::uint64_t offset, SeekTo what) {
  for (;;) {
    const auto opened = co_await impl_->data.open(caller, file, OpenFor::reading, Right::read);
    if (!opened) co_return opened.error();
    const auto observed = (*opened)->attributes_after();
    if (!observed) co_return observed.error();
    const auto way = (*opened)->way();
    if (way.stale) continue;
    if (offset > last_offset) co_return errno_code(ENXIO);
    if (way.combiner && way.combiner->busy()) {
      const auto written = co_await way.combiner->write_out(caller.worker, false);
      if (!written && written.error() == errno_code(ECANCELED)) {
        co_await (*opened)->leave_assembly(caller.worker, false);  // Is under way: waits for it.
        continue;
      }
      if (!written) co_return written.error();
    }
    auto job = [&] { return seek_in(way.descriptors->buffered, offset, what); };
    auto found = co_await Impl::run(caller.worker, job);
    // It left edge mode `assemble` just now.
    if (!found && found.error() == errno_code(EBADF) && (*opened)->combiner() != way.combiner) {
      continue;
    }
    co_return found;
  }
}

}  // namespace selvage::storage
