// One COMPOUND in execution: what its operations share (RFC 7530, 14; RFC 8881, 16).
#pragma once

#include "server/nfs4/namespace.h"
#include "server/nfs4/service.h"
#include "server/nfs4/status.h"
#include "server/rpc/program.h"
#include "storage/buffer_pool.h"
#include "storage/filesystem.h"
#include "xdr/nfs4_types.h"
#include "xdr/stream.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace selvage::server::nfs4 {

template <class T = void>
using Awaitable = boost::asio::awaitable<T>;
using rpc::Call;
using state::Outcome;
using storage::Result;

/// What a filehandle names, and as whom the client acts on it.
struct Object {
  const PathNode* node = nullptr;  ///< A pseudo directory; then the rest is not set.
  const Export* served = nullptr;
  const AccessRule* rule = nullptr;  ///< What that client may do there.
  storage::ObjectId id;
  storage::Credentials credentials;

  bool pseudo() const { return node != nullptr; }
  storage::FileSystem& filesystem() const { return *served->filesystem; }
  bool is_root() const { return id == filesystem().root(); }
  state::FileKey key() const { return {served->id, id}; }
};

class Compound {
 public:
  Compound(Service& service, Call& call, std::uint32_t minor)
      : service(service), call(call), minor(minor), names(service.names()) {}

  Service& service;
  Call& call;
  const std::uint32_t minor;
  const std::shared_ptr<const Namespace> names;

  std::uint32_t operation = 0;  ///< The number of the one in progress.
  bool last = false;            ///< Whether it is the COMPOUND's last.

  std::optional<Object> current;
  std::optional<Object> saved;
  /// The stateid that goes with each (RFC 8881, 16.2.3.1.2).
  std::optional<xdr::stateid4> current_stateid;
  std::optional<xdr::stateid4> saved_stateid;

  /// The current object's attributes, if the operation just before has them: a GETATTR after a
  /// WRITE need not ask again.
  std::optional<storage::Attributes> known;

  /// With a session (minor version 1 and later).
  xdr::clientid4 client = 0;
  std::optional<xdr::sessionid4> session;

  /// Minor version 0, an operation with an owner's seqid: its turn, which ends with its result; or
  /// the result that it had when it was executed.
  state::OwnerTicket owner_turn;
  state::Bytes replay;
  std::shared_ptr<const void> owner_context;  ///< OwnerReply::context

  xdr::Sink results;
  storage::Buffer payload_owner;                         ///< Of the payload in `results`,
  std::unique_ptr<storage::AlignedMemory> payload_heap;  ///< or this.
  bool wrote = false;                         ///< A WRITE's payload is still in memory of the pool.
  std::size_t max_results = ~std::size_t{0};  ///< Bytes, of `results`.
  xdr::nfsstat4 too_big = xdr::NFS4ERR_REP_TOO_BIG;  ///< What is said over that.

  /// Valid as long as the object.
  storage::Caller caller(const Object& object) const { return {call.worker, object.credentials}; }
  state::Principal principal() const;
  /// For the state: `named` is the client that the arguments name, in minor version 0.
  state::Caller on_behalf(xdr::clientid4 named = 0) const {
    return {minor, minor == 0 ? named : client};
  }

  /// The object of a handle. BADHANDLE, STALE, ACCESS if its export is not for this client, PERM if
  /// that must use a reserved port.
  Outcome<Object> resolve(const xdr::nfs_fh4& handle) const;
  /// The same for a node of the path tree. NOENT if the client may see no export at or below it.
  Outcome<Object> enter(const PathNode& node) const;
  xdr::nfs_fh4 handle_of(const Object& object) const;
  /// An object in the same export as `other`.
  Object in_export_of(const Object& other, const storage::ObjectId& id) const;

  /// Makes it the current filehandle, without a stateid.
  void set_current(Object object) {
    current = std::move(object);
    current_stateid.reset();
  }
  /// A stateid argument: the special "current stateid" becomes what it stands for
  /// (RFC 8881, 8.2.3); BAD_STATEID if there is none.
  Outcome<xdr::stateid4> stateid(const xdr::stateid4& given) const;

  /// Whether names in the current object must be UTF-8.
  bool utf8() const { return !current->pseudo() && current->served->config.utf8; }
  /// ROFS unless the current object's export may be written to, and for the pseudo file system.
  xdr::nfsstat4 check_writable() const;
  /// Sets `served` and what goes with it: ACCESS, PERM.
  xdr::nfsstat4 enter_export(const Export& served, Object& object) const;
  /// A payload of `results` gives its memory back, so that another buffer can be waited for.
  void release_payload() {
    results.own_payload();
    payload_owner = {};
    payload_heap.reset();
  }
  /// Where a READ may put its data: see storage::ReadMemory.
  storage::ReadMemory read_memory() const {
    return wrote ? storage::ReadMemory::heap : storage::ReadMemory::pool;
  }
  /// Keeps the data until the reply has been sent.
  void keep_payload(storage::ReadResult& result) {
    payload_owner = std::move(result.buffer);
    payload_heap = std::move(result.heap);
  }
};

/// How a directory's change attribute moved. Nothing in user space is atomic with the change.
xdr::change_info4 change_info(const storage::Attributes& before, const storage::Attributes& after);

/// A name as NFSv4 judges it: INVAL if empty, BADNAME with '/' or NUL, or for "." and "..",
/// NAMETOOLONG; with `utf8` INVAL for what is not UTF-8.
xdr::nfsstat4 check_component(const std::string& name, bool utf8);

}  // namespace selvage::server::nfs4
