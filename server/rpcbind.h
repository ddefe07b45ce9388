// NFS and MOUNT made known to rpcbind(8), so that clients need not be told the port.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace selvage::server {

/// Tells the rpcbind of this machine, if there is one, on which port the programs are, in place of
/// what it knew of them. The reason if it does not take that, or does not answer by `deadline`
/// (then a thread still waits for it). Blocks.
std::optional<std::string> register_with_rpcbind(
    const std::vector<boost::asio::ip::tcp::endpoint>& endpoints,
    std::chrono::milliseconds deadline = std::chrono::milliseconds(5'000));

/// Takes it back. The same.
std::optional<std::string> unregister_from_rpcbind(
    std::chrono::milliseconds deadline = std::chrono::milliseconds(5'000));

}  // namespace selvage::server
