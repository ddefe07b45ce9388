// Leases and what becomes of expired clients: RFC 8881, 8.3, 8.4.3, 18.46.3; RFC 7530, 9.5, 9.6.3.
#include "state_fixture.h"

namespace selvage::server::nfs4::state {
namespace {

class ExpiryTest : public StateTest {
 protected:
  std::uint32_t flags(const sessionid4& id, std::uint32_t seqid) {
    xdr::SEQUENCE4args args;
    args.sa_sessionid = id;
    args.sa_sequenceid = seqid;
    auto result = state->sequence(args, {0, 100, 2, 1});
    EXPECT_EQ(result.kind, Sequenced::Kind::execute);
    return result.resok.sr_status_flags;
  }
};

TEST_F(ExpiryTest, StateIsKeptUntilSomebodyNeedsIt) {
  const Caller one = client("one");
  const sessionid4 first = session;
  auto opened = open(one, "o", file(1), both, xdr::OPEN4_SHARE_DENY_WRITE);
  auto locked = lock(one, lock_args(opened->stateid, "l", xdr::WRITE_LT, 0, 10), file(1));
  pass(std::chrono::hours(1));
  state->tick();
  EXPECT_EQ(state->counts().expired_clients, 1U);
  const Caller two = client("two");
  // Nothing in the way: the client comes back to all it had.
  ASSERT_TRUE(open(two, "o", file(1), reading));
  EXPECT_EQ(flags(first, 1), 0U);
  EXPECT_EQ(use(one, *locked, file(1), writing), xdr::NFS4_OK);
  EXPECT_EQ(open(two, "o", file(1), writing).status(), xdr::NFS4ERR_SHARE_DENIED);

  pass(std::chrono::seconds(91));
  ASSERT_TRUE(open(client("two", 2), "o", file(1), writing));
  EXPECT_EQ(state->counts().clients_revoked, 1U);
  EXPECT_EQ(flags(first, 2), xdr::SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED);
  EXPECT_EQ(use(one, opened->stateid, file(1), reading), xdr::NFS4ERR_EXPIRED);
  EXPECT_EQ(use(one, *locked, file(1), reading), xdr::NFS4ERR_EXPIRED);
  EXPECT_EQ(state->close(one, opened->stateid, file(1)).status(), xdr::NFS4ERR_EXPIRED);
  EXPECT_EQ(unlock(one, *locked, 0, 1, file(1)).status(), xdr::NFS4ERR_EXPIRED);
  const auto changed = state->take_changed_locks();
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0].range, (ByteRange{0, 9}));
  // The client acknowledges, stateid by stateid (RFC 8881, 8.4.2.3... 18.38).
  ASSERT_TRUE(open(one, "o", file(9), reading));
  EXPECT_EQ(flags(first, 3), xdr::SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED);
  EXPECT_EQ(state->test_stateids(one, std::span(&*locked, 1))[0], xdr::NFS4ERR_EXPIRED);
  EXPECT_EQ(state->free_stateid(one, *locked), xdr::NFS4_OK);
  EXPECT_EQ(state->free_stateid(one, *locked), xdr::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(state->free_stateid(one, opened->stateid), xdr::NFS4_OK);
  EXPECT_EQ(flags(first, 4), 0U);
  EXPECT_EQ(state->counts().revoked, 0U);
}

TEST_F(ExpiryTest, LocksOfExpiredClientsGiveWay) {
  const Caller one = client("one");
  const stateid4 open1 = open(one, "o", file(1), both)->stateid;
  ASSERT_TRUE(lock(one, lock_args(open1, "l", xdr::WRITE_LT, 0, 10), file(1)));
  const Caller three = client("three");
  const stateid4 open3 = open(three, "o", file(1), both)->stateid;
  ASSERT_TRUE(lock(three, lock_args(open3, "l", xdr::READ_LT, 100, 10), file(1)));
  pass(std::chrono::seconds(91));
  const Caller two = client("two");
  const stateid4 open2 = open(two, "o", file(1), both)->stateid;
  xdr::LOCKT4args test;
  test.locktype = xdr::WRITE_LT;
  test.length = 1;
  // A test takes nothing away.
  EXPECT_EQ(state->test_lock(two, test, file(1)).status, xdr::NFS4_OK);
  EXPECT_EQ(state->counts().clients_revoked, 0U);
  EXPECT_TRUE(lock(two, lock_args(open2, "l", xdr::READ_LT, 100, 10), file(1)));
  EXPECT_TRUE(lock(two, lock_args(open2, "l", xdr::WRITE_LT, 5, 1), file(1)));
  EXPECT_EQ(state->counts().clients_revoked, 1U);
  EXPECT_EQ(use(three, open3, file(1), reading), xdr::NFS4_OK);
  EXPECT_EQ(use(one, open1, file(1), reading), xdr::NFS4ERR_EXPIRED);
}

TEST_F(ExpiryTest, OneLiveClientInTheWayIsEnough) {
  const Caller one = client("one");
  ASSERT_TRUE(open(one, "o", file(1), writing));
  pass(std::chrono::seconds(91));
  const Caller two = client("two");
  ASSERT_TRUE(open(two, "o", file(1), writing));
  const Caller three = client("three");
  EXPECT_EQ(open(three, "o", file(1), reading, xdr::OPEN4_SHARE_DENY_WRITE).status(),
            xdr::NFS4ERR_SHARE_DENIED);
  EXPECT_EQ(state->counts().clients_revoked, 0U);
}

TEST_F(ExpiryTest, ThousandCourteousClientsGiveWayAtOnce) {
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(open(client("c" + std::to_string(i)), "o", file(1), writing));
  }
  pass(std::chrono::seconds(91));
  ASSERT_TRUE(open(client("two"), "o", file(1), reading, xdr::OPEN4_SHARE_DENY_WRITE));
  EXPECT_EQ(state->counts().clients_revoked, 1000U);
  EXPECT_EQ(state->counts().opens, 1U);
}

