// Plays operations of several clients of both kinds, legal and illegal ones, against the NFSv4
// state and a simple model of it. At the end all clients go, and nothing may be left.
#include "nfs4_model.h"

namespace selvage::server::nfs4::state {
namespace {

class Game : Model {
 public:
  explicit Game(Choices choices) : Model(choices) {}

  void play() {
    while (!choices_.empty()) {
      step();
      check();
    }
    finish();
  }

 private:
  void step() {
    const std::size_t action = choices_.pick(16);
    const std::size_t who = choices_.pick(parties);
    const At at{who, choices_.pick(owners), choices_.pick(files)};
    if (action == 0) {
      now_ += std::chrono::seconds(choices_.pick(200));
      return;
    }
    if (action == 1) return tick();
    if (action == 2 || !players_[who].alive) return connect(who);
    begin(who);
    switch (action) {
      case 3:
      case 4:
      case 5:
        return open(at);
      case 6:
      case 7:
      case 8:
        return lock(at);
      case 9:
        return unlock(at);
      case 10:
        return close(at);
      case 11:
        return downgrade(at);
      case 12:
        return use(at);
      case 13:
        return free(at);
      case 14:
        return retry(who);
      default:
        return garbage(at);
    }
  }

  /// Runs an operation under an owner's seqid, where there is one.
  template <class Operation>
  nfsstat4 sequenced(OwnerStep step, seqid4& seqid, Operation operation) {
    require(step.kind == OwnerStep::Kind::proceed);
    const nfsstat4 status = operation();
    require(status != xdr::NFS4ERR_BAD_STATEID);
    step.ticket.finish({0, status, nullptr, nullptr});
    ++seqid;
    return status;
  }

  void open(const At& at) {
    const auto [who, owner, number] = at;
    Player& player = players_[who];
    const xdr::owner4 name = name_of(owner);
    OpenRequest request;
    request.caller = player.caller;
    request.owner = name.bytes();
    request.file = key_of(number);
    request.access = static_cast<std::uint32_t>(1 + choices_.pick(3));
    request.deny = static_cast<std::uint32_t>(choices_.pick(3) == 0 ? choices_.pick(4) : 0);
    const bool abort = choices_.pick(8) == 0;
    const bool denied = share_denied(at, request.access, request.deny);
    OpenGrant grant;
    const auto run = [&]() -> nfsstat4 {
      auto ticket = state_->begin_open(request);
      if (!ticket) return ticket.status();
      if (abort) return xdr::NFS4ERR_ACCESS;
      auto granted = state_->commit_open(std::move(*ticket), std::make_shared<int>(1));
      if (granted) grant = *granted;
      return status_of(granted);
    };
    nfsstat4 status = xdr::NFS4_OK;
    if (player.sessions) {
      status = run();
    } else {
      seqid4& seqid = player.open_seqid[owner];
      status = sequenced(state_->begin_open_owner({player.caller.client, name}, seqid), seqid, run);
    }
    require(status == (denied  ? xdr::NFS4ERR_SHARE_DENIED
                       : abort ? xdr::NFS4ERR_ACCESS
                               : xdr::NFS4_OK));
    if (status != xdr::NFS4_OK) return;
    if (grant.confirm) {
      seqid4& seqid = player.open_seqid[owner];
      sequenced(state_->begin_stateid_owner(grant.stateid, seqid), seqid, [&] {
        auto confirmed = state_->open_confirm(grant.stateid, request.file);
        if (confirmed) grant.stateid = *confirmed;
        return status_of(confirmed);
      });
    }
    Share& share = shares_[at];
    share.access |= request.access;
    share.deny |= request.deny;
    share.id = grant.stateid;
    require(grant.access == share.access && grant.deny == share.deny);
  }

