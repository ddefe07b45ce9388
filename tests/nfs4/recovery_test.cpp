// Restarts: RFC 8881, 8.4.2, 8.4.3, 18.51; RFC 7530, 9.6.2, 9.6.3.
#include "state_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

namespace selvage::server::nfs4::state {
namespace {

using Change = RecoveryStore::Change;

std::unique_ptr<RecoveryStore> open_store(const std::string& directory) {
  auto store = RecoveryStore::open(directory);
  EXPECT_TRUE(store) << store.error().message();
  return store ? std::move(*store) : nullptr;
}

clientid4 id_of(std::uint32_t epoch, std::uint32_t number) {
  return (clientid4{epoch} << 32) | number;
}

TEST(RecoveryStore, RemembersAcrossInstances) {
  Directory directory;
  auto store = open_store(directory.path());
  const std::uint32_t epoch = store->epoch();
  EXPECT_NE(epoch, 0U);
  EXPECT_TRUE(store->earlier().empty());
  const std::string odd("a\0\xff'b", 5);
  const Change changes[] = {{Change::Kind::put, {id_of(epoch, 1), true, odd}},
                            {Change::Kind::put, {id_of(epoch, 2), false, odd}},
                            {Change::Kind::put, {id_of(epoch, 3), true, "gone"}},
                            {Change::Kind::remove, {id_of(epoch, 3), true, "gone"}}};
  ASSERT_TRUE(store->apply(changes));
  store.reset();
  store = open_store(directory.path());
  EXPECT_EQ(store->epoch(), epoch + 1);
  EXPECT_EQ(store->earlier(), (std::vector<ClientRecord>{{id_of(epoch, 1), true, odd},
                                                         {id_of(epoch, 2), false, odd}}));
  // A removal takes earlier incarnations along, not later ones, nor the other minor version's.
  const Change more[] = {{Change::Kind::put, {id_of(epoch + 1, 7), true, odd}},
                         {Change::Kind::remove, {id_of(epoch + 1, 6), true, odd}}};
  ASSERT_TRUE(store->apply(more));
  store.reset();
  store = open_store(directory.path());
  EXPECT_EQ(store->earlier(), (std::vector<ClientRecord>{{id_of(epoch, 2), false, odd},
                                                         {id_of(epoch + 1, 7), true, odd}}));
  const Change last[] = {{Change::Kind::put, {id_of(epoch + 2, 1), true, "new"}},
                         {Change::Kind::remove_earlier, {}}};
  ASSERT_TRUE(store->apply(last));
  store.reset();
  store = open_store(directory.path());
  EXPECT_EQ(store->earlier(), (std::vector<ClientRecord>{{id_of(epoch + 2, 1), true, "new"}}));
}

TEST(RecoveryStore, IsOneServersAlone) {
  Directory directory;
  auto store = open_store(directory.path());
  EXPECT_FALSE(RecoveryStore::open(directory.path()));
  store.reset();
  EXPECT_TRUE(RecoveryStore::open(directory.path()));
  EXPECT_FALSE(RecoveryStore::open(directory.path() + "/missing"));
}

TEST(RecoveryStore, RefusesWhatIsNoStore) {
  Directory directory;
  std::ofstream(directory.path() + "/nfs4-clients.sqlite") << std::string(8192, 'x');
  EXPECT_FALSE(RecoveryStore::open(directory.path()));
}

TEST(RecoveryStore, SurvivesBeingKilled) {
  Directory directory;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto store = RecoveryStore::open(directory.path());
    if (!store) ::_exit(1);
    for (std::uint32_t i = 1;; ++i) {
      const Change change{Change::Kind::put,
                          {id_of((*store)->epoch(), i), true, "c" + std::to_string(i)}};
      if (!(*store)->apply(std::span(&change, 1))) ::_exit(1);
      // Told only when it is durable.
      if (::write(ends[1], &i, sizeof i) != static_cast<ssize_t>(sizeof i)) ::_exit(1);
    }
  }
  ::close(ends[1]);
  std::uint32_t told = 0;
  while (told < 20) {
    ASSERT_EQ(::read(ends[0], &told, sizeof told), static_cast<ssize_t>(sizeof told));
  }
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  while (::read(ends[0], &told, sizeof told) == static_cast<ssize_t>(sizeof told)) {
  }
  ::close(ends[0]);
  auto store = open_store(directory.path());
  ASSERT_NE(store, nullptr);
  EXPECT_GE(store->earlier().size(), told);
  EXPECT_LE(store->earlier().size(), told + 1);
}

class Restart : public StateTest {
 protected:
  Restart() { start(directory.path()); }
  void restart() { start(directory.path()); }
  Outcome<OpenGrant> reclaim(const Caller& caller, const FileKey& key, std::uint32_t access = both,
                             std::uint32_t deny = none) {
    return open(caller, "o", key, access, deny, true);
  }
  Directory directory;
};

TEST_F(Restart, NobodyOnRecordNoGrace) {
  EXPECT_FALSE(state->in_grace());
  ASSERT_TRUE(exchange("one"));
  client0("zero");  // Holds nothing.
  restart();
  EXPECT_FALSE(state->in_grace());
}

TEST_F(Restart, GraceEndsWhenAllHaveReclaimed) {
  const Caller one = client("one");
  auto opened = open(one, "o", file(1), both);
  client("two");
  restart();
  EXPECT_TRUE(state->in_grace());
  EXPECT_EQ(use(one, opened->stateid, file(1), reading), xdr::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(create(one.client, 2).status(), xdr::NFS4ERR_STALE_CLIENTID);
  const Caller again = connect("one");
  EXPECT_EQ(open(again, "o", file(2), reading).status(), xdr::NFS4ERR_GRACE);
  EXPECT_EQ(state->check_open(again, false), xdr::NFS4ERR_GRACE);
  EXPECT_EQ(state->check_open(again, true), xdr::NFS4_OK);
  auto reclaimed = reclaim(again, file(1));
  ASSERT_TRUE(reclaimed);
  auto args = lock_args(reclaimed->stateid, "l", xdr::WRITE_LT, 0, 10);
  EXPECT_EQ(lock(again, args, file(1)).status(), xdr::NFS4ERR_GRACE);
  args.reclaim = true;
  EXPECT_TRUE(lock(again, args, file(1)));
  EXPECT_EQ(use(again, {}, file(5), reading), xdr::NFS4ERR_GRACE);
  EXPECT_EQ(use(again, {}, file(5), writing), xdr::NFS4ERR_GRACE);
  EXPECT_EQ(use(again, reclaimed->stateid, file(1), writing), xdr::NFS4_OK);
  xdr::LOCKT4args test;
  test.length = 1;
  EXPECT_EQ(state->test_lock(again, test, file(1)).status, xdr::NFS4ERR_GRACE);

  EXPECT_EQ(state->reclaim_complete(again, {}), xdr::NFS4_OK);
  EXPECT_EQ(reclaim(again, file(3)).status(), xdr::NFS4ERR_NO_GRACE);
  EXPECT_EQ(open(again, "o", file(2), reading).status(), xdr::NFS4ERR_GRACE);
  EXPECT_TRUE(state->in_grace());
  const Caller two = connect("two");
  EXPECT_EQ(state->reclaim_complete(two, {}), xdr::NFS4_OK);
  // Not before it is on disk.
  EXPECT_TRUE(state->in_grace());
  flush();
  EXPECT_FALSE(state->in_grace());
  EXPECT_TRUE(open(again, "o", file(2), reading));
  EXPECT_EQ(use(again, {}, file(5), writing), xdr::NFS4_OK);
}

TEST_F(Restart, GraceEndsWithTimeAndIsExtendedByReclaims) {
  client("one");
  client("two");
  restart();
  pass(std::chrono::seconds(89));
  state->tick();
  EXPECT_TRUE(state->in_grace());
  const Caller one = connect("one");
  for (std::uint8_t i = 0; i < 8; ++i) {
    pass(std::chrono::seconds(10));
    state->tick();
    EXPECT_TRUE(reclaim(one, file(i))) << int{i};
  }
  // 169 s. After a lease time, 179 s, it does not hold up the others any more.
  for (int i = 0; i < 7; ++i) {
    pass(std::chrono::seconds(8));
    state->tick();
    flush();
    EXPECT_EQ(status_of(reclaim(one, file(9))), i < 6 ? xdr::NFS4_OK : xdr::NFS4ERR_NO_GRACE) << i;
  }
  EXPECT_FALSE(state->in_grace());
  // "two" has not come in time.
  const Caller two = connect("two");
  EXPECT_EQ(reclaim(two, file(30)).status(), xdr::NFS4ERR_NO_GRACE);
  restart();
  EXPECT_EQ(reclaim(connect("two"), file(30)).status(), xdr::NFS4ERR_RECLAIM_BAD);
  EXPECT_TRUE(reclaim(connect("one"), file(0)));
}

// A client on record that comes back, or asks for what it may not have any more, is reclaiming; who
// is not on record does not hold up the others.
TEST_F(Restart, WhoComesBackExtendsTheGrace) {
  client("one");
  client("two");
  client("three");
  restart();
  pass(std::chrono::seconds(89));
  const Caller one = connect("one");
  ASSERT_EQ(state->reclaim_complete(one, {}), xdr::NFS4_OK);
  pass(std::chrono::seconds(20));
  EXPECT_EQ(reclaim(one, file(1)).status(), xdr::NFS4ERR_NO_GRACE);
  pass(std::chrono::seconds(20));
  state->tick();
  flush();
  EXPECT_TRUE(state->in_grace());
  const Caller two = connect("two");
  pass(std::chrono::seconds(20));
  state->tick();
  EXPECT_TRUE(reclaim(two, file(2)));
  const Caller stranger = connect("stranger");
  pass(std::chrono::seconds(20));
  EXPECT_EQ(reclaim(stranger, file(3)).status(), xdr::NFS4ERR_RECLAIM_BAD);
  pass(std::chrono::seconds(30));
  state->tick();
  flush();
  EXPECT_FALSE(state->in_grace());
}

// As long as one client after the other comes back and completes, up to three leases.
TEST_F(Restart, ProgressExtendsTheGraceFurther) {
  for (int i = 0; i < 40; ++i) client("c" + std::to_string(i));
  restart();
  pass(std::chrono::seconds(80));
  for (int i = 0; i < 13; ++i) {
    const Caller next = connect("c" + std::to_string(i));
    EXPECT_TRUE(reclaim(next, file(1))) << i;
    EXPECT_EQ(state->reclaim_complete(next, {}), xdr::NFS4_OK);
    pass(std::chrono::seconds(21));
    state->tick();
    flush();
  }
  // 353 s. The rest is too late.
  EXPECT_TRUE(state->in_grace());
  connect("c20");
  pass(std::chrono::seconds(22));
  state->tick();
  flush();
  EXPECT_FALSE(state->in_grace());
}

// However long so many clients take together, on a busy server with a short lease.
TEST_F(Restart, ManyClientsReclaimOneAfterTheOther) {
  settings.lease_time = settings.grace_time = std::chrono::seconds(12);
  restart();
  constexpr int many = 300;
  const auto name = [](int i) { return "c" + std::to_string(i); };
  for (int i = 0; i < many; ++i) {
    EXPECT_EQ(state->reclaim_complete(connect(name(i)), {}), xdr::NFS4_OK);
  }
  client("idle");
  restart();
  std::vector<Caller> back;
  const auto passes = [&](std::chrono::milliseconds time) {
    now += time;
    state->tick();
    flush();
    return state->in_grace();
  };
  for (int i = 0; i < many; ++i) {
    back.push_back(connect(name(i)));
    EXPECT_TRUE(reclaim(back.back(), file(1))) << i;
    EXPECT_EQ(state->reclaim_complete(back.back(), {}), xdr::NFS4_OK);
    ASSERT_TRUE(passes(std::chrono::milliseconds(180))) << i;
  }
  // The first came back 54 s ago: nobody has lost anything for want of a lease.
  EXPECT_EQ(state->counts().expired_clients, 0U);
  for (const Caller& caller : back) {
    EXPECT_EQ(reclaim(caller, file(2)).status(), xdr::NFS4ERR_NO_GRACE);
    ASSERT_TRUE(passes(std::chrono::milliseconds(90)));
  }
  EXPECT_EQ(state->reclaim_complete(connect("idle"), {}), xdr::NFS4_OK);
  EXPECT_FALSE(passes({}));
}

TEST_F(Restart, GraceEndsWithTimeAlone) {
  client("one");
  restart();
  pass(std::chrono::seconds(91));
  state->tick();
  EXPECT_TRUE(state->in_grace());
  flush();
  EXPECT_FALSE(state->in_grace());
  restart();
  EXPECT_FALSE(state->in_grace());
}

TEST_F(Restart, WhoIsNotOnRecordMayNotReclaim) {
  client("one");
  restart();
  EXPECT_EQ(reclaim(connect("stranger"), file(1)).status(), xdr::NFS4ERR_RECLAIM_BAD);
  const Caller zero = client0("one");  // That was minor version 1.
  EXPECT_EQ(reclaim(zero, file(1)).status(), xdr::NFS4ERR_RECLAIM_BAD);
}

TEST_F(Restart, ReclaimsThatConflict) {
  client("one");
  client("two");
  restart();
  ASSERT_TRUE(reclaim(connect("one"), file(1), both, xdr::OPEN4_SHARE_DENY_WRITE));
  EXPECT_EQ(reclaim(connect("two"), file(1)).status(), xdr::NFS4ERR_RECLAIM_CONFLICT);
}

TEST_F(Restart, TwiceInOneGracePeriod) {
  client("one");
  client("two");
  restart();
  const Caller one = connect("one");
  ASSERT_TRUE(reclaim(one, file(1)));
  ASSERT_EQ(state->reclaim_complete(one, {}), xdr::NFS4_OK);
  flush();
  restart();
  // Neither has lost anything: nothing was given to anybody else.
  EXPECT_TRUE(reclaim(connect("one"), file(1)));
  EXPECT_TRUE(reclaim(connect("two"), file(2)));
}

// RFC 8881, 8.4.3, first edge condition.
TEST_F(Restart, WhatWasGivenToAnotherIsNotReclaimed) {
  const Caller one = client("one");
  ASSERT_TRUE(open(one, "o", file(1), both, xdr::OPEN4_SHARE_DENY_WRITE));
  pass(std::chrono::seconds(91));
  const Caller two = client("two");
  OpenRequest request;
  request.caller = two;
  request.owner = raw("o");
  request.file = file(1);
  request.access = both;
  auto ticket = state->begin_open(request);
  ASSERT_TRUE(ticket);
  // Nobody is told of the grant before the loser's record is off the disk.
  EXPECT_TRUE(state->records_pending());
  EXPECT_EQ(state->commit_open(std::move(*ticket), nullptr).status(), xdr::NFS4ERR_IO);
  ASSERT_TRUE(open(two, "o", file(1), both));
  restart();
  EXPECT_EQ(reclaim(connect("one"), file(1)).status(), xdr::NFS4ERR_RECLAIM_BAD);
  EXPECT_TRUE(reclaim(connect("two"), file(1)));
}

// A WRITE with a special stateid gives the file away too, and has no commit that waits.
TEST_F(Restart, WhatASpecialStateidTookIsNotReclaimed) {
  const Caller one = client("one");
  ASSERT_TRUE(open(one, "o", file(1), both, xdr::OPEN4_SHARE_DENY_WRITE));
  const Caller two = client("two");
  auto used = state->use_stateid(two, {}, file(2), writing);
  ASSERT_TRUE(used);
  EXPECT_FALSE(used->unrecorded);
  pass(std::chrono::seconds(91));
  used = state->use_stateid(two, {}, file(1), writing);
  ASSERT_TRUE(used);
  EXPECT_TRUE(used->unrecorded);
  // So must whoever comes next and finds the file free.
  EXPECT_TRUE(state->use_stateid(two, {}, file(1), writing)->unrecorded);
  flush();
  EXPECT_FALSE(state->use_stateid(two, {}, file(1), writing)->unrecorded);
  restart();
  EXPECT_EQ(reclaim(connect("one"), file(1)).status(), xdr::NFS4ERR_RECLAIM_BAD);
}

// The same within the grace period, where the record is an earlier instance's.
TEST_F(Restart, RevokedWithinTheGracePeriod) {
  client("one");
  client("two");
  restart();
  const Caller one = connect("one");
  ASSERT_TRUE(reclaim(one, file(1), both, xdr::OPEN4_SHARE_DENY_WRITE));
  EXPECT_EQ(state->revoke_client(one.client), xdr::NFS4_OK);
  EXPECT_EQ(reclaim(one, file(1)).status(), xdr::NFS4ERR_RECLAIM_BAD);
  ASSERT_TRUE(reclaim(connect("two"), file(1)));
  restart();
  EXPECT_EQ(reclaim(connect("one"), file(1)).status(), xdr::NFS4ERR_RECLAIM_BAD);
}

TEST_F(Restart, OnRecordBeforeTheFirstOpenIsGranted) {
  const Caller zero = client0("zero");
  OpenRequest request;
  request.caller = zero;
  request.owner = raw("o");
  request.file = file(1);
  request.access = both;
  auto ticket = state->begin_open(request);
  ASSERT_TRUE(ticket);
  EXPECT_TRUE(state->records_pending());
  EXPECT_EQ(state->commit_open(std::move(*ticket), nullptr).status(), xdr::NFS4ERR_IO);
  EXPECT_EQ(state->counts().opens, 0U);
  ticket = state->begin_open(request);
  ASSERT_TRUE(state->write_records());
  EXPECT_FALSE(state->records_pending());
  EXPECT_TRUE(state->commit_open(std::move(*ticket), nullptr));
}

TEST_F(Restart, MinorVersion0ReclaimsUntilTheTimeIsOver) {
  const Caller zero = client0("zero");
  ASSERT_TRUE(open0(zero, "o", 1, file(1), both));
  client("one");
  restart();
  const Caller again = client0("zero");
  auto step = state->begin_open_owner({again.client, xdr::owner4(raw("o"))}, 1);
  auto reclaimed = reclaim(again, file(1));
  ASSERT_TRUE(reclaimed);
  EXPECT_FALSE(reclaimed->confirm);
  step.ticket.finish({0, xdr::NFS4_OK, bytes(4), nullptr});
  EXPECT_EQ(use(again, reclaimed->stateid, file(1), both), xdr::NFS4_OK);
  client("one");
  flush();
  EXPECT_TRUE(state->in_grace());
  state->end_grace();
  EXPECT_TRUE(state->in_grace());
  flush();
  EXPECT_FALSE(state->in_grace());
  EXPECT_EQ(reclaim(again, file(1)).status(), xdr::NFS4ERR_NO_GRACE);
}

TEST_F(Restart, WhoSaidGoodbyeIsForgotten) {
  const Caller one = client("one");
  ASSERT_EQ(state->destroy_session(session, false, 1), xdr::NFS4_OK);
  ASSERT_EQ(state->destroy_clientid(one.client), xdr::NFS4_OK);
  flush();
  restart();
  EXPECT_FALSE(state->in_grace());
}

TEST_F(Restart, ARestartedClientIsOnRecordOnce) {
  ASSERT_TRUE(open(client("one"), "o", file(1), both));
  const Caller second = client("one", 2);
  ASSERT_EQ(state->destroy_session(session, false, 1), xdr::NFS4_OK);
  flush();
  restart();
  EXPECT_TRUE(state->in_grace());
  EXPECT_TRUE(reclaim(connect("one", 2), file(1)));
  EXPECT_NE(second.client, 0U);
}

}  // namespace
}  // namespace selvage::server::nfs4::state
