// Which clients held state when the server stopped (RFC 8881, 8.4.2.1; RFC 7530, 9.6.3.4): only
// those may reclaim it after a restart. SQLite, one file in the state directory.
#pragma once

#include "storage/result.h"
#include "xdr/nfs4_types.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct sqlite3;

namespace selvage::server::nfs4::state {

/// One incarnation of a client. Clientids grow, across restarts too: the order in which records of
/// several incarnations are put and removed makes no difference.
struct ClientRecord {
  xdr::clientid4 client = 0;
  bool has_sessions = false;  ///< Minor version 1 and later.
  std::string owner;          ///< nfs_client_id4.id or co_ownerid.
  friend bool operator==(const ClientRecord&, const ClientRecord&) = default;
};

/// Blocking I/O. One thread at a time; the destructor closes the file.
class RecoveryStore {
 public:
  struct Change {
    enum class Kind {
      put,
      remove,         ///< The client, and its owner's earlier incarnations.
      remove_earlier  ///< All of earlier instances: the grace period is over.
    };
    Kind kind = Kind::put;
    ClientRecord record;
  };

  /// Opens or makes `directory`/nfs4-clients.sqlite and starts the next instance: its epoch is
  /// durable before this returns.
  static storage::Result<std::unique_ptr<RecoveryStore>> open(const std::string& directory);
  ~RecoveryStore();
  RecoveryStore(const RecoveryStore&) = delete;
  RecoveryStore& operator=(const RecoveryStore&) = delete;

  /// Of this instance, one more than that of the one before; never 0.
  std::uint32_t epoch() const { return epoch_; }
  /// What earlier instances left, as it was when the store was opened.
  const std::vector<ClientRecord>& earlier() const { return earlier_; }

  /// All of them, or with an error none. Durable on return.
  storage::Result<> apply(std::span<const Change> changes);

 private:
  explicit RecoveryStore(sqlite3* database) : database_(database) {}
  storage::Result<> start();
  storage::Result<> execute(const char* sql);
  bool apply(const Change& change);
  storage::ErrorCode error() const;

  sqlite3* database_;
  std::uint32_t epoch_ = 0;
  std::vector<ClientRecord> earlier_;
};

}  // namespace selvage::server::nfs4::state
