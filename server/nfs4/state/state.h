// The state of NFSv4 (DESIGN 9): clients, sessions, owners, opens, locks, stateids, grace. In
// memory, but for the record of clients in the recovery store.
//
// All of it is behind one mutex, which is never held across I/O. What an operation has to do
// outside of it (opening the file, writing the record of a client, locking in the kernel) happens
// between begin_...() and commit_...(), under a ticket.
//
// Duties of the caller:
//   - Before commit_open() and commit_lock(), after reclaim_complete(), and where use_stateid()
//   says
//     so: if records_pending(), run write_records() on the blocking pool. The commits answer
//     NFS4ERR_IO if that failed.
//   - After anything that may have released locks: if locks_changed(), take_changed_locks() and
//     apply each in the kernel.
//   - tick() about once a second.
#pragma once

#include "server/nfs4/state/lock_ranges.h"
#include "server/nfs4/state/recovery_store.h"
#include "server/nfs4/state/tickets.h"
#include "server/nfs4/state/types.h"
#include "xdr/nfs41_ops.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace selvage::server::nfs4::state {

struct Tables;

/// What SEQUENCE looks at besides its arguments.
struct SequenceRequest {
  std::uint64_t checksum = 0;     ///< Of the request, so that a retry is told from another request.
  std::size_t request_bytes = 0;  ///< The whole RPC call (NFS4ERR_REQ_TOO_BIG).
  std::uint32_t operations = 0;   ///< SEQUENCE included (NFS4ERR_TOO_MANY_OPS).
  ConnectionId connection = 0;    ///< Becomes one of the session's.
  std::uint32_t minorversion = 1;
};

/// What to do with a request that begins with SEQUENCE.
struct Sequenced {
  enum class Kind {
    execute,  ///< resok, then the rest; `ticket` ends it.
    replay,   ///< It has been executed: send `reply`.
    refused   ///< SEQUENCE fails with `status`. For NFS4ERR_RETRY_UNCACHED_REP resok is set too.
  };
  Kind kind = Kind::refused;
  nfsstat4 status = xdr::NFS4_OK;
  xdr::SEQUENCE4resok resok;
  SlotTicket ticket;
  Bytes reply;
  clientid4 client = 0;
  xdr::channel_attrs4 limits;  ///< Of the fore channel.
};

/// Whether an operation with an owner's seqid may go on (minor version 0).
struct OwnerStep {
  enum class Kind {
    proceed,      ///< `ticket` ends it.
    replay,       ///< It has been executed: answer `reply`.
    in_progress,  ///< A retry of an operation that is not finished: drop the request.
    refused       ///< `status`; the seqid does not advance.
  };
  Kind kind = Kind::refused;
  nfsstat4 status = xdr::NFS4_OK;
  OwnerTicket ticket;
  OwnerReply reply;
};

struct OpenRequest {
  Caller caller;
  std::span<const std::uint8_t> owner;  ///< open_owner4.owner
  FileKey file;
  std::uint32_t access = 0;  ///< OPEN4_SHARE_ACCESS_, without wishes.
  std::uint32_t deny = 0;
  bool reclaim = false;  ///< CLAIM_PREVIOUS
};
struct OpenGrant {
  stateid4 stateid;
  bool confirm = false;      ///< Minor version 0: OPEN4_RESULT_CONFIRM.
  std::uint32_t access = 0;  ///< Of all OPENs of this owner together.
  std::uint32_t deny = 0;
};

struct LockStart {
  nfsstat4 status = xdr::NFS4_OK;
  LockTicket ticket;        ///< With NFS4_OK.
  ByteRange range;          ///< The same: apply lock_union() of it, then commit_lock().
  xdr::LOCK4denied denied;  ///< With NFS4ERR_DENIED.
};

/// What a READ, WRITE or SETATTR may go ahead with.
struct StateidUse {
  clientid4 client = 0;  ///< 0 with a special stateid.
  bool special = false;
  /// It may go ahead because a client has lost its state, whose record is not yet off the disk:
  /// write_records() first.
  bool unrecorded = false;
  std::shared_ptr<void> hold;  ///< The file's, if it is open.
};

/// A file whose locks must be applied in the kernel again, in this range.
struct ChangedLocks {
  FileKey file;
  std::shared_ptr<void> hold;  ///< As it was when the locks changed.
  ByteRange range;
};

