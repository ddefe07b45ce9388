// The frames of the control socket (server/control.proto), for both ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace selvage::server::control {

inline constexpr std::size_t max_request_bytes = std::size_t{64} << 10;
inline constexpr std::size_t max_reply_bytes = std::size_t{16} << 20;

/// Reads one frame of at most `most` bytes from a stream socket; nullopt at the end of the stream,
/// on an error (EAGAIN: the socket's time was up), and for a longer one. Memory is taken as the
/// bytes come. Blocks.
std::optional<std::string> read_frame(int socket, std::size_t most);

/// False on an error. Blocks; no SIGPIPE.
bool write_frame(int socket, const std::string& body);

}  // namespace selvage::server::control
