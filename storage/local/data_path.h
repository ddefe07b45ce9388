// READ, WRITE and COMMIT of one local export: the file table, the engines, the write verifier.
#pragma once

#include "storage/local/export_options.h"
#include "storage/local/file_table.h"
#include "storage/local/object.h"

#include <memory>

namespace selvage::storage {

class DataPath {
 public:
  /// All arguments must outlive it.
  DataPath(const ObjectOpener& opener, const ExportOptions& options, DataCounters& counters,
           Runtime& runtime);
  ~DataPath();

  FileTable& files();

  Awaitable<Result<ReadResult>> read(Caller caller, const ObjectId& id, std::uint64_t offset,
                                     std::uint32_t count);
  Awaitable<Result<WriteResult>> write(Caller caller, const ObjectId& id, WriteRequest request);
  Awaitable<Result<CommitResult>> commit(Caller caller, const ObjectId& id, std::uint64_t offset,
                                         std::uint32_t count);
  Awaitable<Result<>> close(Worker& worker);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace selvage::storage