struct Counts {
  std::size_t clients = 0;
  std::size_t expired_clients = 0;  ///< Of these: kept by courtesy.
  std::size_t sessions = 0;
  std::size_t open_owners = 0;
  std::size_t lock_owners = 0;
  std::size_t opens = 0;
  std::size_t locks = 0;        ///< Ranges.
  std::size_t files = 0;        ///< With opens or locks.
  std::size_t revoked = 0;      ///< Stateids whose state was taken away, not yet freed.
  std::size_t state_bytes = 0;  ///< Options::max_state_bytes bounds them.
  std::size_t reply_cache_bytes = 0;
  std::uint64_t clients_revoked = 0;  ///< Ever.
};

struct ClientInfo {
  clientid4 client = 0;
  std::string owner;
  Principal principal;
  std::uint32_t minorversion = 0;  ///< That of its last request.
  std::string implementation;      ///< nii_name
  bool confirmed = false;
  bool expired = false;
  bool revoked = false;  ///< Its opens and locks were released for somebody else.
  bool reclaim_complete = false;
  std::size_t sessions = 0;
  std::size_t opens = 0;
  std::size_t locks = 0;
  std::chrono::seconds since_renewal{0};
};

/// Where a client can be called back.
struct BackChannel {
  sessionid4 session{};
  ConnectionId connection = 0;
  std::uint32_t program = 0;
  xdr::channel_attrs4 attributes;
};

class State {
 public:
  /// Without a store nobody can reclaim after a restart, and Options::epoch is the epoch.
  explicit State(Options options, std::unique_ptr<RecoveryStore> store = nullptr);
  /// No tickets are left and no call is in progress.
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Clients and sessions: RFC 8881, 18.33 to 18.37, 18.46, 18.50, 18.51.

  Outcome<xdr::EXCHANGE_ID4resok> exchange_id(const xdr::EXCHANGE_ID4args& args,
                                              const Principal& principal);
  /// The connection becomes one of the session's.
  Outcome<xdr::CREATE_SESSION4resok> create_session(const xdr::CREATE_SESSION4args& args,
                                                    const Principal& principal,
                                                    ConnectionId connection);
  /// `own`: whether the request's own SEQUENCE is in this session. NFS4ERR_DELAY while other
  /// requests are in progress in it.
  nfsstat4 destroy_session(const sessionid4& session, bool own, ConnectionId connection);
  nfsstat4 destroy_clientid(clientid4 client);
  Outcome<xdr::BIND_CONN_TO_SESSION4resok> bind_conn_to_session(
      const xdr::BIND_CONN_TO_SESSION4args& args, ConnectionId connection);
  nfsstat4 backchannel_ctl(const sessionid4& session, const xdr::BACKCHANNEL_CTL4args& args);
  Sequenced sequence(const xdr::SEQUENCE4args& args, const SequenceRequest& request);
  nfsstat4 reclaim_complete(const Caller& caller, const xdr::RECLAIM_COMPLETE4args& args);
  /// The connection is gone from all sessions.
  void connection_lost(ConnectionId connection);
  std::vector<BackChannel> back_channels(clientid4 client) const;

  // Clients of minor version 0: RFC 7530, 16.28, 16.33, 16.34.

  xdr::SETCLIENTID4res setclientid(const xdr::SETCLIENTID4args& args, const Principal& principal);
  nfsstat4 setclientid_confirm(const xdr::SETCLIENTID_CONFIRM4args& args,
                               const Principal& principal);
  nfsstat4 renew(clientid4 client);

  // Owners of minor version 0: RFC 7530, 9.1.7.

  /// OPEN.
  OwnerStep begin_open_owner(const xdr::state_owner4& owner, seqid4 seqid);
  /// OPEN_CONFIRM, OPEN_DOWNGRADE, CLOSE, LOCK with a new lock owner (an open's stateid and the
  /// open owner's seqid); LOCK with an old one, LOCKU (a lock's stateid, the lock owner's seqid).
  OwnerStep begin_stateid_owner(const stateid4& stateid, seqid4 seqid);
  /// RFC 7530, 16.37.
  nfsstat4 release_lockowner(const xdr::state_owner4& owner);

  // Opens: RFC 8881, 18.2, 18.16, 18.18; RFC 7530, 16.2, 16.16, 16.18, 16.19.

