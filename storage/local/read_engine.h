// How READs get a file's bytes (DESIGN 6).
#pragma once

#include "storage/filesystem.h"
#include "storage/local/open_file.h"

#include <atomic>

namespace selvage::storage {

/// One per export. Any worker.
class ReadEngine {
 public:
  explicit ReadEngine(DataContext& context) : context_(context) {}

  /// The contract is FileSystem::read's. Rights and descriptors have been checked by the caller,
  /// who also holds the file for the length of the call.
  Awaitable<Result<ReadResult>> read(Worker& worker, OpenFile& file, std::uint64_t offset,
                                     std::uint32_t count, ReadMemory memory);

 private:
  Awaitable<Result<std::size_t>> fetch(Worker& worker, const OpenFile::Way& way, IoMode mode,
                                       const iovec& into, std::uint64_t offset);

  DataContext& context_;
  std::atomic<bool> no_dontcache_{false};
};

}  // namespace selvage::storage
