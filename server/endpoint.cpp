#include "server/endpoint.h"

#include <charconv>
#include <cstdint>

namespace selvage::server {

Parsed<boost::asio::ip::tcp::endpoint> parse_endpoint(std::string_view text) {
  const auto colon = text.rfind(':');
  const auto bad = [&] {
    return ConfigError{"'" + std::string(text) + "' is not ADDRESS:PORT (IPv6: [ADDRESS]:PORT)"};
  };
  if (colon == std::string_view::npos) return bad();
  const auto address_text = text.substr(0, colon);
  const auto port_text = text.substr(colon + 1);
  const auto address = parse_listen_argument(address_text);
  if (!address || (address->is_v6() && !address_text.starts_with('['))) return bad();
  std::uint16_t port = 0;
  const char* end = port_text.data() + port_text.size();
  const auto parsed = std::from_chars(port_text.data(), end, port);
  if (port_text.empty() || parsed.ec != std::errc() || parsed.ptr != end) return bad();
  return boost::asio::ip::tcp::endpoint(*address, port);
}

std::string to_text(const boost::asio::ip::tcp::endpoint& endpoint) {
  const auto address = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" +
         std::to_string(endpoint.port());
}

}  // namespace selvage::server
