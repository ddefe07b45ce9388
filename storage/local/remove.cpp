// REMOVE, RMDIR, RENAME, LINK.
#include "storage/local/local_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>

namespace selvage::storage {
namespace {

/// The object under a name that is about to lose it.
class Victim {
 public:
  /// Nothing if there is none, or none that can be told; the operation itself says what is wrong.
  Victim(const ObjectOpener& opener, int dirfd, const std::string& name) {
    auto object = opener.open_at(dirfd, name);
    if (!object || object->attributes.type != FileType::regular) return;
    const auto id = opener.id_of(object->fd.get(), "");
    if (!id) return;
    id_ = *id;
    fd_ = std::move(object->fd);
  }

  /// Its handle, if it has no link any more.
  std::optional<ObjectId> gone() const {
    if (!fd_) return std::nullopt;
    const auto attributes = attributes_of(fd_.get());
    if (!attributes || attributes->nlink != 0) return std::nullopt;
    return id_;
  }

 private:
  UniqueFd fd_;
  ObjectId id_;
};

struct Unlinked {
  RemoveResult result;
  UniqueFd fd;
  std::optional<ObjectId> gone;
};

struct Renamed {
  RenameResult result;
  UniqueFd from;
  UniqueFd to;
  std::optional<ObjectId> gone;
};

struct Linked {
  LinkResult result;
  UniqueFd directory;
};

}  // namespace

Awaitable<Result<RemoveResult>> LocalFileSystem::Impl::unlink(Caller caller,
                                                              const ObjectId& directory,
                                                              const std::string& name, int flags) {
  const auto writable = check_writable();
  if (!writable) co_return writable.error();
  const auto good = check_name(name, NameUse::change);
  if (!good) co_return good.error();
  auto job = [&]() -> Result<Unlinked> {
    auto parent = opener.open_directory(directory);
    if (!parent) return parent.error();
    const int dirfd = parent->fd.get();
    Unlinked unlinked;
    {
      const std::lock_guard lock(directory_locks.of(directory));
      const ScopedIdentity identity(caller.credentials);
      const Victim victim(opener, dirfd, name);
      if (::unlinkat(dirfd, name.c_str(), flags) != 0) {
        return directory_error(dirfd, errno_code(errno));
      }
      unlinked.gone = victim.gone();
    }
    const auto after = attributes_of(dirfd);
    if (!after) return after.error();
    unlinked.result = RemoveResult{*after, parent->attributes};
    unlinked.fd = std::move(parent->fd);
    return unlinked;
  };
  auto unlinked = co_await Impl::run(caller.worker, job);
  if (!unlinked) co_return unlinked.error();
  if (unlinked->gone) co_await data.files().forget(caller.worker, *unlinked->gone);
  const auto durable = co_await make_durable(caller.worker, directory, unlinked->fd.get());
  if (!durable) co_return durable.error();
  co_return unlinked->result;
}

Awaitable<Result<RemoveResult>> LocalFileSystem::remove(Caller caller, ObjectId directory,
                                                        std::string name) {
  co_return co_await impl_->unlink(caller, directory, name, 0);
}

Awaitable<Result<RemoveResult>> LocalFileSystem::rmdir(Caller caller, ObjectId directory,
                                                       std::string name) {
  co_return co_await impl_->unlink(caller, directory, name, AT_REMOVEDIR);
}

Awaitable<Result<RenameResult>> LocalFileSystem::rename(Caller caller, ObjectId from,
                                                        std::string from_name, ObjectId to,
                                                        std::string to_name) {
  const auto writable = impl_->check_writable();
  if (!writable) co_return writable.error();
  const auto good_from = check_name(from_name, NameUse::change);
  if (!good_from) co_return good_from.error();
  const auto good_to = check_name(to_name, NameUse::change);
  if (!good_to) co_return good_to.error();
  const auto& opener = impl_->opener;
  auto job = [&]() -> Result<Renamed> {
    auto from_directory = opener.open_directory(from);
    if (!from_directory) return from_directory.error();
    auto to_directory = opener.open_directory(to);
    if (!to_directory) return to_directory.error();
    const int from_fd = from_directory->fd.get();
    const int to_fd = to_directory->fd.get();
    Renamed renamed;
    {
      std::mutex& first = impl_->directory_locks.of(from);
      std::mutex& second = impl_->directory_locks.of(to);
      std::unique_lock first_lock(first, std::defer_lock);
      std::unique_lock second_lock(second, std::defer_lock);
      if (&first == &second) {
        first_lock.lock();
      } else {
        std::lock(first_lock, second_lock);
      }
      const ScopedIdentity identity(caller.credentials);
      const Victim victim(opener, to_fd, to_name);
      if (::renameat2(from_fd, from_name.c_str(), to_fd, to_name.c_str(), 0) != 0) {
        const ErrorCode error = errno_code(errno);
        const ErrorCode from_error = directory_error(from_fd, error);
        return from_error == error ? directory_error(to_fd, error) : from_error;
      }
      renamed.gone = victim.gone();
    }
    const auto from_after = attributes_of(from_fd);
    if (!from_after) return from_after.error();
    const auto to_after = attributes_of(to_fd);
    if (!to_after) return to_after.error();
    renamed.result =
        RenameResult{*from_after, *to_after, from_directory->attributes, to_directory->attributes};
    renamed.from = std::move(from_directory->fd);
    renamed.to = std::move(to_directory->fd);
    return renamed;
  };
  auto renamed = co_await Impl::run(caller.worker, job);
  if (!renamed) co_return renamed.error();
  if (renamed->gone) co_await impl_->data.files().forget(caller.worker, *renamed->gone);
  // The new name first: a crash between the two must not lose the object.
  auto durable = co_await impl_->make_durable(caller.worker, to, renamed->to.get());
  if (!durable) co_return durable.error();
  if (!(from == to)) {
    durable = co_await impl_->make_durable(caller.worker, from, renamed->from.get());
    if (!durable) co_return durable.error();
  }
  co_return renamed->result;
}

Awaitable<Result<LinkResult>> LocalFileSystem::link(Caller caller, ObjectId file,
                                                    ObjectId directory, std::string name) {
  const auto writable = impl_->check_writable();
  if (!writable) co_return writable.error();
  const auto good = check_name(name, NameUse::change);
  if (!good) co_return good.error();
  const auto& opener = impl_->opener;
  auto job = [&]() -> Result<Linked> {
    const auto object = opener.open_object(file, O_PATH);
    if (!object) return object.error();
    auto parent = opener.open_directory(directory);
    if (!parent) return parent.error();
    const int dirfd = parent->fd.get();
    {
      const std::lock_guard lock(impl_->directory_locks.of(directory));
      const ScopedIdentity identity(caller.credentials);
      // AT_EMPTY_PATH would need CAP_DAC_READ_SEARCH.
      const std::string path = "/proc/self/fd/" + std::to_string(object->fd.get());
      if (::linkat(AT_FDCWD, path.c_str(), dirfd, name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
        const ErrorCode error = errno_code(errno);
        // ENOENT: the file, or the directory, was removed since it was opened.
        return error == errno_code(ENOENT) ? errno_code(ESTALE) : error;
      }
    }
    const auto file_after = attributes_of(object->fd.get());
    if (!file_after) return file_after.error();
    const auto directory_after = attributes_of(dirfd);
    if (!directory_after) return directory_after.error();
    return Linked{LinkResult{*file_after, *directory_after, parent->attributes},
                  std::move(parent->fd)};
  };
  auto linked = co_await Impl::run(caller.worker, job);
  if (!linked) co_return linked.error();
  impl_->data.files().attributes_changed(file);
  impl_->data.files().show(file, linked->result.file);
  const auto durable =
      co_await impl_->make_durable(caller.worker, directory, linked->directory.get());
  if (!durable) co_return durable.error();
  co_return linked->result;
}

}  // namespace selvage::storage
