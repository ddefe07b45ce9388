// Counters of the RPC front end. Relaxed atomics: read for display only.
#pragma once

#include "storage/counters.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace selvage::server::rpc {

using storage::Counter;
using storage::Histogram;

/// Why a connection ended.
enum class CloseReason : std::uint8_t {
  peer_closed,      ///< The client closed it between two records.
  peer_cut,         ///< It ended in the middle of a record.
  socket_error,     ///< Reset, or another error of the socket.
  garbage,          ///< What came was no RPC call.
  oversize,         ///< A record over the limit.
  record_deadline,  ///< A record was begun and not finished in time.
  write_deadline,   ///< The client did not take its replies.
  contended,        ///< The same of a record or of replies, while others waited for what it held.
  idle,             ///< Nothing came for a long time.
  drained,          ///< The server is going down.
};
inline constexpr std::size_t close_reasons = 10;
std::string_view to_string(CloseReason reason);

struct ProcedureCounters {
  Counter calls;
  Counter errors;     ///< Answered with anything but SUCCESS of the RPC layer.
  Histogram latency;  ///< From the complete record to the ready reply.
};

struct Counters {
  Counter connections_open;  ///< Now.
  Counter connections_accepted;
  Counter connections_refused;  ///< Over the bound.
  Counter accept_errors;
  std::array<Counter, close_reasons> connections_closed;

  Counter requests;          ///< Complete records that were calls.
  Counter requests_dropped;  ///< Not started because their connection had died.
  Counter null_calls;
  Counter rpc_errors;  ///< Calls answered by the front end with an RPC error.
  Counter handler_exceptions;
  Counter replies;
  Counter reply_writes;  ///< sendmsg calls that took replies.

  Counter bytes_received;
  Counter steered_payloads;     ///< Received where their address is congruent with the offset.
  Counter overread_bytes;       ///< Payload bytes that came with a head and were copied into place.
  Counter head_bytes_copied;    ///< Bytes around steered payloads, copied out of the head buffer.
  Counter reassembled_records;  ///< Records received into heap memory (all but steered ones).
  Counter reassembled_bytes;
  Counter receives;       ///< recvmsg calls that returned bytes.
  Counter quickacks;      ///< Times TCP_QUICKACK was set again.
  Counter receive_waits;  ///< Times reading stopped for want of memory or permits.

  Counter drc_hits;   ///< Retries answered from the duplicate request cache.
  Counter drc_waits;  ///< Retries held back because the first copy was in progress.
  Counter drc_drops;  ///< Retries not answered: too many of one request waited already.
};

}  // namespace selvage::server::rpc
