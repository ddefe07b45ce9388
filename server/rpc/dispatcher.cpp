#include "server/rpc/dispatcher.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace selvage::server::rpc {

using storage::Awaitable;

namespace {

/// Bytes of the arguments' start, and of the record's end, that tell two calls apart.
constexpr std::size_t checked_arguments = 256;
constexpr std::size_t checked_end = 256;
constexpr std::size_t header_limit = 24 + 2 * (8 + xdr::RPC_AUTH_MAX);

xdr::Source source_of(const Record& record) {
  return xdr::Source(record.head.bytes(), record.payload, record.tail.bytes());
}

/// Copies the bytes [from, from + to.size()) of a record, however it was received.
void copy_out(const Record& record, std::size_t from, std::span<std::byte> to) {
  const std::array segments{record.head.bytes(), record.payload, record.tail.bytes()};
  for (const std::span<const std::byte> segment : segments) {
    if (from >= segment.size()) {
      from -= segment.size();
      continue;
    }
    const std::size_t count = std::min(segment.size() - from, to.size());
    if (count > 0) std::memcpy(to.data(), segment.data() + from, count);
    to = to.subspan(count);
    from = 0;
  }
}

/// What is wrong with a credential of a call that needs one; ok: `auth_sys` is set for AUTH_SYS.
xdr::auth_stat check_credential(const xdr::OpaqueAuth& credential,
                                std::optional<xdr::AuthSys>& auth_sys) {
  switch (credential.flavor) {
    case xdr::auth_flavor::none:
      return xdr::auth_stat::ok;
    case xdr::auth_flavor::sys:
      return xdr::decode_auth_sys(credential.body, auth_sys.emplace()) ? xdr::auth_stat::ok
                                                                       : xdr::auth_stat::badcred;
    // We never hand out a shorthand: the client must begin anew with a full credential.
    case xdr::auth_flavor::short_hand:
    default:
      return xdr::auth_stat::rejectedcred;
  }
}

Outgoing accepted(std::uint32_t xid, xdr::accept_stat stat) {
  Outgoing outgoing;
  xdr::encode_accepted(outgoing.header, xid, stat);
  return outgoing;
}

Outgoing denied(std::uint32_t xid, xdr::auth_stat stat) {
  Outgoing outgoing;
  xdr::encode_auth_error(outgoing.header, xid, stat);
  return outgoing;
}

/// Wraps what a handler gave.
Outgoing outgoing_of(std::uint32_t xid, Reply reply) {
  switch (reply.status) {
    case Reply::Status::success:
      break;
    case Reply::Status::garbage_args:
      return accepted(xid, xdr::accept_stat::garbage_args);
    case Reply::Status::system_err:
      return accepted(xid, xdr::accept_stat::system_err);
    case Reply::Status::auth_too_weak:
      return denied(xid, xdr::auth_stat::tooweak);
  }
  Outgoing outgoing = accepted(xid, xdr::accept_stat::success);
  outgoing.results = std::move(reply.results);
  outgoing.payload_owner = std::move(reply.payload_owner);
  return outgoing;
}

DuplicateRequestCache::Bytes joined(const Outgoing& outgoing) {
  DuplicateRequestCache::Bytes bytes;
  bytes.reserve(outgoing.size());
  for (const xdr::Sink* part : {&outgoing.header, &outgoing.results}) {
    for (const auto segment : {part->head(), part->payload(), part->tail()}) {
      bytes.insert(bytes.end(), segment.begin(), segment.end());
    }
  }
  return bytes;
}

}  // namespace

DuplicateRequestCache::Key Dispatcher::key_of(const Peer& peer, const Record& record,
                                              const xdr::CallHeader& header,
                                              std::size_t arguments) const {
  DuplicateRequestCache::Key key;
  key.client = peer.address.is_v6() ? peer.address.to_v6().to_bytes()
                                    : boost::asio::ip::make_address_v6(boost::asio::ip::v4_mapped,
                                                                       peer.address.to_v4())
                                          .to_bytes();
  key.xid = header.xid;
  key.program = header.prog;
  key.version = header.vers;
  key.procedure = header.proc;

  // The end of the call tells apart WRITEs of the same place whose data begin alike.
  const std::uint64_t total = record.head.size() + record.payload.size() + record.tail.size();
  const std::size_t start = std::min<std::size_t>(total, arguments + checked_arguments);
  const std::size_t end = std::min<std::size_t>(total - start, checked_end);
  std::array<std::byte, header_limit + checked_arguments + checked_end + sizeof total> checked;
  const std::span<std::byte> bytes(checked);
  copy_out(record, 0, bytes.first(start));
  copy_out(record, total - end, bytes.subspan(start, end));
  std::memcpy(checked.data() + start + end, &total, sizeof total);
  key.checksum = cache_.checksum(bytes.first(start + end + sizeof total));
  return key;
}

