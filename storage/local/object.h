// From handles to descriptors: what the name and attribute operations are built of.
#pragma once

#include "storage/attributes.h"
#include "storage/filesystem.h"
#include "storage/unique_fd.h"

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>

namespace selvage::storage {

class HeldFiles;
class PathTable;

/// A descriptor and what statx(2) said of it just after it was opened.
struct OpenObject {
  UniqueFd fd;
  Attributes attributes;
};

/// Opens objects of one file system by handle. All calls block (pool threads). Those that take an
/// ObjectId act as the server: open_by_handle_at(2) needs CAP_DAC_READ_SEARCH. Those that take a
/// directory and a name are judged under the identity that the thread has. Thread-safe.
///
/// Where the process may not open by handle, or the file system has no handles, a bounded table of
/// O_PATH descriptors stands in: an object is found as long as the table remembers it, and is
/// ESTALE after that, and after a restart (but for the root).
///
/// Neither symlinks nor mount points are followed: EXDEV for a name on which something else is
/// mounted, and for a btrfs subvolume (its inode numbers would collide with the export's).
class ObjectOpener {
 public:
  static constexpr std::size_t default_paths = 4096;

  /// Opens the directory. ENOENT, ENOTDIR. `max_paths` bounds the table of descriptors, which each
  /// cost one.
  static Result<ObjectOpener> open(const std::string& root_path,
                                   std::size_t max_paths = default_paths);

  /// What is lost for want of handles, in one line; empty: nothing.
  const std::string& lost() const { return lost_; }

  const ObjectId& root() const { return root_id_; }
  /// O_RDONLY|O_DIRECTORY of the root.
  int root_fd() const { return root_.get(); }

  /// The files that are usable without a link.
  HeldFiles& held() const { return *held_; }

  /// The object has lost its last link, and nobody holds it.
  void forget(const ObjectId& id) const;

  /// open_by_handle_at with `flags` (O_PATH, or O_RDONLY|O_DIRECTORY, ...; O_CLOEXEC is added).
  /// ESTALE if the object is gone. Does not look at the link count.
  Result<UniqueFd> open_handle(const ObjectId& id, int flags) const;

  /// O_PATH descriptor of an object that still has a link, or is held; ESTALE otherwise.
  Result<UniqueFd> open_path(const ObjectId& id) const;

  /// The same with its attributes, and any flags.
  Result<OpenObject> open_object(const ObjectId& id, int flags) const;

  /// O_RDONLY|O_DIRECTORY (which fsync(2) and getdents(2) take), leaving atime alone. ENOTDIR if it
  /// is something else, whose open then has no side effects.
  Result<OpenObject> open_directory(const ObjectId& id) const;

  /// O_PATH descriptor of `name` in the directory. ESTALE if it lost its last link meanwhile.
  Result<OpenObject> open_at(int dirfd, const std::string& name) const;

  /// The handle of `name` in the directory, or of `dirfd` itself with an empty name.
  Result<ObjectId> id_of(int dirfd, const std::string& name) const;

  /// open_at and id_of of the same object. A name that is replaced all the time is found; one that
  /// is removed gives ENOENT.
  Result<Node> node_at(int dirfd, const std::string& name) const;

  /// Whether the directory is the export's root or below it: a directory that was moved out keeps
  /// its handle, and ".." must not lead further up. Deeper than 4096 levels counts as outside.
  /// Looks as the server does.
  bool inside(int dirfd) const;

 private:
  Result<Attributes> attributes_inside(int fd) const;
  Result<UniqueFd> open_known(const ObjectId& id, int flags) const;

  std::shared_ptr<PathTable> paths_;  // Null where the kernel opens by handle.
  bool made_up_ = false;              // Ids are ours: the file system has no handles.
  std::string lost_;

  std::shared_ptr<HeldFiles> held_;
  UniqueFd root_;
  ObjectId root_id_;
  std::uint64_t root_inode_ = 0;
  std::uint64_t device_ = 0;
  std::uint64_t mount_id_ = 0;
};

/// statx(2) with STATX_BASIC_STATS of an open descriptor (O_PATH too), or of a name in it (not
/// following symlinks).
Result<Attributes> attributes_of(int fd);
Result<Attributes> attributes_of(int dirfd, const std::string& name);

}  // namespace selvage::storage
