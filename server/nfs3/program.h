// NFS version 3 (RFC 1813) as the RPC front end sees it.
#pragma once

#include "server/nfs3/service.h"
#include "server/rpc/program.h"

namespace selvage::server::nfs3 {

/// `service` must outlive whatever serves the program.
rpc::Program program(Service& service);

/// Where the payload of a WRITE lies; nullopt for every other procedure, for no payload, and for a
/// head that ends before the payload's length word. Any thread.
std::optional<rpc::PayloadPlace> find_payload(std::uint32_t procedure,
                                              std::span<const std::byte> head);

}  // namespace selvage::server::nfs3
