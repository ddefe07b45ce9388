// Seqids of open owners and lock owners in minor version 0 (RFC 7530, 9.1.7): at most once, with
// the last reply kept.
#include "server/nfs4/state/tables.h"

namespace selvage::server::nfs4::state {
namespace {

/// RFC 7530, 9.1.7: after these the client does not advance its seqid.
bool advances(nfsstat4 status) {
  switch (status) {
    case xdr::NFS4ERR_STALE_CLIENTID:
    case xdr::NFS4ERR_STALE_STATEID:
    case xdr::NFS4ERR_BAD_STATEID:
    case xdr::NFS4ERR_BAD_SEQID:
    case xdr::NFS4ERR_BADXDR:
    case xdr::NFS4ERR_RESOURCE:
    case xdr::NFS4ERR_NOFILEHANDLE:
    case xdr::NFS4ERR_MOVED:
      return false;
    default:
      return true;
  }
}

OwnerStep refused(nfsstat4 status) {
  OwnerStep step;
  step.status = status;
  return step;
}

/// Anything but the next operation of an owner.
OwnerStep not_next(const Owner& owner, seqid4 seqid) {
  OwnerStep step;
  if (owner.busy) {
    if (seqid != owner.busy_seqid) return refused(xdr::NFS4ERR_BAD_SEQID);
    step.kind = OwnerStep::Kind::in_progress;
  } else {
    if (!owner.seen || !owner.has_reply || seqid != owner.seqid) {
      return refused(xdr::NFS4ERR_BAD_SEQID);
    }
    step.kind = OwnerStep::Kind::replay;
    step.reply = owner.reply;
  }
  return step;
}

void begin(Owner& owner, seqid4 seqid, Clock::time_point now) {
  owner.busy = true;
  owner.busy_seqid = seqid;
  owner.used = now;
}

}  // namespace

OwnerStep State::begin_open_owner(const xdr::state_owner4& name, seqid4 seqid) {
  Guard guard(*this);
  Tables& t = guard.t;
  auto usable = t.usable({0, name.clientid});
  if (!usable) return refused(usable.status());
  Client& client = **usable;
  Owner* owner = t.find_owner(client, Held::Kind::open, text(name.owner.bytes()));
  if (owner == nullptr) {
    owner = t.add_owner(client, Held::Kind::open, text(name.owner.bytes()));
    if (owner == nullptr) return refused(xdr::NFS4ERR_RESOURCE);
  } else if (owner->busy) {
    return not_next(*owner, seqid);
  } else if (!owner->confirmed) {
    // An OPEN of an unconfirmed owner that is no replay begins anew; what it had opened is gone
    // (RFC 7530, 16.18.5).
    if (owner->has_reply && seqid == owner->seqid) return not_next(*owner, seqid);
    while (!owner->held.empty()) t.remove_open(static_cast<Open&>(*owner->held.begin()->second));
    owner->seen = false;
    owner->has_reply = false;
  } else if (seqid != owner->seqid + 1) {
    return not_next(*owner, seqid);
  }
  begin(*owner, seqid, t.now);
  OwnerStep step;
  step.kind = OwnerStep::Kind::proceed;
  step.ticket.state_ = this;
  step.ticket.client_ = client.id;
  step.ticket.owner_ = owner->id;
  step.ticket.seqid_ = seqid;
  return step;
}

OwnerStep State::begin_stateid_owner(const stateid4& stateid, seqid4 seqid) {
  Guard guard(*this);
  Tables& t = guard.t;
  auto found = t.find({}, stateid);
  if (!found) return refused(found.status());
  Owner& owner = *(*found)->owner;
  if (owner.busy || !owner.seen || seqid != owner.seqid + 1) return not_next(owner, seqid);
  begin(owner, seqid, t.now);
  OwnerStep step;
  step.kind = OwnerStep::Kind::proceed;
  step.ticket.state_ = this;
  step.ticket.client_ = owner.client->id;
  step.ticket.owner_ = owner.id;
  step.ticket.seqid_ = seqid;
  return step;
}

void State::finish_owner(clientid4 client_id, std::uint64_t owner_id, seqid4 seqid,
                         OwnerReply* reply) {
  Guard guard(*this);
  Client* client = guard.t.find(client_id);
  if (client == nullptr) return;
  const auto found = client->owners.find(owner_id);
  if (found == client->owners.end()) return;
  Owner& owner = *found->second;
  owner.busy = false;
  owner.used = guard.t.now;
  if (reply == nullptr || !advances(reply->status)) return;
  owner.seen = true;
  owner.seqid = seqid;
  owner.has_reply = true;
  owner.reply = std::move(*reply);
}

nfsstat4 State::release_lockowner(const xdr::state_owner4& name) {
  Guard guard(*this);
  Tables& t = guard.t;
  auto usable = t.usable({0, name.clientid});
  if (!usable) return usable.status();
  Owner* owner = t.find_owner(**usable, Held::Kind::lock, text(name.owner.bytes()));
  if (owner == nullptr) return xdr::NFS4_OK;
  for (const auto& [file, held] : owner->held) {
    if (!static_cast<const Lock*>(held)->ranges.empty()) return xdr::NFS4ERR_LOCKS_HELD;
  }
  if (owner->busy) return xdr::NFS4ERR_LOCKS_HELD;
  while (!owner->held.empty()) t.remove_lock(static_cast<Lock&>(*owner->held.begin()->second));
  t.remove_owner(*owner);
  return xdr::NFS4_OK;
}

}  // namespace selvage::server::nfs4::state
