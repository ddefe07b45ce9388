// Rights to go on with an operation whose I/O happens outside of the state's mutex. Move-only; each
// belongs to one State, which outlives it. One that is destroyed unused takes back what it stands
// for.
#pragma once

#include "server/nfs4/state/types.h"

#include <cstdint>
#include <memory>
#include <utility>

namespace selvage::server::nfs4::state {

class State;

/// A slot of a session, in use by one request.
class SlotTicket {
 public:
  SlotTicket() = default;
  SlotTicket(SlotTicket&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)),
        session_(other.session_),
        slot_(other.slot_) {}
  SlotTicket& operator=(SlotTicket&& other) noexcept;
  ~SlotTicket();
  explicit operator bool() const { return state_ != nullptr; }

  /// The request has been answered. `reply`: the whole COMPOUND reply, for retries; nullptr if it
  /// need not be kept, a retry then gets NFS4ERR_RETRY_UNCACHED_REP. Ends the ticket.
  void finish(Bytes reply);

 private:
  friend class State;
  State* state_ = nullptr;
  sessionid4 session_{};
  std::uint32_t slot_ = 0;
};

/// What an operation with an owner's seqid answered (minor version 0).
struct OwnerReply {
  std::uint32_t operation = 0;  ///< nfs_opnum4
  nfsstat4 status = xdr::NFS4_OK;
  Bytes body;  ///< The result as encoded, status included.
  /// Whatever else a replay needs: the file that OPEN made the current one.
  std::shared_ptr<const void> context;
};

/// The turn of an open owner or lock owner (minor version 0): one operation at a time.
class OwnerTicket {
 public:
  OwnerTicket() = default;
  OwnerTicket(OwnerTicket&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)),
        client_(other.client_),
        owner_(other.owner_),
        seqid_(other.seqid_) {}
  OwnerTicket& operator=(OwnerTicket&& other) noexcept;
  ~OwnerTicket();
  explicit operator bool() const { return state_ != nullptr; }

  /// The operation has been answered: keeps the reply for a replay and advances the seqid, unless
  /// its status is one that does not (RFC 7530, 9.1.7). Ends the ticket. Destroyed without it: as
  /// if the operation had never come.
  void finish(OwnerReply reply);

 private:
  friend class State;
  State* state_ = nullptr;
  clientid4 client_ = 0;
  std::uint64_t owner_ = 0;
  seqid4 seqid_ = 0;
};

/// A share reservation that nobody can contradict any more and that nobody has been told of.
class OpenTicket {
 public:
  OpenTicket() = default;
  OpenTicket(OpenTicket&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)), pending_(other.pending_) {}
  OpenTicket& operator=(OpenTicket&& other) noexcept;
  ~OpenTicket();
  explicit operator bool() const { return state_ != nullptr; }

 private:
  friend class State;
  State* state_ = nullptr;
  std::uint64_t pending_ = 0;
};

/// A lock that is in the table and that nobody has been told of. Destroyed without commit: undone.
class LockTicket {
 public:
  LockTicket() = default;
  LockTicket(LockTicket&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)), pending_(other.pending_) {}
  LockTicket& operator=(LockTicket&& other) noexcept;
  ~LockTicket();
  explicit operator bool() const { return state_ != nullptr; }

 private:
  friend class State;
  State* state_ = nullptr;
  std::uint64_t pending_ = 0;
};

}  // namespace selvage::server::nfs4::state
