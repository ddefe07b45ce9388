// CREATE_SESSION, DESTROY_SESSION, BIND_CONN_TO_SESSION, BACKCHANNEL_CTL (RFC 8881, 18.36, 18.37,
// 18.34, 18.33), and which connections are whose.
#include "server/nfs4/state/tables.h"

#include <algorithm>

namespace selvage::server::nfs4::state {
namespace {

constexpr std::uint32_t known_session_flags = xdr::CREATE_SESSION4_FLAG_PERSIST |
                                              xdr::CREATE_SESSION4_FLAG_CONN_BACK_CHAN |
                                              xdr::CREATE_SESSION4_FLAG_CONN_RDMA;

// What a call and a reply with SEQUENCE or CB_SEQUENCE alone need, RPC headers included.
constexpr std::uint32_t min_request_bytes = 128;
constexpr std::uint32_t min_reply_bytes = 80;

/// What is granted of what was asked for; nothing if that is too little to be of use.
std::optional<xdr::channel_attrs4> negotiate(const xdr::channel_attrs4& asked,
                                             const Options& options, std::uint32_t min_operations) {
  if (asked.ca_maxrequestsize < min_request_bytes || asked.ca_maxresponsesize < min_reply_bytes ||
      asked.ca_maxoperations < min_operations || asked.ca_maxrequests == 0) {
    return std::nullopt;
  }
  xdr::channel_attrs4 granted;
  granted.ca_maxrequestsize = std::min(asked.ca_maxrequestsize, options.max_request_bytes);
  granted.ca_maxresponsesize = std::min(asked.ca_maxresponsesize, options.max_reply_bytes);
  granted.ca_maxresponsesize_cached =
      std::min({asked.ca_maxresponsesize_cached, options.max_cached_reply_bytes,
                granted.ca_maxresponsesize});
  granted.ca_maxoperations = std::min(asked.ca_maxoperations, options.max_operations);
  granted.ca_maxrequests = std::min(asked.ca_maxrequests, options.max_slots);
  return granted;
}

sessionid4 session_id(clientid4 client, std::uint64_t number) {
  sessionid4 id;
  for (std::size_t i = 0; i < 8; ++i) {
    id[i] = static_cast<std::uint8_t>(client >> (56 - 8 * i));
    id[8 + i] = static_cast<std::uint8_t>(number >> (56 - 8 * i));
  }
  return id;
}

}  // namespace

Session* Tables::find_session(const sessionid4& id) {
  const auto found = sessions.find(id);
  return found == sessions.end() ? nullptr : found->second.get();
}

void Tables::drop_replies(Session& session) {
  for (Slot& slot : session.slots) {
    if (slot.reply == nullptr) continue;
    reply_bytes -= slot.reply->size();
    slot.reply = nullptr;
  }
}

void Tables::remove_session(Session& session) {
  drop_replies(session);
  for (const Slot& slot : session.slots) {
    if (slot.caching) reply_reserved -= session.fore.ca_maxresponsesize_cached;
  }
  for (const auto* bound : {&session.fore_connections, &session.back_connections}) {
    for (const ConnectionId connection : *bound) {
      const auto found = by_connection.find(connection);
      if (found == by_connection.end()) continue;
      found->second.erase(&session);
      if (found->second.empty()) by_connection.erase(found);
    }
  }
  memory.bytes -= session.slots.size() * sizeof(Slot);
  session.client->sessions.erase(&session);
  sessions.erase(sessionid4(session.id));
}

void Tables::bind(Session& session, ConnectionId connection, std::uint32_t directions) {
  if ((directions & xdr::CDFS4_FORE) != 0) session.fore_connections.insert(connection);
  if ((directions & xdr::CDFS4_BACK) != 0) {
    session.back_connections.insert(connection);
    session.wanted_back_channel = true;
  }
  by_connection[connection].insert(&session);
}

Outcome<xdr::CREATE_SESSION4resok> State::create_session(const xdr::CREATE_SESSION4args& args,
                                                         const Principal& principal,
                                                         ConnectionId connection) {
  Guard guard(*this);
  Tables& t = guard.t;
  Client* client = t.find(args.csa_clientid);
  if (client == nullptr || !client->has_sessions) return xdr::NFS4ERR_STALE_CLIENTID;
  t.grace.heard(true, client->owner, t.now);
  if (args.csa_sequence + 1 == client->next_sequence && client->last_create_session) {
    // An error left nothing behind: what is asked for now is judged anew.
    if (*client->last_create_session) return *client->last_create_session;
  } else if (args.csa_sequence != client->next_sequence) {
    return xdr::NFS4ERR_SEQ_MISORDERED;
  }
  // Somebody else must not use up the sequence.
  if (!client->confirmed && !(client->principal == principal)) return xdr::NFS4ERR_CLID_INUSE;
  client->next_sequence = args.csa_sequence + 1;

  const auto create = [&]() -> Outcome<xdr::CREATE_SESSION4resok> {
    if ((args.csa_flags & ~known_session_flags) != 0) return xdr::NFS4ERR_INVAL;
    const auto fore = negotiate(args.csa_fore_chan_attrs, t.options, 1);
    // CB_SEQUENCE and one more.
    const auto back = negotiate(args.csa_back_chan_attrs, t.options, 2);
    if (!fore || !back) return xdr::NFS4ERR_TOOSMALL;
    if (client->sessions.size() >= t.options.max_sessions_per_client) return xdr::NFS4ERR_NOSPC;
    t.renew(*client);
    if (!t.room_for(session_bytes)) return xdr::NFS4ERR_NOSPC;
    if (!client->confirmed) t.confirm(*client);

    auto made = std::make_unique<Session>();
    Session& session = *made;
    session.id = session_id(client->id, t.next_session++);
    session.client = client;
    session.fore = *fore;
    session.back = *back;
    session.program = args.csa_cb_program;
    session.security = args.csa_sec_parms;
    t.sessions.emplace(session.id, std::move(made));
    client->sessions.insert(&session);
    const bool call_back = (args.csa_flags & xdr::CREATE_SESSION4_FLAG_CONN_BACK_CHAN) != 0;
    t.bind(session, connection, call_back ? xdr::CDFS4_BOTH : xdr::CDFS4_FORE);

    xdr::CREATE_SESSION4resok ok;
    ok.csr_sessionid = session.id;
    ok.csr_sequence = args.csa_sequence;
    // The reply cache is not persistent, and there is no RDMA.
    ok.csr_flags = args.csa_flags & xdr::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
    ok.csr_fore_chan_attrs = *fore;
    ok.csr_back_chan_attrs = *back;
    return ok;
  };
  client->last_create_session = create();
  return *client->last_create_session;
}

nfsstat4 State::destroy_session(const sessionid4& id, bool own, ConnectionId connection) {
  Guard guard(*this);
  Session* session = guard.t.find_session(id);
  if (session == nullptr) return xdr::NFS4ERR_BADSESSION;
  if (!session->fore_connections.contains(connection) &&
      !session->back_connections.contains(connection)) {
    return xdr::NFS4ERR_CONN_NOT_BOUND_TO_SESSION;
  }
  if (session->busy > (own ? 1U : 0U)) return xdr::NFS4ERR_DELAY;
  guard.t.remove_session(*session);
  return xdr::NFS4_OK;
}

Outcome<xdr::BIND_CONN_TO_SESSION4resok> State::bind_conn_to_session(
    const xdr::BIND_CONN_TO_SESSION4args& args, ConnectionId connection) {
  xdr::BIND_CONN_TO_SESSION4resok ok;
  switch (args.bctsa_dir) {
    case xdr::CDFC4_FORE:
      ok.bctsr_dir = xdr::CDFS4_FORE;
      break;
    case xdr::CDFC4_BACK:
      ok.bctsr_dir = xdr::CDFS4_BACK;
      break;
    case xdr::CDFC4_FORE_OR_BOTH:
    case xdr::CDFC4_BACK_OR_BOTH:
      ok.bctsr_dir = xdr::CDFS4_BOTH;
      break;
    default:
      return xdr::NFS4ERR_INVAL;
  }
  Guard guard(*this);
  Session* session = guard.t.find_session(args.bctsa_sessid);
  if (session == nullptr) return xdr::NFS4ERR_BADSESSION;
  guard.t.bind(*session, connection, ok.bctsr_dir);
  guard.t.renew(*session->client);
  ok.bctsr_sessid = session->id;
  return ok;
}

nfsstat4 State::backchannel_ctl(const sessionid4& id, const xdr::BACKCHANNEL_CTL4args& args) {
  Guard guard(*this);
  Session* session = guard.t.find_session(id);
  if (session == nullptr) return xdr::NFS4ERR_BADSESSION;
  session->program = args.bca_cb_program;
  session->security = args.bca_sec_parms;
  return xdr::NFS4_OK;
}

void State::connection_lost(ConnectionId connection) {
  Guard guard(*this);
  const auto found = guard.t.by_connection.find(connection);
  if (found == guard.t.by_connection.end()) return;
  for (Session* session : found->second) {
    session->fore_connections.erase(connection);
    session->back_connections.erase(connection);
  }
  guard.t.by_connection.erase(found);
}

std::vector<BackChannel> State::back_channels(clientid4 id) const {
  Guard guard(*this);
  std::vector<BackChannel> channels;
  const Client* client = guard.t.find(id);
  if (client == nullptr) return channels;
  for (const Session* session : client->sessions) {
    for (const ConnectionId connection : session->back_connections) {
      channels.push_back({session->id, connection, session->program, session->back});
    }
  }
  return channels;
}

}  // namespace selvage::server::nfs4::state
