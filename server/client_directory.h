// Who is behind a client's address: host names and netgroups, as rules with names ask for them.
#pragma once

#include "cache/lru.h"
#include "server/client_rule.h"
#include "storage/blocking_pool.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace selvage::server {

/// The name service; each function blocks, possibly for many seconds. A seam for tests.
struct Resolver {
  /// All names of an address, canonical one first: those that lead back to the address, so that
  /// whoever owns only the reverse zone cannot choose a name. Empty: it has none. nullopt: not to
  /// be had at the moment.
  std::function<std::optional<std::vector<std::string>>(const boost::asio::ip::address&)> names;
  /// Empty: no such host. nullopt: not to be had at the moment.
  std::function<std::optional<std::vector<boost::asio::ip::address>>(const std::string&)> addresses;
  std::function<bool(const std::string& netgroup, const std::string& host)> in_netgroup;

  /// getnameinfo(3), getaddrinfo(3), gethostbyname_r(3), innetgr(3): nsswitch.conf(5) decides.
  static Resolver system();
};

/// Remembers at most max_clients clients for five minutes each; asks on two threads of its own, so
/// that a dead name server holds up nobody but clients that need it. Any thread, but for
/// set_rules().
class ClientDirectory {
 public:
  static constexpr std::size_t max_clients = 4096;

  explicit ClientDirectory(Resolver resolver = Resolver::system());
  /// All identify() have returned.
  ~ClientDirectory();
  ClientDirectory(const ClientDirectory&) = delete;
  ClientDirectory& operator=(const ClientDirectory&) = delete;

  /// What is asked about each client from now on. Clients that are known are asked about again
  /// before this returns, though not beyond `deadline`. Blocks. One call at a time.
  void set_rules(const std::vector<ClientRule>& rules,
                 std::chrono::milliseconds deadline = std::chrono::milliseconds(5'000));

  /// Whether identify() should be called before this client's next request is judged. Cheap.
  bool unknown(const boost::asio::ip::address& client) const;
  /// Asks. What cannot be had at the moment stays as it was, or counts as no.
  storage::Awaitable<> identify(boost::asio::ip::address client);
  /// What is known; nullptr: nothing.
  std::shared_ptr<const ClientNames> find(const boost::asio::ip::address& client) const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Rules {
    std::set<std::string> hosts;
    std::set<std::string> netgroups;
    bool names = false;  ///< There are wildcards or netgroups.
    std::uint64_t generation = 0;
    bool any() const { return names || !hosts.empty(); }
  };
  struct Entry {
    std::shared_ptr<const ClientNames> names;
    std::uint64_t generation = 0;
    Time asked;
  };
  struct Host {
    std::vector<boost::asio::ip::address> addresses;
    Time asked;
  };

  bool fresh(const Entry& entry) const;  // Under mutex_.
  void ask(const boost::asio::ip::address& client);
  std::set<std::string> hosts_of(const Rules& rules, const boost::asio::ip::address& client);
  std::set<std::string> netgroups_of(const Rules& rules, const std::vector<std::string>& names);
  std::shared_ptr<const ClientNames> look_up(const Rules& rules,
                                             const boost::asio::ip::address& client,
                                             const ClientNames* before);

  const Resolver resolver_;
  std::atomic<bool> needed_{false};
  mutable std::mutex mutex_;  // Never held while asking.
  std::shared_ptr<const Rules> rules_;
  mutable cache::Lru<boost::asio::ip::address, Entry> known_;
  std::map<std::string, Host> hosts_;
  storage::BlockingPool pool_;
};

}  // namespace selvage::server
