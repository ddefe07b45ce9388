// COMPOUND (RFC 7530, 15.2; RFC 8881, 16.2): decodes and carries out one operation after the other.
// Private to server/nfs4.
#pragma once

#include "server/nfs4/compound.h"

namespace selvage::server::nfs4 {

/// `service` is a nfs4::Service.
Awaitable<rpc::Reply> compound(void* service, Call& call);

}  // namespace selvage::server::nfs4
