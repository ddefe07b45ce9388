// LOOKUP, READLINK.
#include "storage/local/local_impl.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace selvage::storage {

Awaitable<Result<LookupResult>> LocalFileSystem::lookup(Caller caller, ObjectId directory,
                                                        std::string name) {
  const auto good = check_name(name, NameUse::look);
  if (!good) co_return good.error();
  const auto& opener = impl_->opener;
  auto job = [&]() -> Result<LookupResult> {
    const auto parent = opener.open_object(directory, O_PATH);
    if (!parent) return parent.error();
    if (parent->attributes.type != FileType::directory) return errno_code(ENOTDIR);
    const int dirfd = parent->fd.get();
    const bool up = name == "..";
    const bool up_from_root = up && directory == opener.root();
    // Checked before the parent shows: nothing is said of what lies outside.
    if (up && !up_from_root && !opener.inside(dirfd)) return errno_code(EACCES);
    const std::string looked_up = up_from_root ? "." : name;
    const ScopedIdentity identity(caller.credentials);
    const auto node = opener.node_at(dirfd, looked_up);
    if (!node) {
      if (node.error() == errno_code(EXDEV)) return errno_code(EACCES);
      return directory_error(dirfd, node.error());
    }
    const auto after = attributes_of(dirfd);
    if (!after) return after.error();
    return LookupResult{*node, *after};
  };
  auto found = co_await Impl::run(caller.worker, job);
  if (found) impl_->data.files().show(found->node.id, found->node.attributes);
  co_return found;
}

Awaitable<Result<ReadlinkResult>> LocalFileSystem::readlink(Caller caller, ObjectId object) {
  auto job = [&]() -> Result<ReadlinkResult> {
    const auto link = impl_->opener.open_object(object, O_PATH);
    if (!link) return link.error();
    // readlinkat(2) with an empty path says ENOENT here.
    if (link->attributes.type != FileType::symlink) return errno_code(EINVAL);
    std::string target(PATH_MAX, '\0');
    const ScopedIdentity identity(caller.credentials);
    const ssize_t length = ::readlinkat(link->fd.get(), "", target.data(), target.size());
    if (length < 0) return errno_code(errno);
    target.resize(static_cast<std::size_t>(length));
    return ReadlinkResult{std::move(target), link->attributes};
  };
  co_return co_await Impl::run(caller.worker, job);
}

}  // namespace selvage::storage
