// RFC 8881, 18.35.4: the nine cases, and what is refused before them.
#include "state_fixture.h"

namespace selvage::server::nfs4::state {
namespace {

using ExchangeId = StateTest;
constexpr std::uint32_t update = xdr::EXCHGID4_FLAG_UPD_CONFIRMED_REC_A;

TEST_F(ExchangeId, Case1NewOwner) {
  auto result = exchange("one");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->eir_sequenceid, 1U);
  EXPECT_EQ(result->eir_flags, xdr::EXCHGID4_FLAG_USE_NON_PNFS);
  EXPECT_EQ(result->eir_state_protect.tag, xdr::SP4_NONE);
  EXPECT_EQ(result->eir_server_owner.so_major_id, xdr::owner4(raw("selvage")));
  auto other = exchange("two");
  EXPECT_NE(result->eir_clientid, other->eir_clientid);
  EXPECT_EQ(state->counts().clients, 2U);
}

TEST_F(ExchangeId, Case2NoUpdateOfAConfirmedClient) {
  const Caller one = client("one");
  auto again = exchange("one");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->eir_clientid, one.client);
  EXPECT_EQ(again->eir_flags, xdr::EXCHGID4_FLAG_USE_NON_PNFS | xdr::EXCHGID4_FLAG_CONFIRMED_R);
  EXPECT_TRUE(open(one, "o", file(1), reading));
}

TEST_F(ExchangeId, Case3AnotherPrincipal) {
  const Caller one = client("one");
  // It has a session.
  EXPECT_EQ(exchange("one", 1, bob).status(), xdr::NFS4ERR_CLID_INUSE);
  EXPECT_EQ(exchange("one", 2, bob).status(), xdr::NFS4ERR_CLID_INUSE);
  ASSERT_EQ(state->destroy_session(session, false, 1), xdr::NFS4_OK);
  auto taken = exchange("one", 1, bob);
  ASSERT_TRUE(taken);
  EXPECT_NE(taken->eir_clientid, one.client);
  EXPECT_EQ(taken->eir_flags & xdr::EXCHGID4_FLAG_CONFIRMED_R, 0U);
  EXPECT_EQ(create(one.client, 2).status(), xdr::NFS4ERR_STALE_CLIENTID);
}

TEST_F(ExchangeId, Case3AnotherPrincipalOfAnExpiredClient) {
  const Caller one = client("one");
  ASSERT_TRUE(open(one, "o", file(1), reading));
  pass(std::chrono::seconds(91));
  ASSERT_TRUE(exchange("one", 1, bob));
  EXPECT_EQ(state->counts().opens, 0U);
}

TEST_F(ExchangeId, Case4ReplacesAnUnconfirmedRecord) {
  auto first = exchange("one");
  for (const auto& [incarnation, principal] :
       {std::pair{1, alice}, {2, alice}, {1, bob}, {3, bob}}) {
    auto next = exchange("one", static_cast<std::uint8_t>(incarnation), principal);
    ASSERT_TRUE(next);
    EXPECT_NE(next->eir_clientid, first->eir_clientid);
    EXPECT_EQ(create(first->eir_clientid, 1).status(), xdr::NFS4ERR_STALE_CLIENTID);
    EXPECT_EQ(state->counts().clients, 1U);
    first = next;
  }
}

