// What the NFSv3 program needs of the rest of the server.
#pragma once

#include "server/exports.h"
#include "storage/handle_codec.h"

#include <memory>

namespace selvage::server::nfs3 {

/// Immutable while served, but for the table; any worker. Outlives the RPC server it is given to.
struct Service {
  const CurrentExports& exports;
  storage::HandleCodec handles;
};

}  // namespace selvage::server::nfs3
