// What one batch of WRITEs of a file becomes (edge mode `assemble`, DESIGN 4). No descriptor, no
// I/O: requests and pages in, ordered reads, vectors and tail writes out.
#pragma once

#include "cache/edge_pages.h"

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace selvage::storage {

/// One request of a batch. The byte ranges of the WRITEs of a batch do not overlap.
struct BatchRequest {
  enum class Kind : std::uint8_t {
    write,    ///< `data` is to be written at `offset`.
    carried,  ///< Its bytes are in pages or on disk already; its partial pages must go out now.
    flush,    ///< COMMIT: pages of the range that were dirty before batch `before` must go out.
  };
  Kind kind = Kind::write;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;         ///< Bytes.
  const std::byte* data = nullptr;  ///< With `write`; aligned for O_DIRECT where a page starts.
  std::uint64_t before = 0;         ///< With `flush`.
  bool stable = false;              ///< Partial pages must go out as well, in this batch,
  bool may_wait = false;            ///< or, if they are still partial, in the next (grace).
};

/// Adjacent pieces: one O_DIRECT write of whole pages.
struct BatchRun {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::size_t first = 0;  ///< Index of its first piece in BatchPlan::pieces.
  std::size_t count = 0;
};

/// Bytes at the end of the file that do not fill a page: one buffered write of exactly these.
struct BatchTail {
  std::uint64_t offset = 0;
  std::span<const std::byte> data;
  cache::EdgePage* page = nullptr;
};

/// In the order of execution: all reads, then all `runs`, then all `padded`, then the tails.
struct BatchPlan {
  std::vector<iovec> pieces;
  /// Pages whose missing bytes must be read, and merged with EdgePage::fill(), before any write.
  std::vector<cache::EdgePage*> reads;
  std::vector<BatchRun> runs;
  /// Partial pages that end beyond the end of file on disk, though inside of what the runs make of
  /// it: written first, and a crash would leave a wrong size.
  std::vector<BatchRun> padded;
  std::vector<BatchTail> tails;
  /// Pages in a run that a WRITE made whole: forgotten once written.
  std::vector<cache::EdgePage*> whole;
  /// Pages that go out partial (read-merged or zero-filled, or as tails): clean once written.
  std::vector<cache::EdgePage*> partial;
  /// Pages that the middle of a WRITE replaces: forgotten once that is written.
  std::vector<cache::EdgePage*> superseded;
  /// By request: it waits for the next batch.
  std::vector<bool> waits;
};

struct BatchLimits {
  std::size_t max_pieces = 1024;  ///< IOV_MAX
  std::uint64_t max_run_bytes = std::uint64_t{16} << 20;
};

/// Plans one batch, and copies the edges of its WRITEs into `pages`.
///
/// `requests`: in the order of arrival. `disk_size`: the file's size on disk, bytes; the server is
/// its only writer, so what lies beyond is zero. `batch`: this batch's number (EdgePage::used).
BatchPlan plan_batch(std::span<const BatchRequest> requests, cache::EdgePages& pages,
                     std::uint64_t disk_size, std::uint64_t batch, const BatchLimits& limits = {});

}  // namespace selvage::storage
