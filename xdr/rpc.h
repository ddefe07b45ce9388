// ONC RPC version 2 (RFC 5531): record marking, call and reply headers, AUTH_NONE and AUTH_SYS.
//
// The call header is decoded step by step, so that what is wrong with it gets the answer that
// RFC 5531, 9 has for it.
#pragma once

#include "xdr/types.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace selvage::xdr {

inline constexpr std::uint32_t RPC_VERSION = 2;
/// Bytes of a credential or verifier body (RFC 5531, 8.2).
inline constexpr std::uint32_t RPC_AUTH_MAX = 400;

enum class msg_type : std::uint32_t { call = 0, reply = 1 };

enum class reply_stat : std::uint32_t { accepted = 0, denied = 1 };

enum class accept_stat : std::uint32_t {
  success = 0,
  prog_unavail = 1,
  prog_mismatch = 2,
  proc_unavail = 3,
  garbage_args = 4,
  system_err = 5,
};

enum class reject_stat : std::uint32_t { rpc_mismatch = 0, auth_error = 1 };

enum class auth_stat : std::uint32_t {
  ok = 0,
  badcred = 1,
  rejectedcred = 2,
  badverf = 3,
  rejectedverf = 4,
  tooweak = 5,
  invalidresp = 6,
  failed = 7,
};

enum class auth_flavor : std::uint32_t {
  none = 0,
  sys = 1,
  short_hand = 2,
  dh = 3,
  rpcsec_gss = 6,
  tls = 7,  ///< RFC 9289
};

/// opaque_auth. The flavour may be any number. The body is a view into what it was decoded from.
struct OpaqueAuth {
  auth_flavor flavor = auth_flavor::none;
  std::span<const std::byte> body;
};

struct CallHeader {
  std::uint32_t xid = 0;
  std::uint32_t rpcvers = RPC_VERSION;
  std::uint32_t prog = 0;
  std::uint32_t vers = 0;
  std::uint32_t proc = 0;
  OpaqueAuth cred;
  OpaqueAuth verf;
};

/// What decode_call() found, in the order in which it looks.
enum class CallStatus : std::uint8_t {
  ok,            ///< The source is at the first byte of the arguments.
  truncated,     ///< The record ends within the header: no answer.
  not_a_call,    ///< msg_type is not CALL: no answer. Only xid is set.
  rpc_mismatch,  ///< rpcvers is not 2: RPC_MISMATCH. Only xid and rpcvers are set.
  bad_cred,      ///< Credential over 400 bytes or badly padded: AUTH_BADCRED. No cred, verf.
  bad_verf,      ///< The same of the verifier: AUTH_BADVERF. No verf.
};

CallStatus decode_call(Source& source, CallHeader& header);
/// @throws std::length_error if a body is over RPC_AUTH_MAX.
void encode_call(Sink& sink, const CallHeader& header);

/// authsys_parms (RFC 5531, Appendix A): the body of an AUTH_SYS credential.
struct AuthSys {
  std::uint32_t stamp = 0;
  String<255> machinename;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  List<std::uint32_t, 16> gids;
};

/// false if it is malformed, or bytes follow it: AUTH_BADCRED.
bool decode_auth_sys(std::span<const std::byte> body, AuthSys& value);

/// Bytes of the reply header of an accepted call, without record mark.
inline constexpr std::size_t accepted_reply_bytes = 24;

/// MSG_ACCEPTED with an AUTH_NONE verifier. After success the results follow; with prog_mismatch
/// use encode_prog_mismatch().
void encode_accepted(Sink& sink, std::uint32_t xid, accept_stat stat);
/// PROG_MISMATCH: the versions of the program that are served, both ends included.
void encode_prog_mismatch(Sink& sink, std::uint32_t xid, std::uint32_t low, std::uint32_t high);
/// MSG_DENIED, RPC_MISMATCH {2, 2}.
void encode_rpc_mismatch(Sink& sink, std::uint32_t xid);
/// MSG_DENIED, AUTH_ERROR.
void encode_auth_error(Sink& sink, std::uint32_t xid, auth_stat stat);

/// A reply as the caller sees it.
struct ReplyHeader {
  std::uint32_t xid = 0;
  reply_stat stat = reply_stat::accepted;
  OpaqueAuth verf;                              ///< If accepted.
  accept_stat accepted = accept_stat::success;  ///< If accepted.
  reject_stat rejected{};                       ///< If denied.
  auth_stat auth = auth_stat::ok;               ///< If denied with auth_error.
  std::uint32_t low = 0;                        ///< With prog_mismatch or rpc_mismatch.
  std::uint32_t high = 0;
};

/// false if it is not a well-formed reply. After success the source is at the results.
bool decode_reply(Source& source, ReplyHeader& header);

/// The word before each fragment of a record (RFC 5531, 11).
struct RecordMark {
  std::uint32_t length = 0;  ///< Bytes of the fragment, without the mark; below 2^31.
  bool last = true;          ///< The record ends with this fragment.
};

inline constexpr std::size_t record_mark_bytes = 4;

std::array<std::byte, record_mark_bytes> encode_record_mark(RecordMark mark);
RecordMark decode_record_mark(std::span<const std::byte, record_mark_bytes> bytes);

}  // namespace selvage::xdr
