// LOCK, LOCKT, LOCKU (RFC 8881, 18.10 to 18.12; RFC 7530, 16.10 to 16.12). Waiting is polling: the
// blocking types are treated as the others.
#include "server/nfs4/state/tables.h"

namespace selvage::server::nfs4::state {
namespace {

LockMode mode_of(xdr::nfs_lock_type4 type) {
  return type == xdr::WRITE_LT || type == xdr::WRITEW_LT ? LockMode::write : LockMode::read;
}

LockStart failed(nfsstat4 status) {
  LockStart start;
  start.status = status;
  return start;
}

LockStart denied(const Owner& owner, const LockedRange& held) {
  LockStart start;
  start.status = xdr::NFS4ERR_DENIED;
  start.denied.offset = held.range.first;
  start.denied.length = length_of(held.range);
  start.denied.locktype = held.mode == LockMode::write ? xdr::WRITE_LT : xdr::READ_LT;
  start.denied.owner.clientid = owner.client->id;
  start.denied.owner.owner = xdr::owner4(
      std::span(reinterpret_cast<const std::uint8_t*>(owner.name.data()), owner.name.size()));
  return start;
}

/// What a LOCK is about, once its arguments have been looked up.
struct Target {
  nfsstat4 status = xdr::NFS4_OK;
  Open* open = nullptr;
  Owner* owner = nullptr;  ///< Null: a new one, `name`.
  Lock* lock = nullptr;    ///< Null: the first of this owner on this file.
  std::string_view name;
};

Target find_target(Tables& t, const Caller& caller, const xdr::LOCK4args& args,
                   const FileKey& file) {
  Target target;
  if (const auto* old = args.locker.get_if<xdr::exist_lock_owner4>()) {
    auto found = t.find_lock(caller, old->lock_stateid, file);
    if (!found) {
      target.status = found.status();
      return target;
    }
    target.lock = *found;
    target.open = target.lock->open;
    target.owner = target.lock->owner;
    return target;
  }
  const auto& fresh = *args.locker.get_if<xdr::open_to_lock_owner4>();
  auto found = t.find_open(caller, fresh.open_stateid, file);
  if (!found) {
    target.status = found.status();
    return target;
  }
  target.open = *found;
  target.name = text(fresh.lock_owner.owner.bytes());
  target.owner = t.find_owner(*target.open->client, Held::Kind::lock, target.name);
  if (caller.minorversion == 0) {
    if (!target.open->owner->confirmed || fresh.lock_owner.clientid != target.open->client->id) {
      target.status = xdr::NFS4ERR_BAD_STATEID;
    } else if (target.owner != nullptr &&
               (target.owner->busy || fresh.lock_seqid != target.owner->seqid + 1)) {
      target.status = xdr::NFS4ERR_BAD_SEQID;
    }
  }
  if (target.status == xdr::NFS4_OK && target.owner != nullptr) {
    const auto lock = target.owner->held.find(target.open->file);
    if (lock != target.owner->held.end()) target.lock = static_cast<Lock*>(lock->second);
  }
  return target;
}

/// What the owner holds on the file; null: nothing.
const LockRanges* find_held(const Owner& owner, File& file) {
  const auto held = owner.held.find(&file);
  return held == owner.held.end() ? nullptr : &static_cast<const Lock*>(held->second)->ranges;
}

/// Whose lock is in the way. Expired clients are not: they are revoked, or left alone (`test`).
LockStart check_conflicts(Tables& t, File& file, const Owner* owner, const ByteRange& range,
                          LockMode mode, bool test) {
  const auto own = owner == nullptr ? nullptr : find_held(*owner, file);
  if (!file.held.blocks(range, mode, own)) return {};
  std::set<Client*> gone;
  for (const Lock* other : file.locks) {
    if (other->owner == owner) continue;
    const auto held = other->ranges.conflict(range, mode);
    if (!held) continue;
    if (!t.expired(*other->client)) return denied(*other->owner, *held);
    gone.insert(other->client);
  }
  if (!test) {
    for (Client* client : gone) t.revoke_client(*client, Revoked::expired);
  }
  return {};
}

Lock* add_lock(Tables& t, Open& open, Owner& owner) {
  Client& client = *open.client;
  auto made = std::make_unique<Lock>(&client, t.free_index(client));
  Lock* lock = made.get();
  lock->seqid = 0;
  lock->open = &open;
  lock->owner = &owner;
  lock->file = open.file;
  client.held.emplace(lock->index, std::move(made));
  owner.held.emplace(open.file, lock);
  open.file->locks.insert(lock);
  open.locks.insert(lock);
  return lock;
}

/// The Lock, if it is still there.
Lock* find_pending(Tables& t, const PendingLock& pending) {
  Client* client = t.find(pending.client);
  if (client == nullptr) return nullptr;
  const auto held = client->held.find(pending.index);
  if (held == client->held.end() || held->second->kind != Held::Kind::lock ||
      held->second->revoked != Revoked::no) {
    return nullptr;
  }
  return static_cast<Lock*>(held->second.get());
}

}  // namespace

LockStart State::begin_lock(const Caller& caller, const xdr::LOCK4args& args, const FileKey& file) {
  Guard guard(*this);
  Tables& t = guard.t;
  Target target = find_target(t, caller, args, file);
  if (target.status != xdr::NFS4_OK) return failed(target.status);
  Open& open = *target.open;
  Client& client = *open.client;
  t.renew(client);
  const bool fresh = args.locker.get_if<xdr::open_to_lock_owner4>() != nullptr;
  const bool minor0 = caller.minorversion == 0;
  // A range is cut in two at most.
  if (client.locks + 2 > t.options.max_locks_per_client) {
    return failed(out_of_room(caller.minorversion));
  }
  if (!t.room_for(held_bytes + 2 * range_bytes)) return failed(out_of_room(caller.minorversion));
  const auto advance = [&] {
    if (!minor0 || !fresh || target.owner == nullptr) return;
    target.owner->seen = true;
    target.owner->seqid = args.locker.get_if<xdr::open_to_lock_owner4>()->lock_seqid;
    // The open owner has the reply.
    target.owner->has_reply = false;
    target.owner->reply = {};
  };
  advance();
  auto range = byte_range(args.offset, args.length);
  if (!range) return failed(range.status());
  const LockMode mode = mode_of(args.locktype);
  const std::uint32_t needed =
      mode == LockMode::write ? xdr::OPEN4_SHARE_ACCESS_WRITE : xdr::OPEN4_SHARE_ACCESS_READ;
  if ((open.access & needed) == 0) return failed(xdr::NFS4ERR_OPENMODE);
  const nfsstat4 grace = t.check_grace(client, args.reclaim);
  if (grace != xdr::NFS4_OK) return failed(grace);
  LockStart start = check_conflicts(t, *open.file, target.owner, *range, mode, false);
  if (start.status != xdr::NFS4_OK) {
    if (args.reclaim) return failed(xdr::NFS4ERR_RECLAIM_CONFLICT);
    return start;
  }
  if (target.owner == nullptr) {
    target.owner = t.add_owner(client, Held::Kind::lock, target.name);
    if (target.owner == nullptr) return failed(out_of_room(caller.minorversion));
    target.owner->confirmed = true;
    advance();
  }
  if (target.lock == nullptr) target.lock = add_lock(t, open, *target.owner);
  PendingLock pending;
  pending.client = client.id;
  pending.index = target.lock->index;
  pending.range = *range;
  pending.before = target.lock->ranges.within(*range);
  t.set_range(*target.lock, *range, mode);
  pending.records = t.last_change();

  start.range = *range;
  start.ticket.state_ = this;
  start.ticket.pending_ = t.next_id++;
  t.pending_locks.emplace(start.ticket.pending_, std::move(pending));
  return start;
}

Outcome<stateid4> State::commit_lock(LockTicket ticket) {
  {
    Guard guard(*this);
    Tables& t = guard.t;
    const auto found = t.pending_locks.find(ticket.pending_);
    if (found == t.pending_locks.end()) return xdr::NFS4ERR_EXPIRED;
    if (t.durable(found->second.records)) {
      Lock* lock = find_pending(t, found->second);
      t.pending_locks.erase(found);
      ticket.state_ = nullptr;
      // Released meanwhile, by CLOSE or with its client.
      if (lock == nullptr) return xdr::NFS4ERR_EXPIRED;
      Tables::next_seqid(*lock);
      return t.stateid(*lock);
    }
  }
  // The ticket undoes it.
  return xdr::NFS4ERR_IO;
}

void State::undo_lock(std::uint64_t id) {
  Guard guard(*this);
  Tables& t = guard.t;
  const auto found = t.pending_locks.find(id);
  if (found == t.pending_locks.end()) return;
  const PendingLock pending = std::move(found->second);
  t.pending_locks.erase(found);
  Lock* lock = find_pending(t, pending);
  if (lock == nullptr) return;
  t.set_range(*lock, pending.range, LockMode::none);
  for (const LockedRange& piece : pending.before) t.set_range(*lock, piece.range, piece.mode);
  t.changed(*lock->file, pending.range);
  if (lock->seqid == 0 && lock->ranges.empty()) t.remove_lock(*lock);
}

LockStart State::test_lock(const Caller& caller, const xdr::LOCKT4args& args, const FileKey& key) {
  Guard guard(*this);
  Tables& t = guard.t;
  Caller by = caller;
  if (by.minorversion == 0) by.client = args.owner.clientid;
  auto usable = t.usable(by);
  if (!usable) return failed(usable.status());
  auto range = byte_range(args.offset, args.length);
  if (!range) return failed(range.status());
  if (!t.grace.over()) return failed(xdr::NFS4ERR_GRACE);
  File* file = t.find_file(key);
  if (file == nullptr) return {};
  const Owner* owner = t.find_owner(**usable, Held::Kind::lock, text(args.owner.owner.bytes()));
  return check_conflicts(t, *file, owner, *range, mode_of(args.locktype), true);
}

Outcome<stateid4> State::unlock(const Caller& caller, const xdr::LOCKU4args& args,
                                const FileKey& file) {
  Guard guard(*this);
  Tables& t = guard.t;
  auto found = t.find_lock(caller, args.lock_stateid, file);
  if (!found) return found.status();
  Lock& lock = **found;
  auto range = byte_range(args.offset, args.length);
  if (!range) return range.status();
  const bool room = lock.client->locks < t.options.max_locks_per_client && t.room_for(range_bytes);
  if (!room && lock.ranges.splits(*range)) return out_of_room(caller.minorversion);
  t.set_range(lock, *range, LockMode::none);
  Tables::next_seqid(lock);
  return t.stateid(lock);
}

std::vector<LockedRange> State::lock_union(const FileKey& key, const ByteRange& range) const {
  Guard guard(*this);
  const File* file = guard.t.find_file(key);
  return file == nullptr ? LockSum().within(range) : file->held.within(range);
}

std::vector<ChangedLocks> State::take_changed_locks() {
  Guard guard(*this);
  std::vector<ChangedLocks> taken;
  taken.swap(guard.t.changed_locks);
  return taken;
}

}  // namespace selvage::server::nfs4::state