  void lock(const At& at) {
    const auto [who, owner, number] = at;
    const auto share = shares_.find(at);
    if (share == shares_.end()) return;
    Player& player = players_[who];
    const FileKey key = key_of(number);
    const bool write = choices_.pick(2) == 0;
    const std::size_t first = choices_.pick(lock_bytes);
    const std::size_t length = 1 + choices_.pick(lock_bytes - first);
    const bool abort = choices_.pick(8) == 0;
    const auto held = locks_.find(at);
    xdr::LOCK4args args;
    args.locktype = write ? xdr::WRITE_LT : xdr::READ_LT;
    args.offset = first;
    args.length = length;
    const bool fresh = held == locks_.end();
    if (fresh) {
      args.locker = xdr::locker4(xdr::open_to_lock_owner4{
          0, share->second.id, player.lock_seqid[owner], {player.caller.client, name_of(owner)}});
    } else {
      args.locker = xdr::locker4(xdr::exist_lock_owner4{held->second.id, 0});
    }

    nfsstat4 expected = abort ? xdr::NFS4ERR_DELAY : xdr::NFS4_OK;
    std::vector<std::size_t> gone;
    for (const auto& [other, locks] : locks_) {
      if (other == at || std::get<2>(other) != number) continue;
      const bool conflict = std::any_of(
          locks.bytes.begin() + static_cast<std::ptrdiff_t>(first),
          locks.bytes.begin() + static_cast<std::ptrdiff_t>(first + length), [&](LockMode mode) {
            return mode == LockMode::write || (write && mode == LockMode::read);
          });
      if (!conflict) continue;
      if (expired(std::get<0>(other))) {
        gone.push_back(std::get<0>(other));
      } else {
        expected = xdr::NFS4ERR_DENIED;
      }
    }
    if ((share->second.access & (write ? 2U : 1U)) == 0) expected = xdr::NFS4ERR_OPENMODE;
    if (expected == xdr::NFS4_OK || expected == xdr::NFS4ERR_DELAY) {
      for (const std::size_t loser : gone) revoke(loser);
    }

    stateid4 granted;
    const auto run = [&]() -> nfsstat4 {
      auto start = state_->begin_lock(player.caller, args, key);
      if (start.status != xdr::NFS4_OK) return start.status;
      if (abort) return xdr::NFS4ERR_DELAY;
      auto committed = state_->commit_lock(std::move(start.ticket));
      if (committed) granted = *committed;
      return status_of(committed);
    };
    nfsstat4 status = xdr::NFS4_OK;
    if (player.sessions) {
      status = run();
    } else if (fresh) {
      seqid4& seqid = player.open_seqid[owner];
      status = sequenced(state_->begin_stateid_owner(share->second.id, seqid), seqid, run);
      ++player.lock_seqid[owner];
    } else {
      seqid4& seqid = player.lock_seqid[owner];
      status = sequenced(state_->begin_stateid_owner(held->second.id, seqid), seqid, run);
    }
    require(status == expected);
    if (status != xdr::NFS4_OK) return;
    Locks& mine = locks_[at];
    mine.id = granted;
    std::fill_n(mine.bytes.begin() + static_cast<std::ptrdiff_t>(first), length,
                write ? LockMode::write : LockMode::read);
  }

  void unlock(const At& at) {
    const auto held = locks_.find(at);
    if (held == locks_.end()) return;
    const auto [who, owner, number] = at;
    Player& player = players_[who];
    const std::size_t first = choices_.pick(lock_bytes);
    xdr::LOCKU4args args;
    args.lock_stateid = held->second.id;
    args.offset = first;
    args.length = 1 + choices_.pick(lock_bytes - first);
    const auto run = [&] {
      auto unlocked = state_->unlock(player.caller, args, key_of(std::get<2>(at)));
      if (unlocked) held->second.id = *unlocked;
      return status_of(unlocked);
    };
    seqid4& seqid = player.lock_seqid[owner];
    require((player.sessions ? run()
                             : sequenced(state_->begin_stateid_owner(args.lock_stateid, seqid),
                                         seqid, run)) == xdr::NFS4_OK);
    std::fill_n(held->second.bytes.begin() + static_cast<std::ptrdiff_t>(first), args.length,
                LockMode::none);
    const ByteRange range{first, first + args.length - 1};
    for (const LockedRange& piece : state_->lock_union(key_of(number), range)) {
      for (std::uint64_t i = piece.range.first; i <= piece.range.last; ++i) {
        LockMode mode = LockMode::none;
        for (const auto& [other, locks] : locks_) {
          if (std::get<2>(other) == number) mode = std::max(mode, locks.bytes[i]);
        }
        require(mode == piece.mode);
      }
    }
  }

