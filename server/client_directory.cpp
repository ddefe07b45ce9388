#include "server/client_directory.h"

#include <boost/asio/ip/tcp.hpp>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace selvage::server {
namespace {

namespace ip = boost::asio::ip;
using std::chrono::steady_clock;

constexpr std::chrono::seconds keep_names{300};
constexpr std::size_t max_aliases = 64;
constexpr unsigned resolver_threads = 2;

bool temporary(int error) {
  return error == EAI_AGAIN || error == EAI_MEMORY || error == EAI_SYSTEM;
}

std::optional<std::vector<ip::address>> system_addresses(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    if (temporary(error)) return std::nullopt;
    return std::vector<ip::address>();
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  std::vector<ip::address> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    ip::tcp::endpoint endpoint;
    if (one->ai_addrlen > endpoint.capacity()) continue;
    std::copy_n(reinterpret_cast<const unsigned char*>(one->ai_addr), one->ai_addrlen,
                reinterpret_cast<unsigned char*>(endpoint.data()));
    endpoint.resize(one->ai_addrlen);
    addresses.push_back(endpoint.address());
  }
  return addresses;
}

/// Those of /etc/hosts and NIS.
void add_aliases(const std::string& name, std::vector<std::string>& names) {
  std::vector<char> room(8192);
  hostent entry{};
  hostent* found = nullptr;
  int error = 0;
  if (::gethostbyname_r(name.c_str(), &entry, room.data(), room.size(), &found, &error) != 0 ||
      found == nullptr) {
    return;
  }
  for (char** alias = found->h_aliases; *alias != nullptr && names.size() < max_aliases; ++alias) {
    names.emplace_back(*alias);
  }
}

std::optional<std::vector<std::string>> system_names(const ip::address& address) {
  const ip::tcp::endpoint endpoint(address, 0);
  std::array<char, NI_MAXHOST> name{};
  const int error = ::getnameinfo(endpoint.data(), static_cast<socklen_t>(endpoint.size()),
                                  name.data(), name.size(), nullptr, 0, NI_NAMEREQD);
  if (error != 0) {
    if (temporary(error)) return std::nullopt;
    return std::vector<std::string>();
  }
  std::vector<std::string> names{name.data()};
  const auto forward = system_addresses(names.front());
  if (!forward) return std::nullopt;
  if (std::ranges::find(*forward, address) == forward->end()) return std::vector<std::string>();
  add_aliases(names.front(), names);
  return names;
}

bool system_in_netgroup(const std::string& netgroup, const std::string& host) {
  static std::mutex mutex;  // innetgr(3) has one state for the process.
  const std::lock_guard lock(mutex);
  return ::innetgr(netgroup.c_str(), host.c_str(), nullptr, nullptr) == 1;
}

}  // namespace

Resolver Resolver::system() {
  Resolver resolver;
  resolver.names = system_names;
  resolver.addresses = system_addresses;
  resolver.in_netgroup = system_in_netgroup;
  return resolver;
}

ClientDirectory::ClientDirectory(Resolver resolver)
    : resolver_(std::move(resolver)),
      rules_(std::make_shared<const Rules>()),
      known_(max_clients),
      pool_(resolver_threads) {}

ClientDirectory::~ClientDirectory() {
  pool_.stop();
}

void ClientDirectory::set_rules(const std::vector<ClientRule>& rules,
                                std::chrono::milliseconds deadline) {
  auto made = std::make_shared<Rules>();
  for (const ClientRule& rule : rules) {
    if (!rule.needs_names()) continue;
    if (rule.kind() == ClientRule::Kind::host) made->hosts.insert(rule.name());
    if (rule.kind() == ClientRule::Kind::netgroup) made->netgroups.insert(rule.name());
    if (rule.kind() == ClientRule::Kind::netgroup || rule.kind() == ClientRule::Kind::wildcard) {
      made->names = true;
    }
  }
  std::vector<ip::address> known;
  {
    const std::lock_guard lock(mutex_);
    made->generation = rules_->generation + 1;
    rules_ = made;
    std::erase_if(hosts_, [&](const auto& host) { return !made->hosts.contains(host.first); });
    if (!made->any()) known_.clear();
    known_.for_each([&](const ip::address& client, const Entry&) { known.push_back(client); });
    needed_.store(made->any(), std::memory_order_release);
  }
  const auto end = steady_clock::now() + deadline;
  for (const ip::address& client : known) {
    if (steady_clock::now() >= end) break;
    ask(client);
  }
}

