// ALLOCATE, DEALLOCATE, SEEK, READ_PLUS, IO_ADVISE (RFC 7862, 15.1, 15.4, 15.11, 15.10, 15.5).
#include "server/nfs4/attributes.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/stateid_check.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace selvage::server::nfs4 {
namespace {

constexpr std::uint32_t content_data = xdr::NFS4_CONTENT_DATA;
constexpr std::uint32_t content_hole = xdr::NFS4_CONTENT_HOLE;

// What is not a regular file is NFS4ERR_WRONG_TYPE to all of these.
xdr::nfsstat4 space_error(const storage::ErrorCode& error) {
  const bool type = error == storage::errno_code(EISDIR) || error == storage::errno_code(EINVAL);
  return type ? xdr::NFS4ERR_WRONG_TYPE : status_of(error);
}

Awaitable<xdr::nfsstat4> check_change(const Compound& compound, const xdr::ALLOCATE4args& args) {
  if (compound.current->pseudo()) co_return xdr::NFS4ERR_WRONG_TYPE;
  const auto may = co_await check_stateid(compound, args.aa_stateid, StateidUse::write);
  if (!may) co_return may.status();
  const xdr::nfsstat4 writable = compound.check_writable();
  if (writable != xdr::NFS4_OK) co_return writable;
  if (args.aa_length == 0) co_return xdr::NFS4ERR_INVAL;
  const bool too_far = args.aa_offset > max_offset || args.aa_length > max_offset - args.aa_offset;
  co_return too_far ? xdr::NFS4ERR_FBIG : xdr::NFS4_OK;
}

}  // namespace

Awaitable<xdr::STATUS4res> allocate(Compound& compound, xdr::ALLOCATE4args args) {
  const Object object = *compound.current;
  const xdr::nfsstat4 good = co_await check_change(compound, args);
  if (good != xdr::NFS4_OK) co_return xdr::STATUS4res(good);
  const auto done = co_await object.filesystem().allocate(compound.caller(object), object.id,
                                                          args.aa_offset, args.aa_length);
  if (!done) co_return xdr::STATUS4res(space_error(done.error()));
  compound.known = *done;
  co_return xdr::STATUS4res(xdr::NFS4_OK);
}

Awaitable<xdr::STATUS4res> deallocate(Compound& compound, xdr::ALLOCATE4args args) {
  const Object object = *compound.current;
  // To the end, wherever that is: RFC 7862 leaves the range to the client.
  if (args.aa_offset <= max_offset) {
    args.aa_length = std::min(args.aa_length, max_offset - args.aa_offset);
  }
  const xdr::nfsstat4 good = co_await check_change(compound, args);
  if (good != xdr::NFS4_OK) co_return xdr::STATUS4res(good);
  const auto done = co_await object.filesystem().deallocate(compound.caller(object), object.id,
                                                            args.aa_offset, args.aa_length);
  if (!done) co_return xdr::STATUS4res(space_error(done.error()));
  compound.known = *done;
  co_return xdr::STATUS4res(xdr::NFS4_OK);
}

Awaitable<xdr::SEEK4res> seek(Compound& compound, xdr::SEEK4args args) {
  const Object object = *compound.current;
  if (object.pseudo()) co_return xdr::SEEK4res(xdr::NFS4ERR_WRONG_TYPE);
  if (args.sa_what != content_data && args.sa_what != content_hole) {
    co_return xdr::SEEK4res(xdr::NFS4ERR_UNION_NOTSUPP);
  }
  const auto may = co_await check_stateid(compound, args.sa_stateid, StateidUse::read);
  if (!may) co_return xdr::SEEK4res(may.status());
  if (args.sa_offset > max_offset) co_return xdr::SEEK4res(xdr::NFS4ERR_NXIO);
  const auto what = args.sa_what == content_data ? storage::SeekTo::data : storage::SeekTo::hole;
  const auto found =
      co_await object.filesystem().seek(compound.caller(object), object.id, args.sa_offset, what);
  if (!found) co_return xdr::SEEK4res(space_error(found.error()));
  xdr::seek_res4 ok;
  ok.sr_eof = found->eof;
  ok.sr_offset = found->offset;
  co_return xdr::SEEK4res(ok);
}

// One piece: the hole that the range begins with, or the data up to the next one. Where one ends is
// where the client's next READ_PLUS begins.
Awaitable<xdr::READ_PLUS4res> read_plus(Compound& compound, xdr::READ_PLUS4args args) {
  const Object object = *compound.current;
  if (object.pseudo()) co_return xdr::READ_PLUS4res(xdr::NFS4ERR_ISDIR);
  const auto may = co_await check_stateid(compound, args.rpa_stateid, StateidUse::read);
  if (!may) co_return xdr::READ_PLUS4res(may.status());
  compound.release_payload();
  storage::FileSystem& filesystem = object.filesystem();
  const storage::Caller caller = compound.caller(object);
  const std::uint64_t offset = std::min(args.rpa_offset, max_offset);
  const auto attributes = co_await filesystem.getattr(caller, object.id);
  if (!attributes) co_return xdr::READ_PLUS4res(space_error(attributes.error()));

  xdr::read_plus_res4 ok;
  std::uint32_t count = std::min(args.rpa_count, max_io_bytes);
  const bool looks = count != 0 && offset < attributes->size;
  std::uint64_t data_at = offset;
  if (looks) {
    const auto data = co_await filesystem.seek(caller, object.id, offset, storage::SeekTo::data);
    // What cannot be told apart is data.
    if (data) data_at = data->found ? data->offset : attributes->size;
  }
  if (data_at > offset) {
    xdr::data_info4 hole;
    hole.di_offset = offset;
    hole.di_length = std::min<std::uint64_t>(data_at - offset, args.rpa_count);
    ok.rpr_eof = offset + hole.di_length >= attributes->size;
    ok.rpr_contents.items.emplace_back(hole);
    co_return xdr::READ_PLUS4res(std::move(ok));
  }
  const std::size_t used = compound.results.size() + 64;
  const std::size_t left = compound.max_results - std::min(compound.max_results, used);
  count = static_cast<std::uint32_t>(std::min<std::size_t>(count, left));
  auto got = co_await filesystem.read(caller, object.id, offset, count, compound.read_memory());
  if (!got) co_return xdr::READ_PLUS4res(space_error(got.error()));
  compound.keep_payload(*got);
  ok.rpr_eof = got->eof;
  if (!got->data.empty()) {
    xdr::data4 data;
    data.d_offset = offset;
    data.d_data.bytes = got->data;
    ok.rpr_contents.items.emplace_back(data);
  }
  co_return xdr::READ_PLUS4res(std::move(ok));
}

// No advice is taken.
Awaitable<xdr::IO_ADVISE4res> io_advise(Compound& compound, xdr::IO_ADVISE4args args) {
  if (compound.current->pseudo()) co_return xdr::IO_ADVISE4res(xdr::NFS4ERR_WRONG_TYPE);
  const auto stateid = compound.stateid(args.iaa_stateid);
  if (!stateid) co_return xdr::IO_ADVISE4res(stateid.status());
  const auto may = co_await check_stateid(compound, args.iaa_stateid, StateidUse::read);
  if (!may && may.status() != xdr::NFS4ERR_OPENMODE) {
    co_return xdr::IO_ADVISE4res(may.status());
  }
  xdr::IO_ADVISE4resok ok;
  co_return xdr::IO_ADVISE4res(std::move(ok));
}

}  // namespace selvage::server::nfs4