  void close(const At& at) {
    const auto share = shares_.find(at);
    if (share == shares_.end()) return;
    Player& player = players_[std::get<0>(at)];
    seqid4& seqid = player.open_seqid[std::get<1>(at)];
    const stateid4 id = share->second.id;
    const auto run = [&] {
      return status_of(state_->close(player.caller, id, key_of(std::get<2>(at))));
    };
    require(
        (player.sessions ? run() : sequenced(state_->begin_stateid_owner(id, seqid), seqid, run)) ==
        xdr::NFS4_OK);
    if (!player.sessions) {
      require(state_->begin_stateid_owner(id, seqid - 1).kind == OwnerStep::Kind::replay);
    }
    shares_.erase(share);
    locks_.erase(at);
  }

  void downgrade(const At& at) {
    const auto share = shares_.find(at);
    if (share == shares_.end()) return;
    Player& player = players_[std::get<0>(at)];
    const auto access = static_cast<std::uint32_t>(choices_.pick(5));
    const auto deny = static_cast<std::uint32_t>(choices_.pick(5));
    const auto run = [&] {
      auto narrowed = state_->open_downgrade(player.caller, share->second.id,
                                             key_of(std::get<2>(at)), access, deny);
      if (narrowed) {
        require((access & ~share->second.access) == 0 && (deny & ~share->second.deny) == 0);
        share->second = {access, deny, *narrowed};
      }
      return status_of(narrowed);
    };
    seqid4& seqid = player.open_seqid[std::get<1>(at)];
    const stateid4 id = share->second.id;
    const nfsstat4 status =
        player.sessions ? run() : sequenced(state_->begin_stateid_owner(id, seqid), seqid, run);
    require(status == xdr::NFS4_OK || status == xdr::NFS4ERR_INVAL);
  }

  void use(const At& at) {
    const auto [who, owner, number] = at;
    const auto access = static_cast<std::uint32_t>(choices_.pick(4));
    const Caller& caller = players_[who].caller;
    if (choices_.pick(2) == 0) {
      const bool denied = share_denied(at, access, 0);
      require(status_of(state_->use_stateid(caller, {}, key_of(number), access)) ==
              (denied ? xdr::NFS4ERR_LOCKED : xdr::NFS4_OK));
      return;
    }
    const auto share = shares_.find(at);
    if (share == shares_.end()) return;
    const nfsstat4 expected =
        (access & ~share->second.access) != 0 ? xdr::NFS4ERR_OPENMODE : xdr::NFS4_OK;
    require(status_of(state_->use_stateid(caller, share->second.id, key_of(number), access)) ==
            expected);
    const auto locks = locks_.find(at);
    if (locks == locks_.end()) return;
    require(status_of(state_->use_stateid(caller, locks->second.id, key_of(number), access)) ==
            expected);
  }

