// Clients of minor version 0: RFC 7530, 16.28, 16.33.5, 16.34.5. In its terms a record is {v, x, c,
// l, s}: verifier, id, callback, clientid, confirm verifier.
#include "state_fixture.h"

namespace selvage::server::nfs4::state {
namespace {

using SetClientId = StateTest;

TEST_F(SetClientId, NewClientIsConfirmed) {
  const auto one = set("one");
  EXPECT_NE(one.setclientid_confirm, xdr::verifier4{});
  EXPECT_EQ(state->renew(one.clientid), xdr::NFS4ERR_STALE_CLIENTID);
  EXPECT_EQ(state->check_open({0, one.clientid}, false), xdr::NFS4ERR_STALE_CLIENTID);
  EXPECT_EQ(confirm(one), xdr::NFS4_OK);
  EXPECT_EQ(state->renew(one.clientid), xdr::NFS4_OK);
  EXPECT_EQ(confirm(one), xdr::NFS4_OK);  // A retry.
  EXPECT_EQ(state->counts().clients, 1U);
}

TEST_F(SetClientId, UnconfirmedIsReplacedWhateverItsVerifier) {
  for (const std::uint8_t incarnation : {std::uint8_t{1}, std::uint8_t{2}}) {
    const auto first = set("one");
    const auto second = set("one", incarnation);
    EXPECT_NE(first.clientid, second.clientid);
    EXPECT_NE(first.setclientid_confirm, second.setclientid_confirm);
    EXPECT_EQ(confirm(first), xdr::NFS4ERR_STALE_CLIENTID);
    EXPECT_EQ(state->counts().clients, 1U);
  }
}

TEST_F(SetClientId, CallbackUpdateKeepsClientidAndState) {
  const auto first = set("one");
  ASSERT_EQ(confirm(first), xdr::NFS4_OK);
  const Caller one{0, first.clientid};
  auto opened = open0(one, "o", 1, file(1), reading);
  const stateid4 id = confirm_open(opened->stateid, 2, file(1));
  const auto second = set("one");
  EXPECT_EQ(second.clientid, first.clientid);
  EXPECT_NE(second.setclientid_confirm, first.setclientid_confirm);
  // The old one is still a retry; a third that was never given is nothing.
  EXPECT_EQ(confirm(first), xdr::NFS4_OK);
  auto wrong = second;
  wrong.setclientid_confirm[0] ^= 1;
  EXPECT_EQ(confirm(wrong), xdr::NFS4ERR_STALE_CLIENTID);
  EXPECT_EQ(confirm(second), xdr::NFS4_OK);
  EXPECT_EQ(confirm(second), xdr::NFS4_OK);
  EXPECT_EQ(confirm(first), xdr::NFS4ERR_STALE_CLIENTID);
  EXPECT_EQ(use(one, id, file(1), reading), xdr::NFS4_OK);
}

TEST_F(SetClientId, RestartedClientLosesItsStateAtConfirm) {
  const Caller before = client0("one");
  auto opened = open0(before, "o", 1, file(1), reading);
  const stateid4 id = confirm_open(opened->stateid, 2, file(1));
  const auto unconfirmed = set("one", 2);
  const auto after = set("one", 3);
  EXPECT_NE(after.clientid, before.client);
  EXPECT_EQ(confirm(unconfirmed), xdr::NFS4ERR_STALE_CLIENTID);
  EXPECT_EQ(use(before, id, file(1), reading), xdr::NFS4_OK);
  EXPECT_EQ(confirm(after), xdr::NFS4_OK);
  EXPECT_EQ(use(before, id, file(1), reading), xdr::NFS4ERR_EXPIRED);
  EXPECT_EQ(state->renew(before.client), xdr::NFS4ERR_STALE_CLIENTID);
  EXPECT_EQ(state->counts().opens, 0U);
  EXPECT_EQ(state->counts().clients, 1U);
}

TEST_F(SetClientId, AnotherPrincipal) {
  const Caller one = client0("one");
  // No state: it may be taken over.
  const auto taken = set("one", 1, bob);
  EXPECT_NE(taken.clientid, one.client);
  EXPECT_EQ(confirm(taken, alice), xdr::NFS4ERR_CLID_INUSE);
  EXPECT_EQ(confirm(taken, bob), xdr::NFS4_OK);
  const Caller two{0, taken.clientid};
  ASSERT_TRUE(open0(two, "o", 1, file(1), reading));
  const auto result = state->setclientid(setclientid_args("one", 1), alice);
  EXPECT_EQ(result.tag, xdr::NFS4ERR_CLID_INUSE);
  ASSERT_NE(result.get_if<xdr::netaddr4>(), nullptr);
  EXPECT_EQ(result.get_if<xdr::netaddr4>()->na_r_addr.value, "127.0.0.1.8.1");
  pass(std::chrono::seconds(91));
  EXPECT_EQ(state->setclientid(setclientid_args("one", 1), alice).tag, xdr::NFS4_OK);
}

TEST_F(SetClientId, TheMinorVersionsAreApart) {
  const Caller one = client("one");
  const Caller zero = client0("one");
  EXPECT_EQ(state->counts().clients, 2U);
  EXPECT_EQ(state->renew(one.client), xdr::NFS4ERR_STALE_CLIENTID);
  EXPECT_EQ(create(zero.client, 1).status(), xdr::NFS4ERR_STALE_CLIENTID);
  auto opened = open(one, "o", file(1), reading);
  EXPECT_EQ(use(zero, opened->stateid, file(1), reading), xdr::NFS4ERR_BAD_STATEID);
}

TEST_F(SetClientId, ClientidsOfAnEarlierInstanceAreStale) {
  const Caller one = client0("one");
  settings.epoch = 8;
  start();
  EXPECT_EQ(state->renew(one.client), xdr::NFS4ERR_STALE_CLIENTID);
  EXPECT_EQ(state->renew(0), xdr::NFS4ERR_STALE_CLIENTID);
}

TEST_F(SetClientId, ClientsAreBounded) {
  settings.max_clients = 1;
  start();
  client0("one");
  EXPECT_EQ(state->setclientid(setclientid_args("two", 1), alice).tag, xdr::NFS4ERR_RESOURCE);
  pass(std::chrono::seconds(91));
  EXPECT_EQ(state->setclientid(setclientid_args("two", 1), alice).tag, xdr::NFS4_OK);
}

}  // namespace
}  // namespace selvage::server::nfs4::state
