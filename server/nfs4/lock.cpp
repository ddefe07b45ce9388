// LOCK, LOCKT, LOCKU, RELEASE_LOCKOWNER, TEST_STATEID, FREE_STATEID (RFC 7530, 16.10 to 16.12,
// 16.37; RFC 8881, 18.10 to 18.12, 18.38, 18.48).
#include "server/nfs4/operations.h"
#include "server/nfs4/owner_turn.h"
#include "server/nfs4/records.h"

#include <cerrno>
#include <utility>

namespace selvage::server::nfs4 {
namespace {

// INVAL or ISDIR for what has no bytes to lock.
Awaitable<xdr::nfsstat4> check_lockable(const Compound& compound) {
  const Object& object = *compound.current;
  if (object.pseudo()) co_return xdr::NFS4ERR_ISDIR;
  const auto attributes = co_await object.filesystem().getattr(compound.caller(object), object.id);
  if (!attributes) co_return status_of(attributes.error());
  switch (attributes->type) {
    case storage::FileType::regular:
      co_return xdr::NFS4_OK;
    case storage::FileType::directory:
      co_return xdr::NFS4ERR_ISDIR;
    case storage::FileType::symlink:
      co_return compound.minor == 0 ? xdr::NFS4ERR_INVAL : xdr::NFS4ERR_SYMLINK;
    default:
      co_return compound.minor == 0 ? xdr::NFS4ERR_INVAL : xdr::NFS4ERR_WRONG_TYPE;
  }
}

// "Current stateid" arguments become what they stand for.
xdr::nfsstat4 resolve_stateids(const Compound& compound, xdr::locker4& locker) {
  xdr::stateid4* given = nullptr;
  if (auto* existing = locker.get_if<xdr::exist_lock_owner4>()) given = &existing->lock_stateid;
  if (auto* made = locker.get_if<xdr::open_to_lock_owner4>()) given = &made->open_stateid;
  const auto stateid = compound.stateid(*given);
  if (!stateid) return stateid.status();
  *given = *stateid;
  return xdr::NFS4_OK;
}

state::OwnerStep begin_turn(state::State& state, const xdr::locker4& locker) {
  if (const auto* existing = locker.get_if<xdr::exist_lock_owner4>()) {
    return state.begin_stateid_owner(existing->lock_stateid, existing->lock_seqid);
  }
  const auto& made = *locker.get_if<xdr::open_to_lock_owner4>();
  return state.begin_stateid_owner(made.open_stateid, made.open_seqid);
}

// A process on the server holds the bytes: nobody that the protocol could name.
xdr::LOCK4denied denied_by_local(const xdr::LOCK4args& args) {
  xdr::LOCK4denied denied;
  denied.offset = args.offset;
  denied.length = args.length;
  denied.locktype = xdr::WRITE_LT;
  return denied;
}

Awaitable<xdr::LOCK4res> lock_in_turn(Compound& compound, xdr::LOCK4args args) {
  state::State& state = compound.service.state;
  const state::FileKey file = compound.current->key();
  auto start = state.begin_lock(compound.on_behalf(), args, file);
  if (start.status == xdr::NFS4ERR_DENIED) {
    co_return xdr::LOCK4res(xdr::NFS4ERR_DENIED, std::move(start.denied));
  }
  if (start.status != xdr::NFS4_OK) co_return xdr::LOCK4res(start.status);
  const auto applied = co_await apply_locks(compound, file, start.range);
  if (!applied) {
    start.ticket = {};
    // What the attempt left in the kernel is put right.
    co_await apply_changed_locks(compound);
    if (applied.error() == storage::errno_code(EAGAIN)) {
      co_return xdr::LOCK4res(xdr::NFS4ERR_DENIED, denied_by_local(args));
    }
    co_return xdr::LOCK4res(status_of(applied.error()));
  }
  const auto recorded = co_await write_records(compound);
  if (!recorded) co_return xdr::LOCK4res(xdr::NFS4ERR_IO);
  const auto done = state.commit_lock(std::move(start.ticket));
  if (!done) co_return xdr::LOCK4res(done.status());
  compound.current_stateid = *done;
  co_return xdr::LOCK4res(*done);
}

}  // namespace

Awaitable<xdr::LOCK4res> lock(Compound& compound, xdr::LOCK4args args) {
  xdr::nfsstat4 good = co_await check_lockable(compound);
  if (good == xdr::NFS4_OK) good = resolve_stateids(compound, args.locker);
  if (good != xdr::NFS4_OK) co_return xdr::LOCK4res(good);
  if (compound.minor == 0) {
    auto step = begin_turn(compound.service.state, args.locker);
    const xdr::nfsstat4 status = take_turn(compound, std::move(step));
    // A replay's body is sent instead of this, whatever its status.
    if (!in_turn(compound)) {
      const bool denied = status == xdr::NFS4ERR_DENIED;
      co_return xdr::LOCK4res(denied ? xdr::NFS4ERR_DELAY : status);
    }
  }
  co_return co_await lock_in_turn(compound, std::move(args));
}

Awaitable<xdr::LOCKT4res> lockt(Compound& compound, xdr::LOCKT4args args) {
  const xdr::nfsstat4 good = co_await check_lockable(compound);
  if (good != xdr::NFS4_OK) co_return xdr::LOCKT4res(good);
  const auto caller = compound.on_behalf(args.owner.clientid);
  auto start = compound.service.state.test_lock(caller, args, compound.current->key());
  if (start.status == xdr::NFS4ERR_DENIED) {
    co_return xdr::LOCKT4res(xdr::NFS4ERR_DENIED, std::move(start.denied));
  }
  co_return xdr::LOCKT4res(start.status);
}

Awaitable<xdr::LOCKU4res> locku(Compound& compound, xdr::LOCKU4args args) {
  const auto stateid = compound.stateid(args.lock_stateid);
  if (!stateid) co_return xdr::LOCKU4res(stateid.status());
  args.lock_stateid = *stateid;
  state::State& state = compound.service.state;
  if (compound.current->pseudo()) co_return xdr::LOCKU4res(xdr::NFS4ERR_ISDIR);
  if (compound.minor == 0) {
    auto step = state.begin_stateid_owner(args.lock_stateid, args.seqid);
    const xdr::nfsstat4 status = take_turn(compound, std::move(step));
    if (!in_turn(compound)) co_return xdr::LOCKU4res(status);
  }
  const state::FileKey file = compound.current->key();
  const auto done = state.unlock(compound.on_behalf(), args, file);
  if (!done) co_return xdr::LOCKU4res(done.status());
  const auto range = state::byte_range(args.offset, args.length);
  // Letting go cannot be refused.
  if (range) static_cast<void>(co_await apply_locks(compound, file, *range));
  compound.current_stateid = *done;
  co_return xdr::LOCKU4res(*done);
}

Awaitable<xdr::STATUS4res> release_lockowner(Compound& compound, xdr::RELEASE_LOCKOWNER4args args) {
  co_return xdr::STATUS4res(compound.service.state.release_lockowner(args.lock_owner));
}

Awaitable<xdr::TEST_STATEID4res> test_stateid(Compound& compound, xdr::TEST_STATEID4args args) {
  xdr::TEST_STATEID4resok ok;
  ok.tsr_status_codes.items =
      compound.service.state.test_stateids(compound.on_behalf(), args.ts_stateids.items);
  co_return xdr::TEST_STATEID4res(std::move(ok));
}

Awaitable<xdr::STATUS4res> free_stateid(Compound& compound, xdr::FREE_STATEID4args args) {
  const auto stateid = compound.stateid(args.fsa_stateid);
  if (!stateid) co_return xdr::STATUS4res(stateid.status());
  co_return xdr::STATUS4res(compound.service.state.free_stateid(compound.on_behalf(), *stateid));
}

}  // namespace selvage::server::nfs4
