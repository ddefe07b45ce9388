#include "server/nfs4/state/tables.h"

#include <algorithm>

namespace selvage::server::nfs4::state {

Tables::Tables(Options o, std::uint32_t e, const std::vector<ClientRecord>& earlier)
    : options(std::move(o)), epoch(e), now(options.clock()), grace(options, now, earlier) {}

namespace {

std::string name_key(bool has_sessions, std::string_view owner) {
  std::string key(1, has_sessions ? '1' : '0');
  key += owner;
  return key;
}

}  // namespace

Tables::Names Tables::names(bool has_sessions, std::string_view owner) const {
  const auto found = by_name.find(name_key(has_sessions, owner));
  return found == by_name.end() ? Names{} : found->second;
}

void Tables::set_names(bool has_sessions, std::string_view owner, Names names) {
  if (names.confirmed == nullptr && names.unconfirmed == nullptr) {
    by_name.erase(name_key(has_sessions, owner));
  } else {
    by_name[name_key(has_sessions, owner)] = names;
  }
}

Client* Tables::find(clientid4 id) {
  if (id >> 32 != epoch) return nullptr;
  const auto found = clients.find(static_cast<std::uint32_t>(id));
  return found == clients.end() ? nullptr : found->second.get();
}

Outcome<Client*> Tables::usable(const Caller& caller) {
  Client* client = find(caller.client);
  if (client == nullptr || !client->confirmed ||
      client->has_sessions != (caller.minorversion != 0)) {
    return xdr::NFS4ERR_STALE_CLIENTID;
  }
  if (!client->has_sessions && client->revoked != Revoked::no) return xdr::NFS4ERR_EXPIRED;
  renew(*client);
  return client;
}

bool Tables::expired(const Client& client) const {
  // Nobody is in anybody's way before the grace period is over, and who waits for the server is
  // there.
  return now - client.renewed > options.lease_time && grace.over() &&
         std::ranges::none_of(client.sessions, [](const Session* s) { return s->busy != 0; });
}

bool Tables::has_state(const Client& client) const {
  return client.opens != 0 || client.locks != 0 || !client.pending_opens.empty() ||
         !client.sessions.empty();
}

std::size_t Tables::state_bytes() const {
  return memory.bytes + clients.size() * client_bytes + sessions.size() * session_bytes +
         files.size() * file_bytes + pending_opens.size() * pending_bytes;
}

bool Tables::room_for(std::size_t bytes) {
  const auto fits = [&] { return state_bytes() + bytes <= options.max_state_bytes; };
  if (fits()) return true;
  // Not a search of all clients for each of the requests that are refused.
  if (looked_for_room && now - *looked_for_room < std::chrono::seconds(1)) return false;
  looked_for_room = now;
  std::vector<Client*> gone;
  for (const auto& [number, client] : clients) {
    if (expired(*client)) gone.push_back(client.get());
  }
  std::ranges::sort(gone, {}, &Client::renewed);
  for (Client* client : gone) {
    remove_client(*client);
    if (fits()) return true;
  }
  return false;
}

Client* Tables::add_client(bool has_sessions, std::string_view owner, const Principal& principal) {
  if (clients.size() >= options.max_clients) {
    // The unconfirmed or expired client that was heard of longest ago.
    Client* oldest = nullptr;
    for (const auto& [number, client] : clients) {
      if ((!client->confirmed || expired(*client)) &&
          (oldest == nullptr || client->renewed < oldest->renewed)) {
        oldest = client.get();
      }
    }
    if (oldest == nullptr) return nullptr;
    remove_client(*oldest);
  }
  if (!room_for(client_bytes)) return nullptr;
  while (next_number == 0 || clients.contains(next_number)) {
    if (++next_number == 0) numbers_wrapped = true;
  }
  auto client = std::make_unique<Client>(&memory);
  client->number = next_number++;
  client->id = (clientid4{epoch} << 32) | client->number;
  client->has_sessions = has_sessions;
  client->owner = owner;
  client->principal = principal;
  client->renewed = now;
  Client* added = client.get();
  clients.emplace(added->number, std::move(client));
  Names known = names(has_sessions, owner);
  known.unconfirmed = added;
  set_names(has_sessions, owner, known);
  return added;
}

void Tables::confirm(Client& client) {
  Client* before = names(client.has_sessions, client.owner).confirmed;
  set_names(client.has_sessions, client.owner, {&client, nullptr});
  client.confirmed = true;
  renew(client);
  if (before != nullptr && before != &client) remove_client(*before);
  grace.heard(client.has_sessions, client.owner, now);
}

void Tables::revoke_client(Client& client, Revoked why) {
  for (const std::uint64_t id : std::set(client.pending_opens)) {
    remove_pending(*pending_opens.at(id));
  }
  const bool had_state = client.opens != 0;
  std::vector<Open*> opens;
  for (const auto& [index, held] : client.held) {
    if (held->kind == Held::Kind::open && held->revoked == Revoked::no) {
      opens.push_back(static_cast<Open*>(held.get()));
    }
  }
  // The stateids stay, without what they named, until the client has freed them; those of minor
  // version 0 are all answered by the client's being revoked.
  const auto keep = [&](std::uint32_t index, Held::Kind kind) {
    std::unique_ptr<Held> dead;
    if (kind == Held::Kind::open) {
      dead = std::make_unique<Open>(&client, index);
    } else {
      dead = std::make_unique<Lock>(&client, index);
    }
    dead->revoked = why;
    client.held.emplace(index, std::move(dead));
    ++client.revoked_stateids;
  };
  for (Open* open : opens) {
    std::vector<std::uint32_t> indexes;
    for (const Lock* lock : open->locks) indexes.push_back(lock->index);
    const std::uint32_t index = open->index;
    const bool closed = open->closed;
    if (!closed) remove_open(*open);
    if (!client.has_sessions || closed) continue;
    keep(index, Held::Kind::open);
    for (const std::uint32_t lock : indexes) keep(lock, Held::Kind::lock);
  }
  if (!client.has_sessions) {
    std::vector<Owner*> owners;
    for (const auto& [id, owner] : client.owners) owners.push_back(owner);
    for (Owner* owner : owners) remove_owner(*owner);
    client.revoked = why;
    // Its name is free: a SETCLIENTID of it begins anew.
    Names known = names(false, client.owner);
    if (known.confirmed == &client) known.confirmed = nullptr;
    set_names(false, client.owner, known);
  }
  if (had_state || !client.has_sessions) {
    if (client.has_sessions) client.revoked = why;
    ++clients_revoked;
  }
  // It must not reclaim after the next restart what somebody else has by then (RFC 8881, 8.4.3).
  grace.forget(client.has_sessions, client.owner);
  queue(RecoveryStore::Change::Kind::remove, {client.id, client.has_sessions, client.owner});
  client.record = 0;
}

void Tables::remove_client(Client& client) {
  const bool on_record = client.record != 0;
  for (const std::uint64_t id : std::set(client.pending_opens)) {
    remove_pending(*pending_opens.at(id));
  }
  while (!client.sessions.empty()) remove_session(**client.sessions.begin());
  std::vector<Open*> opens;
  for (const auto& [index, held] : client.held) {
    if (held->kind == Held::Kind::open && held->revoked == Revoked::no) {
      opens.push_back(static_cast<Open*>(held.get()));
    }
  }
  for (Open* open : opens) {
    if (!open->closed) remove_open(*open);
  }
  Names known = names(client.has_sessions, client.owner);
  if (known.confirmed == &client) known.confirmed = nullptr;
  if (known.unconfirmed == &client) known.unconfirmed = nullptr;
  set_names(client.has_sessions, client.owner, known);
  if (on_record) {
    queue(RecoveryStore::Change::Kind::remove, {client.id, client.has_sessions, client.owner});
  }
  clients.erase(client.number);
}

void Tables::record(Client& client) {
  if (client.record != 0) return;
  queue(RecoveryStore::Change::Kind::put, {client.id, client.has_sessions, client.owner});
  client.record = last_change();
}

nfsstat4 Tables::check_grace(const Client& client, bool reclaim) {
  if (!reclaim) {
    if (!grace.over()) return xdr::NFS4ERR_GRACE;
    // RFC 8881, 18.51.3: not before it has said that there is nothing more to reclaim.
    if (client.has_sessions && !client.reclaim_complete) return xdr::NFS4ERR_GRACE;
    return xdr::NFS4_OK;
  }
  grace.heard(client.has_sessions, client.owner, now);
  if (grace.phase() != Grace::Phase::active) return xdr::NFS4ERR_NO_GRACE;
  if (client.has_sessions && client.reclaim_complete) return xdr::NFS4ERR_NO_GRACE;
  if (!grace.may_reclaim(client.has_sessions, client.owner)) return xdr::NFS4ERR_RECLAIM_BAD;
  return xdr::NFS4_OK;
}

void Tables::check_grace_end() {
  if (!grace.due(now)) return;
  grace.end();
  queue(RecoveryStore::Change::Kind::remove_earlier, {});
  if (!has_store) grace.ended();
}

void Tables::queue(RecoveryStore::Change::Kind kind, const ClientRecord& record) {
  ++next_change;
  if (kind == RecoveryStore::Change::Kind::remove) last_removal = last_change();
  if (has_store) {
    changes.push_back({kind, record});
  } else {
    done_change = last_change();
  }
}

}  // namespace selvage::server::nfs4::state
