// READ, WRITE, COMMIT (RFC 7530, 16.23, 16.36, 16.3; RFC 8881, 18.22, 18.32, 18.3).
#include "server/nfs4/attributes.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/stateid_check.h"
#include "server/verifier.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace selvage::server::nfs4 {
namespace {

// READ and WRITE of what is no regular file: RFC 7530, 16.23.5 wants NFS4ERR_ISDIR and
// NFS4ERR_INVAL, RFC 8881 NFS4ERR_WRONG_TYPE for the latter.
xdr::nfsstat4 data_error(const Compound& compound, const storage::ErrorCode& error) {
  if (error == storage::errno_code(EINVAL) && compound.minor > 0) return xdr::NFS4ERR_WRONG_TYPE;
  return status_of(error);
}

// Bytes of data that the rest of the reply has room for.
std::uint32_t room_for_data(const Compound& compound) {
  constexpr std::size_t around = 4 + 4 + 4 + 4 + 3;  // Number, status, eof, length, padding.
  const std::size_t used = compound.results.size() + around;
  const std::size_t left = compound.max_results - std::min(compound.max_results, used);
  return static_cast<std::uint32_t>(std::min<std::size_t>(left, max_io_bytes));
}

}  // namespace

Awaitable<xdr::READ4res> read(Compound& compound, xdr::READ4args args) {
  const Object& object = *compound.current;
  if (object.pseudo()) co_return xdr::READ4res(xdr::NFS4ERR_ISDIR);
  const auto may = co_await check_stateid(compound, args.stateid, StateidUse::read);
  if (!may) co_return xdr::READ4res(may.status());
  // A second payload in one reply is a copy; and memory must not be held while waiting for more.
  compound.release_payload();
  const std::uint32_t count = std::min(args.count, room_for_data(compound));
  // No data and no end of file would make the client ask for ever.
  if (count == 0 && args.count != 0) co_return xdr::READ4res(compound.too_big);
  const std::uint64_t offset = std::min(args.offset, max_offset);
  auto got = co_await object.filesystem().read(compound.caller(object), object.id, offset, count,
                                               compound.read_memory());
  if (!got) co_return xdr::READ4res(data_error(compound, got.error()));
  compound.keep_payload(*got);
  compound.known = got->after;
  xdr::READ4resok ok;
  ok.eof = got->eof;
  ok.data.bytes = got->data;
  co_return xdr::READ4res(ok);
}

Awaitable<xdr::WRITE4res> write(Compound& compound, xdr::WRITE4args args) {
  const Object& object = *compound.current;
  if (object.pseudo()) co_return xdr::WRITE4res(xdr::NFS4ERR_ISDIR);
  const auto may = co_await check_stateid(compound, args.stateid, StateidUse::write);
  if (!may) co_return xdr::WRITE4res(may.status());
  const xdr::nfsstat4 writable = compound.check_writable();
  if (writable != xdr::NFS4_OK) co_return xdr::WRITE4res(writable);
  const std::uint64_t count = args.data.bytes.size();
  if (args.offset > max_offset || count > max_offset - args.offset) {
    co_return xdr::WRITE4res(xdr::NFS4ERR_FBIG);
  }
  compound.wrote = true;
  storage::WriteRequest request;
  request.offset = args.offset;
  request.data = args.data.bytes;
  request.stability = static_cast<storage::Stability>(args.stable);
  const auto done = co_await object.filesystem().write(compound.caller(object), object.id, request);
  if (!done) co_return xdr::WRITE4res(data_error(compound, done.error()));
  compound.known = done->after;
  xdr::WRITE4resok ok;
  ok.count = static_cast<std::uint32_t>(done->count);
  ok.committed = static_cast<xdr::stable_how4>(done->committed);
  ok.writeverf = to_verifier(done->verifier);
  co_return xdr::WRITE4res(ok);
}

Awaitable<xdr::COMMIT4res> commit(Compound& compound, xdr::COMMIT4args args) {
  const Object& object = *compound.current;
  if (object.pseudo()) co_return xdr::COMMIT4res(xdr::NFS4ERR_ISDIR);
  const xdr::nfsstat4 writable = compound.check_writable();
  if (writable != xdr::NFS4_OK) co_return xdr::COMMIT4res(writable);
  // RFC 7530, 16.3.5: offset + count past 2^64 is an error; what cannot be said to the kernel
  // otherwise is widened.
  if (args.count > ~std::uint64_t{0} - args.offset) co_return xdr::COMMIT4res(xdr::NFS4ERR_INVAL);
  if (args.offset > max_offset) args.offset = args.count = 0;
  if (args.count > max_offset - args.offset) args.count = 0;
  const auto done = co_await object.filesystem().commit(compound.caller(object), object.id,
                                                        args.offset, args.count);
  if (!done) co_return xdr::COMMIT4res(data_error(compound, done.error()));
  compound.known = done->after;
  xdr::COMMIT4resok ok;
  ok.writeverf = to_verifier(done->verifier);
  co_return xdr::COMMIT4res(ok);
}

}  // namespace selvage::server::nfs4
