// How the bytes of an export travel: its modes, and what a file demands for O_DIRECT.
#pragma once

#include <cstdint>
#include <string_view>

namespace selvage::storage {

/// `read=` and `write=` of an export.
enum class IoMode : std::uint8_t {
  buffered,   ///< Through the page cache, kept there.
  dontcache,  ///< Through the page cache with RWF_DONTCACHE.
  direct,     ///< O_DIRECT as far as the alignment allows.
};

/// `edges=` of an export: where the ends of a misaligned WRITE go in direct mode (DESIGN 4).
enum class EdgeMode : std::uint8_t {
  pagecache,  ///< Buffered; a page leaves the cache once it is complete (boundary tracker).
  buffered,   ///< Buffered and kept.
  dontcache,  ///< RWF_DONTCACHE: the naive split.
  assemble,   ///< Assembled in memory and written whole, where a lease proves that the server is
              ///< the file's only writer; `pagecache` for the others.
};

/// What statx(2) says of a file's O_DIRECT (STATX_DIOALIGN, STATX_DIO_READ_ALIGN), bytes.
struct DirectAlignment {
  std::uint32_t offset = 0;       ///< Of file offsets and lengths. 0: the file does no O_DIRECT.
  std::uint32_t memory = 0;       ///< Of buffer addresses. 0: the file does no O_DIRECT.
  std::uint32_t read_offset = 0;  ///< Of offsets and lengths of reads, if smaller. 0: as `offset`.
};

/// As in the configuration.
constexpr std::string_view to_string(IoMode mode) {
  switch (mode) {
    case IoMode::buffered:
      return "buffered";
    case IoMode::dontcache:
      return "dontcache";
    case IoMode::direct:
      break;
  }
  return "direct";
}

constexpr std::string_view to_string(EdgeMode mode) {
  switch (mode) {
    case EdgeMode::buffered:
      return "buffered";
    case EdgeMode::dontcache:
      return "dontcache";
    case EdgeMode::pagecache:
      return "pagecache";
    case EdgeMode::assemble:
      break;
  }
  return "assemble";
}

}  // namespace selvage::storage
