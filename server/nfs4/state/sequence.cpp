// SEQUENCE: slots and their reply cache (RFC 8881, 2.10.6, 18.46).
#include "server/nfs4/state/tables.h"

#include <algorithm>

namespace selvage::server::nfs4::state {
namespace {

/// Makes room for one more reply, by forgetting those of clients that do not seem to come back.
bool reserve_reply(Tables& t, std::size_t bytes) {
  const auto fits = [&] {
    return t.reply_bytes + t.reply_reserved + bytes <= t.options.max_reply_cache_bytes;
  };
  if (!fits()) {
    for (const auto& [id, session] : t.sessions) {
      if (t.expired(*session->client)) t.drop_replies(*session);
    }
  }
  return fits();
}

void drop_reply(Tables& t, Slot& slot) {
  if (slot.reply == nullptr) return;
  t.reply_bytes -= slot.reply->size();
  slot.reply = nullptr;
}

}  // namespace

std::uint32_t Tables::status_flags(const Session& session) const {
  const Client& client = *session.client;
  std::uint32_t flags = 0;
  if (client.revoked_stateids != 0) {
    if (client.revoked == Revoked::admin) {
      flags |= xdr::SEQ4_STATUS_ADMIN_STATE_REVOKED;
    } else {
      flags |= client.opens == 0 ? xdr::SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED
                                 : xdr::SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED;
    }
  }
  // Only of those who ever wanted to be called back.
  if (session.wanted_back_channel && session.back_connections.empty()) {
    flags |= xdr::SEQ4_STATUS_CB_PATH_DOWN_SESSION;
    if (std::ranges::all_of(client.sessions,
                            [](const Session* s) { return s->back_connections.empty(); })) {
      flags |= xdr::SEQ4_STATUS_CB_PATH_DOWN;
    }
  }
  return flags;
}

Sequenced State::sequence(const xdr::SEQUENCE4args& args, const SequenceRequest& request) {
  Guard guard(*this);
  Tables& t = guard.t;
  Sequenced result;
  const auto refuse = [&](nfsstat4 status) -> Sequenced&& {
    result.status = status;
    return std::move(result);
  };
  Session* session = t.find_session(args.sa_sessionid);
  if (session == nullptr) return refuse(xdr::NFS4ERR_BADSESSION);
  const std::uint32_t slots = session->fore.ca_maxrequests;
  if (args.sa_slotid >= slots) return refuse(xdr::NFS4ERR_BADSLOT);
  if (args.sa_highest_slotid >= slots) return refuse(xdr::NFS4ERR_BAD_HIGH_SLOT);
  if (args.sa_slotid >= session->slots.size()) {
    t.memory.bytes += (args.sa_slotid + 1 - session->slots.size()) * sizeof(Slot);
    session->slots.resize(args.sa_slotid + 1);
  }
  Slot& slot = session->slots[args.sa_slotid];
  Client& client = *session->client;

  result.client = client.id;
  result.limits = session->fore;
  result.resok.sr_sessionid = session->id;
  result.resok.sr_sequenceid = args.sa_sequenceid;
  result.resok.sr_slotid = args.sa_slotid;
  result.resok.sr_highest_slotid = slots - 1;
  result.resok.sr_target_highest_slotid = slots - 1;
  const auto accept = [&] {
    t.renew(client);
    client.minorversion = request.minorversion;
    // Without state protection a connection joins by being used (2.10.3.1).
    t.bind(*session, request.connection, xdr::CDFS4_FORE);
    result.resok.sr_status_flags = t.status_flags(*session);
  };

  if (slot.used && args.sa_sequenceid == slot.seqid) {
    if (slot.busy) return refuse(xdr::NFS4ERR_DELAY);
    if (slot.checksum != request.checksum) return refuse(xdr::NFS4ERR_SEQ_FALSE_RETRY);
    accept();
    if (slot.reply == nullptr) return refuse(xdr::NFS4ERR_RETRY_UNCACHED_REP);
    result.kind = Sequenced::Kind::replay;
    result.reply = slot.reply;
    return result;
  }
  if (slot.busy || args.sa_sequenceid != slot.seqid + 1) {
    return refuse(xdr::NFS4ERR_SEQ_MISORDERED);
  }
  if (request.request_bytes > session->fore.ca_maxrequestsize) {
    return refuse(xdr::NFS4ERR_REQ_TOO_BIG);
  }
  if (request.operations > session->fore.ca_maxoperations) {
    return refuse(xdr::NFS4ERR_TOO_MANY_OPS);
  }
  drop_reply(t, slot);
  const std::size_t reserve = session->fore.ca_maxresponsesize_cached;
  if (args.sa_cachethis && !reserve_reply(t, reserve)) return refuse(xdr::NFS4ERR_DELAY);
  slot.caching = args.sa_cachethis;
  if (slot.caching) t.reply_reserved += reserve;
  slot.used = true;
  slot.busy = true;
  slot.seqid = args.sa_sequenceid;
  slot.checksum = request.checksum;
  ++session->busy;
  accept();
  result.kind = Sequenced::Kind::execute;
  result.ticket.state_ = this;
  result.ticket.session_ = session->id;
  result.ticket.slot_ = args.sa_slotid;
  return result;
}

void State::finish_slot(const sessionid4& id, std::uint32_t number, Bytes reply) {
  Guard guard(*this);
  Tables& t = guard.t;
  Session* session = t.find_session(id);
  // Destroyed meanwhile, perhaps by this very request.
  if (session == nullptr) return;
  Slot& slot = session->slots[number];
  slot.busy = false;
  --session->busy;
  if (slot.caching) t.reply_reserved -= session->fore.ca_maxresponsesize_cached;
  slot.caching = false;
  t.renew(*session->client);
  if (reply == nullptr || !reserve_reply(t, reply->size())) return;
  t.reply_bytes += reply->size();
  slot.reply = std::move(reply);
}

}  // namespace selvage::server::nfs4::state
