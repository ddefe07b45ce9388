// Hand-built RPC records over a blocking socket: for what no proper client sends. Encodes by itself
// (not with xdr/), so that it is an independent witness.
#pragma once

#include "storage/unique_fd.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace selvage::testing {

using Bytes = std::vector<std::byte>;

/// Builds XDR by hand.
class Message {
 public:
  Message& u32(std::uint32_t value);
  Message& u64(std::uint64_t value);
  /// Length word, bytes, padding.
  Message& opaque(std::span<const std::byte> bytes);
  Message& opaque(std::string_view text);
  Message& raw(std::span<const std::byte> bytes);
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

/// Header of a call with AUTH_NONE.
Message call(std::uint32_t xid, std::uint32_t program, std::uint32_t version,
             std::uint32_t procedure);
/// Header of a call with AUTH_SYS.
Message call_sys(std::uint32_t xid, std::uint32_t program, std::uint32_t version,
                 std::uint32_t procedure, std::uint32_t uid, std::uint32_t gid,
                 std::span<const std::uint32_t> groups = {});

/// The record with its mark, in fragments of at most `fragment` bytes.
Bytes framed(std::span<const std::byte> record, std::size_t fragment = SIZE_MAX);

/// The 32-bit words of a record; its size must be a multiple of four.
std::vector<std::uint32_t> words(std::span<const std::byte> record);

/// `size` bytes that differ from place to place and from seed to seed.
Bytes pattern(std::size_t size, unsigned seed = 1);

class RpcClient {
 public:
  /// Connects to a TCP port of this host. Throws std::system_error.
  explicit RpcClient(std::uint16_t port, const std::string& address = "127.0.0.1");
  /// Takes over a connected socket.
  explicit RpcClient(storage::UniqueFd socket);

  /// False if the other side has closed.
  bool send(std::span<const std::byte> bytes);
  bool send_record(const Message& message) { return send(framed(message.bytes())); }

  /// The next record without marks; nullopt at the end of the stream, on a reset and after
  /// `timeout`.
  std::optional<Bytes> receive(std::chrono::seconds timeout = std::chrono::seconds(20));

  /// Sends and waits for the reply.
  std::optional<Bytes> ask(const Message& message);

  /// True if the other side closes within `timeout`, whatever it sends before.
  bool closed_by_peer(std::chrono::seconds timeout = std::chrono::seconds(20));

  void close() { socket_ = storage::UniqueFd(); }
  int fd() const { return socket_.get(); }

 private:
  bool receive_exactly(std::span<std::byte> bytes, std::chrono::steady_clock::time_point deadline);
  storage::UniqueFd socket_;
};

}  // namespace selvage::testing
