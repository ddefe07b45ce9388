// What the RPC front end knows of a program: one constexpr table of procedures per version.
#pragma once

#include "storage/buffer_pool.h"
#include "storage/worker.h"
#include "xdr/rpc.h"
#include "xdr/stream.h"

#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace selvage::server::rpc {

using storage::Awaitable;

/// One call as its handler sees it. Lives until the handler has returned.
struct Call {
  storage::Worker& worker;
  boost::asio::ip::address client;  ///< IPv4-mapped addresses are given as IPv4.
  std::uint16_t client_port;
  std::uint64_t connection;  ///< Never given to another connection of this process.
  std::uint32_t procedure;
  /// AUTH_NONE, or AUTH_SYS already decoded.
  const xdr::AuthSys* auth_sys;  ///< nullptr with AUTH_NONE.
  xdr::Source arguments;         ///< At the first byte of the arguments.
};

/// What a handler answers. The results are what follows the accept status.
struct Reply {
  enum class Status : std::uint8_t { success, garbage_args, system_err, auth_too_weak };
  Status status = Status::success;
  xdr::Sink results;              ///< May carry one payload by reference (READ),
  storage::Buffer payload_owner;  ///< which this keeps alive until it has been sent.
  /// Kept for a retry of the same call. false for a passing condition (JUKEBOX): a retry of it is
  /// executed anew.
  bool cacheable = true;
};

/// Runs on the connection's worker. An exception is answered with SYSTEM_ERR.
using Handler = Awaitable<Reply> (*)(void* service, Call& call);

/// One row of a program's table; the index is the procedure number. Procedure 0 is answered by the
/// front end itself, whatever stands there.
struct Procedure {
  std::string_view name;   ///< RFC name, as in metrics: "WRITE".
  Handler handler;         ///< nullptr: PROC_UNAVAIL.
  bool changes_something;  ///< Held in the duplicate request cache.
  /// Where that depends on the call, by its arguments (4-byte aligned); may be nullptr.
  bool (*changes)(xdr::Source arguments) = nullptr;
};

/// Where in a call's arguments a WRITE payload lies, so that it can be received at an address
/// congruent with its file offset.
struct PayloadPlace {
  std::size_t position;       ///< Bytes from the first byte of the arguments to the payload.
  std::uint32_t length;       ///< Bytes of payload, without XDR padding.
  std::uint64_t file_offset;  ///< Where in the file it will be written.
};

/// Looks at the first bytes of a call's arguments (4-byte aligned); nullopt if there is no payload,
/// or it cannot be told from these bytes (then it is found while decoding, and copied once). Asked
/// again when more bytes have come, up to 512. What it says is checked against the record; that it
/// is within the limits of the protocol is the decoder's to check.
using FindPayload = std::optional<PayloadPlace> (*)(std::uint32_t procedure,
                                                    std::span<const std::byte> head);

/// One version of one program. Static data; `service` outlives the server.
struct Program {
  std::uint32_t number;
  std::uint32_t version;
  std::string_view name;  ///< "NFSv3"
  std::span<const Procedure> procedures;
  FindPayload find_payload;  ///< May be nullptr.
  void* service;
};

}  // namespace selvage::server::rpc
