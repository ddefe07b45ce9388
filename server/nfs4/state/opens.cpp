// OPEN, OPEN_CONFIRM, OPEN_DOWNGRADE, CLOSE (RFC 8881, 18.2, 18.16, 18.18; RFC 7530, 16.2, 16.16,
// 16.18, 16.19).
#include "server/nfs4/state/tables.h"

namespace selvage::server::nfs4::state {
namespace {

std::uint16_t combination(std::uint32_t access, std::uint32_t deny) {
  return static_cast<std::uint16_t>(1U << (access * 4 + deny));
}

/// Whether these are the union of some of the combinations.
bool is_union_of(std::uint16_t combinations, std::uint32_t access, std::uint32_t deny) {
  std::uint32_t all_access = 0;
  std::uint32_t all_deny = 0;
  for (std::uint32_t i = 0; i < 16; ++i) {
    if ((combinations >> i & 1U) == 0 || (i / 4 & ~access) != 0 || (i % 4 & ~deny) != 0) continue;
    all_access |= i / 4;
    all_deny |= i % 4;
  }
  return all_access == access && all_deny == deny;
}

/// Those that are still in effect after a downgrade to these.
std::uint16_t remaining(std::uint16_t combinations, std::uint32_t access, std::uint32_t deny) {
  for (std::uint32_t i = 0; i < 16; ++i) {
    if ((i / 4 & ~access) != 0 || (i % 4 & ~deny) != 0) {
      combinations = static_cast<std::uint16_t>(combinations & ~(1U << i));
    }
  }
  return combinations;
}

bool valid_shares(std::uint32_t access, std::uint32_t deny) {
  return access >= xdr::OPEN4_SHARE_ACCESS_READ && access <= xdr::OPEN4_SHARE_ACCESS_BOTH &&
         deny <= xdr::OPEN4_SHARE_DENY_BOTH;
}

}  // namespace

nfsstat4 State::check_open(const Caller& caller, bool reclaim) {
  Guard guard(*this);
  auto client = guard.t.usable(caller);
  return client ? guard.t.check_grace(**client, reclaim) : client.status();
}

Outcome<OpenTicket> State::begin_open(const OpenRequest& request) {
  Guard guard(*this);
  Tables& t = guard.t;
  auto usable = t.usable(request.caller);
  if (!usable) return usable.status();
  Client& client = **usable;
  if (!valid_shares(request.access, request.deny)) return xdr::NFS4ERR_INVAL;
  const nfsstat4 grace = t.check_grace(client, request.reclaim);
  if (grace != xdr::NFS4_OK) return grace;
  if (client.opens + client.pending_opens.size() >= t.options.max_opens_per_client) {
    return out_of_room(request.caller.minorversion);
  }
  if (!t.room_for(pending_bytes + held_bytes + file_bytes)) {
    return out_of_room(request.caller.minorversion);
  }
  Owner* owner = t.find_owner(client, Held::Kind::open, text(request.owner));
  if (owner == nullptr) owner = t.add_owner(client, Held::Kind::open, text(request.owner));
  if (owner == nullptr) return out_of_room(request.caller.minorversion);

  File& file = t.file(request.file);
  auto pending = std::make_unique<PendingOpen>();
  pending->id = t.next_id++;
  pending->client = &client;
  pending->owner = owner;
  pending->file = &file;
  pending->minorversion = request.caller.minorversion;
  pending->reclaim = request.reclaim;
  PendingOpen& begun = *pending;
  // Without shares yet: it keeps file and owner while others are revoked.
  file.pending.insert(&begun);
  client.pending_opens.insert(begun.id);
  ++owner->pending;
  t.pending_opens.emplace(begun.id, std::move(pending));
  if (!t.shares_allow(file, request.access, request.deny)) {
    t.remove_pending(begun);
    return request.reclaim ? xdr::NFS4ERR_RECLAIM_CONFLICT : xdr::NFS4ERR_SHARE_DENIED;
  }
  begun.access = request.access;
  begun.deny = request.deny;
  t.count_share(file, begun.access, begun.deny, 1);
  t.record(client);
  begun.records = t.last_change();

  OpenTicket ticket;
  ticket.state_ = this;
  ticket.pending_ = begun.id;
  return ticket;
}

std::shared_ptr<void> State::hold(const OpenTicket& ticket) const {
  Guard guard(*this);
  const auto found = guard.t.pending_opens.find(ticket.pending_);
  return found == guard.t.pending_opens.end() ? nullptr : found->second->file->hold;
}

void State::abort_open(std::uint64_t id) {
  Guard guard(*this);
  const auto found = guard.t.pending_opens.find(id);
  if (found != guard.t.pending_opens.end()) guard.t.remove_pending(*found->second);
}

Outcome<OpenGrant> State::commit_open(OpenTicket ticket, std::shared_ptr<void> hold) {
  const std::uint64_t id = ticket.pending_;
  ticket.state_ = nullptr;
  Guard guard(*this);
  Tables& t = guard.t;
  // A hold that is not needed is not destroyed here.
  const auto unneeded = [&] {
    if (hold != nullptr) t.garbage.push_back(std::move(hold));
  };
  const auto found = t.pending_opens.find(id);
  if (found == t.pending_opens.end()) {
    // Its client has gone meanwhile, or lost everything.
    unneeded();
    return xdr::NFS4ERR_EXPIRED;
  }
  PendingOpen& pending = *found->second;
  if (!t.durable(pending.records)) {
    unneeded();
    t.remove_pending(pending);
    return xdr::NFS4ERR_IO;
  }
  Client& client = *pending.client;
  Owner& owner = *pending.owner;
  File& file = *pending.file;
  const auto before = owner.held.find(&file);
  Open* open = nullptr;
  if (before != owner.held.end()) {
    open = static_cast<Open*>(before->second);
    Tables::next_seqid(*open);
  } else {
    auto made = std::make_unique<Open>(&client, t.free_index(client));
    open = made.get();
    open->file = &file;
    open->owner = &owner;
    client.held.emplace(open->index, std::move(made));
    owner.held.emplace(&file, open);
    file.opens.insert(open);
    ++client.opens;
  }
  t.count_share(file, open->access, open->deny, -1);
  open->access |= pending.access;
  open->deny |= pending.deny;
  open->combinations =
      static_cast<std::uint16_t>(open->combinations | combination(pending.access, pending.deny));
  t.count_share(file, open->access, open->deny, 1);
  if (file.hold == nullptr) {
    file.hold = std::move(hold);
  } else {
    unneeded();
  }
  // A reclaim needs no confirmation (RFC 7530, 16.18.5).
  if (pending.minorversion == 0 && pending.reclaim) owner.confirmed = true;
  OpenGrant grant;
  grant.stateid = t.stateid(*open);
  grant.confirm = pending.minorversion == 0 && !owner.confirmed;
  grant.access = open->access;
  grant.deny = open->deny;
  t.remove_pending(pending);
  return grant;
}

Outcome<stateid4> State::open_confirm(const stateid4& stateid, const FileKey& file) {
  Guard guard(*this);
  auto found = guard.t.find_open({}, stateid, file);
  if (!found) return found.status();
  Open& open = **found;
  if (open.owner->confirmed) return xdr::NFS4ERR_BAD_STATEID;
  open.owner->confirmed = true;
  Tables::next_seqid(open);
  return guard.t.stateid(open);
}

Outcome<stateid4> State::open_downgrade(const Caller& caller, const stateid4& stateid,
                                        const FileKey& file, std::uint32_t access,
                                        std::uint32_t deny) {
  Guard guard(*this);
  Tables& t = guard.t;
  auto found = t.find_open(caller, stateid, file);
  if (!found) return found.status();
  Open& open = **found;
  if (caller.minorversion == 0 && !open.owner->confirmed) return xdr::NFS4ERR_BAD_STATEID;
  if (!valid_shares(access, deny) || !is_union_of(open.combinations, access, deny)) {
    return xdr::NFS4ERR_INVAL;
  }
  t.count_share(*open.file, open.access, open.deny, -1);
  open.access = access;
  open.deny = deny;
  open.combinations = remaining(open.combinations, access, deny);
  t.count_share(*open.file, open.access, open.deny, 1);
  Tables::next_seqid(open);
  return t.stateid(open);
}

Outcome<stateid4> State::close(const Caller& caller, const stateid4& stateid, const FileKey& file) {
  Guard guard(*this);
  Tables& t = guard.t;
  auto found = t.find_open(caller, stateid, file);
  if (!found) return found.status();
  Open& open = **found;
  if (caller.minorversion != 0) {
    t.remove_open(open);
    // A stateid that nothing accepts (RFC 8881, 18.2.4).
    stateid4 invalid;
    invalid.seqid = ~seqid4{0};
    return invalid;
  }
  if (!open.owner->confirmed) return xdr::NFS4ERR_BAD_STATEID;
  Client& client = *open.client;
  Owner& owner = *open.owner;
  const std::uint32_t index = open.index;
  Tables::next_seqid(open);
  const stateid4 last = t.stateid(open);
  t.remove_open(open);
  // For a replay, which is found by the stateid.
  t.drop_closed(owner);
  auto closed = std::make_unique<Open>(&client, index);
  closed->closed = true;
  closed->owner = &owner;
  closed->seqid = last.seqid;
  client.held.emplace(index, std::move(closed));
  owner.closed = index;
  return last;
}

}  // namespace selvage::server::nfs4::state
