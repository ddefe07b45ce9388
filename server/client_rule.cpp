#include "server/client_rule.h"

#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/address_v6.hpp>

#include <charconv>
#include <cstdint>
#include <span>

namespace selvage::server {
namespace {

namespace ip = boost::asio::ip;

ip::address unmapped(const ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return ip::make_address_v4(ip::v4_mapped, address.to_v6());
  }
  return address;
}

bool bit(std::span<const std::uint8_t> bytes, unsigned index) {
  return (bytes[index / 8] >> (7 - index % 8) & 1U) != 0;
}

struct Bytes {
  explicit Bytes(const ip::address& address) {
    if (address.is_v4()) {
      const auto v4 = address.to_v4().to_bytes();
      std::copy(v4.begin(), v4.end(), bytes.begin());
      bits = 32;
    } else {
      const auto v6 = address.to_v6().to_bytes();
      std::copy(v6.begin(), v6.end(), bytes.begin());
      bits = 128;
    }
  }
  std::array<std::uint8_t, 16> bytes{};
  unsigned bits;
};

std::string cleared_beyond(const ip::address& address, unsigned prefix) {
  Bytes value(address);
  for (unsigned i = prefix; i < value.bits; ++i) {
    value.bytes[i / 8] = static_cast<std::uint8_t>(value.bytes[i / 8] & ~(0x80U >> i % 8));
  }
  if (address.is_v4()) {
    ip::address_v4::bytes_type v4;
    std::copy_n(value.bytes.begin(), v4.size(), v4.begin());
    return ip::address_v4(v4).to_string();
  }
  return ip::address_v6(value.bytes).to_string();
}

}  // namespace

boost::system::result<ClientRule, std::string> ClientRule::parse(std::string_view text) {
  using Parsed = boost::system::result<ClientRule, std::string>;
  const auto failed = [&](const std::string& why) {
    return Parsed(boost::system::in_place_error, "'" + std::string(text) + "' " + why);
  };
  ClientRule rule;
  if (text == "*") return Parsed(boost::system::in_place_value, rule);

  const auto slash = text.find('/');
  boost::system::error_code error;
  const auto address = ip::make_address(std::string(text.substr(0, slash)), error);
  if (error || (address.is_v6() && address.to_v6().scope_id() != 0)) {
    return failed("is neither an address, nor a network in CIDR notation, nor *");
  }
  rule.everybody_ = false;
  rule.network_ = unmapped(address);
  const unsigned mapped_bits = address.is_v6() && rule.network_.is_v4() ? 96 : 0;
  const unsigned longest = rule.network_.is_v4() ? 32 : 128;
  rule.prefix_ = longest;
  if (slash != std::string_view::npos) {
    const auto digits = text.substr(slash + 1);
    unsigned prefix = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
    if (code != std::errc() || end != digits.data() + digits.size()) {
      return failed("has a prefix length that is not a number");
    }
    if (prefix < mapped_bits || prefix > longest + mapped_bits) {
      return failed("has a prefix length out of range");
    }
    rule.prefix_ = prefix - mapped_bits;
  }
  const Bytes network(rule.network_);
  for (unsigned i = rule.prefix_; i < network.bits; ++i) {
    if (bit(network.bytes, i)) {
      return failed("has bits set beyond its prefix; the network is " +
                    cleared_beyond(rule.network_, rule.prefix_) + "/" +
                    std::to_string(rule.prefix_));
    }
  }
  return Parsed(boost::system::in_place_value, rule);
}

bool ClientRule::matches(const ip::address& client) const {
  if (everybody_) return true;
  const auto address = unmapped(client);
  if (address.is_v4() != network_.is_v4()) return false;
  const Bytes mine(network_);
  const Bytes theirs(address);
  for (unsigned i = 0; i < prefix_; ++i) {
    if (bit(mine.bytes, i) != bit(theirs.bytes, i)) return false;
  }
  return true;
}

std::string ClientRule::text() const {
  if (everybody_) return "*";
  const unsigned longest = network_.is_v4() ? 32 : 128;
  if (prefix_ == longest) return network_.to_string();
  return network_.to_string() + "/" + std::to_string(prefix_);
}

}  // namespace selvage::server
