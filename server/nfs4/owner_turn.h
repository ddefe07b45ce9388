// The seqids of open owners and lock owners in minor version 0 (RFC 7530, 9.1.7).
#pragma once

#include "server/nfs4/compound.h"

#include <utility>

namespace selvage::server::nfs4 {

/// Whether the operation is to be carried out; otherwise the status is its result, or the replay
/// that the engine sends.
inline bool in_turn(const Compound& compound) {
  return static_cast<bool>(compound.owner_turn);
}

/// Takes what the state says of an operation's seqid.
inline xdr::nfsstat4 take_turn(Compound& compound, state::OwnerStep step) {
  switch (step.kind) {
    case state::OwnerStep::Kind::proceed:
      compound.owner_turn = std::move(step.ticket);
      return xdr::NFS4_OK;
    case state::OwnerStep::Kind::replay:
      // Another operation with an old seqid is no retry, and must not get the old one's result.
      if (step.reply.operation != compound.operation) return xdr::NFS4ERR_BAD_SEQID;
      compound.replay = std::move(step.reply.body);
      compound.owner_context = std::move(step.reply.context);
      return step.reply.status;
    // The first copy's reply will reach the client, or its next retry that of the cache.
    case state::OwnerStep::Kind::in_progress:
      return xdr::NFS4ERR_DELAY;
    case state::OwnerStep::Kind::refused:
      break;
  }
  return step.status;
}

}  // namespace selvage::server::nfs4
