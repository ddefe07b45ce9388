#include "server/control/frame.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace selvage::server::control {
namespace {

constexpr std::size_t length_bytes = 4;
constexpr std::size_t step = std::size_t{64} << 10;

bool read_all(int socket, std::span<char> to) {
  while (!to.empty()) {
    const ssize_t got = ::recv(socket, to.data(), to.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to = to.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace

std::optional<std::string> read_frame(int socket, std::size_t most) {
  std::array<char, length_bytes> mark{};
  if (!read_all(socket, mark)) return std::nullopt;
  std::size_t length = 0;
  for (const char byte : mark) length = length << 8U | static_cast<unsigned char>(byte);
  if (length > most) return std::nullopt;
  std::string body;
  while (body.size() < length) {
    const std::size_t begin = body.size();
    body.resize(std::min(length, begin + step));
    if (!read_all(socket, std::span(body).subspan(begin))) return std::nullopt;
  }
  return body;
}

bool write_frame(int socket, const std::string& body) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes +=
        static_cast<char>(static_cast<unsigned char>(body.size() >> static_cast<unsigned>(shift)));
  }
  bytes += body;
  std::span<const char> left(bytes);
  while (!left.empty()) {
    const ssize_t sent = ::send(socket, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    left = left.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace selvage::server::control
