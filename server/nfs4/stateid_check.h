// Whether a stateid allows what an operation is about to do (RFC 7530, 9.1.4; RFC 8881, 8.2).
#pragma once

#include "server/nfs4/compound.h"

namespace selvage::server::nfs4 {

enum class StateidUse : std::uint8_t { read, write };

/// Of the current object, which is not a pseudo directory. What is returned keeps the file, while
/// it lives, from losing its content with its last name. IO if a client lost its state for this use
/// and that could not be recorded.
Awaitable<Outcome<state::StateidUse>> check_stateid(const Compound& compound,
                                                    const xdr::stateid4& given, StateidUse use);

}  // namespace selvage::server::nfs4
