// EXCHANGE_ID, CREATE_SESSION, DESTROY_SESSION, DESTROY_CLIENTID, BIND_CONN_TO_SESSION,
// BACKCHANNEL_CTL, RECLAIM_COMPLETE (RFC 8881, 18.33 to 18.37, 18.50, 18.51). SEQUENCE is the
// engine's.
#include "server/nfs4/operations.h"
#include "server/nfs4/records.h"

#include <utility>

namespace selvage::server::nfs4 {

Awaitable<xdr::EXCHANGE_ID4res> exchange_id(Compound& compound, xdr::EXCHANGE_ID4args args) {
  auto done = compound.service.state.exchange_id(args, compound.principal());
  if (!done) co_return xdr::EXCHANGE_ID4res(done.status());
  co_return xdr::EXCHANGE_ID4res(std::move(*done));
}

Awaitable<xdr::CREATE_SESSION4res> create_session(Compound& compound,
                                                  xdr::CREATE_SESSION4args args) {
  auto done =
      compound.service.state.create_session(args, compound.principal(), compound.call.connection);
  if (!done) co_return xdr::CREATE_SESSION4res(done.status());
  co_return xdr::CREATE_SESSION4res(std::move(*done));
}

Awaitable<xdr::STATUS4res> destroy_session(Compound& compound, xdr::DESTROY_SESSION4args args) {
  const bool own = compound.session == args.dsa_sessionid;
  // RFC 8881, 18.37.3: what comes after it would have no session.
  if (own && !compound.last) co_return xdr::STATUS4res(xdr::NFS4ERR_NOT_ONLY_OP);
  co_return xdr::STATUS4res(
      compound.service.state.destroy_session(args.dsa_sessionid, own, compound.call.connection));
}

Awaitable<xdr::STATUS4res> destroy_clientid(Compound& compound, xdr::DESTROY_CLIENTID4args args) {
  const auto status = compound.service.state.destroy_clientid(args.dca_clientid);
  co_return xdr::STATUS4res(status);
}

Awaitable<xdr::BIND_CONN_TO_SESSION4res> bind_conn_to_session(Compound& compound,
                                                              xdr::BIND_CONN_TO_SESSION4args args) {
  const auto done = compound.service.state.bind_conn_to_session(args, compound.call.connection);
  if (!done) co_return xdr::BIND_CONN_TO_SESSION4res(done.status());
  co_return xdr::BIND_CONN_TO_SESSION4res(*done);
}

Awaitable<xdr::STATUS4res> backchannel_ctl(Compound& compound, xdr::BACKCHANNEL_CTL4args args) {
  co_return xdr::STATUS4res(compound.service.state.backchannel_ctl(*compound.session, args));
}

Awaitable<xdr::STATUS4res> reclaim_complete(Compound& compound, xdr::RECLAIM_COMPLETE4args args) {
  const auto status = compound.service.state.reclaim_complete(compound.on_behalf(), args);
  if (status == xdr::NFS4_OK) {
    const auto recorded = co_await write_records(compound);
    if (!recorded) co_return xdr::STATUS4res(xdr::NFS4ERR_IO);
  }
  co_return xdr::STATUS4res(status);
}

}  // namespace selvage::server::nfs4
