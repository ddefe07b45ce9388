// How the bytes of WRITEs reach a file: one engine per export, chosen by its modes.
#pragma once

#include "storage/filesystem.h"
#include "storage/local/open_file.h"

#include <memory>

namespace selvage::storage {

/// Any worker. Rights, descriptors and limits have been checked by the caller, who also holds the
/// file for the length of the call.
class WriteEngine {
 public:
  virtual ~WriteEngine() = default;

  /// Writes the payload (not empty) and brings it to `request.stability`. Returns how many bytes,
  /// contiguous from the offset, that holds for; possibly fewer than asked. An error says nothing
  /// about which bytes were written.
  virtual Awaitable<Result<std::size_t>> write(Worker& worker, OpenFile& file,
                                               const WriteRequest& request) = 0;

  /// Everything acknowledged in [offset, offset + length) is durable on return; length 0: to the
  /// end of the file.
  virtual Awaitable<Result<>> commit(Worker& worker, OpenFile& file, std::uint64_t offset,
                                     std::uint64_t length) = 0;
};

/// The modes in which every WRITE goes to the file by itself: write=buffered, write=dontcache, and
/// write=direct with edges=pagecache, buffered or dontcache (DESIGN 4). The context must outlive
/// it.
std::unique_ptr<WriteEngine> make_split_engine(DataContext& context);

}  // namespace selvage::storage
