// Bounds and deadlines of the RPC front end.
#pragma once

#include "server/rpc/duplicate_request_cache.h"
#include "server/rpc/program.h"
#include "server/rpc/record_reader.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace selvage::server::rpc {

struct Options {
  std::size_t max_connections = 10'000;
  std::size_t max_in_flight_per_connection = 128;  ///< Until the reply is with the kernel.
  std::size_t max_in_flight = 4096;                ///< Of all connections. NULL is not counted.
  std::size_t max_large_records = 32;              ///< Over Limits::small_record, not steered.
  RecordReader::Limits limits;
  std::chrono::milliseconds record_deadline{60'000};  ///< From the first byte to the last.
  std::chrono::milliseconds write_deadline{60'000};   ///< For each 64 KiB of replies.
  /// For each 64 KiB of a record or of replies while others wait for the memory or the permits that
  /// such a client may hold, and while the server goes down.
  std::chrono::milliseconds contended_deadline{5'000};
  std::chrono::milliseconds idle_deadline{600'000};  ///< Linux reconnects without a trace.
  std::chrono::milliseconds linger{1'000};  ///< For the client's close, when the server goes down.
  DuplicateRequestCache::Options duplicates;
  /// Before a call is handled: whether something about its client has to be found out first (cheap;
  /// asked of every call), and what finds it out. Both or none.
  std::function<bool(const Call& call)> must_prepare;
  std::function<Awaitable<>(Call& call)> prepare;
  /// Told of each connection that has ended (Call::connection), on its worker; may be empty.
  std::function<void(std::uint64_t connection)> connection_closed;
};

}  // namespace selvage::server::rpc
