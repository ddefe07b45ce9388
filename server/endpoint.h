// Addresses with ports, as people write them.
#pragma once

#include "server/config.h"

#include <boost/asio/ip/tcp.hpp>

#include <string>
#include <string_view>

namespace selvage::server {

/// ADDR:PORT, or [ADDR]:PORT with IPv6. Port 0 stands for a free one.
Parsed<boost::asio::ip::tcp::endpoint> parse_endpoint(std::string_view text);

/// The same way back.
std::string to_text(const boost::asio::ip::tcp::endpoint& endpoint);

}  // namespace selvage::server
