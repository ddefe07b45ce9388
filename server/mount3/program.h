// The MOUNT protocol, versions 1 and 3 (RFC 1094 Appendix A, RFC 1813 Appendix I).
//
// A path is mountable if it is the PATH of an export or a directory below one. What no export
// covers does not exist for clients: NOENT, whether or not the server has such a path, so that
// nobody can probe for it. What an export covers is ACCES for clients that it does not list, before
// the path is looked at. Below an export the path is walked under the client's squashed identity;
// symbolic links are not followed (NOTDIR).
#pragma once

#include "server/exports.h"
#include "server/mount3/mount_list.h"
#include "server/rpc/program.h"
#include "storage/handle_codec.h"

#include <memory>

namespace selvage::server::mount3 {

/// Immutable while served, but for the table and the list of mounts; any worker. Outlives the RPC
/// server that it is given to.
struct Service {
  const CurrentExports& exports;
  storage::HandleCodec handles;
  MountList mounts;
};

rpc::Program program_v3(Service& service);

/// Its MNT answers EOPNOTSUPP where the handle does not fit into 32 bytes; a shorter one is
/// followed by zeros. Clients use version 1 for UMNT, DUMP and EXPORT.
rpc::Program program_v1(Service& service);

}  // namespace selvage::server::mount3
