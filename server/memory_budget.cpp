#include "server/memory_budget.h"

#include <algorithm>

namespace selvage::server {

MemoryBudget memory_budget(std::uint64_t limit) {
  constexpr std::uint64_t small_record = std::uint64_t{64} << 10;
  constexpr std::uint64_t large_record = (std::uint64_t{8} << 20) + small_record;
  constexpr std::uint64_t duplicate_entry = 512;  ///< Besides its reply.
  constexpr std::uint64_t client = std::uint64_t{16} << 10;
  const std::uint64_t share = limit / 16;
  MemoryBudget budget{};
  budget.buffer_bytes = 7 * share;
  budget.edge_bytes = 2 * share;
  budget.max_connections = 2 * share / small_record;
  budget.max_in_flight = share / small_record;
  budget.max_large_records = share / large_record;
  budget.duplicate_bytes = share / 2;
  budget.duplicate_entries = share / 2 / duplicate_entry;
  budget.session_reply_bytes = share;
  budget.state_bytes = share;
  budget.max_clients = share / client;
  return budget;
}

std::optional<std::uint64_t> EdgeShares::take(std::uint32_t export_id, std::uint64_t most) {
  const auto share = std::min(most, left_ / 2);
  if (share < smallest || !taken_.emplace(export_id, share).second) return std::nullopt;
  left_ -= share;
  return share;
}

void EdgeShares::give_back(std::uint32_t export_id) {
  const auto share = taken_.find(export_id);
  if (share == taken_.end()) return;
  left_ += share->second;
  taken_.erase(share);
}

}  // namespace selvage::server
