#include "xdr/rpc.h"

#include "xdr/codec.h"

#include <stdexcept>

namespace selvage::xdr {
namespace {

enum class AuthResult : std::uint8_t { ok, truncated, bad };

AuthResult decode_opaque_auth(Source& source, OpaqueAuth& auth) {
  std::uint32_t flavor = 0;
  std::uint32_t length = 0;
  if (!source.get(flavor) || !source.get(length)) return AuthResult::truncated;
  if (length > RPC_AUTH_MAX) return AuthResult::bad;
  if (length + padding(length) > source.remaining()) return AuthResult::truncated;
  auth.flavor = static_cast<auth_flavor>(flavor);
  return source.view_opaque(length, auth.body) ? AuthResult::ok : AuthResult::bad;
}

void encode_opaque_auth(Sink& sink, const OpaqueAuth& auth) {
  if (auth.body.size() > RPC_AUTH_MAX) throw std::length_error("xdr: opaque_auth over its bound");
  sink.put(static_cast<std::uint32_t>(auth.flavor));
  sink.put(static_cast<std::uint32_t>(auth.body.size()));
  sink.put_opaque(auth.body);
}

void encode_reply_start(Sink& sink, std::uint32_t xid, reply_stat stat) {
  sink.put(xid);
  sink.put(static_cast<std::uint32_t>(msg_type::reply));
  sink.put(static_cast<std::uint32_t>(stat));
}

bool decode_denied(Source& source, ReplyHeader& header) {
  std::uint32_t stat = 0;
  if (!source.get(stat)) return false;
  header.rejected = static_cast<reject_stat>(stat);
  if (header.rejected == reject_stat::rpc_mismatch) {
    return source.get(header.low) && source.get(header.high);
  }
  std::uint32_t why = 0;
  if (header.rejected != reject_stat::auth_error || !source.get(why)) return false;
  header.auth = static_cast<auth_stat>(why);
  return true;
}

}  // namespace

CallStatus decode_call(Source& source, CallHeader& header) {
  std::uint32_t type = 0;
  if (!source.get(header.xid) || !source.get(type)) return CallStatus::truncated;
  if (type != static_cast<std::uint32_t>(msg_type::call)) return CallStatus::not_a_call;
  if (!source.get(header.rpcvers)) return CallStatus::truncated;
  if (header.rpcvers != RPC_VERSION) return CallStatus::rpc_mismatch;
  if (!source.get(header.prog) || !source.get(header.vers) || !source.get(header.proc)) {
    return CallStatus::truncated;
  }
  const AuthResult cred = decode_opaque_auth(source, header.cred);
  if (cred == AuthResult::truncated) return CallStatus::truncated;
  if (cred == AuthResult::bad) return CallStatus::bad_cred;
  const AuthResult verf = decode_opaque_auth(source, header.verf);
  if (verf == AuthResult::truncated) return CallStatus::truncated;
  return verf == AuthResult::ok ? CallStatus::ok : CallStatus::bad_verf;
}

void encode_call(Sink& sink, const CallHeader& header) {
  sink.put(header.xid);
  sink.put(static_cast<std::uint32_t>(msg_type::call));
  sink.put(header.rpcvers);
  sink.put(header.prog);
  sink.put(header.vers);
  sink.put(header.proc);
  encode_opaque_auth(sink, header.cred);
  encode_opaque_auth(sink, header.verf);
}

bool decode_auth_sys(std::span<const std::byte> body, AuthSys& value) {
  Source source(body);
  return decode(source, value) && source.remaining() == 0;
}

void encode_accepted(Sink& sink, std::uint32_t xid, accept_stat stat) {
  encode_reply_start(sink, xid, reply_stat::accepted);
  encode_opaque_auth(sink, OpaqueAuth{});
  sink.put(static_cast<std::uint32_t>(stat));
}

void encode_prog_mismatch(Sink& sink, std::uint32_t xid, std::uint32_t low, std::uint32_t high) {
  encode_accepted(sink, xid, accept_stat::prog_mismatch);
  sink.put(low);
  sink.put(high);
}

void encode_rpc_mismatch(Sink& sink, std::uint32_t xid) {
  encode_reply_start(sink, xid, reply_stat::denied);
  sink.put(static_cast<std::uint32_t>(reject_stat::rpc_mismatch));
  sink.put(RPC_VERSION);
  sink.put(RPC_VERSION);
}

void encode_auth_error(Sink& sink, std::uint32_t xid, auth_stat stat) {
  encode_reply_start(sink, xid, reply_stat::denied);
  sink.put(static_cast<std::uint32_t>(reject_stat::auth_error));
  sink.put(static_cast<std::uint32_t>(stat));
}

bool decode_reply(Source& source, ReplyHeader& header) {
  std::uint32_t type = 0;
  std::uint32_t stat = 0;
  if (!source.get(header.xid) || !source.get(type) || !source.get(stat)) return false;
  if (type != static_cast<std::uint32_t>(msg_type::reply)) return false;
  header.stat = static_cast<reply_stat>(stat);
  if (header.stat == reply_stat::denied) return decode_denied(source, header);
  if (header.stat != reply_stat::accepted) return false;
  std::uint32_t accepted = 0;
  if (decode_opaque_auth(source, header.verf) != AuthResult::ok || !source.get(accepted)) {
    return false;
  }
  header.accepted = static_cast<accept_stat>(accepted);
  if (header.accepted > accept_stat::system_err) return false;
  if (header.accepted != accept_stat::prog_mismatch) return true;
  return source.get(header.low) && source.get(header.high);
}

namespace {
constexpr std::uint32_t last_fragment = 1U << 31;
}

std::array<std::byte, record_mark_bytes> encode_record_mark(RecordMark mark) {
  const std::uint32_t word = (mark.length & ~last_fragment) | (mark.last ? last_fragment : 0);
  return {static_cast<std::byte>(word >> 24), static_cast<std::byte>(word >> 16),
          static_cast<std::byte>(word >> 8), static_cast<std::byte>(word)};
}

RecordMark decode_record_mark(std::span<const std::byte, record_mark_bytes> bytes) {
  std::uint32_t word = 0;
  for (const std::byte b : bytes) word = word << 8 | static_cast<std::uint32_t>(b);
  return {.length = word & ~last_fragment, .last = (word & last_fragment) != 0};
}

SELVAGE_XDR_INSTANTIATE(AuthSys);

}  // namespace selvage::xdr
