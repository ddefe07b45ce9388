// What the state wants done outside of its mutex.
#pragma once

#include "server/nfs4/compound.h"

namespace selvage::server::nfs4 {

/// Clients that are about to hold state are on record, durably, once this returns well.
Awaitable<Result<>> write_records(const Compound& compound);

/// Locks in the kernel follow those that clients have let go of.
Awaitable<> apply_changed_locks(Service& service, std::shared_ptr<const Namespace> names,
                                storage::Worker& worker);
inline Awaitable<> apply_changed_locks(const Compound& compound) {
  return apply_changed_locks(compound.service, compound.names, compound.call.worker);
}

/// The kernel holds what the state's locks on this range of the file are together. EAGAIN if a
/// local process is in the way.
Awaitable<Result<>> apply_locks(const Compound& compound, const state::FileKey& file,
                                const state::ByteRange& range);

}  // namespace selvage::server::nfs4
