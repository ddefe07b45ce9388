// WRITE and COMMIT (RFC 1813, 3.3.7, 3.3.21).
#include "server/nfs3/procedures.h"

#include <cerrno>

namespace selvage::server::nfs3 {
namespace {

/// RFC 1813, 3.3.7: what is not a regular file is NFS3ERR_INVAL, not NFS3ERR_ISDIR.
storage::ErrorCode data_error(const storage::ErrorCode& error) {
  return error == storage::errno_code(EISDIR) ? storage::errno_code(EINVAL) : error;
}

Result<storage::WriteRequest> checked(const Target& target, const xdr::WRITE3args& args) {
  if (const auto writable = check_writable(target); !writable) return writable.error();
  if (args.count != args.data.bytes.size()) return storage::errno_code(EINVAL);
  if (args.offset > max_offset || args.count > max_offset - args.offset) {
    return storage::errno_code(EFBIG);
  }
  storage::WriteRequest request;
  request.offset = args.offset;
  request.data = args.data.bytes;
  request.stability = static_cast<storage::Stability>(args.stable);
  return request;
}

Awaitable<Result<storage::CommitResult>> checked_commit(const Target& target,
                                                        storage::Caller caller,
                                                        const xdr::COMMIT3args& args) {
  if (const auto writable = check_writable(target); !writable) co_return writable.error();
  std::uint64_t offset = args.offset;
  std::uint32_t count = args.count;
  // Any range is a good one: what cannot be said to the kernel is widened.
  if (offset > max_offset) offset = count = 0;
  if (count > max_offset - offset) count = 0;
  co_return co_await target.filesystem().commit(caller, target.object, offset, count);
}

}  // namespace

Awaitable<Reply> write(void* service, Call& call) {
  xdr::WRITE3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.file);
  if (!target) co_return answer(xdr::WRITE3res(status_of(target.error())));
  const storage::Caller caller = target->caller(call);
  const auto request = checked(*target, args);
  Result<storage::WriteResult> done = storage::errno_code(EIO);
  if (request) {
    done = co_await target->filesystem().write(caller, target->object, *request);
  } else {
    done = request.error();
  }
  if (!done) {
    xdr::WRITE3resfail fail;
    fail.file_wcc = co_await current_wcc(*target, caller);
    co_return answer(xdr::WRITE3res(status_of(data_error(done.error())), fail));
  }
  xdr::WRITE3resok ok;
  ok.file_wcc = target->wcc(done->after);
  ok.count = static_cast<std::uint32_t>(done->count);
  ok.committed = static_cast<xdr::stable_how>(done->committed);
  ok.verf = to_verifier(done->verifier);
  co_return answer(xdr::WRITE3res(ok));
}

Awaitable<Reply> commit(void* service, Call& call) {
  xdr::COMMIT3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.file);
  if (!target) co_return answer(xdr::COMMIT3res(status_of(target.error())));
  const storage::Caller caller = target->caller(call);
  const auto done = co_await checked_commit(*target, caller, args);
  if (!done) {
    xdr::COMMIT3resfail fail;
    fail.file_wcc = co_await current_wcc(*target, caller);
    co_return answer(xdr::COMMIT3res(status_of(data_error(done.error())), fail));
  }
  xdr::COMMIT3resok ok;
  ok.file_wcc = target->wcc(done->after);
  ok.verf = to_verifier(done->verifier);
  co_return answer(xdr::COMMIT3res(ok));
}

}  // namespace selvage::server::nfs3
