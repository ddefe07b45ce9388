// What a stateid is made of, and what it is good for (RFC 8881, 8.2; RFC 7530, 9.1.4): the epoch of
// the server instance, the client's number, an index among the client's stateids.
#include "server/nfs4/state/tables.h"

#include <algorithm>

namespace selvage::server::nfs4::state {
namespace {

std::uint32_t word(const stateid4& id, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = (value << 8) | id.other[at * 4 + i];
  return value;
}

void set_word(stateid4& id, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) {
    id.other[at * 4 + i] = static_cast<std::uint8_t>(value >> (24 - 8 * i));
  }
}

}  // namespace

bool is_anonymous(const stateid4& id) {
  return id == stateid4{};
}

bool is_bypass(const stateid4& id) {
  return id.seqid == ~seqid4{0} &&
         std::ranges::all_of(id.other, [](std::uint8_t byte) { return byte == 0xff; });
}

stateid4 Tables::stateid(const Held& held) const {
  stateid4 id;
  id.seqid = held.seqid;
  set_word(id, 0, epoch);
  set_word(id, 1, held.client->number);
  set_word(id, 2, held.index);
  return id;
}

std::uint32_t Tables::free_index(Client& client) {
  while (client.next_index == 0 || client.held.contains(client.next_index)) ++client.next_index;
  return client.next_index++;
}

void Tables::next_seqid(Held& held) {
  // 0 has a meaning of its own (RFC 8881, 8.2.2).
  if (++held.seqid == 0) held.seqid = 1;
}

nfsstat4 Tables::check_seqid(const Caller& caller, const stateid4& id, const Held& held) {
  if (id.seqid == held.seqid || (caller.minorversion != 0 && id.seqid == 0)) return xdr::NFS4_OK;
  const auto distance = static_cast<std::int32_t>(id.seqid - held.seqid);
  return distance > 0 ? xdr::NFS4ERR_BAD_STATEID : xdr::NFS4ERR_OLD_STATEID;
}

Outcome<Held*> Tables::find(const Caller& caller, const stateid4& id) {
  if (is_anonymous(id) || is_bypass(id)) return xdr::NFS4ERR_BAD_STATEID;
  const bool minor0 = caller.minorversion == 0;
  if (word(id, 0) != epoch) {
    // Minor version 1 knows of restarts by its session (RFC 8881, 15.1.16.5).
    return minor0 ? xdr::NFS4ERR_STALE_STATEID : xdr::NFS4ERR_BAD_STATEID;
  }
  const std::uint32_t number = word(id, 1);
  const auto found = clients.find(number);
  if (found == clients.end()) {
    const bool existed = number != 0 && (number < next_number || numbers_wrapped);
    return minor0 && existed ? xdr::NFS4ERR_EXPIRED : xdr::NFS4ERR_BAD_STATEID;
  }
  Client& client = *found->second;
  if (client.has_sessions == minor0 || (!minor0 && client.id != caller.client)) {
    return xdr::NFS4ERR_BAD_STATEID;
  }
  const auto refused = [](Revoked why) {
    return why == Revoked::admin ? xdr::NFS4ERR_ADMIN_REVOKED : xdr::NFS4ERR_EXPIRED;
  };
  if (minor0 && client.revoked != Revoked::no) return refused(client.revoked);
  const auto held = client.held.find(word(id, 2));
  if (held == client.held.end()) return xdr::NFS4ERR_BAD_STATEID;
  if (held->second->revoked != Revoked::no) return refused(held->second->revoked);
  if (minor0) renew(client);
  return held->second.get();
}

Outcome<Open*> Tables::find_open(const Caller& caller, const stateid4& id, const FileKey& key) {
  auto found = find(caller, id);
  if (!found) return found.status();
  if ((*found)->kind != Held::Kind::open) return xdr::NFS4ERR_BAD_STATEID;
  auto* open = static_cast<Open*>(*found);
  if (open->closed || open->file->key != key) return xdr::NFS4ERR_BAD_STATEID;
  const nfsstat4 seqid = check_seqid(caller, id, *open);
  if (seqid != xdr::NFS4_OK) return seqid;
  return open;
}

