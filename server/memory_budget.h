// `memory_limit` as bounds of what takes memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace selvage::server {

/// Each at most what its owner has by default. Of the limit, in sixteenths: payload buffers 7, edge
/// pages 2, records being received 2, records in flight 1, large records 1, the duplicate request
/// cache 1, reply caches of NFSv4 sessions 1, NFSv4 clients with all they hold 1.
struct MemoryBudget {
  std::uint64_t buffer_bytes;     ///< storage::Runtime
  std::uint64_t edge_bytes;       ///< Of all exports.
  std::size_t max_connections;    ///< Each may hold a record of 64 KiB.
  std::size_t max_in_flight;      ///< The same.
  std::size_t max_large_records;  ///< Of 8 MiB.
  std::size_t duplicate_bytes;
  std::size_t duplicate_entries;
  std::size_t session_reply_bytes;
  std::size_t state_bytes;  ///< NFSv4: clients, sessions, opens, locks.
  std::size_t max_clients;  ///< NFSv4; 16 KiB each with sessions and some opens.
};

/// Who has how much of MemoryBudget::edge_bytes: each export at most half of what is left when it
/// comes. One thread at a time.
class EdgeShares {
 public:
  static constexpr std::uint64_t smallest = std::uint64_t{64} << 10;

  explicit EdgeShares(std::uint64_t bytes) : left_(bytes) {}

  /// Bytes, at most `most`; nullopt if less than `smallest` would be had.
  std::optional<std::uint64_t> take(std::uint32_t export_id, std::uint64_t most);
  /// Nothing if it has none.
  void give_back(std::uint32_t export_id);

 private:
  std::uint64_t left_;
  std::map<std::uint32_t, std::uint64_t> taken_;  ///< By export id.
};

inline constexpr std::uint64_t smallest_memory_limit = std::uint64_t{256} << 20;

/// @pre limit >= smallest_memory_limit
MemoryBudget memory_budget(std::uint64_t limit);

}  // namespace selvage::server
