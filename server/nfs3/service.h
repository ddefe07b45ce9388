// What the NFSv3 program needs of the rest of the server.
#pragma once

#include "server/exports.h"
#include "storage/handle_codec.h"

#include <memory>

namespace selvage::server::nfs3 {

/// Immutable while served; any worker reads it. Outlives the RPC server it is given to.
struct Service {
  std::shared_ptr<const ExportTable> exports;
  storage::HandleCodec handles;
};

}  // namespace selvage::server::nfs3
