#include "server/nfs4/state/state.h"

#include "server/nfs4/state/tables.h"

#include <iterator>
#include <random>

namespace selvage::server::nfs4::state {
namespace {

std::uint32_t epoch_of(const Options& options, const RecoveryStore* store) {
  if (store != nullptr) return store->epoch();
  if (options.epoch != 0) return options.epoch;
  return std::random_device{}() | 0x80000000U;
}

}  // namespace

State::State(Options options, std::unique_ptr<RecoveryStore> store) : store_(std::move(store)) {
  const std::uint32_t epoch = epoch_of(options, store_.get());
  tables_ = std::make_unique<Tables>(std::move(options), epoch,
                                     store_ ? store_->earlier() : std::vector<ClientRecord>{});
  tables_->has_store = store_ != nullptr;
}

State::~State() = default;

SlotTicket::~SlotTicket() {
  finish(nullptr);
}

SlotTicket& SlotTicket::operator=(SlotTicket&& other) noexcept {
  if (this == &other) return *this;
  finish(nullptr);
  state_ = std::exchange(other.state_, nullptr);
  session_ = other.session_;
  slot_ = other.slot_;
  return *this;
}

void SlotTicket::finish(Bytes reply) {
  State* state = std::exchange(state_, nullptr);
  if (state != nullptr) state->finish_slot(session_, slot_, std::move(reply));
}

OwnerTicket::~OwnerTicket() {
  if (state_ != nullptr) state_->finish_owner(client_, owner_, seqid_, nullptr);
}

OwnerTicket& OwnerTicket::operator=(OwnerTicket&& other) noexcept {
  if (this == &other) return *this;
  if (state_ != nullptr) state_->finish_owner(client_, owner_, seqid_, nullptr);
  state_ = std::exchange(other.state_, nullptr);
  client_ = other.client_;
  owner_ = other.owner_;
  seqid_ = other.seqid_;
  return *this;
}

void OwnerTicket::finish(OwnerReply reply) {
  State* state = std::exchange(state_, nullptr);
  if (state != nullptr) state->finish_owner(client_, owner_, seqid_, &reply);
}

OpenTicket::~OpenTicket() {
  if (state_ != nullptr) state_->abort_open(pending_);
}

OpenTicket& OpenTicket::operator=(OpenTicket&& other) noexcept {
  if (this == &other) return *this;
  if (state_ != nullptr) state_->abort_open(pending_);
  state_ = std::exchange(other.state_, nullptr);
  pending_ = other.pending_;
  return *this;
}

LockTicket::~LockTicket() {
  if (state_ != nullptr) state_->undo_lock(pending_);
}

LockTicket& LockTicket::operator=(LockTicket&& other) noexcept {
  if (this == &other) return *this;
  if (state_ != nullptr) state_->undo_lock(pending_);
  state_ = std::exchange(other.state_, nullptr);
  pending_ = other.pending_;
  return *this;
}

void State::tick() {
  Guard guard(*this);
  Tables& t = guard.t;
  t.check_grace_end();
  std::vector<Client*> gone;
  for (const auto& [number, client] : t.clients) {
    if (t.now - client->owners_collected > t.options.lease_time) t.collect_owners(*client);
    if (!t.expired(*client)) continue;
    // What nobody will come back for, or nobody has to miss: state is kept by courtesy.
    const bool stateless = !t.has_state(*client) && client->revoked == Revoked::no;
    if (!client->confirmed || stateless ||
        t.now - client->renewed > t.options.lease_time + t.options.courtesy_time) {
      gone.push_back(client.get());
    }
  }
  for (Client* client : gone) t.remove_client(*client);
}

bool State::in_grace() const {
  Guard guard(*this);
  return !guard.t.grace.over();
}

void State::end_grace() {
  Guard guard(*this);
  if (guard.t.grace.phase() != Grace::Phase::active) return;
  guard.t.grace.end();
  guard.t.queue(RecoveryStore::Change::Kind::remove_earlier, {});
  if (!guard.t.has_store) guard.t.grace.ended();
}

void State::lengthen_lease(std::chrono::seconds lease_time) {
  Guard guard(*this);
  guard.t.options.lease_time = lease_time;
}

nfsstat4 State::revoke_client(clientid4 id) {
  Guard guard(*this);
  Client* client = guard.t.find(id);
  if (client == nullptr || !client->confirmed || client->revoked != Revoked::no) {
    return xdr::NFS4ERR_STALE_CLIENTID;
  }
  guard.t.revoke_client(*client, Revoked::admin);
  return xdr::NFS4_OK;
}

void State::drop_export(std::uint32_t export_id) {
  Guard guard(*this);
  std::vector<Open*> gone;
  for (const auto& [key, file] : guard.t.files) {
    if (key.export_id == export_id) gone.insert(gone.end(), file->opens.begin(), file->opens.end());
  }
  for (Open* open : gone) guard.t.remove_open(*open);
}

storage::Result<> State::write_records() {
  // One at a time: whoever comes second finds the first one's changes durable, or does them again.
  const std::scoped_lock store_lock(store_mutex_);
  if (store_ == nullptr) return {};
  std::vector<RecoveryStore::Change> changes;
  std::uint64_t last = 0;
  {
    Guard guard(*this);
    changes.swap(guard.t.changes);
    last = guard.t.last_change();
  }
  auto applied = store_->apply(changes);
  Guard guard(*this);
  Tables& t = guard.t;
  if (!applied) {
    t.changes.insert(t.changes.begin(), std::make_move_iterator(changes.begin()),
                     std::make_move_iterator(changes.end()));
    return applied;
  }
  t.done_change = last;
  for (const RecoveryStore::Change& change : changes) {
    if (change.kind == RecoveryStore::Change::Kind::remove_earlier) t.grace.ended();
  }
  return {};
}

Counts State::counts() const {
  Guard guard(*this);
  const Tables& t = guard.t;
  Counts counts;
  counts.clients = t.clients.size();
  counts.sessions = t.sessions.size();
  counts.files = t.files.size();
  counts.state_bytes = t.state_bytes();
  counts.reply_cache_bytes = t.reply_bytes;
  counts.clients_revoked = t.clients_revoked;
  for (const auto& [number, client] : t.clients) {
    if (t.expired(*client)) ++counts.expired_clients;
    counts.open_owners += client->open_owners.size();
    counts.lock_owners += client->lock_owners.size();
    counts.opens += client->opens;
    counts.locks += client->locks;
    counts.revoked += client->revoked_stateids;
  }
  return counts;
}

std::vector<ClientInfo> State::clients() const {
  Guard guard(*this);
  const Tables& t = guard.t;
  std::vector<ClientInfo> all;
  all.reserve(t.clients.size());
  for (const auto& [number, client] : t.clients) {
    ClientInfo info;
    info.client = client->id;
    info.owner = client->owner;
    info.principal = client->principal;
    info.minorversion = client->has_sessions ? client->minorversion : 0;
    info.implementation = client->implementation;
    info.confirmed = client->confirmed;
    info.expired = t.expired(*client);
    info.revoked = client->revoked != Revoked::no;
    info.reclaim_complete = client->reclaim_complete;
    info.sessions = client->sessions.size();
    info.opens = client->opens;
    info.locks = client->locks;
    info.since_renewal = std::chrono::duration_cast<std::chrono::seconds>(t.now - client->renewed);
    all.push_back(std::move(info));
  }
  return all;
}

const Options& State::options() const {
  return tables_->options;
}

}  // namespace selvage::server::nfs4::state
