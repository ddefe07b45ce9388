// From handles to descriptors, and durable names: what the name operations are built of.
#pragma once

#include "storage/attributes.h"
#include "storage/filesystem.h"
#include "storage/unique_fd.h"

#include <memory>
#include <string>

namespace selvage::storage {

/// Opens objects of one file system by handle. All calls block (pool threads) and act as the
/// server: open_by_handle_at(2) needs CAP_DAC_READ_SEARCH. Thread-safe.
class ObjectOpener {
 public:
  static Result<ObjectOpener> open(const std::string& root_path);

  const ObjectId& root() const { return root_id_; }
  int root_fd() const { return root_.get(); }

  /// open_by_handle_at with `flags` (O_PATH, or O_RDONLY|O_DIRECTORY, ...; O_CLOEXEC is added).
  /// ESTALE if the object is gone. Does not look at the link count.
  Result<UniqueFd> open_handle(const ObjectId& id, int flags) const;

  /// O_PATH descriptor of an object that still has a link; ESTALE otherwise.
  Result<UniqueFd> open_path(const ObjectId& id) const;

  /// The handle of `name` in the directory, or of `dirfd` itself with an empty name; symlinks are
  /// not followed. EXDEV if it lies on another file system.
  Result<ObjectId> id_of(int dirfd, const std::string& name) const;

 private:
  UniqueFd root_;
  ObjectId root_id_;
  std::uint64_t device_ = 0;
};

/// statx(2) with STATX_BASIC_STATS of an open descriptor (O_PATH too), or of a name in it (not
/// following symlinks).
Result<Attributes> attributes_of(int fd);
Result<Attributes> attributes_of(int dirfd, const std::string& name);

/// fsync(2) of directories and objects, shared among the operations that wait for the same object
/// at the same time. Any worker.
class NameSync {
 public:
  NameSync();
  ~NameSync();
  /// Everything done to the object before this call is durable on return. `fd` is a descriptor
  /// that fsync(2) takes (not O_PATH) and that stays open until this returns.
  Awaitable<Result<>> sync(Worker& worker, const ObjectId& id, int fd);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace selvage::storage
