// What State keeps, and the steps that several operations share. All of it behind State's mutex.
//
// Ownership: Tables owns clients, sessions and files; a client owns its owners and what its
// stateids name. Everything else is a plain pointer to something that outlives it: a session, an
// owner, an open or a lock goes with its client at the latest; a file goes when nothing refers to
// it.
#pragma once

#include "server/nfs4/state/grace.h"
#include "server/nfs4/state/lock_ranges.h"
#include "server/nfs4/state/recovery_store.h"
#include "server/nfs4/state/state.h"
#include "server/nfs4/state/types.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace selvage::server::nfs4::state {

struct Client;
struct File;
struct Open;
struct Lock;
struct Owner;
struct PendingOpen;

enum class Revoked : std::uint8_t { no, expired, admin };

/// Bytes of what is held, besides what Tables::state_bytes() counts itself: each object adds and
/// takes off its own.
struct Memory {
  std::size_t bytes = 0;
};

/// Places in the containers that refer to one object, and what the allocator needs for them.
inline constexpr std::size_t container_bytes = 192;

/// What a stateid names. Revoked ones are there until the client frees them, without file or owner.
struct Held {
  enum class Kind : std::uint8_t { open, lock };

  Held(Kind k, Client* c, std::uint32_t i);
  virtual ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  const Kind kind;
  Client* const client;
  const std::uint32_t index;
  seqid4 seqid = 1;
  Revoked revoked = Revoked::no;
  File* file = nullptr;
  Owner* owner = nullptr;
};

struct Open : Held {
  Open(Client* c, std::uint32_t i) : Held(Kind::open, c, i) {}
  std::uint32_t access = 0;
  std::uint32_t deny = 0;
  std::uint16_t combinations = 0;  ///< Of access and deny that were opened: bit access * 4 + deny.
  bool closed = false;             ///< Minor version 0: is there for a replay of CLOSE only.
  std::unordered_set<Lock*> locks;
};

struct Lock : Held {
  Lock(Client* c, std::uint32_t i) : Held(Kind::lock, c, i) {}
  Open* open = nullptr;  ///< The one it was created with. seqid is 0 until a client is told of it.
  LockRanges ranges;
};

/// An open owner or lock owner.
struct Owner {
  Owner(std::uint64_t i, Held::Kind k, Client* c, std::string_view n);
  ~Owner();
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  const std::uint64_t id;
  const Held::Kind kind;
  Client* const client;
  const std::string name;
  std::unordered_map<File*, Held*> held;
  std::size_t pending = 0;  ///< OPENs that have begun.

  // Minor version 0.
  bool seen = false;  ///< seqid is the last one that was executed.
  bool confirmed = false;
  bool busy = false;
  bool has_reply = false;
  seqid4 seqid = 0;
  seqid4 busy_seqid = 0;
  OwnerReply reply;
  std::uint32_t closed = 0;  ///< Index of the Open that was closed last.
  Clock::time_point used;
};

struct File {
  FileKey key;
  std::shared_ptr<void> hold;
  std::unordered_set<Open*> opens;
  std::unordered_set<Lock*> locks;
  LockSum held;  ///< What all of them hold.
  std::unordered_set<PendingOpen*> pending;
  // How many opens and pending opens have each bit (0: read, 1: write).
  std::array<std::uint32_t, 2> access{};
  std::array<std::uint32_t, 2> deny{};
};

struct PendingOpen {
  std::uint64_t id = 0;
  Client* client = nullptr;
  Owner* owner = nullptr;
  File* file = nullptr;
  std::uint32_t access = 0;
  std::uint32_t deny = 0;
  std::uint32_t minorversion = 0;
  bool reclaim = false;
  std::uint64_t records = 0;  ///< Number of the last record change that must be durable.
};

struct PendingLock {
  clientid4 client = 0;
  std::uint32_t index = 0;  ///< Of the Lock.
  ByteRange range;
  std::vector<LockedRange> before;  ///< What the owner held in the range.
  std::uint64_t records = 0;
};

struct Slot {
  xdr::sequenceid4 seqid = 0;
  bool busy = false;
  bool used = false;     ///< seqid is that of a request.
  bool caching = false;  ///< Room for the reply is reserved.
  std::uint64_t checksum = 0;
  Bytes reply;
};

struct Session {
  sessionid4 id{};
  Client* client = nullptr;
  xdr::channel_attrs4 fore;
  xdr::channel_attrs4 back;
  std::uint32_t program = 0;
  xdr::callback_sec_list security;
  bool wanted_back_channel = false;
  std::set<ConnectionId> fore_connections;
  std::set<ConnectionId> back_connections;
  std::vector<Slot> slots;  ///< Those used so far.
  std::size_t busy = 0;
};

