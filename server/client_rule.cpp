#include "server/client_rule.h"

#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/address_v6.hpp>

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <optional>
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

ip::address cleared_beyond(const ip::address& address, unsigned prefix) {
  Bytes value(address);
  for (unsigned i = prefix; i < value.bits; ++i) {
    value.bytes[i / 8] = static_cast<std::uint8_t>(value.bytes[i / 8] & ~(0x80U >> i % 8));
  }
  if (address.is_v4()) {
    ip::address_v4::bytes_type v4;
    std::copy_n(value.bytes.begin(), v4.size(), v4.begin());
    return ip::address_v4(v4);
  }
  return ip::address_v6(value.bytes);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

/// RFC 1123, 2.1, and underscores, which are met in practice. Not all digits and dots: that is an
/// address with a slip in it.
bool could_be_host(std::string_view name) {
  constexpr std::size_t longest_name = 253;
  if (name.empty() || name.size() > longest_name || name.front() == '.' || name.front() == '-') {
    return false;
  }
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  const auto numeric = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  return std::ranges::all_of(name, allowed) && !std::ranges::all_of(name, numeric);
}

/// "255.255.0.0" as a number of bits; nullopt for what is no such mask.
std::optional<unsigned> mask_bits(std::string_view text) {
  boost::system::error_code error;
  const auto mask = ip::make_address_v4(std::string(text), error);
  if (error) return std::nullopt;
  const std::uint32_t bits = mask.to_uint();
  const auto ones = static_cast<unsigned>(std::countl_one(bits));
  if (ones + static_cast<unsigned>(std::popcount(bits << ones)) != ones || ones == 0) {
    return std::nullopt;
  }
  return ones;
}

constexpr std::size_t longest_rule = 255;  // MNTNAMLEN, RFC 1813 5.1.2: EXPORT lists them.

}  // namespace

boost::system::result<ClientRule, std::string> ClientRule::parse(std::string_view text) {
  return parse(text, Dialect::ours);
}

boost::system::result<ClientRule, std::string> ClientRule::parse_exports(std::string_view text) {
  if (text.empty()) return ClientRule();
  return parse(text, Dialect::exports);
}

boost::system::result<ClientRule, std::string> ClientRule::parse(std::string_view text,
                                                                 Dialect dialect) {
  using Parsed = boost::system::result<ClientRule, std::string>;
  const auto failed = [&](const std::string& why) {
    return Parsed(boost::system::in_place_error, "'" + std::string(text) + "' " + why);
  };
  ClientRule rule;
  if (text == "*") return rule;
  if (text.size() > longest_rule || text.find('\0') != std::string_view::npos ||
      text.find_first_of(" \t\n") != std::string_view::npos) {
    return failed("cannot be a client");
  }
  if (text.starts_with('@')) {
    if (text.size() == 1) return failed("lacks the name of a netgroup");
    rule.kind_ = Kind::netgroup;
    rule.name_ = text.substr(1);
    return rule;
  }
  if (text.find_first_of("*?[") != std::string_view::npos) {
    rule.kind_ = Kind::wildcard;
    rule.name_ = lower(text);
    return rule;
  }

  const auto slash = text.find('/');
  boost::system::error_code error;
  const auto address = ip::make_address(std::string(text.substr(0, slash)), error);
  if (error && slash == std::string_view::npos && could_be_host(text)) {
    rule.kind_ = Kind::host;
    rule.name_ = lower(text);
    return rule;
  }
  if (error || (address.is_v6() && address.to_v6().scope_id() != 0)) {
    return failed("is neither an address, nor a network in CIDR notation, nor a host name, nor *");
  }
  rule.kind_ = slash == std::string_view::npos ? Kind::host : Kind::network;
  rule.network_ = unmapped(address);
  const unsigned mapped_bits = address.is_v6() && rule.network_.is_v4() ? 96 : 0;
  const unsigned longest = rule.network_.is_v4() ? 32 : 128;
  rule.prefix_ = longest;
  if (slash != std::string_view::npos) {
    const auto digits = text.substr(slash + 1);
    unsigned prefix = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
    if (code != std::errc() || end != digits.data() + digits.size()) {
      const auto mask =
          dialect == Dialect::exports && address.is_v4() ? mask_bits(digits) : std::nullopt;
      if (!mask && digits.find('.') != std::string_view::npos) {
        return failed(dialect == Dialect::ours
                          ? "has a netmask: networks are given in CIDR notation"
                          : "has a netmask that is not one: ones, then zeros, are needed");
      }
      if (!mask) return failed("has a prefix length that is not a number");
      prefix = *mask;
    }
    if (prefix < mapped_bits || prefix > longest + mapped_bits) {
      return failed("has a prefix length out of range");
    }
    rule.prefix_ = prefix - mapped_bits;
  }
  const auto cleared = cleared_beyond(rule.network_, rule.prefix_);
  if (cleared != rule.network_ && dialect == Dialect::ours) {
    return failed("has bits set beyond its prefix; the network is " + cleared.to_string() + "/" +
                  std::to_string(rule.prefix_));
  }
  rule.network_ = cleared;
  return rule;
}

bool ClientRule::matches(const ip::address& client, const ClientNames* names) const {
  switch (kind_) {
    case Kind::everybody:
      return true;
    case Kind::host:
      if (name_.empty()) break;
      return names != nullptr && names->hosts.contains(name_);
    case Kind::netgroup:
      return names != nullptr && names->netgroups.contains(name_);
    case Kind::wildcard:
      return names != nullptr && std::ranges::any_of(names->names, [&](const std::string& name) {
               return ::fnmatch(name_.c_str(), lower(name).c_str(), 0) == 0;
             });
    case Kind::network:
      break;
  }
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
  if (kind_ == Kind::everybody) return "*";
  if (kind_ == Kind::netgroup) return "@" + name_;
  if (needs_names()) return name_;
  if (kind_ == Kind::host) return network_.to_string();
  return network_.to_string() + "/" + std::to_string(prefix_);
}

}  // namespace selvage::server
