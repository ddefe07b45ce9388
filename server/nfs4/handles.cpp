// PUTFH, PUTROOTFH, PUTPUBFH, GETFH, SAVEFH, RESTOREFH (RFC 7530, 16.20 to 16.22, 16.8, 16.30,
// 16.29).
#include "server/nfs4/operations.h"

#include <utility>

namespace selvage::server::nfs4 {

Awaitable<xdr::STATUS4res> putfh(Compound& compound, xdr::PUTFH4args args) {
  auto object = compound.resolve(args.object);
  if (!object) co_return xdr::STATUS4res(object.status());
  compound.set_current(std::move(*object));
  co_return xdr::STATUS4res(xdr::NFS4_OK);
}

Awaitable<xdr::STATUS4res> putrootfh(Compound& compound) {
  auto object = compound.enter(compound.names->root());
  if (!object) co_return xdr::STATUS4res(object.status());
  compound.set_current(std::move(*object));
  co_return xdr::STATUS4res(xdr::NFS4_OK);
}

Awaitable<xdr::GETFH4res> getfh(Compound& compound) {
  co_return xdr::GETFH4res(compound.handle_of(*compound.current));
}

Awaitable<xdr::STATUS4res> savefh(Compound& compound) {
  compound.saved = compound.current;
  compound.saved_stateid = compound.current_stateid;
  co_return xdr::STATUS4res(xdr::NFS4_OK);
}

Awaitable<xdr::STATUS4res> restorefh(Compound& compound) {
  if (!compound.saved) co_return xdr::STATUS4res(xdr::NFS4ERR_RESTOREFH);
  compound.current = compound.saved;
  compound.current_stateid = compound.saved_stateid;
  co_return xdr::STATUS4res(xdr::NFS4_OK);
}

}  // namespace selvage::server::nfs4