struct Client {
  explicit Client(Memory* m) : memory(m) {}
  Memory* const memory;
  std::uint32_t number = 0;
  clientid4 id = 0;
  bool has_sessions = false;
  bool confirmed = false;
  Revoked revoked = Revoked::no;  ///< Minor version 0: for good.
  std::string owner;
  xdr::verifier4 verifier{};
  Principal principal;
  std::string implementation;
  Clock::time_point renewed;
  std::uint64_t record = 0;  ///< Number of the record change that put it on record; 0: none.

  // Minor version 1 and later.
  std::uint32_t minorversion = 1;  ///< Of the last SEQUENCE.
  xdr::sequenceid4 next_sequence = 1;
  std::optional<Outcome<xdr::CREATE_SESSION4resok>> last_create_session;
  std::unordered_set<Session*> sessions;
  bool reclaim_complete = false;
  std::size_t revoked_stateids = 0;

  // Minor version 0.
  struct Callback {
    xdr::cb_client4 client;
    std::uint32_t ident = 0;
  };
  xdr::verifier4 confirm{};
  Callback callback;
  std::optional<std::pair<xdr::verifier4, Callback>> update;  ///< Not yet confirmed.

  std::unordered_map<std::uint32_t, std::unique_ptr<Held>> held;
  std::uint32_t next_index = 1;
  std::unordered_map<std::string, std::unique_ptr<Owner>> open_owners;
  std::unordered_map<std::string, std::unique_ptr<Owner>> lock_owners;
  std::unordered_map<std::uint64_t, Owner*> owners;
  std::set<std::uint64_t> pending_opens;
  std::size_t opens = 0;
  std::size_t locks = 0;  ///< Ranges.
  Clock::time_point owners_collected;
};

/// An open is the larger of the two.
inline constexpr std::size_t held_bytes = std::max(sizeof(Open), sizeof(Lock)) + container_bytes;
inline constexpr std::size_t range_bytes =
    2 * (sizeof(LockedRange) + 64);  // Also in the file's sum.
inline constexpr std::size_t file_bytes = sizeof(File) + 2 * container_bytes;  // The hold as well.
inline constexpr std::size_t client_bytes = sizeof(Client) + 1024 + 2 * container_bytes;
inline constexpr std::size_t session_bytes = sizeof(Session) + container_bytes;
inline constexpr std::size_t pending_bytes = sizeof(PendingOpen) + container_bytes;

inline std::size_t owner_bytes(std::string_view name) {
  return sizeof(Owner) + 2 * name.size() + container_bytes;
}

inline Held::Held(Kind k, Client* c, std::uint32_t i) : kind(k), client(c), index(i) {
  client->memory->bytes += held_bytes;
}
inline Held::~Held() {
  client->memory->bytes -= held_bytes;
}

inline Owner::Owner(std::uint64_t i, Held::Kind k, Client* c, std::string_view n)
    : id(i), kind(k), client(c), name(n) {
  client->memory->bytes += owner_bytes(name);
}
inline Owner::~Owner() {
  client->memory->bytes -= owner_bytes(name);
}

struct SessionIdHash {
  std::size_t operator()(const sessionid4& id) const {
    return std::hash<std::string_view>{}({reinterpret_cast<const char*>(id.data()), id.size()});
  }
};

struct Tables {
  Tables(Options o, std::uint32_t e, const std::vector<ClientRecord>& earlier);

  // Clients.

  struct Names {
    Client* confirmed = nullptr;
    Client* unconfirmed = nullptr;
  };
  Names names(bool has_sessions, std::string_view owner) const;
  void set_names(bool has_sessions, std::string_view owner, Names names);
  Client* find(clientid4 id);
  /// A confirmed client that may hold state: NFS4ERR_STALE_CLIENTID or NFS4ERR_EXPIRED.
  Outcome<Client*> usable(const Caller& caller);
  bool expired(const Client& client) const;
  bool has_state(const Client& client) const;
  /// What all that is held takes, estimated.
  std::size_t state_bytes() const;
  /// Whether so much more may be held; gives up clients whose lease has expired for it, but never
  /// one that was heard of now.
  bool room_for(std::size_t bytes);
  void renew(Client& client) { client.renewed = now; }
  /// Null if there is no room, even after giving up an expired client.
  Client* add_client(bool has_sessions, std::string_view owner, const Principal& principal);
  /// Becomes the confirmed one; the one before it goes with all its state.
  void confirm(Client& client);
  void remove_client(Client& client);
  /// Releases all opens and locks, so that somebody else can have them.
  void revoke_client(Client& client, Revoked why);
  /// Puts the client on record.
  void record(Client& client);

  // Sessions.

  Session* find_session(const sessionid4& id);
  void remove_session(Session& session);
  void drop_replies(Session& session);
  void bind(Session& session, ConnectionId connection, std::uint32_t directions);
  std::uint32_t status_flags(const Session& session) const;

  // Stateids.