namespace {
constexpr std::uint32_t nfs_program = 100003;
}

Awaitable<std::optional<Outgoing>> Dispatcher::serve(storage::Worker& worker, Peer peer,
                                                     Record record) {
  xdr::CallHeader header;
  xdr::Source source = source_of(record);
  const xdr::CallStatus status = xdr::decode_call(source, header);
  if (status == xdr::CallStatus::truncated || status == xdr::CallStatus::not_a_call) {
    co_return std::nullopt;
  }
  counters_.requests.add();

  Outgoing outgoing;
  if (status == xdr::CallStatus::rpc_mismatch) {
    xdr::encode_rpc_mismatch(outgoing.header, header.xid);
    counters_.rpc_errors.add();
    co_return outgoing;
  }
  if (status == xdr::CallStatus::bad_cred || status == xdr::CallStatus::bad_verf) {
    counters_.rpc_errors.add();
    co_return denied(header.xid, status == xdr::CallStatus::bad_cred ? xdr::auth_stat::badcred
                                                                     : xdr::auth_stat::badverf);
  }

  ProgramTable::Entry* const entry = programs_.find(header.prog, header.vers);
  if (entry != nullptr && header.proc == 0) {
    counters_.null_calls.add();
    co_return accepted(header.xid, xdr::accept_stat::success);
  }
  std::optional<xdr::AuthSys> auth_sys;
  const xdr::auth_stat auth = check_credential(header.cred, auth_sys);
  if (auth != xdr::auth_stat::ok) {
    counters_.rpc_errors.add();
    co_return denied(header.xid, auth);
  }
  if (entry == nullptr) {
    counters_.rpc_errors.add();
    const std::optional<ProgramTable::Versions> versions = programs_.versions(header.prog);
    if (!versions) co_return accepted(header.xid, xdr::accept_stat::prog_unavail);
    xdr::encode_prog_mismatch(outgoing.header, header.xid, versions->low, versions->high);
    co_return outgoing;
  }
  const std::span<const Procedure> procedures = entry->program.procedures;
  if (header.proc >= procedures.size() || procedures[header.proc].handler == nullptr) {
    counters_.rpc_errors.add();
    co_return accepted(header.xid, xdr::accept_stat::proc_unavail);
  }
  const Procedure& procedure = procedures[header.proc];

  DuplicateRequestCache::Ticket ticket;
  const bool changes =
      procedure.changes_something || (procedure.changes != nullptr && procedure.changes(source));
  if (changes) {
    DuplicateRequestCache::Decision decision =
        cache_.begin(key_of(peer, record, header, source.position()));
    if (!decision.execute) {
      if (decision.first) {
        // A held-back retry shall not hold payload memory that the first copy may be waiting for.
        record = Record();
        decision.answer = co_await cache_.wait(decision.first);
      }
      if (!decision.answer) co_return std::nullopt;
      outgoing.kept = std::move(decision.answer);
      co_return outgoing;
    }
    ticket = std::move(decision.execute);
  }

  if (peer.client && header.prog == nfs_program) peer.client->used_nfs(header.vers);
  ProcedureCounters& counters = entry->counters[header.proc];
  counters.calls.add();
  const auto began = std::chrono::steady_clock::now();
  Call call{worker,          peer.address, peer.port,
            peer.connection, header.proc,  auth_sys ? &*auth_sys : nullptr,
            source};
  Reply reply;
  try {
    if (options_.must_prepare && options_.must_prepare(call)) co_await options_.prepare(call);
    reply = co_await procedure.handler(entry->program.service, call);
  } catch (...) {
    counters_.handler_exceptions.add();
    reply = Reply();
    reply.status = Reply::Status::system_err;
  }
  counters.latency.add(std::chrono::steady_clock::now() - began);
  if (reply.status != Reply::Status::success) counters.errors.add();
  const bool keep = reply.cacheable && reply.status != Reply::Status::garbage_args;
  outgoing = outgoing_of(header.xid, std::move(reply));
  if (ticket) {
    outgoing.kept = ticket.finish(joined(outgoing), keep);
  }
  co_return outgoing;
}

}  // namespace selvage::server::rpc
