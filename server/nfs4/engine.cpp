#include "server/nfs4/engine.h"

#include "server/nfs4/attributes.h"
#include "server/nfs4/op_table.h"
#include "server/nfs4/records.h"
#include "server/nfs4/utf8.h"
#include "server/rpc/arguments.h"
#include "xdr/nfs41_ops.h"
#include "xdr/nfs4_ops.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace selvage::server::nfs4 {
namespace {

using rpc::Reply;

constexpr std::uint32_t last_minor = 2;
/// Of a COMPOUND of minor version 0; sessions have a bound of their own.
constexpr std::uint32_t max_operations = 256;
/// Bytes of its results: one READ of the greatest size, and what goes with it.
constexpr std::size_t max_result_bytes = max_io_bytes + (std::size_t{64} << 10);
/// RPC reply header with an AUTH_NONE verifier: part of ca_maxresponsesize.
constexpr std::size_t reply_header_bytes = 24;

/// The execution of one COMPOUND. Its results begin with a head that is filled in at the end.
class Execution {
 public:
  Execution(Service& service, Call& call, xdr::COMPOUND4head head)
      : compound_(service, call, head.minorversion),
        head_(std::move(head)),
        request_bytes_(call.arguments.position() + call.arguments.remaining()) {
    xdr::COMPOUND4reshead result;
    result.tag = head_.tag;
    xdr::encode(compound_.results, result);
    count_at_ = compound_.results.size() - 4;
    // Minor version 0 negotiates no bound: many READs in one COMPOUND must not fill the memory.
    compound_.max_results = max_result_bytes;
    if (compound_.minor == 0) compound_.too_big = xdr::NFS4ERR_RESOURCE;
  }

  Awaitable<Reply> run() {
    const xdr::nfsstat4 refused = check_head();
    if (refused != xdr::NFS4_OK) co_return finish(refused);
    xdr::nfsstat4 status = xdr::NFS4_OK;
    for (std::uint32_t i = 0; i < head_.operations && status == xdr::NFS4_OK; ++i) {
      status = co_await step(i);
      if (replayed_) co_return replay();
    }
    co_await apply_changed_locks(compound_);
    co_return finish(status);
  }

 private:
  Service& service() const { return compound_.service; }

  xdr::nfsstat4 check_head() const {
    if (head_.minorversion > last_minor) return xdr::NFS4ERR_MINOR_VERS_MISMATCH;
    // Of no export: where names may be anything, so may tags.
    const bool utf8 = compound_.names->any_utf8();
    if (utf8 && !is_utf8(head_.tag.value)) return xdr::NFS4ERR_INVAL;
    if (head_.minorversion == 0 && head_.operations > max_operations) return xdr::NFS4ERR_RESOURCE;
    return xdr::NFS4_OK;
  }

  // One operation, with its number and its result in the reply.
  Awaitable<xdr::nfsstat4> step(std::uint32_t index) {
    std::uint32_t number = 0;
    const bool there = compound_.call.arguments.get(number);
    const OperationRow* row = there ? find_operation(number, compound_.minor) : nullptr;
    if (row == nullptr) {
      service().operations[0].calls.add();
      service().operations[0].errors.add();
      co_return result_of(xdr::OP_ILLEGAL, there ? xdr::NFS4ERR_OP_ILLEGAL : xdr::NFS4ERR_BADXDR);
    }
    auto& counters = service().operations[number];
    counters.calls.add();
    compound_.operation = number;
    compound_.last = index + 1 == head_.operations;
    const xdr::nfsstat4 place = check_place(*row, index);
    xdr::nfsstat4 status = xdr::NFS4_OK;
    if (place != xdr::NFS4_OK) {
      status = result_of(number, place);
    } else if (number == xdr::OP_SEQUENCE) {
      status = sequence();
    } else {
      status = co_await carry_out(*row, number);
    }
    if (status != xdr::NFS4_OK) counters.errors.add();
    const auto now = std::chrono::steady_clock::now();
    counters.latency.add(now - std::exchange(last_, now));
    co_return status;
  }

  // RFC 8881, 2.10.6.4, 18.46.3.
  xdr::nfsstat4 check_place(const OperationRow& row, std::uint32_t index) const {
    if (compound_.minor == 0) return xdr::NFS4_OK;
    if (row.session == Session::opens) {
      return index == 0 ? xdr::NFS4_OK : xdr::NFS4ERR_SEQUENCE_POS;
    }
    if (compound_.session) return xdr::NFS4_OK;
    if (row.session == Session::inside) return xdr::NFS4ERR_OP_NOT_IN_SESSION;
    return head_.operations == 1 ? xdr::NFS4_OK : xdr::NFS4ERR_NOT_ONLY_OP;
  }

