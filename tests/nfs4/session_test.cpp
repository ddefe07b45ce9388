// CREATE_SESSION, SEQUENCE and what is about sessions: RFC 8881, 2.10.6, 18.33 to 18.37, 18.46.
#include "state_fixture.h"

namespace selvage::server::nfs4::state {
namespace {

using Kind = Sequenced::Kind;

class SessionTest : public StateTest {
 protected:
  Outcome<xdr::CREATE_SESSION4resok> create_with(const xdr::channel_attrs4& fore,
                                                 const xdr::channel_attrs4& back = channel(),
                                                 std::uint32_t flags = 0) {
    auto known = exchange("one");
    xdr::CREATE_SESSION4args args;
    args.csa_clientid = known->eir_clientid;
    args.csa_sequence = known->eir_sequenceid;
    args.csa_flags = flags;
    args.csa_fore_chan_attrs = fore;
    args.csa_back_chan_attrs = back;
    return state->create_session(args, alice, 1);
  }
  Sequenced sequence(std::uint32_t slot, std::uint32_t seqid, bool cache = false,
                     std::uint64_t checksum = 0, std::size_t size = 100,
                     std::uint32_t operations = 2, ConnectionId connection = 1) {
    xdr::SEQUENCE4args args;
    args.sa_sessionid = session;
    args.sa_slotid = slot;
    args.sa_sequenceid = seqid;
    args.sa_highest_slotid = slot;
    args.sa_cachethis = cache;
    return state->sequence(args, {checksum, size, operations, connection});
  }
};

TEST_F(SessionTest, AttributesAreNegotiated) {
  auto asked = channel();
  asked.ca_headerpadsize = 16;
  asked.ca_maxrequestsize = ~0U;
  asked.ca_maxresponsesize = ~0U;
  asked.ca_maxresponsesize_cached = ~0U;
  asked.ca_maxoperations = ~0U;
  asked.ca_maxrequests = 5000;
  asked.ca_rdma_ird.items = {57};
  auto made =
      create_with(asked, channel(),
                  xdr::CREATE_SESSION4_FLAG_PERSIST | xdr::CREATE_SESSION4_FLAG_CONN_BACK_CHAN |
                      xdr::CREATE_SESSION4_FLAG_CONN_RDMA);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->csr_sequence, 1U);
  EXPECT_EQ(made->csr_flags, xdr::CREATE_SESSION4_FLAG_CONN_BACK_CHAN);
  const auto& fore = made->csr_fore_chan_attrs;
  EXPECT_EQ(fore.ca_headerpadsize, 0U);
  EXPECT_GE(fore.ca_maxrequestsize, (1U << 20) + 4096);
  EXPECT_LT(fore.ca_maxrequestsize, ~0U);
  EXPECT_EQ(fore.ca_maxrequests, 1024U);
  EXPECT_EQ(fore.ca_maxoperations, settings.max_operations);
  EXPECT_EQ(fore.ca_maxresponsesize_cached, settings.max_cached_reply_bytes);
  EXPECT_TRUE(fore.ca_rdma_ird.items.empty());
  asked = channel();
  asked.ca_maxrequests = 64;
  EXPECT_EQ(create_with(asked)->csr_fore_chan_attrs.ca_maxrequests, 64U);
}

TEST_F(SessionTest, TooSmallChannelsAreRefused) {
  for (auto member :
       {&xdr::channel_attrs4::ca_maxrequestsize, &xdr::channel_attrs4::ca_maxresponsesize,
        &xdr::channel_attrs4::ca_maxoperations, &xdr::channel_attrs4::ca_maxrequests}) {
    auto small = channel();
    small.*member = 0;
    EXPECT_EQ(create_with(small).status(), xdr::NFS4ERR_TOOSMALL);
    EXPECT_EQ(create_with(channel(), small).status(), xdr::NFS4ERR_TOOSMALL);
  }
  auto nothing_cached = channel();
  nothing_cached.ca_maxresponsesize_cached = 0;
  EXPECT_TRUE(create_with(nothing_cached));
  EXPECT_EQ(create_with(channel(), channel(), 0xf).status(), xdr::NFS4ERR_INVAL);
}

TEST_F(SessionTest, CreateSessionHasASequenceOfItsOwn) {
  EXPECT_EQ(create(12345, 1).status(), xdr::NFS4ERR_STALE_CLIENTID);
  auto known = exchange("one");
  const clientid4 id = known->eir_clientid;
  EXPECT_EQ(create(id, 0).status(), xdr::NFS4ERR_SEQ_MISORDERED);
  EXPECT_EQ(create(id, 2).status(), xdr::NFS4ERR_SEQ_MISORDERED);
  auto first = create(id, 1);
  ASSERT_TRUE(first);
  auto retry = create(id, 1);
  ASSERT_TRUE(retry);
  EXPECT_EQ(retry->csr_sessionid, first->csr_sessionid);
  EXPECT_EQ(state->counts().sessions, 1U);
  EXPECT_EQ(create(id, 0).status(), xdr::NFS4ERR_SEQ_MISORDERED);
  EXPECT_EQ(create(id, 3).status(), xdr::NFS4ERR_SEQ_MISORDERED);
  auto second = create(id, 2, bob);  // Confirmed: the principal is free (SP4_NONE).
  ASSERT_TRUE(second);
  EXPECT_NE(second->csr_sessionid, first->csr_sessionid);
  EXPECT_EQ(create(id, 1).status(), xdr::NFS4ERR_SEQ_MISORDERED);
}

TEST_F(SessionTest, AfterAnErrorTheSameSequenceIsJudgedAnew) {
  auto known = exchange("one");
  xdr::CREATE_SESSION4args args;
  args.csa_clientid = known->eir_clientid;
  args.csa_sequence = 1;
  EXPECT_EQ(state->create_session(args, alice, 1).status(), xdr::NFS4ERR_TOOSMALL);
  EXPECT_EQ(state->create_session(args, alice, 1).status(), xdr::NFS4ERR_TOOSMALL);
  auto first = create(known->eir_clientid, 1);
  ASSERT_TRUE(first);
  EXPECT_EQ(create(known->eir_clientid, 1)->csr_sessionid, first->csr_sessionid);
  // Linux takes the next sequence id after an error.
  args.csa_sequence = 2;
  EXPECT_EQ(state->create_session(args, alice, 1).status(), xdr::NFS4ERR_TOOSMALL);
  EXPECT_TRUE(create(known->eir_clientid, 3));
}

TEST_F(SessionTest, OnlyTheSamePrincipalConfirms) {
  auto known = exchange("one");
  EXPECT_EQ(create(known->eir_clientid, 1, bob).status(), xdr::NFS4ERR_CLID_INUSE);
  EXPECT_EQ(create(known->eir_clientid, 1, bob).status(), xdr::NFS4ERR_CLID_INUSE);
  EXPECT_TRUE(create(known->eir_clientid, 1, alice));
}

TEST_F(SessionTest, SessionsAreBounded) {
  settings.max_sessions_per_client = 3;
  start();
  const Caller one = client("one");
  EXPECT_TRUE(create(one.client, 2));
  EXPECT_TRUE(create(one.client, 3));
  EXPECT_EQ(create(one.client, 4).status(), xdr::NFS4ERR_NOSPC);
  ASSERT_EQ(state->destroy_session(session, false, 1), xdr::NFS4_OK);
  EXPECT_TRUE(create(one.client, 5));
}

TEST_F(SessionTest, SlotsAndTheirSeqids) {
  const Caller one = client("one");
  const sessionid4 good = session;
  session[3] ^= 1;
  EXPECT_EQ(sequence(0, 1).status, xdr::NFS4ERR_BADSESSION);
  session = good;
  EXPECT_EQ(sequence(8, 1).status, xdr::NFS4ERR_BADSLOT);
  xdr::SEQUENCE4args args;
  args.sa_sessionid = session;
  args.sa_sequenceid = 1;
  args.sa_highest_slotid = 8;
  EXPECT_EQ(state->sequence(args, {}).status, xdr::NFS4ERR_BAD_HIGH_SLOT);
  EXPECT_EQ(sequence(0, 0).status, xdr::NFS4ERR_SEQ_MISORDERED);
  EXPECT_EQ(sequence(0, 2).status, xdr::NFS4ERR_SEQ_MISORDERED);
  auto first = sequence(0, 1);
  ASSERT_EQ(first.kind, Kind::execute);
  EXPECT_EQ(first.client, one.client);
  EXPECT_EQ(first.resok.sr_sessionid, session);
  EXPECT_EQ(first.resok.sr_sequenceid, 1U);
  EXPECT_EQ(first.resok.sr_slotid, 0U);
  EXPECT_EQ(first.resok.sr_highest_slotid, 7U);
  EXPECT_EQ(first.resok.sr_target_highest_slotid, 7U);
  EXPECT_EQ(first.resok.sr_status_flags, 0U);
  EXPECT_EQ(first.limits.ca_maxoperations, 16U);
  // In progress.
  EXPECT_EQ(sequence(0, 1).status, xdr::NFS4ERR_DELAY);
  EXPECT_EQ(sequence(0, 2).status, xdr::NFS4ERR_SEQ_MISORDERED);
  EXPECT_EQ(sequence(7, 1).kind, Kind::execute);  // And finished at once, uncached.
  EXPECT_EQ(sequence(7, 1).status, xdr::NFS4ERR_RETRY_UNCACHED_REP);
  first.ticket.finish(nullptr);
  EXPECT_EQ(sequence(0, 1).status, xdr::NFS4ERR_RETRY_UNCACHED_REP);
  EXPECT_EQ(sequence(0, 2).kind, Kind::execute);
  EXPECT_EQ(sequence(0, 1).status, xdr::NFS4ERR_SEQ_MISORDERED);
}

TEST_F(SessionTest, RepliesAreReplayedExactly) {
  client("one");
  const Bytes reply = bytes(300, 5);
  auto first = sequence(2, 1, true, 77);
  ASSERT_EQ(first.kind, Kind::execute);
  first.ticket.finish(reply);
  for (int i = 0; i < 2; ++i) {
    auto again = sequence(2, 1, true, 77);
    EXPECT_EQ(again.kind, Kind::replay);
    EXPECT_EQ(again.reply, reply);
  }
  EXPECT_EQ(sequence(2, 1, true, 78).status, xdr::NFS4ERR_SEQ_FALSE_RETRY);
  EXPECT_EQ(state->counts().reply_cache_bytes, 300U);
  EXPECT_EQ(sequence(2, 2).kind, Kind::execute);
  EXPECT_EQ(state->counts().reply_cache_bytes, 0U);
}

TEST_F(SessionTest, SizesAreChecked) {
  client("one");
  EXPECT_EQ(sequence(0, 1, false, 0, 8193).status, xdr::NFS4ERR_REQ_TOO_BIG);
  EXPECT_EQ(sequence(0, 1, false, 0, 100, 17).status, xdr::NFS4ERR_TOO_MANY_OPS);
  // The slot has not moved.
  EXPECT_EQ(sequence(0, 1, false, 0, 8192, 16).kind, Kind::execute);
}

TEST_F(SessionTest, TheReplyCacheIsBounded) {
  settings.max_reply_cache_bytes = 8192 + 4095;
  start();
  client("gone");
  auto kept = sequence(0, 1, true);
  kept.ticket.finish(bytes(4096));
  pass(std::chrono::seconds(60));
  client("one");
  auto first = sequence(0, 1, true);
  EXPECT_EQ(first.kind, Kind::execute);
  EXPECT_EQ(sequence(1, 1, true).status, xdr::NFS4ERR_DELAY);
  auto uncached = sequence(1, 1, false);
  EXPECT_EQ(uncached.kind, Kind::execute);
  // Room is reserved for the first's reply: this one is not kept.
  uncached.ticket.finish(bytes(4096));
  EXPECT_EQ(sequence(1, 1).status, xdr::NFS4ERR_RETRY_UNCACHED_REP);
  // Whose lease has expired has to do without.
  pass(std::chrono::seconds(60));
  EXPECT_EQ(sequence(2, 1, true).kind, Kind::execute);
  first.ticket.finish(bytes(4096));
  EXPECT_EQ(state->counts().reply_cache_bytes, 4096U);
}

TEST_F(SessionTest, DestroyWaitsForOtherRequests) {
  client("one");
  EXPECT_EQ(state->destroy_session(session, false, 9), xdr::NFS4ERR_CONN_NOT_BOUND_TO_SESSION);
  auto other = sequence(0, 1, true);
  auto own = sequence(1, 1, true);
  EXPECT_EQ(state->destroy_session(session, true, 1), xdr::NFS4ERR_DELAY);
  other.ticket.finish(bytes(10));
  EXPECT_EQ(state->destroy_session(session, false, 1), xdr::NFS4ERR_DELAY);
  EXPECT_EQ(state->destroy_session(session, true, 1), xdr::NFS4_OK);
  own.ticket.finish(bytes(10));
  EXPECT_EQ(state->counts().reply_cache_bytes, 0U);
  EXPECT_EQ(state->counts().sessions, 0U);
  EXPECT_EQ(sequence(0, 2).status, xdr::NFS4ERR_BADSESSION);
  EXPECT_EQ(state->destroy_session(session, false, 1), xdr::NFS4ERR_BADSESSION);
}

TEST_F(SessionTest, ConnectionsJoinAndLeave) {
  const Caller one = connect("one");
  EXPECT_EQ(sequence(0, 1, false, 0, 100, 2, 5).kind, Kind::execute);
  EXPECT_TRUE(state->back_channels(one.client).empty());
  xdr::BIND_CONN_TO_SESSION4args args;
  args.bctsa_sessid = session;
  for (const auto& [asked, granted] : {std::pair{xdr::CDFC4_FORE, xdr::CDFS4_FORE},
                                       {xdr::CDFC4_BACK, xdr::CDFS4_BACK},
                                       {xdr::CDFC4_FORE_OR_BOTH, xdr::CDFS4_BOTH},
                                       {xdr::CDFC4_BACK_OR_BOTH, xdr::CDFS4_BOTH}}) {
    args.bctsa_dir = asked;
    args.bctsa_use_conn_in_rdma_mode = true;
    auto bound = state->bind_conn_to_session(args, 6);
    ASSERT_TRUE(bound);
    EXPECT_EQ(bound->bctsr_dir, granted);
    EXPECT_FALSE(bound->bctsr_use_conn_in_rdma_mode);
  }
  args.bctsa_dir = 5;
  EXPECT_EQ(state->bind_conn_to_session(args, 6).status(), xdr::NFS4ERR_INVAL);
  args.bctsa_dir = xdr::CDFC4_FORE;
  args.bctsa_sessid[0] ^= 1;
  EXPECT_EQ(state->bind_conn_to_session(args, 6).status(), xdr::NFS4ERR_BADSESSION);

  ASSERT_EQ(state->backchannel_ctl(session, {0x4321, {}}), xdr::NFS4_OK);
  ASSERT_EQ(state->back_channels(one.client).size(), 1U);
  EXPECT_EQ(state->back_channels(one.client)[0].connection, 6U);
  EXPECT_EQ(state->back_channels(one.client)[0].program, 0x4321U);
  EXPECT_EQ(sequence(0, 2).resok.sr_status_flags, 0U);
  state->connection_lost(6);
  EXPECT_EQ(sequence(0, 3).resok.sr_status_flags,
            xdr::SEQ4_STATUS_CB_PATH_DOWN | xdr::SEQ4_STATUS_CB_PATH_DOWN_SESSION);
  state->connection_lost(5);
  EXPECT_EQ(state->destroy_session(session, false, 5), xdr::NFS4ERR_CONN_NOT_BOUND_TO_SESSION);
  EXPECT_EQ(state->destroy_session(session, false, 1), xdr::NFS4_OK);
  state->connection_lost(1);
}

TEST_F(SessionTest, SequenceRenewsTheLease) {
  const Caller one = client("one");
  ASSERT_TRUE(open(one, "o", file(1), reading, xdr::OPEN4_SHARE_DENY_WRITE));
  for (std::uint32_t seqid = 1; seqid <= 3; ++seqid) {
    pass(std::chrono::seconds(89));
    EXPECT_EQ(sequence(0, seqid).kind, Kind::execute);
  }
  const Caller two = client("two");
  EXPECT_EQ(open(two, "o", file(1), writing).status(), xdr::NFS4ERR_SHARE_DENIED);
}

}  // namespace
}  // namespace selvage::server::nfs4::state
