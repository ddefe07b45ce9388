// How one READ is expanded to the alignment, and what of the bytes read is its answer (DESIGN 6).
// Pure functions: no descriptor, no state.
#pragma once

#include "storage/io_mode.h"

#include <cstdint>
#include <optional>

namespace selvage::storage {

struct ReadPlan {
  IoMode mode = IoMode::buffered;   ///< How to read: direct is planned only where it is possible.
  bool fallback = false;            ///< Direct was asked for, but the file does not do it.
  std::uint64_t offset = 0;         ///< Where to read, bytes.
  std::uint64_t length = 0;         ///< How much, bytes. 0: nothing needs to be read.
  std::uint64_t skip = 0;           ///< Bytes read ahead of the READ's offset.
  std::uint64_t wanted_offset = 0;  ///< The READ as asked for.
  std::uint64_t wanted_count = 0;
};

/// Plans a READ. `known_size`, if given, is a file size seen just before: nothing is planned beyond
/// it (rounded up to the alignment). A READ that would end beyond 2^63 - 1 is cut there.
ReadPlan plan_read(std::uint64_t offset, std::uint64_t count, const DirectAlignment& alignment,
                   IoMode mode, std::optional<std::uint64_t> known_size = std::nullopt);

struct ReadSlice {
  std::uint64_t begin = 0;  ///< Where the answer starts in the buffer, bytes.
  std::uint64_t length =
      0;             ///< Its length, bytes: at most wanted_count, never past the file's end.
  bool eof = false;  ///< The answer ends at (or the READ lies past) the end of the file.
  /// Nothing to answer, though there are bytes by now: the file has grown meanwhile. Read again; an
  /// empty answer without eof makes clients give up.
  bool again = false;
};

/// What to answer after the planned read gave `bytes_read` bytes (0 if there was nothing to read).
/// `file_size` is the size *after* that read, the one that goes out with the reply.
ReadSlice slice_read(const ReadPlan& plan, std::uint64_t bytes_read, std::uint64_t file_size);

}  // namespace selvage::storage
