// SETCLIENTID, SETCLIENTID_CONFIRM, RENEW (RFC 7530, 16.33, 16.34, 16.28).
#include "server/nfs4/operations.h"

namespace selvage::server::nfs4 {

Awaitable<xdr::SETCLIENTID4res> setclientid(Compound& compound, xdr::SETCLIENTID4args args) {
  co_return compound.service.state.setclientid(args, compound.principal());
}

Awaitable<xdr::STATUS4res> setclientid_confirm(Compound& compound,
                                               xdr::SETCLIENTID_CONFIRM4args args) {
  co_return xdr::STATUS4res(compound.service.state.setclientid_confirm(args, compound.principal()));
}

Awaitable<xdr::STATUS4res> renew(Compound& compound, xdr::RENEW4args args) {
  co_return xdr::STATUS4res(compound.service.state.renew(args.clientid));
}

}  // namespace selvage::server::nfs4
