// What the parts of the NFSv4 state share: results, identities, bounds.
#pragma once

#include "storage/object_id.h"
#include "xdr/nfs41_ops.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace selvage::server::nfs4::state {

using xdr::clientid4;
using xdr::nfsstat4;
using xdr::seqid4;
using xdr::sessionid4;
using xdr::stateid4;

/// A T, or why there is none.
template <class T>
class [[nodiscard]] Outcome {
 public:
  /// @pre status != NFS4_OK
  Outcome(nfsstat4 status) : status_(status) {}
  Outcome(T value) : value_(std::move(value)) {}

  explicit operator bool() const { return value_.has_value(); }
  nfsstat4 status() const { return status_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  nfsstat4 status_ = xdr::NFS4_OK;
  std::optional<T> value_;
};

/// An encoded reply, or the part of one that an operation is.
using Bytes = std::shared_ptr<const std::vector<std::byte>>;

using Clock = std::chrono::steady_clock;

/// A transport connection, by a number that its owner never gives to another one.
using ConnectionId = std::uint64_t;

/// Who sends a request, as far as the ownership of clients goes. The machine is for listings.
struct Principal {
  std::uint32_t flavor = 0;
  std::uint32_t uid = 0;
  std::string machine;
  friend bool operator==(const Principal& a, const Principal& b) {
    return a.flavor == b.flavor && a.uid == b.uid;
  }
};

/// On whose behalf an operation runs. Minor version 1 and later: the client of its SEQUENCE.
/// Minor version 0: the client that the arguments name (OPEN, LOCKT), else 0.
struct Caller {
  std::uint32_t minorversion = 0;
  clientid4 client = 0;
};

/// Which file, on all exports.
struct FileKey {
  std::uint32_t export_id = 0;
  storage::ObjectId object;
  friend bool operator==(const FileKey&, const FileKey&) = default;
};
struct FileKeyHash {
  std::size_t operator()(const FileKey& key) const {
    return storage::ObjectIdHash{}(key.object) ^ (std::size_t{key.export_id} * 0x9e3779b97f4a7c15U);
  }
};

/// Times and bounds. What happens at a bound: minor version 0 answers NFS4ERR_RESOURCE, later ones
/// NFS4ERR_DELAY (NFS4ERR_NOSPC for sessions); before that, clients whose lease has expired are
/// given up.
struct Options {
  std::chrono::seconds lease_time{90};
  std::chrono::seconds grace_time{90};
  /// How long an expired client that is in nobody's way is kept.
  std::chrono::seconds courtesy_time{24 * 3600};

  std::size_t max_clients = 16'384;
  std::size_t max_sessions_per_client = 64;
  std::uint32_t max_slots = 1'024;  ///< Per session.
  std::size_t max_opens_per_client = 65'536;
  std::size_t max_locks_per_client = 65'536;   ///< Ranges.
  std::size_t max_owners_per_client = 65'536;  ///< Open owners, and as many lock owners.
  /// Clients, sessions, owners, opens, locks and their files, as estimated (Tables::state_bytes).
  std::size_t max_state_bytes = std::size_t{1} << 30;
  std::size_t max_reply_cache_bytes = std::size_t{256} << 20;

  std::uint32_t max_request_bytes = (8U << 20) + 4096;  ///< ca_maxrequestsize: what is offered.
  std::uint32_t max_reply_bytes = (8U << 20) + 4096;    ///< ca_maxresponsesize
  std::uint32_t max_cached_reply_bytes = 64U << 10;     ///< ca_maxresponsesize_cached
  std::uint32_t max_operations = 256;                   ///< ca_maxoperations

  std::string server_owner = "selvage";  ///< so_major_id: equal for one server at all addresses.
  std::string server_scope = "selvage";

  /// Distinguishes this server instance from earlier ones; 0: a random number. A recovery store
  /// counts its own.
  std::uint32_t epoch = 0;
  std::function<Clock::time_point()> clock = [] { return Clock::now(); };
};

}  // namespace selvage::server::nfs4::state
