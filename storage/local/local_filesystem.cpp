#include "storage/local/local_filesystem.h"

#include "storage/durable_sync.h"
#include "storage/local/local_impl.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <limits>

namespace selvage::storage {
namespace {

constexpr auto largest_offset =
    static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

/// The file system's own bound of a file's size, which no call names: the largest offset that
/// lseek(2) takes on a regular file. 2^63-1 where no file can be made.
std::uint64_t find_max_file_size(int root_fd) {
  const UniqueFd fd(::openat(root_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) return largest_offset;
  std::uint64_t taken = 0;
  std::uint64_t refused = largest_offset + 1;
  while (refused - taken > 1) {
    const std::uint64_t middle = taken + (refused - taken) / 2;
    if (::lseek(fd.get(), static_cast<off_t>(middle), SEEK_SET) >= 0) {
      taken = middle;
    } else {
      refused = middle;
    }
  }
  return taken;
}

/// Not ext4: the magic number does not tell whether it has a journal.
bool has_ordered_journal(int fd) {
  struct statfs stats{};
  if (::fstatfs(fd, &stats) != 0) return false;
  return stats.f_type == XFS_SUPER_MAGIC;
}

std::uint32_t limit_of(int fd, int name, std::uint32_t otherwise) {
  const long value = ::fpathconf(fd, name);
  if (value <= 0) return otherwise;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(static_cast<std::uint64_t>(value), UINT32_MAX));
}

}  // namespace

LocalFileSystem::Impl::Impl(ExportOptions export_options, ObjectOpener object_opener,
                            FileSystemLimits fs_limits, Runtime& runtime)
    : options(std::move(export_options)),
      opener(std::move(object_opener)),
      limits(fs_limits),
      ordered_journal(has_ordered_journal(opener.root_fd())),
      data(opener, options, counters, runtime) {}

Result<> LocalFileSystem::Impl::check_writable() const {
  if (options.read_only) return errno_code(EROFS);
  return {};
}

Awaitable<Result<>> LocalFileSystem::Impl::make_durable(Worker& worker, const ObjectId& id,
                                                        int fd) {
  if (!data.modes().get().sync) co_return Result<>();
  co_return co_await name_sync.sync(worker, id, fd);
}

Awaitable<Result<>> LocalFileSystem::Impl::make_all_durable(Worker& worker) {
  if (!data.modes().get().sync) co_return Result<>();
  if (ordered_journal) {
    // A younger inode of the same journal: its fsync(2) takes every older change along.
    auto make = [this]() -> Result<UniqueFd> {
      UniqueFd fd(::openat(opener.root_fd(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
      if (!fd) return errno_code(errno);
      return fd;
    };
    const auto younger = co_await run(worker, make);
    if (younger) co_return co_await sync_durably(worker, younger->get(), SyncKind::all, 0, 0);
  }
  auto job = [this]() -> Result<> {
    if (::syncfs(opener.root_fd()) != 0) return errno_code(errno);
    return check_up(opener.root_fd());
  };
  co_return co_await run(worker, job);
}

Awaitable<Result<CreateResult>> LocalFileSystem::Impl::make_durable(Worker& worker,
                                                                    const ObjectId& directory,
                                                                    Made made) {
  if (made.object) {
    const auto done = co_await make_durable(worker, made.result.node.id, made.object.get());
    if (!done) co_return done.error();
  }
  if (made.file_system) {
    const auto done = co_await make_all_durable(worker);
    if (!done) co_return done.error();
  }
  const auto done = co_await make_durable(worker, directory, made.directory.get());
  if (!done) co_return done.error();
  co_return made.result;
}

Result<> check_name(const std::string& name, NameUse use) {
  constexpr std::size_t name_max = 255;
  if (name.empty() || name.find('/') != std::string::npos || name.find('\0') != std::string::npos) {
    return make_error_code(Errc::bad_name);
  }
  if (name.size() > name_max) return errno_code(ENAMETOOLONG);
  if (use == NameUse::change && (name == "." || name == "..")) {
    return make_error_code(Errc::reserved_name);
  }
  return {};
}

Result<> check_access(int fd, int mode) {
  if (::syscall(SYS_faccessat2, fd, "", mode, AT_EACCESS | AT_EMPTY_PATH) != 0) {
    return errno_code(errno);
  }
  return {};
}

ErrorCode directory_error(int dirfd, ErrorCode error) {
  if (error == errno_code(ENOENT)) {
    const auto directory = attributes_of(dirfd);
    if (directory && directory->nlink == 0) return errno_code(ESTALE);
  }
  return error;
}

Result<std::unique_ptr<LocalFileSystem>> LocalFileSystem::open(const std::string& path,
                                                               ExportOptions options,
                                                               Runtime& runtime) {
  auto opener = ObjectOpener::open(path, options.max_paths);
  if (!opener) return opener.error();
  if (options.notice && !opener->lost().empty()) options.notice(opener->lost());
  FileSystemLimits limits{};
  limits.max_file_size = find_max_file_size(opener->root_fd());
  limits.max_name = limit_of(opener->root_fd(), _PC_NAME_MAX, NAME_MAX);
  limits.max_links = limit_of(opener->root_fd(), _PC_LINK_MAX, UINT32_MAX);
  auto impl = std::make_unique<Impl>(std::move(options), std::move(*opener), limits, runtime);
  return std::unique_ptr<LocalFileSystem>(new LocalFileSystem(std::move(impl)));
}

LocalFileSystem::LocalFileSystem(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LocalFileSystem::~LocalFileSystem() = default;

void LocalFileSystem::set_modes(const ExportOptions& options) {
  impl_->data.modes().set(options);
}

Awaitable<> LocalFileSystem::reopen_files(Worker& worker) {
  return impl_->data.reopen_files(worker);
}

ObjectId LocalFileSystem::root() const {
  return impl_->opener.root();
}
const DataCounters& LocalFileSystem::counters() const {
  return impl_->counters;
}

Awaitable<Result<ReadResult>> LocalFileSystem::read(Caller caller, ObjectId file,
                                                    std::uint64_t offset, std::uint32_t count,
                                                    ReadMemory memory) {
  return impl_->data.read(caller, file, offset, count, memory);
}

Awaitable<Result<WriteResult>> LocalFileSystem::write(Caller caller, ObjectId file,
                                                      WriteRequest request) {
  return impl_->data.write(caller, file, request);
}

Awaitable<Result<CommitResult>> LocalFileSystem::commit(Caller caller, ObjectId file,
                                                        std::uint64_t offset, std::uint32_t count) {
  return impl_->data.commit(caller, file, offset, count);
}

DataGauges LocalFileSystem::gauges() const {
  return impl_->data.gauges();
}

std::vector<FileEdges> LocalFileSystem::edges(std::size_t most) const {
  return impl_->data.edges(most);
}

Awaitable<Result<>> LocalFileSystem::sync(Worker& worker) {
  return impl_->data.sync(worker);
}

Awaitable<Result<>> LocalFileSystem::close(Worker& worker) {
  return impl_->data.close(worker);
}

}  // namespace selvage::storage