bool ClientDirectory::fresh(const Entry& entry) const {
  return entry.generation == rules_->generation && steady_clock::now() - entry.asked < keep_names;
}

bool ClientDirectory::unknown(const ip::address& client) const {
  if (!needed_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(mutex_);
  const Entry* entry = known_.find(client);
  return entry == nullptr || !fresh(*entry);
}

std::shared_ptr<const ClientNames> ClientDirectory::find(const ip::address& client) const {
  const std::lock_guard lock(mutex_);
  const Entry* entry = known_.peek(client);
  return entry == nullptr ? nullptr : entry->names;
}

storage::Awaitable<> ClientDirectory::identify(ip::address client) {
  // Whoever comes while another asks about the same client finds it known.
  auto job = [this, client] {
    if (unknown(client)) ask(client);
  };
  co_await pool_.run(std::move(job));
}

void ClientDirectory::ask(const ip::address& client) {
  std::shared_ptr<const Rules> rules;
  std::shared_ptr<const ClientNames> before;
  {
    const std::lock_guard lock(mutex_);
    rules = rules_;
    if (const Entry* entry = known_.peek(client)) before = entry->names;
  }
  Entry entry;
  entry.names = look_up(*rules, client, before.get());
  entry.generation = rules->generation;
  entry.asked = steady_clock::now();
  const std::lock_guard lock(mutex_);
  const auto any = [](const ip::address&, const Entry&) { return true; };
  const auto place = known_.insert(client, entry, any);
  if (place.value != nullptr && !place.added) *place.value = std::move(entry);
}

std::set<std::string> ClientDirectory::hosts_of(const Rules& rules, const ip::address& client) {
  std::set<std::string> mine;
  for (const std::string& name : rules.hosts) {
    Host host;
    bool known = false;
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = hosts_.find(name); found != hosts_.end()) {
        host = found->second;
        known = steady_clock::now() - host.asked < keep_names;
      }
    }
    if (!known) {
      const auto addresses = resolver_.addresses(name);
      if (addresses) host.addresses = *addresses;
      host.asked = steady_clock::now();
      const std::lock_guard lock(mutex_);
      // A failure is not remembered: a name server that starts late is asked again.
      if (addresses && !addresses->empty()) hosts_.insert_or_assign(name, host);
    }
    if (std::ranges::find(host.addresses, client) != host.addresses.end()) mine.insert(name);
  }
  return mine;
}

std::set<std::string> ClientDirectory::netgroups_of(const Rules& rules,
                                                    const std::vector<std::string>& names) {
  std::set<std::string> mine;
  boost::system::error_code not_numeric;
  ip::make_address(names.front(), not_numeric);
  const auto dot = not_numeric ? names.front().find('.') : std::string::npos;
  for (const std::string& group : rules.netgroups) {
    bool in = std::ranges::any_of(
        names, [&](const std::string& name) { return resolver_.in_netgroup(group, name); });
    // As nfs-utils: the first label alone may be what the netgroup lists.
    if (!in && dot != std::string::npos) {
      in = resolver_.in_netgroup(group, names.front().substr(0, dot));
    }
    if (in) mine.insert(group);
  }
  return mine;
}

std::shared_ptr<const ClientNames> ClientDirectory::look_up(const Rules& rules,
                                                            const ip::address& client,
                                                            const ClientNames* before) {
  auto names = std::make_shared<ClientNames>();
  if (!rules.hosts.empty()) names->hosts = hosts_of(rules, client);
  if (!rules.names) return names;
  const auto found = resolver_.names(client);
  if (found) {
    names->names = *found;
  } else if (before != nullptr) {
    names->names = before->names;
  }
  if (names->names.empty()) names->names.push_back(client.to_string());
  if (!rules.netgroups.empty()) names->netgroups = netgroups_of(rules, names->names);
  return names;
}

}  // namespace selvage::server
