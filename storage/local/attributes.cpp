// GETATTR, SETATTR, ACCESS.
#include "storage/local/local_impl.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <limits>

namespace selvage::storage {
namespace {

using How = SetTime::How;

constexpr std::uint32_t no_id = UINT32_MAX;  // chown(2) takes it for "leave as it is".

bool valid_time(const SetTime& set) {
  // UTIME_NOW and UTIME_OMIT lie outside as well.
  return set.how != How::client_time || (set.time.tv_nsec >= 0 && set.time.tv_nsec < 1'000'000'000);
}

timespec to_utime(const SetTime& set) {
  timespec time = set.time;
  if (set.how == How::server_time) time.tv_nsec = UTIME_NOW;
  if (set.how == How::keep) time.tv_nsec = UTIME_OMIT;
  return time;
}

Result<> set_times(int fd, const std::array<timespec, 2>& times) {
  if (::utimensat(fd, "", times.data(), AT_EMPTY_PATH) != 0) return errno_code(errno);
  return {};
}

/// As the client. `server_decides` is set if the client may do it, but only the server can: the
/// kernel lets a writer set both times to now, or none.
Result<> set_times_as_client(int fd, const std::array<timespec, 2>& times, const SetTime& atime,
                             const SetTime& mtime, bool& server_decides) {
  const auto done = set_times(fd, times);
  if (done || done.error() != errno_code(EPERM)) return done;
  if (atime.how == How::client_time || mtime.how == How::client_time) return done;
  const auto may_write = check_access(fd, W_OK);
  if (!may_write) return may_write;
  server_decides = true;
  return {};
}

Result<> set_size(int path_fd, int data_fd, const Attributes& before, std::uint64_t size,
                  const Credentials& credentials) {
  const auto may_write = check_access(path_fd, W_OK);
  // An NFSv3 client has checked at open; the owner may have taken the right from himself since.
  const bool owner = before.uid == credentials.uid;
  if (!may_write && !(owner && may_write.error() == errno_code(EACCES))) return may_write;
  if (::ftruncate(data_fd, static_cast<off_t>(size)) != 0) return errno_code(errno);
  return {};
}

}  // namespace

Result<> check_attributes(const SetAttributes& set, const FileSystemLimits& limits) {
  if (set.uid == no_id || set.gid == no_id) return errno_code(EINVAL);
  if (set.size && *set.size > limits.max_file_size) return errno_code(EFBIG);
  if (!valid_time(set.atime) || !valid_time(set.mtime)) return errno_code(EINVAL);
  return {};
}

Result<> apply_attributes(int path_fd, int data_fd, const Attributes& before,
                          const SetAttributes& set, const Credentials& credentials) {
  SetTime mtime = set.mtime;
  // ftruncate(2) has just done that, and needs the right to write only.
  if (set.size && mtime.how == How::server_time) mtime.how = How::keep;
  const bool any_time = set.atime.how != How::keep || mtime.how != How::keep;
  const std::array<timespec, 2> times{to_utime(set.atime), to_utime(mtime)};
  bool server_decides = false;
  {
    const ScopedIdentity identity(credentials);
    if (set.size) {
      const auto done = set_size(path_fd, data_fd, before, *set.size, credentials);
      if (!done) return done;
    }
    if (set.uid || set.gid) {
      if (::fchownat(path_fd, "", set.uid.value_or(no_id), set.gid.value_or(no_id),
                     AT_EMPTY_PATH) != 0) {
        return errno_code(errno);
      }
    }
    // After chown(2), which clears set-id bits. fchmodat2(2) is younger than the kernels we serve.
    if (set.mode && before.type != FileType::symlink) {
      const std::string path = "/proc/self/fd/" + std::to_string(path_fd);
      if (::chmod(path.c_str(), *set.mode & 07777U) != 0) return errno_code(errno);
    }
    if (any_time) {
      const auto done = set_times_as_client(path_fd, times, set.atime, mtime, server_decides);
      if (!done) return done;
    }
  }
  if (server_decides) return set_times(path_fd, times);
  return {};
}

Awaitable<Result<Attributes>> LocalFileSystem::getattr(Caller caller, ObjectId object) {
  auto job = [&]() -> Result<Attributes> {
    const auto opened = impl_->opener.open_object(object, O_PATH);
    if (!opened) return opened.error();
    return opened->attributes;
  };
  auto attributes = co_await Impl::run(caller.worker, job);
  if (attributes) impl_->data.files().show(object, *attributes);
  co_return attributes;
}

Awaitable<Result<AccessResult>> LocalFileSystem::access(Caller caller, ObjectId object) {
  auto job = [&]() -> Result<AccessResult> {
    const auto opened = impl_->opener.open_object(object, O_PATH);
    if (!opened) return opened.error();
    AccessResult result{};
    result.attributes = opened->attributes;
    const ScopedIdentity identity(caller.credentials);
    const int fd = opened->fd.get();
    result.read = check_access(fd, R_OK).has_value();
    result.write = !impl_->options.read_only && check_access(fd, W_OK).has_value();
    result.execute = check_access(fd, X_OK).has_value();
    return result;
  };
  auto result = co_await Impl::run(caller.worker, job);
  if (result) impl_->data.files().show(object, result->attributes);
  co_return result;
}

Awaitable<Result<Attributes>> LocalFileSystem::setattr(Caller caller, ObjectId object,
                                                       SetAttributes set,
                                                       std::optional<timespec> guard_ctime) {
  const auto writable = impl_->check_writable();
  if (!writable) co_return writable.error();
  const auto valid = check_attributes(set, impl_->limits);
  if (!valid) co_return valid.error();

  // Opened before anything changes: an object that cannot be synced is not changed either.
  std::shared_ptr<File> file;
  if (!set.nothing()) {
    const OpenFor use = set.size ? OpenFor::writing : OpenFor::reading;
    auto opened = co_await impl_->data.files().open(caller.worker, object, use);
    if (opened) {
      file = std::move(*opened);
    } else {
      const bool other_type =
          opened.error() == errno_code(EISDIR) || opened.error() == errno_code(EINVAL);
      if (!other_type || set.size) co_return opened.error();
    }
  }

  struct Changed {
    Attributes after{};
    UniqueFd directory;
  };
  auto job = [&]() -> Result<Changed> {
    auto opened = impl_->opener.open_object(object, O_PATH);
    if (!opened) return opened.error();
    const int fd = opened->fd.get();
    Changed changed;
    if (!set.nothing() && opened->attributes.type == FileType::directory) {
      auto directory = impl_->opener.open_directory(object);
      if (!directory) return directory.error();
      changed.directory = std::move(directory->fd);
    }
    const std::lock_guard lock(impl_->attribute_locks.of(object));
    auto before = attributes_of(fd);
    if (!before) return before.error();
    impl_->data.files().show(object, *before);
    if (guard_ctime && !same_time(*guard_ctime, before->ctime)) {
      return make_error_code(Errc::not_sync);
    }
    const auto done =
        apply_attributes(fd, file ? file->fd() : -1, *before, set, caller.credentials);
    if (!done) return done.error();
    const auto after = attributes_of(fd);
    if (!after) return after.error();
    changed.after = *after;
    return changed;
  };
  Result<Changed> changed = errno_code(ECANCELED);
  if (file && !set.nothing()) {
    const File::Work work = [&]() -> Awaitable<Result<>> {
      changed = co_await Impl::run(caller.worker, job);
      if (!changed) co_return changed.error();
      co_return Result<>();
    };
    const auto done = co_await file->exclusive(caller.worker, work);
    if (!done) {
      file->attributes_changed();
      // It was taken from under us by a local opener: once more, by another way.
      if (done.error() == errno_code(ECANCELED)) {
        co_return co_await setattr(caller, object, set, guard_ctime);
      }
      co_return done.error();
    }
    file->attributes_changed();
  } else {
    changed = co_await Impl::run(caller.worker, job);
    if (!changed) co_return changed.error();
  }
  if (set.nothing() || !impl_->data.modes().get().sync) co_return changed->after;

  Result<> durable;
  if (file) {
    durable = co_await file->sync(caller.worker, SyncKind::all, 0, 0);
  } else if (changed->directory) {
    durable = co_await impl_->make_durable(caller.worker, object, changed->directory.get());
  } else {
    durable = co_await impl_->make_all_durable(caller.worker);
  }
  if (!durable) co_return durable.error();
  co_return changed->after;
}

}  // namespace selvage::storage
