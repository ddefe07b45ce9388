// The only place that opens files for data (DESIGN 7): a bounded table of open files by handle.
#pragma once

#include "storage/local/export_options.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace selvage::storage {

/// An open regular file. Shared by all requests on it, any worker. Owns every descriptor of the
/// file; they are closed with the last reference after the table has let go of it.
class File {
 public:
  virtual ~File() = default;
  virtual const ObjectId& id() const = 0;
  /// A descriptor for ftruncate(2), fallocate(2), fsync(2) and statx(2), valid while this lives.
  virtual int fd() const = 0;
  /// fsync of the whole file or a range (length 0: to the end), shared with others who wait for
  /// one (group commit). A failure changes the export's write verifier.
  virtual Awaitable<Result<>> sync(Worker& worker, SyncKind kind, std::uint64_t offset,
                                   std::uint64_t length) = 0;
  /// Runs `work`, which changes the file by `fd` or by name, with no WRITE of the file in flight
  /// and none of its bytes in memory. Its error is returned. ECANCELED: the file is to be opened
  /// again.
  using Work = std::function<Awaitable<Result<>>()>;
  virtual Awaitable<Result<>> exclusive(Worker& worker, Work work) = 0;
  /// Forget remembered access rights: an attribute was changed through this server.
  virtual void attributes_changed() = 0;
};

enum class OpenFor : std::uint8_t { reading, writing };

class FileTable {
 public:
  virtual ~FileTable() = default;
  /// The open file, opened as the server if it is not. No permission is checked. ESTALE if the
  /// object is gone, or has no link left and is not held, EISDIR/EINVAL if it is not a regular
  /// file, EROFS, EMFILE.
  virtual Awaitable<Result<std::shared_ptr<File>>> open(Worker& worker, const ObjectId& id,
                                                        OpenFor use) = 0;
  /// An attribute of the object was changed through this server, by another way than its File.
  virtual void attributes_changed(const ObjectId& id) = 0;
  /// Makes of statx(2)'s attributes of a regular file what clients are shown: bytes in memory
  /// count, the server's own work does not.
  virtual void show(const ObjectId& id, Attributes& attributes) = 0;
  /// The object lost its last link: close its descriptors as soon as requests on it have ended,
  /// without a sync, and drop its pages and locks. Nothing as long as it is held.
  virtual Awaitable<> forget(Worker& worker, const ObjectId& id) = 0;
};

}  // namespace selvage::storage