  stateid4 stateid(const Held& held) const;
  /// What a stateid names, whatever its seqid: not revoked, but perhaps a closed open.
  Outcome<Held*> find(const Caller& caller, const stateid4& id);
  /// The same, of this kind, with a right seqid, of an open that is not closed, of this file.
  Outcome<Open*> find_open(const Caller& caller, const stateid4& id, const FileKey& file);
  Outcome<Lock*> find_lock(const Caller& caller, const stateid4& id, const FileKey& file);
  static nfsstat4 check_seqid(const Caller& caller, const stateid4& id, const Held& held);
  static void next_seqid(Held& held);
  std::uint32_t free_index(Client& client);

  // Owners.

  Owner* find_owner(Client& client, Held::Kind kind, std::string_view name);
  /// Null if the client has too many.
  Owner* add_owner(Client& client, Held::Kind kind, std::string_view name);
  void remove_owner(Owner& owner);
  /// Removes an owner that nothing needs any more.
  void collect(Owner& owner);
  void collect_owners(Client& client);
  void drop_closed(Owner& owner);

  // Files, opens, locks.

  File& file(const FileKey& key);
  File* find_file(const FileKey& key);
  void collect(File& file);
  void count_share(File& file, std::uint32_t access, std::uint32_t deny, int by);
  /// Whether others' shares allow these; expired clients in the way are revoked.
  bool shares_allow(File& file, std::uint32_t access, std::uint32_t deny);
  void remove_open(Open& open);
  void remove_lock(Lock& lock);
  /// Sets ranges and counts them.
  void set_range(Lock& lock, const ByteRange& range, LockMode mode);
  void remove_pending(PendingOpen& pending);
  void changed(File& file, const ByteRange& range);

  // Grace and records.

  /// Whether a client may take locks of this kind now.
  nfsstat4 check_grace(const Client& client, bool reclaim);
  void check_grace_end();
  void queue(RecoveryStore::Change::Kind kind, const ClientRecord& record);
  std::uint64_t last_change() const { return next_change - 1; }
  bool durable(std::uint64_t change) const { return change <= done_change; }

  Options options;  ///< But for the lease they do not change.
  Memory memory;    ///< Before all that refers to it.
  std::optional<Clock::time_point> looked_for_room;
  const std::uint32_t epoch;
  Clock::time_point now;
  Grace grace;
  bool has_store = false;

  std::unordered_map<std::uint32_t, std::unique_ptr<Client>> clients;  // By number.
  std::unordered_map<std::string, Names> by_name;                      // 0 or 1, then the owner.
  std::uint32_t next_number = 1;
  bool numbers_wrapped = false;
  std::unordered_map<sessionid4, std::unique_ptr<Session>, SessionIdHash> sessions;
  std::unordered_map<ConnectionId, std::unordered_set<Session*>> by_connection;
  std::uint64_t next_session = 1;
  std::unordered_map<FileKey, std::unique_ptr<File>, FileKeyHash> files;
  std::unordered_map<std::uint64_t, std::unique_ptr<PendingOpen>> pending_opens;
  std::unordered_map<std::uint64_t, PendingLock> pending_locks;
  std::uint64_t next_id = 1;  // Of owners, pending opens and locks, confirm verifiers.

  std::size_t reply_bytes = 0;     // Cached.
  std::size_t reply_reserved = 0;  // By requests in progress.
  std::uint64_t clients_revoked = 0;

  std::vector<RecoveryStore::Change> changes;  // Not yet given to the store.
  std::uint64_t next_change = 1;
  std::uint64_t done_change = 0;
  std::uint64_t last_removal = 0;  // The last change that took a client off the record.
  std::vector<ChangedLocks> changed_locks;
  std::vector<std::shared_ptr<void>> garbage;  // To be destroyed outside of the mutex.
};

/// Holds the mutex, and lets go of what was released only after it.
class State::Guard {
 public:
  explicit Guard(const State& state) : state_(state), lock_(state.mutex_), t(*state.tables_) {
    t.now = t.options.clock();
  }
  ~Guard() {
    state_.records_pending_.store(!t.durable(t.last_change()), std::memory_order_release);
    state_.locks_changed_.store(!t.changed_locks.empty(), std::memory_order_release);
    garbage_.swap(t.garbage);
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  const State& state_;
  std::vector<std::shared_ptr<void>> garbage_;
  std::unique_lock<std::mutex> lock_;

 public:
  Tables& t;
};

/// The bound's status of a minor version.
inline nfsstat4 out_of_room(std::uint32_t minorversion) {
  return minorversion == 0 ? xdr::NFS4ERR_RESOURCE : xdr::NFS4ERR_DELAY;
}

inline std::string_view text(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_anonymous(const stateid4& id);  ///< All zeros.
bool is_bypass(const stateid4& id);     ///< All ones.

}  // namespace selvage::server::nfs4::state
