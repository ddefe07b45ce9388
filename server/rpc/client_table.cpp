#include "server/rpc/client_table.h"

namespace selvage::server::rpc {

std::shared_ptr<ClientCounters> ClientTable::enter(const boost::asio::ip::address& address) {
  const std::lock_guard lock(mutex_);
  auto found = entries_.find(address);
  if (found == entries_.end()) {
    if (entries_.size() >= most_) {
      if (idle_.empty()) {
        ++others_->connections;
        return others_;
      }
      entries_.erase(idle_.front());
      idle_.pop_front();
    }
    found = entries_.try_emplace(address).first;
  } else if (found->second.connections == 0) {
    idle_.erase(found->second.idle);
  }
  Entry& entry = found->second;
  ++entry.connections;
  ++entry.counters->connections;
  return entry.counters;
}

void ClientTable::leave(const boost::asio::ip::address& address,
                        const std::shared_ptr<ClientCounters>& counters) {
  const std::lock_guard lock(mutex_);
  --counters->connections;
  if (counters == others_) return;
  const auto found = entries_.find(address);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (--entry.connections == 0) entry.idle = idle_.insert(idle_.end(), address);
}

std::vector<ClientTable::Row> ClientTable::rows() const {
  const std::lock_guard lock(mutex_);
  std::vector<Row> rows;
  rows.reserve(entries_.size() + 1);
  for (const auto& [address, entry] : entries_) rows.push_back({address, false, entry.counters});
  if (others_->requests.get() > 0 || others_->connections.load() > 0) {
    rows.push_back({{}, true, others_});
  }
  return rows;
}

}  // namespace selvage::server::rpc