  Awaitable<xdr::nfsstat4> carry_out(const OperationRow& row, std::uint32_t number) {
    if (row.run == nullptr) co_return result_of(number, xdr::NFS4ERR_NOTSUPP);
    if (row.needs_current && !compound_.current) {
      co_return result_of(number, xdr::NFS4ERR_NOFILEHANDLE);
    }
    if (row.needs_saved && !compound_.saved) co_return result_of(number, xdr::NFS4ERR_NOFILEHANDLE);
    if (compound_.results.size() + 4 + row.result_bytes > compound_.max_results) {
      co_return result_of(number, compound_.too_big);
    }
    if (number != xdr::OP_GETATTR && number != xdr::OP_GETFH) compound_.known.reset();
    compound_.results.put(number);
    ++results_;
    co_return co_await row.run(compound_);
  }

  xdr::nfsstat4 sequence() {
    xdr::SEQUENCE4args args;
    if (!xdr::decode(compound_.call.arguments, args)) {
      return result_of(xdr::OP_SEQUENCE, xdr::NFS4ERR_BADXDR);
    }
    const auto rest = compound_.call.arguments.rest_of_segment();
    state::SequenceRequest request;
    request.checksum =
        std::hash<std::string_view>{}({reinterpret_cast<const char*>(rest.data()), rest.size()});
    request.request_bytes = request_bytes_;
    request.operations = head_.operations;
    request.connection = compound_.call.connection;
    request.minorversion = head_.minorversion;
    state::Sequenced outcome = service().state.sequence(args, request);
    if (outcome.kind == state::Sequenced::Kind::replay) {
      replayed_ = std::move(outcome.reply);
      return xdr::NFS4_OK;
    }
    if (outcome.kind == state::Sequenced::Kind::refused) return refused(outcome);
    keep_ = args.sa_cachethis;
    limit_reply(outcome.limits);
    xdr::SEQUENCE4res result(outcome.resok);
    // Not even this fits: the slot stays as it was.
    if (compound_.results.size() + 4 + xdr::encoded_size(result) > compound_.max_results) {
      return result_of(xdr::OP_SEQUENCE, compound_.too_big);
    }
    slot_ = std::move(outcome.ticket);
    compound_.session = args.sa_sessionid;
    compound_.client = outcome.client;
    compound_.results.put(std::uint32_t{xdr::OP_SEQUENCE});
    xdr::encode(compound_.results, result);
    ++results_;
    return xdr::NFS4_OK;
  }

  // RFC 8881, 2.10.6.1.3: a retry whose reply was not kept is told so by the operation after
  // SEQUENCE.
  xdr::nfsstat4 refused(const state::Sequenced& outcome) {
    if (outcome.status != xdr::NFS4ERR_RETRY_UNCACHED_REP || head_.operations < 2) {
      return result_of(xdr::OP_SEQUENCE, outcome.status);
    }
    xdr::SEQUENCE4res result(outcome.resok);
    compound_.results.put(std::uint32_t{xdr::OP_SEQUENCE});
    xdr::encode(compound_.results, result);
    ++results_;
    std::uint32_t next = 0;
    if (!compound_.call.arguments.get(next)) next = xdr::OP_ILLEGAL;
    return result_of(next, outcome.status);
  }

  void limit_reply(const xdr::channel_attrs4& limits) {
    std::size_t most = limits.ca_maxresponsesize;
    if (keep_ && limits.ca_maxresponsesize_cached < most) {
      most = limits.ca_maxresponsesize_cached;
      compound_.too_big = xdr::NFS4ERR_REP_TOO_BIG_TO_CACHE;
    }
    compound_.max_results = most - std::min(most, reply_header_bytes);
  }

  xdr::nfsstat4 result_of(std::uint32_t number, xdr::nfsstat4 status) {
    compound_.results.put(number);
    put_status(compound_, number, status);
    ++results_;
    return status;
  }

  Reply finish(xdr::nfsstat4 status) {
    compound_.results.replace(0, status);
    compound_.results.replace(count_at_, results_);
    if (slot_) {
      state::Bytes kept;
      if (keep_) {
        kept = std::make_shared<const std::vector<std::byte>>(compound_.results.joined());
      }
      slot_.finish(std::move(kept));
    }
    if (compound_.payload_heap) compound_.release_payload();
    Reply reply;
    reply.results = std::move(compound_.results);
    reply.payload_owner = std::move(compound_.payload_owner);
    reply.cacheable = status != xdr::NFS4ERR_DELAY;
    return reply;
  }

  Reply replay() {
    Reply reply;
    reply.results.put_opaque(*replayed_);
    return reply;
  }

  Compound compound_;
  const xdr::COMPOUND4head head_;
  const std::size_t request_bytes_;
  std::size_t count_at_ = 0;  // Where in the results their number stands.
  std::uint32_t results_ = 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  state::SlotTicket slot_;
  bool keep_ = false;  // The reply, in the slot.
  state::Bytes replayed_;
};

}  // namespace

Awaitable<Reply> compound(void* service, Call& call) {
  xdr::COMPOUND4head head;
  if (!xdr::decode(call.arguments, head)) co_return rpc::garbage_args();
  Execution execution(*static_cast<Service*>(service), call, std::move(head));
  co_return co_await execution.run();
}

}  // namespace selvage::server::nfs4