TEST_F(ExchangeId, Case5RestartedClientKeepsItsStateUntilConfirmed) {
  const Caller before = client("one");
  auto opened = open(before, "o", file(1), reading);
  ASSERT_TRUE(opened);
  auto restarted = exchange("one", 2);
  ASSERT_TRUE(restarted);
  EXPECT_NE(restarted->eir_clientid, before.client);
  EXPECT_EQ(use(before, opened->stateid, file(1), reading), xdr::NFS4_OK);
  ASSERT_TRUE(create(restarted->eir_clientid, restarted->eir_sequenceid));
  EXPECT_EQ(use(before, opened->stateid, file(1), reading), xdr::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(state->counts().opens, 0U);
  EXPECT_EQ(state->counts().sessions, 1U);
  EXPECT_EQ(state->counts().clients, 1U);
}

TEST_F(ExchangeId, Case6Update) {
  const Caller one = client("one");
  auto args = exchange_args("one", 1, update);
  args.eia_client_impl_id.items.resize(1);
  args.eia_client_impl_id.items[0].nii_name.value = "newer";
  auto updated = state->exchange_id(args, alice);
  ASSERT_TRUE(updated);
  EXPECT_EQ(updated->eir_clientid, one.client);
  EXPECT_NE(updated->eir_flags & xdr::EXCHGID4_FLAG_CONFIRMED_R, 0U);
  EXPECT_EQ(state->clients().at(0).implementation, "newer");
}

TEST_F(ExchangeId, Case7UpdateWithoutAConfirmedRecord) {
  EXPECT_EQ(exchange("one", 1, alice, update).status(), xdr::NFS4ERR_NOENT);
  ASSERT_TRUE(exchange("one"));
  EXPECT_EQ(exchange("one", 1, alice, update).status(), xdr::NFS4ERR_NOENT);
  EXPECT_EQ(state->counts().clients, 1U);
}

TEST_F(ExchangeId, Case8And9UpdateByAnotherClient) {
  client("one");
  EXPECT_EQ(exchange("one", 2, alice, update).status(), xdr::NFS4ERR_NOT_SAME);
  EXPECT_EQ(exchange("one", 2, bob, update).status(), xdr::NFS4ERR_NOT_SAME);
  EXPECT_EQ(exchange("one", 1, bob, update).status(), xdr::NFS4ERR_PERM);
}

TEST_F(ExchangeId, FlagsThatAreNotTheClients) {
  for (const std::uint32_t flags : {0x4U, 0x8U, xdr::EXCHGID4_FLAG_CONFIRMED_R}) {
    EXPECT_EQ(exchange("one", 1, alice, flags).status(), xdr::NFS4ERR_INVAL) << flags;
  }
  EXPECT_TRUE(exchange("one", 1, alice,
                       xdr::EXCHGID4_FLAG_SUPP_MOVED_REFER | xdr::EXCHGID4_FLAG_USE_PNFS_MDS |
                           xdr::EXCHGID4_FLAG_BIND_PRINC_STATEID));
}

TEST_F(ExchangeId, StateProtectionNeedsGss) {
  auto args = exchange_args("one", 1);
  args.eia_state_protect = xdr::state_protect4_a(xdr::SP4_MACH_CRED);
  EXPECT_EQ(state->exchange_id(args, alice).status(), xdr::NFS4ERR_INVAL);
  xdr::ssv_sp_parms4 ssv;
  args.eia_state_protect = xdr::state_protect4_a(ssv);
  EXPECT_EQ(state->exchange_id(args, alice).status(), xdr::NFS4ERR_INVAL);
  ssv.ssp_hash_algs.items.resize(1);
  ssv.ssp_encr_algs.items.resize(1);
  args.eia_state_protect = xdr::state_protect4_a(ssv);
  EXPECT_EQ(state->exchange_id(args, alice).status(), xdr::NFS4ERR_ENCR_ALG_UNSUPP);
  EXPECT_EQ(state->counts().clients, 0U);
}

TEST_F(ExchangeId, RoomIsMadeByGivingUpWhoIsGone) {
  settings.max_clients = 2;
  start();
  const Caller one = client("one");
  client("two");
  EXPECT_EQ(exchange("three").status(), xdr::NFS4ERR_DELAY);
  pass(std::chrono::seconds(60));
  EXPECT_EQ(status_of(open(one, "o", file(1), reading)), xdr::NFS4_OK);
  pass(std::chrono::seconds(60));
  ASSERT_TRUE(exchange("three"));
  EXPECT_TRUE(open(one, "p", file(1), reading));
  // What is not confirmed goes before that.
  ASSERT_TRUE(exchange("four"));
  EXPECT_TRUE(open(one, "q", file(1), reading));
  EXPECT_EQ(state->counts().clients, 2U);
}

TEST_F(ExchangeId, DestroyClientid) {
  const Caller one = client("one");
  EXPECT_EQ(state->destroy_clientid(one.client), xdr::NFS4ERR_CLIENTID_BUSY);
  ASSERT_EQ(state->destroy_session(session, false, 1), xdr::NFS4_OK);
  EXPECT_EQ(state->destroy_clientid(one.client), xdr::NFS4_OK);
  EXPECT_EQ(state->destroy_clientid(one.client), xdr::NFS4ERR_STALE_CLIENTID);
  EXPECT_EQ(state->counts().clients, 0U);
  const Caller old = client0("old");
  EXPECT_EQ(state->destroy_clientid(old.client), xdr::NFS4ERR_STALE_CLIENTID);
}

TEST_F(ExchangeId, ReclaimCompleteOnceAndBeforeAnythingElse) {
  const Caller one = connect("one");
  EXPECT_EQ(open(one, "o", file(1), reading).status(), xdr::NFS4ERR_GRACE);
  EXPECT_EQ(state->reclaim_complete(one, {true}), xdr::NFS4_OK);
  EXPECT_EQ(open(one, "o", file(1), reading).status(), xdr::NFS4ERR_GRACE);
  EXPECT_EQ(state->reclaim_complete(one, {}), xdr::NFS4_OK);
  EXPECT_EQ(state->reclaim_complete(one, {}), xdr::NFS4ERR_COMPLETE_ALREADY);
  EXPECT_TRUE(open(one, "o", file(1), reading));
  EXPECT_EQ(open(one, "o", file(1), reading, none, true).status(), xdr::NFS4ERR_NO_GRACE);
}

}  // namespace
}  // namespace selvage::server::nfs4::state
