// What the families of operations of LocalFileSystem share. Private to storage/local.
#pragma once

#include "storage/local/data_modes.h"
#include "storage/local/data_path.h"
#include "storage/local/local_filesystem.h"
#include "storage/local/name_sync.h"
#include "storage/local/object.h"

#include <array>
#include <functional>
#include <mutex>
#include <string>
#include <system_error>
#include <type_traits>

namespace selvage::storage {

/// Mutexes by object, a fixed number: two objects may share one. For blocking code on pool threads
/// only; never held across a co_await.
class ObjectLocks {
 public:
  std::mutex& of(const ObjectId& id) { return locks_[ObjectIdHash{}(id) % locks_.size()]; }

 private:
  std::array<std::mutex, 64> locks_;
};

/// What a creating operation has made and what has still to become durable.
struct Made {
  CreateResult result;
  UniqueFd directory;        ///< fsync(2) takes it.
  UniqueFd object;           ///< The same, if attributes were set after creation; else none.
  bool file_system = false;  ///< They were, on an object that fsync(2) cannot take.
  bool existed = false;      ///< UNCHECKED or a retried EXCLUSIVE found the file.
};

struct LocalFileSystem::Impl {
  Impl(ExportOptions export_options, ObjectOpener object_opener, FileSystemLimits fs_limits,
       Runtime& runtime);

  const ExportOptions options;  ///< For what does not change: not what DataModes has.
  ObjectOpener opener;          ///< Handles to descriptors.
  FileSystemLimits limits;
  /// XFS: a sync of one inode makes durable what was done to any before.
  bool ordered_journal;
  NameSync name_sync;  ///< Shared fsyncs of directories and objects.
  /// Held by what changes a directory's names: the object that an operation saw under a name is
  /// the one that it changes, as far as this server goes.
  ObjectLocks directory_locks;
  ObjectLocks attribute_locks;  ///< A guard's comparison and the change are one.
  DataCounters counters;
  DataPath data;  ///< File table, write and read engines, verifier.

  /// BlockingPool::run; what a ScopedIdentity throws (a uid that the kernel does not take) is a
  /// failure like others. `job` returns a Result.
  template <class F>
  static Awaitable<std::invoke_result_t<F&>> run(Worker& worker, F& job);

  /// EROFS for an export that is read-only.
  Result<> check_writable() const;

  /// NameSync::sync, unless the export says sync=no.
  Awaitable<Result<>> make_durable(Worker& worker, const ObjectId& id, int fd);
  /// Every change made to names and attributes before, unless the export says sync=no: for objects
  /// that fsync(2) does not take. syncfs(2) where the file system has nothing cheaper.
  Awaitable<Result<>> make_all_durable(Worker& worker);
  /// Object and directory of a creation.
  Awaitable<Result<CreateResult>> make_durable(Worker& worker, const ObjectId& directory,
                                               Made made);
  Awaitable<Result<CreateResult>> create_exclusive(Caller caller, const ObjectId& directory,
                                                   const std::string& name, std::uint64_t verifier);
  /// MKDIR, SYMLINK, MKNOD: `call` makes the name (0, or -1 and errno; pool thread, under the
  /// client's identity), unlinkat(2) with the flags undoes it.
  Awaitable<Result<CreateResult>> make_named(Caller caller, const ObjectId& directory,
                                             const std::string& name,
                                             const SetAttributes& attributes, int unlink_flags,
                                             const std::function<int(int dirfd)>& call);
  /// ALLOCATE and DEALLOCATE: fallocate(2) with this mode.
  Awaitable<Result<Attributes>> change_space(Caller caller, const ObjectId& id, int mode,
                                             std::uint64_t offset, std::uint64_t length);
  /// REMOVE and RMDIR: unlinkat(2) with these flags.
  Awaitable<Result<RemoveResult>> unlink(Caller caller, const ObjectId& directory,
                                         const std::string& name, int flags);
};

template <class F>
Awaitable<std::invoke_result_t<F&>> LocalFileSystem::Impl::run(Worker& worker, F& job) {
  auto guarded = [&job]() -> std::invoke_result_t<F&> {
    try {
      return job();
    } catch (const std::system_error& error) {
      return errno_code(error.code().value());
    }
  };
  co_return co_await worker.pool.run(guarded);
}

/// Whether "." and ".." will do.
enum class NameUse : std::uint8_t { look, change };

/// Errc::bad_name, Errc::reserved_name (change only), ENAMETOOLONG.
Result<> check_name(const std::string& name, NameUse use);

/// EINVAL, EFBIG: values that no kernel call takes, or takes for "leave it".
Result<> check_attributes(const SetAttributes& set, const FileSystemLimits& limits);

/// faccessat2(2) of an open descriptor (O_PATH too) under the thread's identity.
Result<> check_access(int fd, int mode);

/// A failed call on a name in the directory: ENOENT because the directory itself was removed
/// is ESTALE.
ErrorCode directory_error(int dirfd, ErrorCode error);

/// Applies what is set, in the order size, owner, mode, times, each judged under the credentials;
/// blocks. What was applied before an error stays. `path_fd` may be O_PATH; `data_fd` is open for
/// writing, needed for a size only. Modes of symlinks are ignored, as Linux has none.
Result<> apply_attributes(int path_fd, int data_fd, const Attributes& before,
                          const SetAttributes& set, const Credentials& credentials);

}  // namespace selvage::storage
