// What the NFSv4 state must agree with, and the clients that use it: shares per owner and file,
// lock modes per byte.
#pragma once

#include "server/nfs4/state/state.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace selvage::server::nfs4::state {

inline constexpr std::size_t parties = 4, owners = 2, files = 3, lock_bytes = 24;
inline constexpr std::chrono::seconds lease{90};

inline void require(bool condition) {
  if (!condition) std::abort();
}

template <class T>
nfsstat4 status_of(const Outcome<T>& outcome) {
  return outcome ? xdr::NFS4_OK : outcome.status();
}

inline xdr::owner4 name_of(std::size_t number) {
  const std::uint8_t byte = static_cast<std::uint8_t>('a' + number);
  return xdr::owner4(std::span(&byte, 1));
}

inline FileKey key_of(std::size_t number) {
  const std::uint8_t byte = static_cast<std::uint8_t>(number);
  return {1, storage::ObjectId(1, std::span(&byte, 1))};
}

/// The input, as choices; 0 when it is used up.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  std::size_t pick(std::size_t below) {
    if (size_ == 0) return 0;
    --size_;
    return *data_++ % below;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

/// Four clients, two of minor version 0 and two with sessions. A broken promise aborts.
class Model {
 protected:
  explicit Model(Choices choices) : choices_(choices) {
    Options options;
    options.lease_time = lease;
    options.courtesy_time = lease * 10;
    options.epoch = 5;
    options.clock = [this] { return now_; };
    state_ = std::make_unique<State>(options);
    for (std::size_t i = 0; i < parties; ++i) {
      players_[i].sessions = i % 2 == 0;
      connect(i);
    }
  }

  /// All come back without what they had, and leave: nothing may be left.
  void finish() {
    for (std::size_t i = 0; i < parties; ++i) connect(i);
    check();
    require(state_->counts().opens == 0 && state_->counts().revoked == 0);
    now_ += lease * 20;
    state_->tick();
    const Counts left = state_->counts();
    require(left.clients == 0 && left.sessions == 0 && left.opens == 0 && left.locks == 0);
    require(left.files == 0 && left.open_owners == 0 && left.lock_owners == 0);
    require(left.reply_cache_bytes == 0 && left.revoked == 0);
  }

  struct Player {
    bool sessions = false;
    bool alive = false;
    std::uint8_t incarnation = 0;
    Caller caller;
    sessionid4 session{};
    std::uint32_t sequence = 0;
    Bytes reply;
    std::array<seqid4, owners> open_seqid{};
    std::array<seqid4, owners> lock_seqid{};
    Clock::time_point renewed;
    std::vector<stateid4> revoked;
  };
  struct Share {
    std::uint32_t access = 0;
    std::uint32_t deny = 0;
    stateid4 id;
  };
  struct Locks {
    std::array<LockMode, lock_bytes> bytes{};
    stateid4 id;
  };
  using At = std::tuple<std::size_t, std::size_t, std::size_t>;  // Player, owner, file.

  bool expired(std::size_t who) const { return now_ - players_[who].renewed > lease; }

  void drop(std::size_t who) {
    std::erase_if(shares_, [&](const auto& entry) { return std::get<0>(entry.first) == who; });
    std::erase_if(locks_, [&](const auto& entry) { return std::get<0>(entry.first) == who; });
  }

  void revoke(std::size_t who) {
    Player& player = players_[who];
    for (const auto& [at, share] : shares_) {
      if (std::get<0>(at) == who) player.revoked.push_back(share.id);
    }
    for (const auto& [at, locks] : locks_) {
      if (std::get<0>(at) == who) player.revoked.push_back(locks.id);
    }
    drop(who);
    if (!player.sessions) player.alive = false;
  }