  /// FREE_STATEID, RELEASE_LOCKOWNER.
  void free(const At& at) {
    Player& player = players_[std::get<0>(at)];
    if (!player.revoked.empty() && player.sessions) {
      const stateid4 id = player.revoked.back();
      player.revoked.pop_back();
      require(state_->test_stateids(player.caller, std::span(&id, 1))[0] == xdr::NFS4ERR_EXPIRED);
      require(state_->free_stateid(player.caller, id) == xdr::NFS4_OK);
      return;
    }
    const auto locks = locks_.find(at);
    if (locks == locks_.end()) return;
    if (player.sessions) {
      const bool held = std::ranges::any_of(locks->second.bytes,
                                            [](LockMode mode) { return mode != LockMode::none; });
      require(state_->free_stateid(player.caller, locks->second.id) ==
              (held ? xdr::NFS4ERR_LOCKS_HELD : xdr::NFS4_OK));
      if (!held) locks_.erase(locks);
      return;
    }
    bool held = false;
    for (const auto& [other, mine] : locks_) {
      if (std::get<0>(other) != std::get<0>(at) || std::get<1>(other) != std::get<1>(at)) continue;
      held = held ||
             std::ranges::any_of(mine.bytes, [](LockMode mode) { return mode != LockMode::none; });
    }
    require(state_->release_lockowner({player.caller.client, name_of(std::get<1>(at))}) ==
            (held ? xdr::NFS4ERR_LOCKS_HELD : xdr::NFS4_OK));
    if (held) return;
    std::erase_if(locks_, [&](const auto& entry) {
      return std::get<0>(entry.first) == std::get<0>(at) &&
             std::get<1>(entry.first) == std::get<1>(at);
    });
  }

  void retry(std::size_t who) {
    Player& player = players_[who];
    if (!player.sessions) return;
    xdr::SEQUENCE4args args;
    args.sa_sessionid = player.session;
    args.sa_sequenceid = player.sequence + static_cast<std::uint32_t>(choices_.pick(4));
    args.sa_slotid = static_cast<std::uint32_t>(choices_.pick(6));
    auto result = state_->sequence(args, {player.sequence, 100, 3, who});
    if (args.sa_slotid != 0) return;  // Used nowhere else: any answer will do.
    if (args.sa_sequenceid == player.sequence) {
      require(player.reply != nullptr ? result.reply == player.reply
                                      : result.status == xdr::NFS4ERR_RETRY_UNCACHED_REP);
    } else if (args.sa_sequenceid == player.sequence + 1) {
      require(result.kind == Sequenced::Kind::execute);
      ++player.sequence;
      player.reply = nullptr;
    } else {
      require(result.status == xdr::NFS4ERR_SEQ_MISORDERED);
    }
  }

  /// Stateids that were never given out, to somebody else, or for something else.
  void garbage(const At& at) {
    const auto share = shares_.find(at);
    if (share == shares_.end()) return;
    const auto [who, owner, number] = at;
    Caller caller = players_[who].caller;
    stateid4 id = share->second.id;
    std::size_t file = number;
    switch (choices_.pick(4)) {
      case 0:
        id.other[choices_.pick(xdr::NFS4_OTHER_SIZE)] ^= 0x80;
        break;
      case 1:
        id.seqid += static_cast<seqid4>(1 + choices_.pick(200));
        break;
      case 2:
        file = (number + 1) % files;
        break;
      default:
        caller = players_[(who + 2) % parties].caller;
        if (caller.minorversion == 0) return;  // Stateids tell the client there.
        break;
    }
    const FileKey key = key_of(file);
    xdr::LOCK4args args;
    args.length = 1;
    args.locker = xdr::locker4(xdr::open_to_lock_owner4{0, id, 0, {caller.client, name_of(owner)}});
    require(state_->begin_lock(caller, args, key).status != xdr::NFS4_OK);
    require(!state_->close(caller, id, key));
    require(!state_->open_downgrade(caller, id, key, share->second.access, share->second.deny));
    require(!state_->use_stateid(caller, id, key, 0));
    require(state_->free_stateid(caller, share->second.id) != xdr::NFS4_OK);
    args.locker = xdr::locker4(xdr::exist_lock_owner4{id, 0});
    require(state_->begin_lock(caller, args, key).status != xdr::NFS4_OK);
    state_->connection_lost(choices_.pick(parties));
  }
};

}  // namespace
}  // namespace selvage::server::nfs4::state

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace selvage::server::nfs4::state;
  Game(Choices(data, size)).play();
  return 0;
}