  /// Whether this client may OPEN at all now (NFS4ERR_GRACE, NFS4ERR_NO_GRACE,
  /// NFS4ERR_RECLAIM_BAD, NFS4ERR_STALE_CLIENTID, NFS4ERR_EXPIRED): before anything is created.
  nfsstat4 check_open(const Caller& caller, bool reclaim);
  Outcome<OpenTicket> begin_open(const OpenRequest& request);
  /// What the file is held open with; null if this open is the first.
  std::shared_ptr<void> hold(const OpenTicket& ticket) const;
  /// `hold`: what keeps the file usable although it has no name any more; dropped at the last
  /// CLOSE, outside of the mutex. Ignored if the file has one. The client's record is durable.
  Outcome<OpenGrant> commit_open(OpenTicket ticket, std::shared_ptr<void> hold);
  Outcome<stateid4> open_confirm(const stateid4& stateid, const FileKey& file);
  Outcome<stateid4> open_downgrade(const Caller& caller, const stateid4& stateid,
                                   const FileKey& file, std::uint32_t access, std::uint32_t deny);
  /// Releases the locks that the owner's lock owners took under this open.
  Outcome<stateid4> close(const Caller& caller, const stateid4& stateid, const FileKey& file);

  // Locks: RFC 8881, 18.10 to 18.12.

  LockStart begin_lock(const Caller& caller, const xdr::LOCK4args& args, const FileKey& file);
  Outcome<stateid4> commit_lock(LockTicket ticket);
  /// NFS4_OK or NFS4ERR_DENIED, or what is wrong with the arguments.
  LockStart test_lock(const Caller& caller, const xdr::LOCKT4args& args, const FileKey& file);
  /// Apply lock_union() of the range afterwards.
  Outcome<stateid4> unlock(const Caller& caller, const xdr::LOCKU4args& args, const FileKey& file);

  /// What the kernel should hold on the file in this range. Called while holding whatever
  /// serialises the file's locks in the kernel: then the last one to apply applies the latest.
  std::vector<LockedRange> lock_union(const FileKey& file, const ByteRange& range) const;
  bool locks_changed() const { return locks_changed_.load(std::memory_order_acquire); }
  std::vector<ChangedLocks> take_changed_locks();

  // Stateids: RFC 8881, 8.2, 18.38, 18.48; RFC 7530, 9.1.4.

  /// READ, WRITE, SETATTR of the size, ALLOCATE...: may this stateid do it to this file?
  /// @param access OPEN4_SHARE_ACCESS_ bits
  Outcome<StateidUse> use_stateid(const Caller& caller, const stateid4& stateid,
                                  const FileKey& file, std::uint32_t access);
  std::vector<nfsstat4> test_stateids(const Caller& caller, std::span<const stateid4> stateids);
  nfsstat4 free_stateid(const Caller& caller, const stateid4& stateid);

  // Time, recovery.

  /// What time has brought: clients that are gone, the end of the grace period.
  void tick();
  bool in_grace() const;
  /// Ends the grace period without waiting for clients that have not come back.
  void end_grace();
  /// A lease that is shorter would come too late for clients who have been told the one before.
  /// @pre not shorter than it is
  void lengthen_lease(std::chrono::seconds lease_time);
  /// What revoking by an administrator is: NFS4ERR_STALE_CLIENTID if there is no such client.
  nfsstat4 revoke_client(clientid4 client);

  /// The export is served no more: opens and locks of its files go, their stateids are unknown
  /// from now on. No request that knows the export is in progress.
  void drop_export(std::uint32_t export_id);

  bool records_pending() const { return records_pending_.load(std::memory_order_acquire); }
  /// Blocking. Everything that was pending when it was called is durable when it returns well.
  storage::Result<> write_records();

  Counts counts() const;
  std::vector<ClientInfo> clients() const;
  const Options& options() const;

 private:
  friend class SlotTicket;
  friend class OwnerTicket;
  friend class OpenTicket;
  friend class LockTicket;
  class Guard;

  void finish_slot(const sessionid4& session, std::uint32_t slot, Bytes reply);
  void finish_owner(clientid4 client, std::uint64_t owner, seqid4 seqid, OwnerReply* reply);
  void abort_open(std::uint64_t pending);
  void undo_lock(std::uint64_t pending);

  mutable std::mutex mutex_;
  std::unique_ptr<Tables> tables_;        // Behind mutex_.
  std::mutex store_mutex_;                // Taken before mutex_.
  std::unique_ptr<RecoveryStore> store_;  // Behind store_mutex_.
  // Set under mutex_, read without.
  mutable std::atomic<bool> records_pending_{false};
  mutable std::atomic<bool> locks_changed_{false};
};

}  // namespace selvage::server::nfs4::state
