// NFS version 4 (RFC 7530, RFC 8881, RFC 7862) as the RPC front end sees it.
#pragma once

#include "server/nfs4/service.h"
#include "server/rpc/program.h"

namespace selvage::server::nfs4 {

/// `service` must outlive whatever serves the program.
rpc::Program program(Service& service);

/// Where the payload of a WRITE lies, in the forms that clients send: [SEQUENCE] PUTFH WRITE.
/// nullopt for everything else, and for a head that ends before. Any thread.
std::optional<rpc::PayloadPlace> find_payload(std::uint32_t procedure,
                                              std::span<const std::byte> head);

/// Whether a COMPOUND belongs in the duplicate request cache: it is of minor version 0 (later ones
/// have sessions) and may change something. `arguments` stand at its first byte.
bool changes_something(xdr::Source arguments);

}  // namespace selvage::server::nfs4
