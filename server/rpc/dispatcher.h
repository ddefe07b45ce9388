// From a complete record to its reply: header, credential, program, procedure, duplicate requests.
#pragma once

#include "server/rpc/client_table.h"
#include "server/rpc/counters.h"
#include "server/rpc/duplicate_request_cache.h"
#include "server/rpc/options.h"
#include "server/rpc/program_table.h"
#include "server/rpc/record.h"
#include "storage/worker.h"
#include "xdr/rpc.h"
#include "xdr/stream.h"

#include <boost/asio/ip/address.hpp>

#include <cstdint>
#include <optional>

namespace selvage::server::rpc {

struct Peer {
  boost::asio::ip::address address;  ///< IPv4-mapped ones as IPv4.
  std::uint16_t port = 0;
  std::uint64_t connection = 0;      ///< See Call::connection.
  ClientCounters* client = nullptr;  ///< Of the address; may be null.
};

/// A reply without its record mark: `kept`, or `header` and `results` one after the other.
struct Outgoing {
  DuplicateRequestCache::Answer kept;
  xdr::Sink header;
  xdr::Sink results;
  storage::Buffer payload_owner;  ///< Keeps alive what `results` refers to.

  std::size_t size() const { return kept ? kept->size() : header.size() + results.size(); }
};

/// Stateless but for what it refers to, which outlives it. Any worker.
class Dispatcher {
 public:
  Dispatcher(ProgramTable& programs, DuplicateRequestCache& cache, Counters& counters,
             const Options& options)
      : programs_(programs), cache_(cache), counters_(counters), options_(options) {}

  /// Answers one call. nullopt: no reply (not a call; or a retry that cannot be answered).
  storage::Awaitable<std::optional<Outgoing>> serve(storage::Worker& worker, Peer peer,
                                                    Record record);

 private:
  DuplicateRequestCache::Key key_of(const Peer& peer, const Record& record,
                                    const xdr::CallHeader& header, std::size_t arguments) const;

  ProgramTable& programs_;
  DuplicateRequestCache& cache_;
  Counters& counters_;
  const Options& options_;
};

}  // namespace selvage::server::rpc
