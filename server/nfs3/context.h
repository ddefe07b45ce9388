// What every NFSv3 procedure does first and last: arguments, handle to export to credentials,
// reply.
#pragma once

#include "server/nfs3/convert.h"
#include "server/nfs3/service.h"
#include "server/nfs3/status.h"
#include "server/rpc/arguments.h"
#include "server/rpc/program.h"
#include "storage/filesystem.h"
#include "xdr/nfs3.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace selvage::server::nfs3 {

template <class T = void>
using Awaitable = boost::asio::awaitable<T>;
using rpc::Call;
using rpc::decode_arguments;
using rpc::garbage_args;
using rpc::Reply;
using storage::Result;

/// One object of one export, and as whom the client acts on it.
struct Target {
  std::shared_ptr<const ExportTable> table;  ///< Keeps the export.
  const Export* served = nullptr;
  const AccessRule* rule = nullptr;  ///< What that client may do there.
  storage::ObjectId object;
  storage::Credentials credentials;

  storage::FileSystem& filesystem() const { return *served->filesystem; }
  bool is_root() const { return object == filesystem().root(); }

  /// Valid as long as this Target.
  storage::Caller caller(Call& call) const { return {call.worker, credentials}; }

  xdr::post_op_attr post_op(const storage::Attributes& attributes) const {
    return to_fattr3(attributes, served->fsid);
  }

  /// Without `before`: attributes from before an operation would have to be taken atomically with
  /// it, and false ones make clients drop their caches.
  xdr::wcc_data wcc(const storage::Attributes& after) const {
    return {std::nullopt, post_op(after)};
  }
};

/// Errc::bad_handle for a handle that this server did not make, ESTALE if its export is not served
/// any more, EACCES if that is not for this client, EPERM if it must use a reserved port. Does not
/// look at the object.
Result<Target> resolve(const void* service, const Call& call, const xdr::nfs_fh3& handle);

/// EROFS unless the export may be written to.
Result<> check_writable(const Target& target);

/// The handle of an object of the same export.
xdr::nfs_fh3 handle_of(const void* service, const Target& target, const storage::ObjectId& object);

/// What attributes are to be had for a reply that reports an error: none if the object is gone.
Awaitable<xdr::post_op_attr> current_attributes(const Target& target, storage::Caller caller);
Awaitable<xdr::wcc_data> current_wcc(const Target& target, storage::Caller caller);

template <class Results>
Reply answer(const Results& results) {
  Reply reply;
  reply.cacheable = results.tag != xdr::NFS3ERR_JUKEBOX;
  xdr::encode(reply.results, results);
  return reply;
}

}  // namespace selvage::server::nfs3
