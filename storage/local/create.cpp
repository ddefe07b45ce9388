// CREATE, MKDIR, SYMLINK, MKNOD.
#include "storage/durable_sync.h"
#include "storage/local/exclusive_verifier.h"
#include "storage/local/held_files.h"
#include "storage/local/local_impl.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace selvage::storage {
namespace {

using How = SetTime::How;

constexpr std::uint32_t special_bits = S_ISUID | S_ISGID | S_ISVTX;
// A client that gives no mode sets one next.
constexpr std::uint32_t default_file_mode = 0600;
constexpr std::uint32_t default_directory_mode = 0700;
constexpr int create_attempts = 16;

/// What is left to set on an object just made with the mode asked for. A default ACL and a set-gid
/// directory have had their say in its mode: only bits that creation lost are added.
SetAttributes initial_attributes(SetAttributes set, const Attributes& made) {
  if (set.uid == made.uid) set.uid.reset();
  if (set.gid == made.gid) set.gid.reset();
  if (set.size == made.size || made.type != FileType::regular) set.size.reset();
  // It was made now.
  if (set.atime.how == How::server_time) set.atime.how = How::keep;
  if (set.mtime.how == How::server_time) set.mtime.how = How::keep;
  const std::uint32_t asked = set.mode.value_or(0) & special_bits;
  const bool lost = (asked & ~made.mode) != 0;
  const bool will_lose = asked != 0 && (set.uid || set.gid || set.size);
  if (lost || will_lose) {
    set.mode = made.mode | asked;
  } else {
    set.mode.reset();
  }
  return set;
}

enum class Changed : std::uint8_t { no, yes };

/// Sets them. Whether there was anything to set.
Result<Changed> set_initial(int path_fd, int data_fd, const Attributes& made,
                            const SetAttributes& asked, const Credentials& credentials) {
  const SetAttributes set = initial_attributes(asked, made);
  if (set.nothing()) return Changed::no;
  const auto done = apply_attributes(path_fd, data_fd, made, set, credentials);
  if (!done) return done.error();
  return Changed::yes;
}

/// The node just made, or found, whose attributes `attributes` are, and the directory as it is now.
Result<CreateResult> describe(const ObjectOpener& opener, int path_fd,
                              const Result<Attributes>& attributes, const OpenObject& directory) {
  const auto id = opener.id_of(path_fd, "");
  if (!id) return id.error();
  if (!attributes) return attributes.error();
  const auto after = attributes_of(directory.fd.get());
  if (!after) return after.error();
  CreateResult result;
  result.node = Node{*id, *attributes};
  result.directory = *after;
  result.directory_before = directory.attributes;
  return result;
}

/// Finishes what a call has just made under `name`: attributes and result. On an error the name is
/// gone again.
Result<Made> finish(const ObjectOpener& opener, OpenObject directory, const std::string& name,
                    const SetAttributes& asked, const Credentials& credentials, int unlink_flags) {
  const int dirfd = directory.fd.get();
  auto object = [&] {
    const ScopedIdentity identity(credentials);
    return opener.open_at(dirfd, name);
  }();
  // Somebody else was faster: it was removed or replaced under the name.
  if (!object) return object.error();
  const int path_fd = object->fd.get();
  Made made;
  const auto changed = set_initial(path_fd, -1, object->attributes, asked, credentials);
  if (!changed) {
    const ScopedIdentity identity(credentials);
    ::unlinkat(dirfd, name.c_str(), unlink_flags);
    return changed.error();
  }
  auto result = describe(opener, path_fd, attributes_of(path_fd), directory);
  if (!result) return result.error();
  made.result = *result;
  if (*changed == Changed::yes) {
    if (made.result.node.attributes.type == FileType::directory) {
      auto again = opener.open_directory(made.result.node.id);
      if (!again) return again.error();
      made.object = std::move(again->fd);
    } else {
      made.file_system = true;
    }
  }
  made.directory = std::move(directory.fd);
  return made;
}

/// A regular file of that name that is there already.
Result<Made> existing(OpenObject& directory, const Node& node) {
  if (node.attributes.type != FileType::regular) return errno_code(EEXIST);
  const auto after = attributes_of(directory.fd.get());
  if (!after) return after.error();
  Made made;
  made.result.node = node;
  made.result.directory = *after;
  made.result.directory_before = directory.attributes;
  made.directory = std::move(directory.fd);
  made.existed = true;
  return made;
}

/// UNCHECKED and GUARDED.
Result<Made> make_file(const ObjectOpener& opener, OpenObject directory, const std::string& name,
                       const CreateRequest& request, const Credentials& credentials) {
  const int dirfd = directory.fd.get();
  const mode_t mode = request.attributes.mode.value_or(default_file_mode) & 07777U;
  UniqueFd file;
  for (int attempt = 0; !file && attempt < create_attempts; ++attempt) {
    const ScopedIdentity identity(credentials);
    file = UniqueFd(
        ::openat(dirfd, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (file) break;
    if (errno != EEXIST) return directory_error(dirfd, errno_code(errno));
    if (request.mode == CreateMode::guarded) return errno_code(EEXIST);
    const auto node = opener.node_at(dirfd, name);
    if (node) return existing(directory, *node);
    if (node.error() == errno_code(EXDEV)) return errno_code(EEXIST);
    if (node.error() != errno_code(ENOENT)) return node.error();
  }
  if (!file) return errno_code(EEXIST);
  const auto attributes = attributes_of(file.get());
  if (!attributes) return attributes.error();
  const auto changed =
      set_initial(file.get(), file.get(), *attributes, request.attributes, credentials);
  if (!changed) {
    const ScopedIdentity identity(credentials);
    ::unlinkat(dirfd, name.c_str(), 0);
    return changed.error();
  }
  const auto now = *changed == Changed::yes ? attributes_of(file.get()) : attributes;
  auto result = describe(opener, file.get(), now, directory);
  if (!result) return result.error();
  Made made;
  made.result = *result;
  made.directory = std::move(directory.fd);
  if (*changed == Changed::yes) made.object = std::move(file);
  return made;
}

/// A retry finds its own file; nobody else's has the verifier.
Result<Made> found_exclusive(OpenObject& directory, const Node& node, std::uint64_t verifier) {
  const Attributes& attributes = node.attributes;
  const ExclusiveTimes times = exclusive_times(verifier);
  if (!same_time(attributes.atime, times.atime) || !same_time(attributes.mtime, times.mtime)) {
    return errno_code(EEXIST);
  }
  return existing(directory, node);
}

/// A file without a name, for an EXCLUSIVE create.
struct Nameless {
  OpenObject directory;
  UniqueFd file;
  std::optional<Made> found;  ///< The name was taken, by an earlier copy of this request.
  bool named = false;         ///< No O_TMPFILE here: it has its name already.
};

Result<> set_verifier(int fd, std::uint64_t verifier) {
  const ExclusiveTimes times = exclusive_times(verifier);
  const std::array<timespec, 2> both{times.atime, times.mtime};
  if (::futimens(fd, both.data()) != 0) return errno_code(errno);
  return {};
}

bool no_tmpfile(int error) {
  // EISDIR: a kernel, ENOENT: a file system that does not know O_TMPFILE.
  return error == EOPNOTSUPP || error == EISDIR || error == ENOENT;
}

Result<Nameless> make_nameless(const ObjectOpener& opener, OpenObject directory,
                               const std::string& name, std::uint64_t verifier,
                               const Credentials& credentials) {
  const int dirfd = directory.fd.get();
  Nameless nameless;
  const ScopedIdentity identity(credentials);
  const auto node = opener.node_at(dirfd, name);
  if (node) {
    auto found = found_exclusive(directory, *node, verifier);
    if (!found) return found.error();
    nameless.found = std::move(*found);
    return nameless;
  }
  if (node.error() == errno_code(EXDEV)) return errno_code(EEXIST);
  if (node.error() != errno_code(ENOENT)) return node.error();
  nameless.file = UniqueFd(
      ::openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, static_cast<mode_t>(default_file_mode)));
  if (!nameless.file && no_tmpfile(errno)) {
    nameless.file =
        UniqueFd(::openat(dirfd, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                          static_cast<mode_t>(default_file_mode)));
    nameless.named = static_cast<bool>(nameless.file);
  }
  if (!nameless.file) return directory_error(dirfd, errno_code(errno));
  const auto done = set_verifier(nameless.file.get(), verifier);
  if (!done) return done.error();
  nameless.directory = std::move(directory);
  return nameless;
}

Result<Made> give_name(const ObjectOpener& opener, Nameless& nameless, const std::string& name,
                       std::uint64_t verifier, const Credentials& credentials) {
  const int dirfd = nameless.directory.fd.get();
  if (!nameless.named) {
    const ScopedIdentity identity(credentials);
    const std::string path = "/proc/self/fd/" + std::to_string(nameless.file.get());
    if (::linkat(AT_FDCWD, path.c_str(), dirfd, name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      if (errno != EEXIST) return directory_error(dirfd, errno_code(errno));
      const auto node = opener.node_at(dirfd, name);
      if (!node) return errno_code(EEXIST);
      return found_exclusive(nameless.directory, *node, verifier);
    }
  }
  const int fd = nameless.file.get();
  const auto result = describe(opener, fd, attributes_of(fd), nameless.directory);
  if (!result) return result.error();
  Made made;
  made.result = *result;
  made.directory = std::move(nameless.directory.fd);
  return made;
}

}  // namespace

Awaitable<Result<CreateResult>> LocalFileSystem::Impl::create_exclusive(Caller caller,
                                                                        const ObjectId& directory,
                                                                        const std::string& name,
                                                                        std::uint64_t verifier) {
  auto make = [&]() -> Result<Nameless> {
    auto parent = opener.open_directory(directory);
    if (!parent) return parent.error();
    return make_nameless(opener, std::move(*parent), name, verifier, caller.credentials);
  };
  auto nameless = co_await Impl::run(caller.worker, make);
  if (!nameless) co_return nameless.error();
  if (nameless->found) {
    // Its first copy may not have been synced yet.
    Made found = std::move(*nameless->found);
    co_return co_await make_durable(caller.worker, directory, std::move(found));
  }
  if (data.modes().get().sync) {
    const auto stored =
        co_await sync_durably(caller.worker, nameless->file.get(), SyncKind::all, 0, 0);
    if (!stored) co_return stored.error();
  }
  auto appear = [&]() -> Result<Made> {
    const std::lock_guard lock(directory_locks.of(directory));
    return give_name(opener, *nameless, name, verifier, caller.credentials);
  };
  auto made = co_await Impl::run(caller.worker, appear);
  if (!made) co_return made.error();
  co_return co_await make_durable(caller.worker, directory, std::move(*made));
}

Awaitable<Result<CreateResult>> LocalFileSystem::create(Caller caller, ObjectId directory,
                                                        std::string name, CreateRequest request) {
  const auto writable = impl_->check_writable();
  if (!writable) co_return writable.error();
  const auto good = check_name(name, NameUse::change);
  if (!good) co_return good.error();
  if (request.mode == CreateMode::exclusive) {
    co_return co_await impl_->create_exclusive(caller, directory, name, request.verifier);
  }
  const auto valid = check_attributes(request.attributes, impl_->limits);
  if (!valid) co_return valid.error();
  auto job = [&]() -> Result<Made> {
    auto parent = impl_->opener.open_directory(directory);
    if (!parent) return parent.error();
    auto file = [&] {
      const std::lock_guard lock(impl_->directory_locks.of(directory));
      return make_file(impl_->opener, std::move(*parent), name, request, caller.credentials);
    }();
    if (!file || file->existed || !request.hold) return file;
    const ObjectId& id = file->result.node.id;
    auto path = impl_->opener.open_handle(id, O_PATH);
    if (!path) return path.error();
    auto held = impl_->opener.held().hold(id, std::move(*path));
    if (!held) return held.error();
    file->result.hold = std::move(*held);
    return file;
  };
  auto made = co_await Impl::run(caller.worker, job);
  if (!made) co_return made.error();
  if (made->existed) {
    Node& node = made->result.node;
    impl_->data.files().show(node.id, node.attributes);
  }
  const bool resize = made->existed && request.attributes.size.has_value();
  auto result = co_await impl_->make_durable(caller.worker, directory, std::move(*made));
  if (!result || !resize) co_return result;
  // Of a file that was there only the size is set.
  SetAttributes size;
  size.size = request.attributes.size;
  const std::optional<timespec> no_guard;
  auto after = co_await setattr(caller, result->node.id, size, no_guard);
  if (!after) co_return after.error();
  result->node.attributes = *after;
  co_return result;
}

Awaitable<Result<CreateResult>> LocalFileSystem::Impl::make_named(
    Caller caller, const ObjectId& directory, const std::string& name,
    const SetAttributes& attributes, int unlink_flags, const std::function<int(int dirfd)>& call) {
  const auto writable = check_writable();
  if (!writable) co_return writable.error();
  const auto good = check_name(name, NameUse::change);
  if (!good) co_return good.error();
  const auto valid = check_attributes(attributes, limits);
  if (!valid) co_return valid.error();
  auto job = [&]() -> Result<Made> {
    auto parent = opener.open_directory(directory);
    if (!parent) return parent.error();
    const int dirfd = parent->fd.get();
    const std::lock_guard lock(directory_locks.of(directory));
    int error = 0;
    {
      const ScopedIdentity identity(caller.credentials);
      if (call(dirfd) != 0) error = errno;
    }
    if (error != 0) return directory_error(dirfd, errno_code(error));
    return finish(opener, std::move(*parent), name, attributes, caller.credentials, unlink_flags);
  };
  auto made = co_await Impl::run(caller.worker, job);
  if (!made) co_return made.error();
  co_return co_await make_durable(caller.worker, directory, std::move(*made));
}

Awaitable<Result<CreateResult>> LocalFileSystem::mkdir(Caller caller, ObjectId directory,
                                                       std::string name, SetAttributes attributes) {
  const std::function<int(int)> call = [&](int dirfd) {
    const mode_t mode = attributes.mode.value_or(default_directory_mode) & 07777U;
    return ::mkdirat(dirfd, name.c_str(), mode);
  };
  co_return co_await impl_->make_named(caller, directory, name, attributes, AT_REMOVEDIR, call);
}

Awaitable<Result<CreateResult>> LocalFileSystem::symlink(Caller caller, ObjectId directory,
                                                         std::string name, std::string target,
                                                         SetAttributes attributes) {
  if (target.empty() || target.find('\0') != std::string::npos) {
    co_return make_error_code(Errc::bad_name);
  }
  attributes.mode.reset();  // A symlink has none that counts.
  const std::function<int(int)> call = [&](int dirfd) {
    return ::symlinkat(target.c_str(), dirfd, name.c_str());
  };
  co_return co_await impl_->make_named(caller, directory, name, attributes, 0, call);
}

Awaitable<Result<CreateResult>> LocalFileSystem::mknod(Caller caller, ObjectId directory,
                                                       std::string name, MknodRequest request) {
  mode_t format = 0;
  switch (request.type) {
    case FileType::fifo:
      format = S_IFIFO;
      break;
    case FileType::socket:
      format = S_IFSOCK;
      break;
    case FileType::block:
      format = S_IFBLK;
      break;
    case FileType::character:
      format = S_IFCHR;
      break;
    case FileType::regular:
    case FileType::directory:
    case FileType::symlink:
      co_return make_error_code(Errc::bad_type);
  }
  dev_t device = 0;
  if (format == S_IFBLK || format == S_IFCHR) {
    // What the kernel's dev_t holds: 12 and 20 bits.
    if (request.major >= 1U << 12U || request.minor >= 1U << 20U) co_return errno_code(EINVAL);
    device = makedev(request.major, request.minor);
  }
  const std::function<int(int)> call = [&](int dirfd) {
    const mode_t mode = request.attributes.mode.value_or(default_file_mode) & 07777U;
    return ::mknodat(dirfd, name.c_str(), format | mode, device);
  };
  co_return co_await impl_->make_named(caller, directory, name, request.attributes, 0, call);
}

}  // namespace selvage::storage
