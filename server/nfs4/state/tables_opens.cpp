// Owners, files, and what is open and locked: the steps that keep their references consistent.
#include "server/nfs4/state/tables.h"

#include <algorithm>

namespace selvage::server::nfs4::state {

Owner* Tables::find_owner(Client& client, Held::Kind kind, std::string_view name) {
  auto& owners = kind == Held::Kind::open ? client.open_owners : client.lock_owners;
  const auto found = owners.find(std::string(name));
  return found == owners.end() ? nullptr : found->second.get();
}

Owner* Tables::add_owner(Client& client, Held::Kind kind, std::string_view name) {
  auto& owners = kind == Held::Kind::open ? client.open_owners : client.lock_owners;
  if (owners.size() >= options.max_owners_per_client) {
    collect_owners(client);
    if (owners.size() >= options.max_owners_per_client) return nullptr;
  }
  if (!room_for(owner_bytes(name))) return nullptr;
  auto owner = std::make_unique<Owner>(next_id++, kind, &client, name);
  owner->used = now;
  Owner* added = owner.get();
  client.owners.emplace(added->id, added);
  owners.emplace(added->name, std::move(owner));
  return added;
}

void Tables::drop_closed(Owner& owner) {
  if (owner.closed == 0) return;
  owner.client->held.erase(owner.closed);
  owner.closed = 0;
}

void Tables::remove_owner(Owner& owner) {
  drop_closed(owner);
  Client& client = *owner.client;
  client.owners.erase(owner.id);
  auto& owners = owner.kind == Held::Kind::open ? client.open_owners : client.lock_owners;
  owners.erase(std::string(owner.name));
}

void Tables::collect(Owner& owner) {
  if (!owner.held.empty() || owner.pending != 0) return;
  // Those of minor version 0 are needed for replays; collect_owners() takes them.
  if (owner.client->has_sessions) remove_owner(owner);
}

void Tables::collect_owners(Client& client) {
  client.owners_collected = now;
  std::vector<Owner*> idle;
  for (const auto& [id, owner] : client.owners) {
    if (owner->held.empty() && owner->pending == 0 && !owner->busy &&
        now - owner->used > options.lease_time) {
      idle.push_back(owner);
    }
  }
  for (Owner* owner : idle) remove_owner(*owner);
}

File& Tables::file(const FileKey& key) {
  auto& slot = files[key];
  if (slot == nullptr) {
    slot = std::make_unique<File>();
    slot->key = key;
  }
  return *slot;
}

File* Tables::find_file(const FileKey& key) {
  const auto found = files.find(key);
  return found == files.end() ? nullptr : found->second.get();
}

void Tables::collect(File& unused) {
  if (!unused.opens.empty()) return;
  if (unused.hold != nullptr) garbage.push_back(std::move(unused.hold));
  unused.hold = nullptr;
  if (unused.pending.empty() && unused.locks.empty()) files.erase(FileKey(unused.key));
}

void Tables::count_share(File& shared, std::uint32_t access, std::uint32_t deny, int by) {
  for (std::size_t bit = 0; bit < 2; ++bit) {
    if ((access >> bit & 1U) != 0) shared.access[bit] += static_cast<std::uint32_t>(by);
    if ((deny >> bit & 1U) != 0) shared.deny[bit] += static_cast<std::uint32_t>(by);
  }
}

bool Tables::shares_allow(File& shared, std::uint32_t access, std::uint32_t deny) {
  const auto contradict = [&](std::uint32_t others_access, std::uint32_t others_deny) {
    return (access & others_deny) != 0 || (deny & others_access) != 0;
  };
  const auto bits = [](const std::array<std::uint32_t, 2>& counts) {
    return (counts[0] != 0 ? 1U : 0U) | (counts[1] != 0 ? 2U : 0U);
  };
  if (!contradict(bits(shared.access), bits(shared.deny))) return true;
  std::set<Client*> gone;
  for (const Open* open : shared.opens) {
    if (!contradict(open->access, open->deny)) continue;
    if (!expired(*open->client)) return false;
    gone.insert(open->client);
  }
  for (const PendingOpen* pending : shared.pending) {
    if (!contradict(pending->access, pending->deny)) continue;
    if (!expired(*pending->client)) return false;
    gone.insert(pending->client);
  }
  // The caller's own client has just been renewed; it keeps the file from going.
  for (Client* client : gone) revoke_client(*client, Revoked::expired);
  return true;
}

void Tables::remove_open(Open& open) {
  while (!open.locks.empty()) remove_lock(**open.locks.begin());
  File& shared = *open.file;
  count_share(shared, open.access, open.deny, -1);
  shared.opens.erase(&open);
  open.owner->held.erase(&shared);
  Owner& owner = *open.owner;
  Client& client = *open.client;
  --client.opens;
  client.held.erase(open.index);
  collect(shared);
  collect(owner);
}

void Tables::set_range(Lock& lock, const ByteRange& range, LockMode mode) {
  lock.client->locks -= lock.ranges.size();
  memory.bytes -= lock.ranges.size() * range_bytes;
  LockSum& sum = lock.file->held;
  // Whole ranges leave and come: one that grows or is cut has other ends than before.
  for (const LockedRange& piece : lock.ranges.touching(range)) sum.remove(piece);
  lock.ranges.set(range, mode);
  for (const LockedRange& piece : lock.ranges.touching(range)) sum.add(piece);
  lock.client->locks += lock.ranges.size();
  memory.bytes += lock.ranges.size() * range_bytes;
}

void Tables::changed(File& shared, const ByteRange& range) {
  if (!changed_locks.empty() && changed_locks.back().file == shared.key) {
    ByteRange& last = changed_locks.back().range;
    last = {std::min(last.first, range.first), std::max(last.last, range.last)};
    return;
  }
  changed_locks.push_back({shared.key, shared.hold, range});
}

void Tables::remove_lock(Lock& lock) {
  const auto held = lock.ranges.within(ByteRange{});
  if (!held.empty()) {
    changed(*lock.file, {held.front().range.first, held.back().range.last});
    set_range(lock, ByteRange{}, LockMode::none);
  }
  File& shared = *lock.file;
  Owner& owner = *lock.owner;
  shared.locks.erase(&lock);
  owner.held.erase(&shared);
  lock.open->locks.erase(&lock);
  lock.client->held.erase(lock.index);
  collect(shared);
  collect(owner);
}

void Tables::remove_pending(PendingOpen& pending) {
  File& shared = *pending.file;
  Owner& owner = *pending.owner;
  count_share(shared, pending.access, pending.deny, -1);
  shared.pending.erase(&pending);
  pending.client->pending_opens.erase(pending.id);
  --owner.pending;
  pending_opens.erase(pending.id);
  collect(shared);
  collect(owner);
}

}  // namespace selvage::server::nfs4::state