Outcome<Lock*> Tables::find_lock(const Caller& caller, const stateid4& id, const FileKey& key) {
  auto found = find(caller, id);
  if (!found) return found.status();
  if ((*found)->kind != Held::Kind::lock) return xdr::NFS4ERR_BAD_STATEID;
  auto* lock = static_cast<Lock*>(*found);
  if (lock->file->key != key) return xdr::NFS4ERR_BAD_STATEID;
  const nfsstat4 seqid = check_seqid(caller, id, *lock);
  if (seqid != xdr::NFS4_OK) return seqid;
  return lock;
}

Outcome<StateidUse> State::use_stateid(const Caller& caller, const stateid4& stateid,
                                       const FileKey& key, std::uint32_t access) {
  Guard guard(*this);
  Tables& t = guard.t;
  StateidUse use;
  if (is_anonymous(stateid) || is_bypass(stateid)) {
    use.special = true;
    File* file = t.find_file(key);
    if (file != nullptr) use.hold = file->hold;
    // All ones reads past deny modes, but does not write past them (RFC 8881, 8.2.3).
    if (is_bypass(stateid) && (access & xdr::OPEN4_SHARE_ACCESS_WRITE) == 0) return use;
    // A share reservation may be about to be reclaimed.
    if (!t.grace.over()) return xdr::NFS4ERR_GRACE;
    if (file != nullptr && !t.shares_allow(*file, access, xdr::OPEN4_SHARE_DENY_NONE)) {
      return xdr::NFS4ERR_LOCKED;
    }
    // Who has an open waited for that when it was granted; this user of the file has none.
    use.unrecorded = !t.durable(t.last_removal);
    return use;
  }
  auto found = t.find(caller, stateid);
  if (!found) return found.status();
  Held& held = **found;
  const Open* open = held.kind == Held::Kind::open ? static_cast<const Open*>(&held)
                                                   : static_cast<const Lock&>(held).open;
  if (open->closed || held.file->key != key) return xdr::NFS4ERR_BAD_STATEID;
  if (caller.minorversion == 0 && !open->owner->confirmed) return xdr::NFS4ERR_BAD_STATEID;
  const nfsstat4 seqid = Tables::check_seqid(caller, stateid, held);
  if (seqid != xdr::NFS4_OK) return seqid;
  if ((open->access & access) != access) return xdr::NFS4ERR_OPENMODE;
  use.client = held.client->id;
  use.hold = held.file->hold;
  return use;
}

std::vector<nfsstat4> State::test_stateids(const Caller& caller,
                                           std::span<const stateid4> stateids) {
  Guard guard(*this);
  std::vector<nfsstat4> statuses;
  statuses.reserve(stateids.size());
  for (const stateid4& id : stateids) {
    auto found = guard.t.find(caller, id);
    statuses.push_back(found ? Tables::check_seqid(caller, id, **found) : found.status());
  }
  return statuses;
}

nfsstat4 State::free_stateid(const Caller& caller, const stateid4& stateid) {
  Guard guard(*this);
  Tables& t = guard.t;
  auto found = t.find(caller, stateid);
  if (found) {
    const nfsstat4 seqid = Tables::check_seqid(caller, stateid, **found);
    if (seqid != xdr::NFS4_OK) return seqid;
    if ((*found)->kind == Held::Kind::open) return xdr::NFS4ERR_LOCKS_HELD;
    auto* lock = static_cast<Lock*>(*found);
    if (!lock->ranges.empty()) return xdr::NFS4ERR_LOCKS_HELD;
    t.remove_lock(*lock);
    return xdr::NFS4_OK;
  }
  if (found.status() != xdr::NFS4ERR_EXPIRED && found.status() != xdr::NFS4ERR_ADMIN_REVOKED) {
    return found.status();
  }
  Client& client = *t.find(caller.client);
  client.held.erase(word(stateid, 2));
  if (--client.revoked_stateids == 0) client.revoked = Revoked::no;
  return xdr::NFS4_OK;
}

}  // namespace selvage::server::nfs4::state
