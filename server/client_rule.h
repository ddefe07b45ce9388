// Which clients an access rule names.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/system/result.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace selvage::server {

/// What the name service says of a client's address: rules with names are judged by it. Immutable.
struct ClientNames {
  std::vector<std::string> names;   ///< Canonical one first; the address itself without any.
  std::set<std::string> hosts;      ///< Of the host names in rules: those that are this client.
  std::set<std::string> netgroups;  ///< Of the netgroups in rules: those that it is in.
};

/// A host, a network, names by pattern, a netgroup, or everybody. Immutable, any thread.
class ClientRule {
 public:
  /// In order of precedence, which is that of nfs-utils: of several rules that match a client the
  /// first of the lowest kind decides. A single address is a host.
  enum class Kind : std::uint8_t { host, network, wildcard, netgroup, everybody };

  /// Everybody.
  ClientRule() = default;

  /// "*", "192.0.2.1", "10.0.0.0/8", "2001:db8::/32", "host.example.org", "*.example.org",
  /// "@netgroup". IPv4-mapped IPv6 is taken as IPv4. The error is a sentence without a full stop: a
  /// scope, a prefix that is too long, bits set beyond the prefix, what cannot be a host name.
  static boost::system::result<ClientRule, std::string> parse(std::string_view text);

  /// As exports(5) has it: also "10.0.0.0/255.0.0.0", bits beyond the prefix do not count, and an
  /// empty text is everybody.
  static boost::system::result<ClientRule, std::string> parse_exports(std::string_view text);

  Kind kind() const { return kind_; }
  /// Host name, pattern or netgroup (without '@'); empty for the other kinds.
  const std::string& name() const { return name_; }
  /// Whether matches() needs to be told the client's names.
  bool needs_names() const { return !name_.empty(); }

  /// IPv4-mapped addresses count as IPv4; scopes are not looked at. Without `names` a rule that
  /// needs them matches nobody.
  bool matches(const boost::asio::ip::address& client, const ClientNames* names = nullptr) const;

  /// As parse() takes it.
  std::string text() const;

  friend bool operator==(const ClientRule&, const ClientRule&) = default;

 private:
  enum class Dialect : std::uint8_t { ours, exports };
  static boost::system::result<ClientRule, std::string> parse(std::string_view text,
                                                              Dialect dialect);

  Kind kind_ = Kind::everybody;
  std::string name_;
  boost::asio::ip::address network_;
  unsigned prefix_ = 0;  ///< Bits.
};

}  // namespace selvage::server
