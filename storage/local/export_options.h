// How one export reads and writes: the keys of `--export PATH:key=value` that concern storage.
#pragma once

#include "storage/filesystem.h"
#include "storage/io_mode.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace selvage::storage {

struct ExportOptions {
  IoMode read = IoMode::direct;
  IoMode write = IoMode::direct;
  EdgeMode edges = EdgeMode::pagecache;  ///< `auto` is resolved before.
  std::uint32_t min_middle_pages = 1;    ///< A shorter middle is not worth its own O_DIRECT write.
  Stability stable_floor = Stability::unstable;  ///< What every WRITE is raised to at least.
  /// The server is the only one to touch these files, though no lease proves it (`assemble`).
  bool exclusive = false;
  bool sync = true;        ///< false: metadata is not made durable before the reply.
  bool read_only = false;  ///< Descriptors are opened for reading only.

  // Bounds and times, not configurable by clients.
  std::size_t max_open_files = 4096;
  std::size_t max_paths = 16'384;  ///< Objects remembered where there are no handles (object.h).
  std::size_t max_boundary_pages = 65536;
  std::size_t max_edge_bytes = std::size_t{64} << 20;  ///< Of pages assembled in memory.
  unsigned idle_close_seconds = 30;     ///< A file nobody used that long is synced and closed.
  unsigned write_back_seconds = 5;      ///< Age at which UNSTABLE pages are written back.
  unsigned lease_retry_seconds = 10;    ///< After a refused or broken lease.
  unsigned boundary_idle_seconds = 10;  ///< Age at which a page without its neighbour is dropped.

  /// Called once per export and reason of a fallback ("no O_DIRECT on btrfs"). Any thread.
  std::function<void(const std::string& message)> notice;
};

}  // namespace selvage::storage
