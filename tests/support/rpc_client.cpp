#include "tests/support/rpc_client.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace selvage::testing {

namespace {

void put(Bytes& bytes, std::uint32_t value) {
  for (const int shift : {24, 16, 8, 0}) bytes.push_back(std::byte(value >> shift & 0xff));
}

std::uint32_t get(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (const std::byte byte : bytes.first(4)) value = value << 8 | std::to_integer<unsigned>(byte);
  return value;
}

}  // namespace

Message& Message::u32(std::uint32_t value) {
  put(bytes_, value);
  return *this;
}

Message& Message::u64(std::uint64_t value) {
  return u32(static_cast<std::uint32_t>(value >> 32)).u32(static_cast<std::uint32_t>(value));
}

Message& Message::opaque(std::span<const std::byte> bytes) {
  u32(static_cast<std::uint32_t>(bytes.size()));
  raw(bytes);
  while (bytes_.size() % 4 != 0) bytes_.push_back(std::byte{0});
  return *this;
}

Message& Message::opaque(std::string_view text) {
  return opaque(std::as_bytes(std::span(text)));
}

Message& Message::raw(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return *this;
}

Message call(std::uint32_t xid, std::uint32_t program, std::uint32_t version,
             std::uint32_t procedure) {
  Message message;
  message.u32(xid).u32(0).u32(2).u32(program).u32(version).u32(procedure);
  message.u32(0).u32(0).u32(0).u32(0);
  return message;
}

Message call_sys(std::uint32_t xid, std::uint32_t program, std::uint32_t version,
                 std::uint32_t procedure, std::uint32_t uid, std::uint32_t gid,
                 std::span<const std::uint32_t> groups) {
  Message credential;
  credential.u32(0).opaque("test-client").u32(uid).u32(gid);
  credential.u32(static_cast<std::uint32_t>(groups.size()));
  for (const std::uint32_t group : groups) credential.u32(group);
  Message message;
  message.u32(xid).u32(0).u32(2).u32(program).u32(version).u32(procedure);
  message.u32(1).opaque(credential.bytes()).u32(0).u32(0);
  return message;
}

Bytes framed(std::span<const std::byte> record, std::size_t fragment) {
  Bytes out;
  do {
    const std::size_t size = std::min(fragment, record.size());
    const bool last = size == record.size();
    put(out, static_cast<std::uint32_t>(size) | (last ? 0x80000000U : 0U));
    out.insert(out.end(), record.begin(), record.begin() + static_cast<std::ptrdiff_t>(size));
    record = record.subspan(size);
  } while (!record.empty());
  return out;
}

std::vector<std::uint32_t> words(std::span<const std::byte> record) {
  std::vector<std::uint32_t> out;
  for (; record.size() >= 4; record = record.subspan(4)) out.push_back(get(record));
  return out;
}

Bytes pattern(std::size_t size, unsigned seed) {
  Bytes bytes(size);
  std::uint32_t state = seed * 2654435761U + 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = std::byte(state >> 24);
  }
  return bytes;
}

RpcClient::RpcClient(std::uint16_t port, const std::string& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    throw std::system_error(EINVAL, std::generic_category(), address);
  }
  socket_ = storage::UniqueFd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int result = ::connect(socket_.get(), found->ai_addr, found->ai_addrlen);
  const int error = errno;
  ::freeaddrinfo(found);
  if (result != 0) throw std::system_error(error, std::generic_category(), "connect");
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

RpcClient::RpcClient(storage::UniqueFd socket) : socket_(std::move(socket)) {}

bool RpcClient::send(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

bool RpcClient::receive_exactly(std::span<std::byte> bytes,
                                std::chrono::steady_clock::time_point deadline) {
  while (!bytes.empty()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd poll_fd{socket_.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&poll_fd, 1, static_cast<int>(left.count())) <= 0) return false;
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

std::optional<Bytes> RpcClient::receive(std::chrono::seconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  Bytes record;
  for (bool last = false; !last;) {
    Bytes mark(4);
    if (!receive_exactly(mark, deadline)) return std::nullopt;
    const std::uint32_t word = get(mark);
    last = (word & 0x80000000U) != 0;
    const std::size_t begin = record.size();
    record.resize(begin + (word & 0x7fffffffU));
    if (!receive_exactly(std::span(record).subspan(begin), deadline)) return std::nullopt;
  }
  return record;
}

std::optional<Bytes> RpcClient::ask(const Message& message) {
  if (!send_record(message)) return std::nullopt;
  return receive();
}

bool RpcClient::closed_by_peer(std::chrono::seconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  Bytes byte(1);
  while (receive_exactly(byte, deadline)) {
  }
  return std::chrono::steady_clock::now() < deadline;
}

}  // namespace selvage::testing