TEST_F(ExpiryTest, SpecialStateidsNeedItToo) {
  const Caller one = client("one");
  ASSERT_TRUE(open(one, "o", file(1), reading, xdr::OPEN4_SHARE_DENY_WRITE));
  EXPECT_EQ(use({1, 0}, {}, file(1), writing), xdr::NFS4ERR_LOCKED);
  pass(std::chrono::seconds(91));
  EXPECT_EQ(use({1, 0}, {}, file(1), writing), xdr::NFS4_OK);
  EXPECT_EQ(state->counts().opens, 0U);
  EXPECT_EQ(state->counts().files, 0U);
}

TEST_F(ExpiryTest, MinorVersion0) {
  const Caller one = client0("one");
  auto granted = open0(one, "o", 1, file(1), both, xdr::OPEN4_SHARE_DENY_WRITE);
  const stateid4 id = confirm_open(granted->stateid, 2, file(1));
  pass(std::chrono::seconds(91));
  EXPECT_EQ(use(one, id, file(1), writing), xdr::NFS4_OK);  // Which renews the lease.
  const Caller two = client("two");
  EXPECT_EQ(open(two, "o", file(1), writing).status(), xdr::NFS4ERR_SHARE_DENIED);
  pass(std::chrono::seconds(91));
  ASSERT_TRUE(open(client("two", 2), "o", file(1), writing));
  EXPECT_EQ(use(one, id, file(1), reading), xdr::NFS4ERR_EXPIRED);
  EXPECT_EQ(state->begin_stateid_owner(id, 3).status, xdr::NFS4ERR_EXPIRED);
  EXPECT_EQ(state->begin_open_owner({one.client, xdr::owner4(raw("o"))}, 3).status,
            xdr::NFS4ERR_EXPIRED);
  EXPECT_EQ(state->renew(one.client), xdr::NFS4ERR_EXPIRED);
  EXPECT_TRUE(state->clients().size() == 2);
  // It begins anew, with the same verifier.
  const Caller again = client0("one");
  EXPECT_NE(again.client, one.client);
  EXPECT_TRUE(open0(again, "o", 1, file(2), reading));
}

TEST_F(ExpiryTest, TimeTakesWhatNobodyMisses) {
  client0("stateless");
  ASSERT_TRUE(exchange("unconfirmed"));
  const Caller one = client("one");
  ASSERT_TRUE(open(one, "o", file(1), reading));
  state->tick();
  EXPECT_EQ(state->counts().clients, 3U);
  pass(std::chrono::seconds(91));
  state->tick();
  EXPECT_EQ(state->counts().clients, 1U);
  pass(settings.courtesy_time);
  state->tick();
  EXPECT_EQ(state->counts().clients, 0U);
  EXPECT_EQ(state->counts().opens, 0U);
  EXPECT_EQ(state->counts().sessions, 0U);
}

// The server is slow, not the client.
TEST_F(ExpiryTest, WhoHasARequestInProgressIsThere) {
  const Caller one = client("one");
  const sessionid4 slow = session;
  ASSERT_TRUE(open(one, "o", file(1), both, both));
  xdr::SEQUENCE4args args;
  args.sa_sessionid = slow;
  args.sa_sequenceid = 1;
  SequenceRequest request;
  request.operations = 1;
  request.connection = 1;
  auto sequenced = state->sequence(args, request);
  ASSERT_EQ(sequenced.kind, Sequenced::Kind::execute);
  pass(std::chrono::seconds(100));
  state->tick();
  EXPECT_EQ(state->counts().expired_clients, 0U);
  const Caller two = client("two");
  EXPECT_EQ(open(two, "o", file(1), reading).status(), xdr::NFS4ERR_SHARE_DENIED);
  sequenced.ticket.finish(nullptr);
  pass(std::chrono::seconds(91));
  EXPECT_TRUE(open(two, "o", file(1), reading));
}

TEST_F(ExpiryTest, AnAdministratorRevokes) {
  const Caller one = client("one");
  auto opened = open(one, "o", file(1), both);
  EXPECT_EQ(state->revoke_client(one.client + 1), xdr::NFS4ERR_STALE_CLIENTID);
  EXPECT_EQ(state->revoke_client(one.client), xdr::NFS4_OK);
  EXPECT_EQ(use(one, opened->stateid, file(1), reading), xdr::NFS4ERR_ADMIN_REVOKED);
  EXPECT_EQ(flags(session, 1), xdr::SEQ4_STATUS_ADMIN_STATE_REVOKED);
  EXPECT_EQ(state->free_stateid(one, opened->stateid), xdr::NFS4_OK);
  EXPECT_EQ(flags(session, 2), 0U);
}

}  // namespace
}  // namespace selvage::server::nfs4::state
