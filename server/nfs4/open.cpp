// OPEN, CLOSE, OPEN_CONFIRM, OPEN_DOWNGRADE (RFC 7530, 16.16, 16.2, 16.18, 16.19; RFC 8881, 18.16,
// 18.2, 18.18).
#include "server/nfs4/attributes.h"
#include "server/nfs4/open_file.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/owner_turn.h"
#include "server/nfs4/records.h"

#include <utility>

namespace selvage::server::nfs4 {
namespace {

constexpr std::uint32_t share_bits = 3;

// INVAL for shares that are none; wishes are for minor versions that know them.
xdr::nfsstat4 check_shares(const Compound& compound, const xdr::OPEN4args& args) {
  constexpr std::uint32_t wishes = xdr::OPEN4_SHARE_ACCESS_WANT_DELEG_MASK |
                                   xdr::OPEN4_SHARE_ACCESS_WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL |
                                   xdr::OPEN4_SHARE_ACCESS_WANT_PUSH_DELEG_WHEN_UNCONTENDED;
  const std::uint32_t known = compound.minor == 0 ? share_bits : share_bits | wishes;
  const bool good = (args.share_access & share_bits) != 0 && (args.share_access & ~known) == 0 &&
                    args.share_deny <= xdr::OPEN4_SHARE_DENY_BOTH;
  const std::uint32_t want = args.share_access & xdr::OPEN4_SHARE_ACCESS_WANT_DELEG_MASK;
  return good && want <= xdr::OPEN4_SHARE_ACCESS_WANT_CANCEL ? xdr::NFS4_OK : xdr::NFS4ERR_INVAL;
}

// No delegation is ever given; who wished for one is told why not (RFC 8881, 18.16.3).
xdr::open_delegation4 no_delegation(const Compound& compound, std::uint32_t share_access) {
  const std::uint32_t want = share_access & xdr::OPEN4_SHARE_ACCESS_WANT_DELEG_MASK;
  if (compound.minor == 0 || want == xdr::OPEN4_SHARE_ACCESS_WANT_NO_PREFERENCE) {
    return xdr::open_delegation4(xdr::OPEN_DELEGATE_NONE);
  }
  xdr::open_none_delegation4 why(xdr::WND4_RESOURCE, false);
  if (want == xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG) {
    why = xdr::open_none_delegation4(xdr::WND4_NOT_WANTED);
  } else if (want == xdr::OPEN4_SHARE_ACCESS_WANT_CANCEL) {
    why = xdr::open_none_delegation4(xdr::WND4_CANCELLED);
  }
  return xdr::open_delegation4(std::move(why));
}

// From the file that a claim names to a stateid.
Awaitable<Outcome<state::OpenGrant>> grant(Compound& compound, const xdr::OPEN4args& args,
                                           OpenedFile& file) {
  state::State& state = compound.service.state;
  state::OpenRequest request;
  request.caller = compound.on_behalf(args.owner.clientid);
  request.owner = args.owner.owner.bytes();
  request.file = file.object.key();
  request.access = args.share_access & share_bits;
  request.deny = args.share_deny;
  request.reclaim = args.claim.tag == xdr::CLAIM_PREVIOUS;
  auto ticket = state.begin_open(request);
  if (!ticket) co_return ticket.status();

  std::shared_ptr<void> hold = state.hold(*ticket);
  const storage::Caller caller = compound.caller(file.object);
  if (!hold) hold = std::move(file.hold);
  if (!hold) {
    auto held = co_await file.object.filesystem().hold(caller, file.object.id);
    if (!held) co_return status_of(held.error());
    hold = std::move(*held);
  }
  // Nobody's share reservation forbids it now.
  if (!file.on_open.nothing()) {
    const auto set = co_await file.object.filesystem().setattr(caller, file.object.id, file.on_open,
                                                               std::nullopt);
    if (!set) co_return status_of(set.error());
    file.attributes = *set;
  }
  const auto recorded = co_await write_records(compound);
  if (!recorded) co_return xdr::NFS4ERR_IO;
  co_return state.commit_open(std::move(*ticket), std::move(hold));
}

Awaitable<xdr::OPEN4res> open_in_turn(Compound& compound, xdr::OPEN4args args) {
  state::State& state = compound.service.state;
  xdr::nfsstat4 good = check_shares(compound, args);
  const bool reclaim = args.claim.tag == xdr::CLAIM_PREVIOUS;
  if (good == xdr::NFS4_OK)
    good = state.check_open(compound.on_behalf(args.owner.clientid), reclaim);
  if (good != xdr::NFS4_OK) co_return xdr::OPEN4res(good);
  auto file = co_await open_file(compound, args);
  if (!file) co_return xdr::OPEN4res(file.status());
  const auto granted = co_await grant(compound, args, *file);
  if (!granted) co_return xdr::OPEN4res(granted.status());
  xdr::OPEN4resok ok;
  ok.stateid = granted->stateid;
  ok.cinfo = file->directory;
  ok.rflags = xdr::OPEN4_RESULT_LOCKTYPE_POSIX;
  if (granted->confirm) ok.rflags |= xdr::OPEN4_RESULT_CONFIRM;
  ok.attrset = file->attributes_set.wire();
  ok.delegation = no_delegation(compound, args.share_access);
  compound.set_current(file->object);
  compound.current_stateid = granted->stateid;
  compound.known = file->attributes;
  co_return xdr::OPEN4res(std::move(ok));
}

// The stateid of a file that is open goes with the current filehandle.
template <class Res>
Res stateid_result(Compound& compound, const Outcome<xdr::stateid4>& done) {
  if (!done) return Res(done.status());
  compound.current_stateid = *done;
  return Res(*done);
}

}  // namespace

Awaitable<xdr::OPEN4res> open(Compound& compound, xdr::OPEN4args args) {
  if (compound.minor == 0) {
    auto step = compound.service.state.begin_open_owner(args.owner, args.seqid);
    const xdr::nfsstat4 status = take_turn(compound, std::move(step));
    if (!in_turn(compound)) co_return xdr::OPEN4res(status);
  }
  auto result = co_await open_in_turn(compound, std::move(args));
  // A replay makes the same file the current one.
  if (compound.minor == 0 && result.tag == xdr::NFS4_OK) {
    compound.owner_context = std::make_shared<const Object>(*compound.current);
  }
  co_return result;
}

Awaitable<xdr::CLOSE4res> close(Compound& compound, xdr::CLOSE4args args) {
  const auto stateid = compound.stateid(args.open_stateid);
  if (!stateid) co_return xdr::CLOSE4res(stateid.status());
  state::State& state = compound.service.state;
  if (compound.minor == 0) {
    auto step = state.begin_stateid_owner(*stateid, args.seqid);
    const xdr::nfsstat4 status = take_turn(compound, std::move(step));
    if (!in_turn(compound)) co_return xdr::CLOSE4res(status);
  }
  const auto done = state.close(compound.on_behalf(), *stateid, compound.current->key());
  co_return stateid_result<xdr::CLOSE4res>(compound, done);
}

Awaitable<xdr::OPEN_CONFIRM4res> open_confirm(Compound& compound, xdr::OPEN_CONFIRM4args args) {
  state::State& state = compound.service.state;
  auto step = state.begin_stateid_owner(args.open_stateid, args.seqid);
  const xdr::nfsstat4 status = take_turn(compound, std::move(step));
  if (!in_turn(compound)) co_return xdr::OPEN_CONFIRM4res(status);
  const auto done = state.open_confirm(args.open_stateid, compound.current->key());
  co_return stateid_result<xdr::OPEN_CONFIRM4res>(compound, done);
}

Awaitable<xdr::OPEN_DOWNGRADE4res> open_downgrade(Compound& compound,
                                                  xdr::OPEN_DOWNGRADE4args args) {
  const auto stateid = compound.stateid(args.open_stateid);
  if (!stateid) co_return xdr::OPEN_DOWNGRADE4res(stateid.status());
  state::State& state = compound.service.state;
  if (compound.minor == 0) {
    auto step = state.begin_stateid_owner(*stateid, args.seqid);
    const xdr::nfsstat4 status = take_turn(compound, std::move(step));
    if (!in_turn(compound)) co_return xdr::OPEN_DOWNGRADE4res(status);
  }
  const std::uint32_t wishes = xdr::OPEN4_SHARE_ACCESS_WANT_DELEG_MASK;
  const std::uint32_t access =
      compound.minor == 0 ? args.share_access : args.share_access & ~wishes;
  const auto done = state.open_downgrade(compound.on_behalf(), *stateid, compound.current->key(),
                                         access, args.share_deny);
  co_return stateid_result<xdr::OPEN_DOWNGRADE4res>(compound, done);
}

}  // namespace selvage::server::nfs4