  /// A new incarnation: what the one before had is gone.
  void connect(std::size_t who) {
    Player& player = players_[who];
    drop(who);
    const bool sessions = player.sessions;
    const auto incarnation = static_cast<std::uint8_t>(player.incarnation + 1);
    player = Player();
    player.sessions = sessions;
    player.incarnation = incarnation;
    player.alive = true;
    player.renewed = now_;
    xdr::verifier4 verifier{};
    verifier[0] = incarnation;
    if (!sessions) {
      xdr::SETCLIENTID4args args;
      args.client = {verifier, name_of(who)};
      const auto result = state_->setclientid(args, {});
      const auto* ok = result.get_if<xdr::SETCLIENTID4resok>();
      require(ok != nullptr);
      require(state_->setclientid_confirm({ok->clientid, ok->setclientid_confirm}, {}) ==
              xdr::NFS4_OK);
      player.caller = {0, ok->clientid};
      return;
    }
    xdr::EXCHANGE_ID4args args;
    args.eia_clientowner = {verifier, name_of(who)};
    auto known = state_->exchange_id(args, {});
    require(static_cast<bool>(known));
    xdr::CREATE_SESSION4args create;
    create.csa_clientid = known->eir_clientid;
    create.csa_sequence = known->eir_sequenceid;
    create.csa_fore_chan_attrs = {0, 4096, 4096, 512, 8, 4, {}};
    create.csa_back_chan_attrs = create.csa_fore_chan_attrs;
    auto made = state_->create_session(create, {}, who);
    require(static_cast<bool>(made));
    player.session = made->csr_sessionid;
    player.caller = {1, known->eir_clientid};
    require(state_->reclaim_complete(player.caller, {}) == xdr::NFS4_OK);
  }

  /// What comes before each operation of a client: its lease is renewed.
  void begin(std::size_t who) {
    Player& player = players_[who];
    player.renewed = now_;
    if (!player.sessions) {
      require(state_->renew(player.caller.client) == xdr::NFS4_OK);
      return;
    }
    xdr::SEQUENCE4args args;
    args.sa_sessionid = player.session;
    args.sa_sequenceid = ++player.sequence;
    args.sa_cachethis = choices_.pick(2) == 0;
    auto result = state_->sequence(args, {player.sequence, 100, 3, who});
    require(result.kind == Sequenced::Kind::execute);
    require(((result.resok.sr_status_flags & (xdr::SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED |
                                              xdr::SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED)) != 0) ==
            !player.revoked.empty());
    player.reply = args.sa_cachethis ? std::make_shared<const std::vector<std::byte>>(7) : nullptr;
    result.ticket.finish(player.reply);
  }

  void tick() {
    for (std::size_t i = 0; i < parties; ++i) {
      Player& player = players_[i];
      if (!player.alive || !expired(i)) continue;
      const bool stateless =
          !player.sessions && std::ranges::none_of(shares_, [&](const auto& entry) {
            return std::get<0>(entry.first) == i;
          });
      if (stateless || now_ - player.renewed > lease * 11) {
        drop(i);
        player.alive = false;
      }
    }
    state_->tick();
  }

  /// Whether shares that are still there, its own included, forbid these; expired ones are revoked.
  bool share_denied(const At& at, std::uint32_t access, std::uint32_t deny) {
    std::vector<std::size_t> gone;
    for (const auto& [other, share] : shares_) {
      if (std::get<2>(other) != std::get<2>(at)) continue;
      if ((share.access & deny) == 0 && (share.deny & access) == 0) continue;
      if (!expired(std::get<0>(other))) return true;
      gone.push_back(std::get<0>(other));
    }
    for (const std::size_t who : gone) revoke(who);
    return false;
  }

  void check() {
    const Counts counts = state_->counts();
    require(counts.opens == shares_.size());
    std::size_t ranges = 0;
    for (const auto& [at, locks] : locks_) {
      LockMode before = LockMode::none;
      for (const LockMode mode : locks.bytes) {
        if (mode != LockMode::none && mode != before) ++ranges;
        before = mode;
      }
    }
    require(counts.locks == ranges);
    if (state_->locks_changed()) require(!state_->take_changed_locks().empty());
  }

  Choices choices_;
  Clock::time_point now_{std::chrono::hours(1)};
  std::unique_ptr<State> state_;
  std::array<Player, parties> players_;
  std::map<At, Share> shares_;
  std::map<At, Locks> locks_;
};

}  // namespace selvage::server::nfs4::state
