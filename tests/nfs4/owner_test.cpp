// Seqids of minor version 0: RFC 7530, 9.1.7, 16.18, 16.37.
#include "state_fixture.h"

namespace selvage::server::nfs4::state {
namespace {

class OwnerTest : public StateTest {
 protected:
  OwnerTest() { one = client0("one"); }
  OwnerStep step(seqid4 seqid) {
    return state->begin_open_owner({one.client, xdr::owner4(raw("o"))}, seqid);
  }
  /// An open of file(1) by a confirmed owner whose last seqid is 11.
  stateid4 opened() {
    auto granted = open0(one, "o", 10, file(1), both);
    EXPECT_TRUE(granted->confirm);
    return confirm_open(granted->stateid, 11, file(1));
  }
  Caller one;
};

TEST_F(OwnerTest, ANewOwnerBeginsAnywhereAndIsConfirmed) {
  auto granted = open0(one, "o", 10, file(1), reading);
  ASSERT_TRUE(granted);
  EXPECT_TRUE(granted->confirm);
  EXPECT_EQ(use(one, granted->stateid, file(1), reading), xdr::NFS4ERR_BAD_STATEID);
  const stateid4 id = confirm_open(granted->stateid, 11, file(1));
  EXPECT_EQ(id.seqid, granted->stateid.seqid + 1);
  EXPECT_EQ(use(one, id, file(1), reading), xdr::NFS4_OK);
  EXPECT_EQ(state->open_confirm(id, file(1)).status(), xdr::NFS4ERR_BAD_STATEID);
  auto second = open0(one, "o", 12, file(2), reading);
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->confirm);
}

TEST_F(OwnerTest, AnUnconfirmedOwnerBeginsAnew) {
  auto first = open0(one, "o", 10, file(1), reading);
  auto second = open0(one, "o", 50, file(2), reading);
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->confirm);
  EXPECT_EQ(state->counts().opens, 1U);
  EXPECT_EQ(state->begin_stateid_owner(first->stateid, 51).status, xdr::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(step(50).kind, OwnerStep::Kind::replay);
}

TEST_F(OwnerTest, OneAtATimeInOrderAndReplayed) {
  opened();
  EXPECT_EQ(step(13).status, xdr::NFS4ERR_BAD_SEQID);
  EXPECT_EQ(step(10).status, xdr::NFS4ERR_BAD_SEQID);
  auto busy = step(12);
  ASSERT_EQ(busy.kind, OwnerStep::Kind::proceed);
  EXPECT_EQ(step(12).kind, OwnerStep::Kind::in_progress);
  EXPECT_EQ(step(13).status, xdr::NFS4ERR_BAD_SEQID);
  const Bytes body = bytes(20, 3);
  const auto context = std::make_shared<const int>(5);
  busy.ticket.finish({0, xdr::NFS4ERR_NOENT, body, context});
  auto again = step(12);
  ASSERT_EQ(again.kind, OwnerStep::Kind::replay);
  EXPECT_EQ(again.reply.status, xdr::NFS4ERR_NOENT);
  EXPECT_EQ(again.reply.body, body);
  EXPECT_EQ(again.reply.context, context);
  // One that is given up never came.
  EXPECT_EQ(step(13).kind, OwnerStep::Kind::proceed);
  EXPECT_EQ(step(12).kind, OwnerStep::Kind::replay);
}

TEST_F(OwnerTest, ErrorsThatDoNotAdvance) {
  opened();
  for (const nfsstat4 status :
       {xdr::NFS4ERR_STALE_CLIENTID, xdr::NFS4ERR_STALE_STATEID, xdr::NFS4ERR_BAD_STATEID,
        xdr::NFS4ERR_BAD_SEQID, xdr::NFS4ERR_BADXDR, xdr::NFS4ERR_RESOURCE,
        xdr::NFS4ERR_NOFILEHANDLE, xdr::NFS4ERR_MOVED}) {
    step(12).ticket.finish({0, status, bytes(4), nullptr});
    EXPECT_EQ(step(12).kind, OwnerStep::Kind::proceed) << status;
  }
  seqid4 next = 12;
  for (const nfsstat4 status :
       {xdr::NFS4_OK, xdr::NFS4ERR_DENIED, xdr::NFS4ERR_EXPIRED, xdr::NFS4ERR_OLD_STATEID,
        xdr::NFS4ERR_GRACE, xdr::NFS4ERR_DELAY, xdr::NFS4ERR_SHARE_DENIED}) {
    step(next).ticket.finish({0, status, bytes(4), nullptr});
    EXPECT_EQ(step(next).kind, OwnerStep::Kind::replay) << status;
    ++next;
  }
}

TEST_F(OwnerTest, SeqidsWrap) {
  auto granted = open0(one, "o", ~0U - 1, file(1), reading);
  confirm_open(granted->stateid, ~0U, file(1));
  EXPECT_TRUE(open0(one, "o", 0, file(2), reading));
  EXPECT_TRUE(open0(one, "o", 1, file(3), reading));
}

TEST_F(OwnerTest, CloseIsReplayedAlthoughItsStateIsGone) {
  const stateid4 id = opened();
  auto closing = state->begin_stateid_owner(id, 12);
  ASSERT_EQ(closing.kind, OwnerStep::Kind::proceed);
  auto closed = state->close(one, id, file(1));
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->seqid, id.seqid + 1);
  const Bytes body = bytes(16, 9);
  closing.ticket.finish({0, xdr::NFS4_OK, body, nullptr});
  auto again = state->begin_stateid_owner(id, 12);
  ASSERT_EQ(again.kind, OwnerStep::Kind::replay);
  EXPECT_EQ(again.reply.body, body);
  // Anything else finds it closed.
  EXPECT_EQ(use(one, id, file(1), reading), xdr::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(use(one, *closed, file(1), reading), xdr::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(state->close(one, *closed, file(1)).status(), xdr::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(state->begin_stateid_owner(id, 13).kind, OwnerStep::Kind::proceed);
  EXPECT_EQ(state->counts().opens, 0U);
  EXPECT_EQ(state->counts().files, 0U);
  // The owner is forgotten when it has not been used for a lease.
  EXPECT_EQ(state->counts().open_owners, 1U);
  pass(std::chrono::seconds(60));
  EXPECT_EQ(state->renew(one.client), xdr::NFS4_OK);
  pass(std::chrono::seconds(60));
  EXPECT_EQ(state->renew(one.client), xdr::NFS4_OK);
  state->tick();
  EXPECT_EQ(state->counts().open_owners, 0U);
  EXPECT_EQ(state->begin_stateid_owner(id, 12).status, xdr::NFS4ERR_BAD_STATEID);
}

TEST_F(OwnerTest, UnconfirmedStateidsAreGoodForNothingElse) {
  auto granted = open0(one, "o", 10, file(1), both);
  const stateid4 id = granted->stateid;
  EXPECT_EQ(state->close(one, id, file(1)).status(), xdr::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(state->open_downgrade(one, id, file(1), reading, none).status(),
            xdr::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(lock(one, lock_args(id, "l", xdr::READ_LT, 0, 1, one.client), file(1)).status(),
            xdr::NFS4ERR_BAD_STATEID);
}

TEST_F(OwnerTest, LockOwners) {
  const stateid4 id = opened();
  const auto with = [&](std::string_view owner, seqid4 lock_seqid, std::uint64_t offset) {
    return status_of(lock(
        one, lock_args(id, owner, xdr::WRITE_LT, offset, 10, one.client, lock_seqid), file(1)));
  };
  auto first = lock(one, lock_args(id, "l", xdr::WRITE_LT, 0, 10, one.client, 5), file(1));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->seqid, 1U);
  // Anew with an owner that is known: only its next seqid.
  EXPECT_EQ(with("l", 5, 20), xdr::NFS4ERR_BAD_SEQID);
  EXPECT_EQ(with("l", 7, 20), xdr::NFS4ERR_BAD_SEQID);
  EXPECT_EQ(with("l", 6, 20), xdr::NFS4_OK);
  // Denied: the client has advanced it as well.
  EXPECT_EQ(with("m", 0, 0), xdr::NFS4ERR_DENIED);
  EXPECT_EQ(with("m", 0, 100), xdr::NFS4_OK);
  EXPECT_EQ(with("m", 1, 0), xdr::NFS4ERR_DENIED);
  EXPECT_EQ(with("m", 2, 200), xdr::NFS4_OK);
  // By its own stateid.
  EXPECT_EQ(state->begin_stateid_owner(*first, 6).status, xdr::NFS4ERR_BAD_SEQID);
  auto next = state->begin_stateid_owner(*first, 7);
  ASSERT_EQ(next.kind, OwnerStep::Kind::proceed);
  EXPECT_EQ(unlock(one, *first, 0, 5, file(1)).status(), xdr::NFS4ERR_OLD_STATEID);
  next.ticket.finish({0, xdr::NFS4ERR_OLD_STATEID, bytes(4), nullptr});
  EXPECT_EQ(state->begin_stateid_owner(*first, 7).kind, OwnerStep::Kind::replay);
  // Another client's clientid.
  EXPECT_EQ(lock(one, lock_args(id, "n", xdr::READ_LT, 500, 1, one.client + 1), file(1)).status(),
            xdr::NFS4ERR_BAD_STATEID);
}

TEST_F(OwnerTest, ReleaseLockowner) {
  const stateid4 id = opened();
  const xdr::state_owner4 owner{one.client, xdr::owner4(raw("l"))};
  EXPECT_EQ(state->release_lockowner({12345, owner.owner}), xdr::NFS4ERR_STALE_CLIENTID);
  EXPECT_EQ(state->release_lockowner(owner), xdr::NFS4_OK);
  auto held = lock(one, lock_args(id, "l", xdr::WRITE_LT, 0, 10, one.client), file(1));
  ASSERT_TRUE(held);
  EXPECT_EQ(state->release_lockowner(owner), xdr::NFS4ERR_LOCKS_HELD);
  held = unlock(one, *held, 0, ~0ULL, file(1));
  ASSERT_TRUE(held);
  EXPECT_EQ(state->release_lockowner(owner), xdr::NFS4_OK);
  EXPECT_EQ(state->counts().lock_owners, 0U);
  EXPECT_EQ(state->begin_stateid_owner(*held, 1).status, xdr::NFS4ERR_BAD_STATEID);
}

TEST_F(OwnerTest, OwnersAreBounded) {
  settings.max_owners_per_client = 2;
  start();
  one = client0("one");
  EXPECT_TRUE(open0(one, "a", 1, file(1), reading));
  EXPECT_TRUE(open0(one, "b", 1, file(1), reading));
  EXPECT_EQ(open0(one, "c", 1, file(1), reading).status(), xdr::NFS4ERR_RESOURCE);
}

}  // namespace
}  // namespace selvage::server::nfs4::state
