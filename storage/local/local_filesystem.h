// An export on a local file system (XFS, ext4, btrfs, ...): DESIGN 3 to 8.
//
// The process's umask must be 0: the mode that a client asks for is given to the creating call, so
// that a default ACL of the directory counts as it does locally.
//
// One .cpp per family of operations: attributes, names (lookup, readlink), create, remove
// (remove, rmdir, rename, link), readdir, usage, space (allocate, deallocate, seek), data (read,
// write, commit), and what holds and locks files (held_files, kernel_locks).
#pragma once

#include "storage/filesystem.h"
#include "storage/local/export_options.h"
#include "storage/local/file_table.h"

#include <memory>
#include <string>

namespace selvage::storage {

class LocalFileSystem final : public FileSystem {
 public:
  /// Opens the directory `path`. ENOENT, ENOTDIR.
  /// `runtime` must outlive it. Blocks: call it before serving.
  static Result<std::unique_ptr<LocalFileSystem>> open(const std::string& path,
                                                       ExportOptions options, Runtime& runtime);
  ~LocalFileSystem() override;

  /// From the next request on reads and writes as these options say: read, write, edges,
  /// min_middle_pages, stable_floor, exclusive, sync; the others stay. What a file needs for it
  /// (an O_DIRECT description, a lease) it gets when it is opened next. Any thread.
  void set_modes(const ExportOptions& options);
  /// Writes out and closes files, so that they are opened anew when they are used next. One in use
  /// all the time stays open, unless in edge mode `assemble`. Failures are told to its clients.
  Awaitable<> reopen_files(Worker& worker);

  ObjectId root() const override;
  const DataCounters& counters() const override;
  DataGauges gauges() const override;
  std::vector<FileEdges> edges(std::size_t most) const override;

  Awaitable<Result<Attributes>> getattr(Caller caller, ObjectId object) override;
  Awaitable<Result<Attributes>> setattr(Caller caller, ObjectId object, SetAttributes set,
                                        std::optional<timespec> guard_ctime) override;
  Awaitable<Result<AccessResult>> access(Caller caller, ObjectId object) override;
  Awaitable<Result<LookupResult>> lookup(Caller caller, ObjectId directory,
                                         std::string name) override;
  Awaitable<Result<ReadlinkResult>> readlink(Caller caller, ObjectId object) override;
  Awaitable<Result<CreateResult>> create(Caller caller, ObjectId directory, std::string name,
                                         CreateRequest request) override;
  Awaitable<Result<CreateResult>> mkdir(Caller caller, ObjectId directory, std::string name,
                                        SetAttributes attributes) override;
  Awaitable<Result<CreateResult>> symlink(Caller caller, ObjectId directory, std::string name,
                                          std::string target, SetAttributes attributes) override;
  Awaitable<Result<CreateResult>> mknod(Caller caller, ObjectId directory, std::string name,
                                        MknodRequest request) override;
  Awaitable<Result<RemoveResult>> remove(Caller caller, ObjectId directory,
                                         std::string name) override;
  Awaitable<Result<RemoveResult>> rmdir(Caller caller, ObjectId directory,
                                        std::string name) override;
  Awaitable<Result<RenameResult>> rename(Caller caller, ObjectId from, std::string from_name,
                                         ObjectId to, std::string to_name) override;
  Awaitable<Result<LinkResult>> link(Caller caller, ObjectId file, ObjectId directory,
                                     std::string name) override;
  Awaitable<Result<ReaddirResult>> readdir(Caller caller, ObjectId directory, std::uint64_t cookie,
                                           bool with_nodes, EntrySink sink) override;
  Awaitable<Result<FileSystemUsage>> usage(Caller caller, ObjectId object) override;
  Awaitable<Result<FileSystemLimits>> limits(Caller caller, ObjectId object) override;
  Awaitable<Result<ReadResult>> read(Caller caller, ObjectId file, std::uint64_t offset,
                                     std::uint32_t count, ReadMemory memory) override;
  Awaitable<Result<WriteResult>> write(Caller caller, ObjectId file, WriteRequest request) override;
  Awaitable<Result<CommitResult>> commit(Caller caller, ObjectId file, std::uint64_t offset,
                                         std::uint32_t count) override;
  Awaitable<Result<std::shared_ptr<void>>> hold(Caller caller, ObjectId file) override;
  Awaitable<Result<Attributes>> allocate(Caller caller, ObjectId file, std::uint64_t offset,
                                         std::uint64_t length) override;
  Awaitable<Result<Attributes>> deallocate(Caller caller, ObjectId file, std::uint64_t offset,
                                           std::uint64_t length) override;
  Awaitable<Result<SeekResult>> seek(Caller caller, ObjectId file, std::uint64_t offset,
                                     SeekTo what) override;
  Awaitable<Result<>> lock_range(Worker& worker, ObjectId file, std::uint64_t offset,
                                 std::uint64_t length, KernelLock lock) override;
  Awaitable<Result<>> sync(Worker& worker) override;
  Awaitable<Result<>> close(Worker& worker) override;

 private:
  struct Impl;  // local/local_impl.h
  explicit LocalFileSystem(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace selvage::storage
