// READ, WRITE and COMMIT of one local export: the file table, the engines, the write verifier.
#pragma once

#include "storage/local/export_options.h"
#include "storage/local/file_table.h"
#include "storage/local/object.h"

#include <chrono>
#include <memory>

namespace selvage::storage {

class CurrentModes;
class KernelLocks;
class OpenFile;
enum class Right : std::uint8_t;

/// Any worker. The contracts of the operations are FileSystem's.
class DataPath {
 public:
  /// All arguments must outlive it.
  DataPath(const ObjectOpener& opener, const ExportOptions& options, DataCounters& counters,
           Runtime& runtime);
  /// No request may be in flight, and either close() has returned or the runtime has stopped.
  ~DataPath();

  FileTable& files();
  KernelLocks& locks();

  /// The file, open for that use, if the caller has the right.
  Awaitable<Result<std::shared_ptr<OpenFile>>> open(Caller caller, const ObjectId& id, OpenFor use,
                                                    Right right);

  Awaitable<Result<ReadResult>> read(Caller caller, ObjectId id, std::uint64_t offset,
                                     std::uint32_t count, ReadMemory memory = ReadMemory::pool);
  Awaitable<Result<WriteResult>> write(Caller caller, ObjectId id, WriteRequest request);
  Awaitable<Result<CommitResult>> commit(Caller caller, ObjectId id, std::uint64_t offset,
                                         std::uint32_t count);

  /// See LocalFileSystem.
  CurrentModes& modes();
  Awaitable<> reopen_files(Worker& worker);

  DataGauges gauges() const;
  std::vector<FileEdges> edges(std::size_t most) const;
  Awaitable<Result<>> sync(Worker& worker);

  /// Ends the background work, then syncs and closes every file. Returns the first error. Once.
  Awaitable<Result<>> close(Worker& worker);

  /// What the background work does every second, as it would be at `now`: for tests.
  Awaitable<> tend(Worker& worker, std::chrono::steady_clock::time_point now);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace selvage::storage
