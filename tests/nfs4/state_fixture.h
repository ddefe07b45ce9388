// A state with a clock that stands still, and the steps that nearly every test begins with.
#pragma once

#include "server/nfs4/state/state.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace selvage::server::nfs4::state {

inline const Principal alice{1, 1000, "a"};
inline const Principal bob{1, 2000, "b"};

inline constexpr std::uint32_t reading = xdr::OPEN4_SHARE_ACCESS_READ;
inline constexpr std::uint32_t writing = xdr::OPEN4_SHARE_ACCESS_WRITE;
inline constexpr std::uint32_t both = xdr::OPEN4_SHARE_ACCESS_BOTH;
inline constexpr std::uint32_t none = xdr::OPEN4_SHARE_DENY_NONE;

inline std::span<const std::uint8_t> raw(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline xdr::verifier4 verifier(std::uint8_t number) {
  xdr::verifier4 value{};
  value[7] = number;
  return value;
}

inline FileKey file(std::uint8_t number) {
  const std::uint8_t bytes[] = {number};
  return {1, storage::ObjectId(1, bytes)};
}

inline Bytes bytes(std::size_t size, std::uint8_t value = 0) {
  return std::make_shared<const std::vector<std::byte>>(size, std::byte{value});
}

template <class T>
nfsstat4 status_of(const Outcome<T>& outcome) {
  return outcome ? xdr::NFS4_OK : outcome.status();
}

inline xdr::channel_attrs4 channel() {
  xdr::channel_attrs4 attributes;
  attributes.ca_maxrequestsize = 8192;
  attributes.ca_maxresponsesize = 8192;
  attributes.ca_maxresponsesize_cached = 4096;
  attributes.ca_maxoperations = 16;
  attributes.ca_maxrequests = 8;
  return attributes;
}

/// A directory of its own, gone afterwards.
class Directory {
 public:
  Directory() {
    std::string name = std::filesystem::temp_directory_path() / "selvage-state-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class StateTest : public ::testing::Test {
 protected:
  StateTest() {
    settings.epoch = 7;
    settings.clock = [this] { return now; };
    start();
  }

  /// A new server instance, without or with a store.
  void start() { state = std::make_unique<State>(settings); }
  void start(const std::string& directory) {
    state.reset();
    auto store = RecoveryStore::open(directory);
    ASSERT_TRUE(store) << store.error().message();
    state = std::make_unique<State>(settings, std::move(*store));
  }
  void pass(std::chrono::seconds time) { now += time; }

  xdr::EXCHANGE_ID4args exchange_args(std::string_view name, std::uint8_t incarnation,
                                      std::uint32_t flags = 0) {
    xdr::EXCHANGE_ID4args args;
    args.eia_clientowner.co_ownerid = xdr::owner4(raw(name));
    args.eia_clientowner.co_verifier = verifier(incarnation);
    args.eia_flags = flags;
    return args;
  }
  Outcome<xdr::EXCHANGE_ID4resok> exchange(std::string_view name, std::uint8_t incarnation = 1,
                                           const Principal& by = alice, std::uint32_t flags = 0) {
    return state->exchange_id(exchange_args(name, incarnation, flags), by);
  }
  Outcome<xdr::CREATE_SESSION4resok> create(clientid4 client, std::uint32_t sequence,
                                            const Principal& by = alice) {
    xdr::CREATE_SESSION4args args;
    args.csa_clientid = client;
    args.csa_sequence = sequence;
    args.csa_fore_chan_attrs = channel();
    args.csa_back_chan_attrs = channel();
    return state->create_session(args, by, 1);
  }
  /// A confirmed client with a session, before RECLAIM_COMPLETE.
  Caller connect(std::string_view name, std::uint8_t incarnation = 1) {
    auto known = exchange(name, incarnation);
    EXPECT_TRUE(known);
    auto made = create(known->eir_clientid, known->eir_sequenceid);
    EXPECT_TRUE(made);
    session = made->csr_sessionid;
    return {1, known->eir_clientid};
  }
  Caller client(std::string_view name, std::uint8_t incarnation = 1) {
    const Caller caller = connect(name, incarnation);
    EXPECT_EQ(state->reclaim_complete(caller, {}), xdr::NFS4_OK);
    flush();
    return caller;
  }
  void flush() {
    if (state->records_pending()) {
      ASSERT_TRUE(state->write_records());
    }
  }

  xdr::SETCLIENTID4args setclientid_args(std::string_view name, std::uint8_t incarnation) {
    xdr::SETCLIENTID4args args;
    args.client.id = xdr::owner4(raw(name));
    args.client.verifier = verifier(incarnation);
    args.callback.cb_program = 0x40000000;
    args.callback.cb_location.na_r_netid.value = "tcp";
    args.callback.cb_location.na_r_addr.value = "127.0.0.1.8.1";
    return args;
  }
  xdr::SETCLIENTID4resok set(std::string_view name, std::uint8_t incarnation = 1,
                             const Principal& by = alice) {
    const auto result = state->setclientid(setclientid_args(name, incarnation), by);
    EXPECT_EQ(result.tag, xdr::NFS4_OK);
    const auto* ok = result.get_if<xdr::SETCLIENTID4resok>();
    return ok == nullptr ? xdr::SETCLIENTID4resok{} : *ok;
  }
  nfsstat4 confirm(const xdr::SETCLIENTID4resok& set, const Principal& by = alice) {
    return state->setclientid_confirm({set.clientid, set.setclientid_confirm}, by);
  }
  /// A confirmed client of minor version 0.
  Caller client0(std::string_view name, std::uint8_t incarnation = 1) {
    const auto ok = set(name, incarnation);
    EXPECT_EQ(confirm(ok), xdr::NFS4_OK);
    return {0, ok.clientid};
  }

  Outcome<OpenGrant> open(const Caller& caller, std::string_view owner, const FileKey& key,
                          std::uint32_t access, std::uint32_t deny = none, bool reclaim = false) {
    OpenRequest request;
    request.caller = caller;
    request.owner = raw(owner);
    request.file = key;
    request.access = access;
    request.deny = deny;
    request.reclaim = reclaim;
    auto ticket = state->begin_open(request);
    if (!ticket) return ticket.status();
    flush();
    return state->commit_open(std::move(*ticket), nullptr);
  }
  /// Minor version 0, with the owner's seqid; the reply is kept.
  Outcome<OpenGrant> open0(const Caller& caller, std::string_view owner, seqid4 seqid,
                           const FileKey& key, std::uint32_t access, std::uint32_t deny = none) {
    auto step = state->begin_open_owner({caller.client, xdr::owner4(raw(owner))}, seqid);
    if (step.kind != OwnerStep::Kind::proceed) return step.status;
    auto granted = open(caller, owner, key, access, deny);
    step.ticket.finish({0, status_of(granted), bytes(4), nullptr});
    return granted;
  }
  stateid4 confirm_open(const stateid4& id, seqid4 seqid, const FileKey& key) {
    auto step = state->begin_stateid_owner(id, seqid);
    EXPECT_EQ(step.kind, OwnerStep::Kind::proceed);
    auto confirmed = state->open_confirm(id, key);
    EXPECT_TRUE(confirmed);
    step.ticket.finish({0, status_of(confirmed), bytes(4), nullptr});
    return confirmed ? *confirmed : stateid4{};
  }

  xdr::LOCK4args lock_args(const stateid4& open, std::string_view owner, xdr::nfs_lock_type4 type,
                           std::uint64_t offset, std::uint64_t length, clientid4 client = 0,
                           seqid4 lock_seqid = 0) {
    xdr::LOCK4args args;
    args.locktype = type;
    args.offset = offset;
    args.length = length;
    xdr::open_to_lock_owner4 locker;
    locker.open_stateid = open;
    locker.lock_owner = {client, xdr::owner4(raw(owner))};
    locker.lock_seqid = lock_seqid;
    args.locker = xdr::locker4(locker);
    return args;
  }
  xdr::LOCK4args relock_args(const stateid4& lock, xdr::nfs_lock_type4 type, std::uint64_t offset,
                             std::uint64_t length) {
    xdr::LOCK4args args;
    args.locktype = type;
    args.offset = offset;
    args.length = length;
    args.locker = xdr::locker4(xdr::exist_lock_owner4{lock, 0});
    return args;
  }
  Outcome<stateid4> lock(const Caller& caller, const xdr::LOCK4args& args, const FileKey& key) {
    auto start = state->begin_lock(caller, args, key);
    if (start.status != xdr::NFS4_OK) return start.status;
    flush();
    return state->commit_lock(std::move(start.ticket));
  }
  Outcome<stateid4> unlock(const Caller& caller, const stateid4& id, std::uint64_t offset,
                           std::uint64_t length, const FileKey& key) {
    xdr::LOCKU4args args;
    args.lock_stateid = id;
    args.offset = offset;
    args.length = length;
    return state->unlock(caller, args, key);
  }
  nfsstat4 use(const Caller& caller, const stateid4& id, const FileKey& key, std::uint32_t access) {
    return status_of(state->use_stateid(caller, id, key, access));
  }

  Clock::time_point now{std::chrono::hours(1)};
  Options settings;
  std::unique_ptr<State> state;
  sessionid4 session{};  ///< That connect() made last.
};

}  // namespace selvage::server::nfs4::state
