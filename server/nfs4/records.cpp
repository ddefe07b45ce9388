#include "server/nfs4/records.h"

#include "server/log.h"
#include "server/nfs4/attributes.h"

namespace selvage::server::nfs4 {
namespace {

storage::KernelLock kernel_lock(state::LockMode mode) {
  switch (mode) {
    case state::LockMode::none:
      return storage::KernelLock::none;
    case state::LockMode::read:
      return storage::KernelLock::shared;
    case state::LockMode::write:
      break;
  }
  return storage::KernelLock::exclusive;
}

}  // namespace

Awaitable<Result<>> write_records(const Compound& compound) {
  state::State& state = compound.service.state;
  if (!state.records_pending()) co_return Result<>();
  auto write = [&state] { return state.write_records(); };
  const auto written = co_await compound.call.worker.pool.run(write);
  if (!written) {
    log::error("NFSv4 client records could not be written: " + written.error().message());
  }
  co_return written;
}

namespace {

Awaitable<Result<>> apply(Service& service, std::shared_ptr<const Namespace> names,
                          storage::Worker& worker, const state::FileKey& file,
                          const state::ByteRange& range) {
  const Export* served = names->exports().by_id(file.export_id);
  if (served == nullptr) co_return Result<>();
  // Whoever comes last applies what the locks are then.
  const auto turn = co_await service.kernel_locks.take(worker, file);
  const auto pieces = service.state.lock_union(file, range);
  for (const state::LockedRange& piece : pieces) {
    // The kernel's offsets are signed: there are no bytes beyond them.
    if (piece.range.first > max_offset) break;
    const bool to_end = piece.range.last >= max_offset;
    const std::uint64_t length = to_end ? 0 : piece.range.last - piece.range.first + 1;
    const auto done = co_await served->filesystem->lock_range(
        worker, file.object, piece.range.first, length, kernel_lock(piece.mode));
    if (!done) co_return done;
  }
  co_return Result<>();
}

}  // namespace

Awaitable<Result<>> apply_locks(const Compound& compound, const state::FileKey& file,
                                const state::ByteRange& range) {
  co_return co_await apply(compound.service, compound.names, compound.call.worker, file, range);
}

Awaitable<> apply_changed_locks(Service& service, std::shared_ptr<const Namespace> names,
                                storage::Worker& worker) {
  if (!service.state.locks_changed()) co_return;
  for (const state::ChangedLocks& changed : service.state.take_changed_locks()) {
    const auto done = co_await apply(service, names, worker, changed.file, changed.range);
    if (!done) log::warning("a file lock could not be released: " + done.error().message());
  }
}

}  // namespace selvage::server::nfs4
