// Which clients an export lists: one rule of `clients=`.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/system/result.hpp>

#include <string>
#include <string_view>

namespace selvage::server {

/// An address, a network in CIDR notation, or everybody ("*"). Immutable, any thread.
class ClientRule {
 public:
  /// Everybody.
  ClientRule() = default;

  /// "*", "192.0.2.1", "10.0.0.0/8", "2001:db8::/32". IPv4-mapped IPv6 is taken as IPv4. The error
  /// is a sentence without a full stop: a host name, a scope, a prefix that is too long, or bits
  /// set beyond the prefix.
  static boost::system::result<ClientRule, std::string> parse(std::string_view text);

  /// IPv4-mapped addresses count as IPv4; scopes are not looked at.
  bool matches(const boost::asio::ip::address& client) const;

  /// As parse() takes it; a network of one address without its prefix.
  std::string text() const;

  friend bool operator==(const ClientRule&, const ClientRule&) = default;

 private:
  bool everybody_ = true;
  boost::asio::ip::address network_;
  unsigned prefix_ = 0;  ///< Bits.
};

}  // namespace selvage::server
