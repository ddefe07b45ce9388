#include "server/nfs4/state/recovery_store.h"

#include <sqlite3.h>

#include <cerrno>
#include <random>

namespace selvage::server::nfs4::state {
namespace {

/// A prepared statement.
class Statement {
 public:
  Statement(sqlite3* database, const char* sql) {
    if (sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr) != SQLITE_OK) {
      statement_ = nullptr;
    }
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  explicit operator bool() const { return statement_ != nullptr; }
  // SQLite's integers are signed: the same bits.
  void bind(int at, std::uint64_t value) {
    sqlite3_bind_int64(statement_, at, static_cast<sqlite3_int64>(value));
  }
  void bind(int at, const std::string& value) {
    sqlite3_bind_blob(statement_, at, value.data(), static_cast<int>(value.size()),
                      SQLITE_TRANSIENT);
  }
  int step() { return sqlite3_step(statement_); }
  std::uint64_t integer(int at) const {
    return static_cast<std::uint64_t>(sqlite3_column_int64(statement_, at));
  }
  std::string blob(int at) const {
    const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, at));
    const int size = sqlite3_column_bytes(statement_, at);
    return data == nullptr ? std::string() : std::string(data, static_cast<std::size_t>(size));
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
};

/// A clientid begins with the epoch and is a positive integer of SQLite's.
constexpr std::uint32_t max_epoch = 0x7fffffff;

}  // namespace

storage::Result<std::unique_ptr<RecoveryStore>> RecoveryStore::open(const std::string& directory) {
  sqlite3* database = nullptr;
  const std::string path = directory + "/nfs4-clients.sqlite";
  const int opened =
      sqlite3_open_v2(path.c_str(), &database,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  std::unique_ptr<RecoveryStore> store(new RecoveryStore(database));
  if (opened != SQLITE_OK) return store->error();
  auto started = store->start();
  if (!started) return started.error();
  return store;
}

RecoveryStore::~RecoveryStore() {
  sqlite3_close(database_);
}

storage::ErrorCode RecoveryStore::error() const {
  if (database_ == nullptr) return storage::errno_code(ENOMEM);
  const int error = sqlite3_system_errno(database_);
  if (error != 0) return storage::errno_code(error);
  switch (sqlite3_errcode(database_)) {
    case SQLITE_FULL:
      return storage::errno_code(ENOSPC);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return storage::errno_code(EBUSY);
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return storage::errno_code(EUCLEAN);
    default:
      return storage::errno_code(EIO);
  }
}

storage::Result<> RecoveryStore::execute(const char* sql) {
  if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return error();
  return {};
}

storage::Result<> RecoveryStore::start() {
  // A second server on the same state would hand out the same clientids: it is kept out for as long
  // as this one runs. A log takes one sync per change; where there can be none, EXTRA also syncs
  // the directory when the journal is unlinked.
  for (const char* sql :
       {"PRAGMA locking_mode=EXCLUSIVE", "PRAGMA journal_mode=WAL", "PRAGMA synchronous=EXTRA",
        "BEGIN EXCLUSIVE", "CREATE TABLE IF NOT EXISTS instance(epoch INTEGER NOT NULL)",
        "CREATE TABLE IF NOT EXISTS client(id INTEGER PRIMARY KEY,"
        " has_sessions INTEGER NOT NULL, owner BLOB NOT NULL)",
        "CREATE INDEX IF NOT EXISTS client_owner ON client(owner)"}) {
    auto done = execute(sql);
    if (!done) return done;
  }
  {
    Statement last(database_, "SELECT epoch FROM instance");
    if (!last) return error();
    const int row = last.step();
    if (row == SQLITE_ROW) {
      epoch_ = (static_cast<std::uint32_t>(last.integer(0)) + 1) & max_epoch;
    } else if (row == SQLITE_DONE) {
      // A store that was lost must not make old clientids valid again.
      epoch_ = std::random_device{}() & max_epoch;
    } else {
      return error();
    }
    if (epoch_ == 0) epoch_ = 1;
  }
  {
    Statement all(database_, "SELECT id, has_sessions, owner FROM client");
    if (!all) return error();
    int row = SQLITE_ROW;
    while ((row = all.step()) == SQLITE_ROW) {
      earlier_.push_back({all.integer(0), all.integer(1) != 0, all.blob(2)});
    }
    if (row != SQLITE_DONE) return error();
  }
  auto cleared = execute("DELETE FROM instance");
  if (!cleared) return cleared;
  {
    Statement insert(database_, "INSERT INTO instance VALUES(?)");
    if (!insert) return error();
    insert.bind(1, std::uint64_t{epoch_});
    if (insert.step() != SQLITE_DONE) return error();
  }
  return execute("COMMIT");
}

bool RecoveryStore::apply(const Change& change) {
  const ClientRecord& record = change.record;
  switch (change.kind) {
    case Change::Kind::put: {
      Statement put(database_, "INSERT OR REPLACE INTO client VALUES(?, ?, ?)");
      if (!put) return false;
      put.bind(1, record.client);
      put.bind(2, std::uint64_t{record.has_sessions});
      put.bind(3, record.owner);
      return put.step() == SQLITE_DONE;
    }
    case Change::Kind::remove: {
      Statement remove(database_, "DELETE FROM client WHERE owner=? AND has_sessions=? AND id<=?");
      if (!remove) return false;
      remove.bind(1, record.owner);
      remove.bind(2, std::uint64_t{record.has_sessions});
      remove.bind(3, record.client);
      return remove.step() == SQLITE_DONE;
    }
    case Change::Kind::remove_earlier: {
      Statement remove(database_, "DELETE FROM client WHERE id >> 32 != ?");
      if (!remove) return false;
      remove.bind(1, std::uint64_t{epoch_});
      return remove.step() == SQLITE_DONE;
    }
  }
  return false;
}

storage::Result<> RecoveryStore::apply(std::span<const Change> changes) {
  if (changes.empty()) return {};
  auto begun = execute("BEGIN IMMEDIATE");
  if (!begun) return begun;
  bool done = true;
  for (const Change& change : changes) done = done && apply(change);
  if (done) {
    auto committed = execute("COMMIT");
    if (committed) return committed;
  }
  const storage::ErrorCode why = error();
  static_cast<void>(execute("ROLLBACK"));
  return why;
}

}  // namespace selvage::server::nfs4::state
