// What each client address has sent and been sent.
#pragma once

#include "server/rpc/counters.h"

#include <boost/asio/ip/address.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace selvage::server::rpc {

/// Counters of one address. Relaxed atomics: read for display only.
struct ClientCounters {
  std::atomic<std::uint64_t> connections{0};  ///< Now.
  Counter requests;
  Counter bytes_received;
  Counter bytes_sent;
  std::atomic<std::uint32_t> nfs_versions{0};  ///< Bit n: NFS version n was used.
  std::atomic<std::chrono::steady_clock::time_point> last_request{};
  static_assert(std::atomic<std::chrono::steady_clock::time_point>::is_always_lock_free);

  void used_nfs(std::uint32_t version) {
    const std::uint32_t bit = version < 32 ? 1U << version : 0U;
    if ((nfs_versions.load(std::memory_order_relaxed) & bit) != bit) nfs_versions.fetch_or(bit);
  }
};

/// At most `most` addresses: those without a connection go first, the longest without one before
/// others; where all have one, the counters of what comes then are one row without an address. Any
/// thread; taken once for each connection.
class ClientTable {
 public:
  explicit ClientTable(std::size_t most = 1024) : most_(most) {}
  ClientTable(const ClientTable&) = delete;
  ClientTable& operator=(const ClientTable&) = delete;

  /// A connection from there. Never null; leave() it.
  std::shared_ptr<ClientCounters> enter(const boost::asio::ip::address& address);
  void leave(const boost::asio::ip::address& address,
             const std::shared_ptr<ClientCounters>& counters);

  struct Row {
    boost::asio::ip::address address;
    bool others = false;  ///< All that had no room.
    std::shared_ptr<const ClientCounters> counters;
  };
  /// In the order of addresses.
  std::vector<Row> rows() const;

 private:
  using Idle = std::list<boost::asio::ip::address>;
  struct Entry {
    std::shared_ptr<ClientCounters> counters = std::make_shared<ClientCounters>();
    std::size_t connections = 0;
    Idle::iterator idle;  ///< With no connection.
  };

  const std::size_t most_;
  mutable std::mutex mutex_;
  std::map<boost::asio::ip::address, Entry> entries_;
  Idle idle_;  ///< Longest without a connection first.
  const std::shared_ptr<ClientCounters> others_ = std::make_shared<ClientCounters>();
};

}  // namespace selvage::server::rpc
