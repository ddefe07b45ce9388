// Opens, share reservations, stateids: RFC 8881, 8.2, 9.7, 18.2, 18.16, 18.18, 18.38, 18.48.
#include "state_fixture.h"

#include <map>
#include <random>

namespace selvage::server::nfs4::state {
namespace {

constexpr std::uint32_t deny_read = xdr::OPEN4_SHARE_DENY_READ;
constexpr std::uint32_t deny_write = xdr::OPEN4_SHARE_DENY_WRITE;
constexpr std::uint32_t deny_both = xdr::OPEN4_SHARE_DENY_BOTH;

class OpenTest : public StateTest {
 protected:
  OpenTest() {
    one = client("one");
    two = client("two");
  }
  Caller one;
  Caller two;
};

TEST_F(OpenTest, OneStateidPerOwnerAndFile) {
  auto first = open(one, "o", file(1), reading);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->stateid.seqid, 1U);
  EXPECT_FALSE(first->confirm);
  auto upgraded = open(one, "o", file(1), writing, deny_write);
  ASSERT_TRUE(upgraded);
  EXPECT_EQ(upgraded->stateid.other, first->stateid.other);
  EXPECT_EQ(upgraded->stateid.seqid, 2U);
  EXPECT_EQ(upgraded->access, both);
  EXPECT_EQ(upgraded->deny, deny_write);
  EXPECT_NE(open(one, "p", file(1), reading)->stateid.other, first->stateid.other);
  EXPECT_NE(open(one, "o", file(2), reading)->stateid.other, first->stateid.other);
  EXPECT_EQ(state->counts().opens, 3U);
  EXPECT_EQ(state->counts().open_owners, 2U);
}

TEST_F(OpenTest, ShareArgumentsAreChecked) {
  EXPECT_EQ(open(one, "o", file(1), 0).status(), xdr::NFS4ERR_INVAL);
  EXPECT_EQ(open(one, "o", file(1), 4).status(), xdr::NFS4ERR_INVAL);
  EXPECT_EQ(open(one, "o", file(1), reading, 4).status(), xdr::NFS4ERR_INVAL);
  EXPECT_EQ(open({1, 99}, "o", file(1), reading).status(), xdr::NFS4ERR_STALE_CLIENTID);
  EXPECT_EQ(state->counts().open_owners, 0U);
  EXPECT_EQ(state->counts().files, 0U);
}

// Every combination of two opens, by the rule of RFC 8881, 9.7.
TEST_F(OpenTest, EveryPairOfShares) {
  for (std::uint32_t i = 0; i < 12 * 12; ++i) {
    const std::uint32_t access = i % 3 + 1, deny = i / 3 % 4;
    const std::uint32_t access2 = i / 12 % 3 + 1, deny2 = i / 36;
    auto first = open(one, "o", file(1), access, deny);
    ASSERT_TRUE(first);
    const bool denied = (access2 & deny) != 0 || (access & deny2) != 0;
    auto second = open(two, "o", file(1), access2, deny2);
    ASSERT_EQ(status_of(second), denied ? xdr::NFS4ERR_SHARE_DENIED : xdr::NFS4_OK) << i;
    // Nor is the same client's other owner let through, nor the same owner (RFC 7530, 9.9).
    if (denied) {
      ASSERT_EQ(open(one, "p", file(1), access2, deny2).status(), xdr::NFS4ERR_SHARE_DENIED);
      ASSERT_EQ(open(one, "o", file(1), access2, deny2).status(), xdr::NFS4ERR_SHARE_DENIED);
    }
    start();
    one = client("one");
    two = client("two");
  }
}

TEST_F(OpenTest, APendingOpenIsReserved) {
  OpenRequest request;
  request.caller = one;
  request.owner = raw("o");
  request.file = file(1);
  request.access = writing;
  request.deny = deny_both;
  auto pending = state->begin_open(request);
  ASSERT_TRUE(pending);
  EXPECT_EQ(open(two, "o", file(1), reading).status(), xdr::NFS4ERR_SHARE_DENIED);
  EXPECT_EQ(use(two, stateid4{}, file(1), reading), xdr::NFS4ERR_LOCKED);
  *pending = OpenTicket();
  EXPECT_EQ(state->counts().files, 0U);
  EXPECT_EQ(state->counts().open_owners, 0U);
  EXPECT_TRUE(open(two, "o", file(1), reading));
}

TEST_F(OpenTest, AClientThatGoesTakesItsPendingOpens) {
  OpenRequest request;
  request.caller = one;
  request.owner = raw("o");
  request.file = file(1);
  request.access = writing;
  auto pending = state->begin_open(request);
  ASSERT_TRUE(pending);
  client("one", 2);
  auto hold = std::make_shared<int>(1);
  EXPECT_EQ(state->commit_open(std::move(*pending), hold).status(), xdr::NFS4ERR_EXPIRED);
  EXPECT_EQ(hold.use_count(), 1);
  EXPECT_EQ(state->counts().files, 0U);
}

TEST_F(OpenTest, TheFileIsHeldFromTheFirstOpenToTheLastClose) {
  auto hold = std::make_shared<int>(1);
  auto unneeded = std::make_shared<int>(2);
  OpenRequest request;
  request.caller = one;
  request.owner = raw("o");
  request.file = file(1);
  request.access = reading;
  auto ticket = state->begin_open(request);
  EXPECT_EQ(state->hold(*ticket), nullptr);
  auto first = state->commit_open(std::move(*ticket), hold);
  request.caller = two;
  ticket = state->begin_open(request);
  EXPECT_EQ(state->hold(*ticket), hold);
  auto second = state->commit_open(std::move(*ticket), unneeded);
  EXPECT_EQ(unneeded.use_count(), 1);
  EXPECT_EQ(state->use_stateid(two, second->stateid, file(1), reading)->hold, hold);
  EXPECT_EQ(state->use_stateid(two, {}, file(1), reading)->hold, hold);
  EXPECT_TRUE(state->close(one, first->stateid, file(1)));
  EXPECT_EQ(hold.use_count(), 2);
  EXPECT_TRUE(state->close(two, second->stateid, file(1)));
  EXPECT_EQ(hold.use_count(), 1);
  EXPECT_EQ(state->counts().files, 0U);
}

TEST_F(OpenTest, DowngradeOnlyToWhatWasOpened) {
  auto opened = open(one, "o", file(1), both, deny_write);
  std::uint8_t which = 1;
  const auto downgrade = [&](std::uint32_t access, std::uint32_t deny) {
    auto result = state->open_downgrade(one, opened->stateid, file(which), access, deny);
    if (result) opened->stateid = *result;
    return status_of(result);
  };
  EXPECT_EQ(downgrade(reading, deny_write), xdr::NFS4ERR_INVAL);
  EXPECT_EQ(downgrade(both, none), xdr::NFS4ERR_INVAL);
  EXPECT_EQ(downgrade(both, deny_write), xdr::NFS4_OK);
  EXPECT_EQ(downgrade(0, deny_write), xdr::NFS4ERR_INVAL);
  opened = open(one, "o", file(1), reading, none);
  EXPECT_EQ(downgrade(reading, none), xdr::NFS4_OK);
  EXPECT_EQ(use(one, opened->stateid, file(1), writing), xdr::NFS4ERR_OPENMODE);
  EXPECT_TRUE(open(two, "o", file(1), writing));
  EXPECT_EQ(downgrade(both, deny_write), xdr::NFS4ERR_INVAL);
  // A union of some of them.
  which = 2;
  opened = open(one, "p", file(2), reading, none);
  opened = open(one, "p", file(2), reading, deny_write);
  EXPECT_EQ(downgrade(reading, deny_both), xdr::NFS4ERR_INVAL);
  EXPECT_EQ(downgrade(reading, deny_write), xdr::NFS4_OK);
  EXPECT_EQ(downgrade(reading, none), xdr::NFS4_OK);
  EXPECT_EQ(downgrade(reading, deny_write), xdr::NFS4ERR_INVAL);
}

TEST_F(OpenTest, CloseGivesAStateidThatNothingAccepts) {
  auto opened = open(one, "o", file(1), reading);
  auto closed = state->close(one, opened->stateid, file(1));
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->seqid, ~0U);
  EXPECT_EQ(use(one, *closed, file(1), reading), xdr::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(state->close(one, opened->stateid, file(1)).status(), xdr::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(state->counts().open_owners, 0U);
}

TEST_F(OpenTest, SeqidsOfStateids) {
  auto opened = open(one, "o", file(1), reading);
  const stateid4 old = opened->stateid;
  opened = open(one, "o", file(1), reading);
  stateid4 current = opened->stateid;
  EXPECT_EQ(use(one, current, file(1), reading), xdr::NFS4_OK);
  EXPECT_EQ(use(one, old, file(1), reading), xdr::NFS4ERR_OLD_STATEID);
  current.seqid = 0;
  EXPECT_EQ(use(one, current, file(1), reading), xdr::NFS4_OK);
  current.seqid = 3;
  EXPECT_EQ(use(one, current, file(1), reading), xdr::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(state->close(one, old, file(1)).status(), xdr::NFS4ERR_OLD_STATEID);
}

TEST_F(OpenTest, BadStateids) {
  auto opened = open(one, "o", file(1), both);
  EXPECT_EQ(use(one, opened->stateid, file(2), reading), xdr::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(use(two, opened->stateid, file(1), reading), xdr::NFS4ERR_BAD_STATEID);
  for (std::size_t i = 0; i < xdr::NFS4_OTHER_SIZE; ++i) {
    stateid4 bad = opened->stateid;
    bad.other[i] ^= 0x80;
    EXPECT_EQ(use(one, bad, file(1), reading), xdr::NFS4ERR_BAD_STATEID) << i;
  }
  for (const stateid4& special : {stateid4{}, [] {
                                    stateid4 ones;
                                    ones.seqid = ~0U;
                                    ones.other.fill(0xff);
                                    return ones;
                                  }()}) {
    EXPECT_EQ(state->close(one, special, file(1)).status(), xdr::NFS4ERR_BAD_STATEID);
    EXPECT_EQ(state->free_stateid(one, special), xdr::NFS4ERR_BAD_STATEID);
  }
}

TEST_F(OpenTest, StaleStateidsOfMinorVersion0) {
  const Caller zero = client0("zero");
  auto opened = open0(zero, "o", 1, file(1), both);
  stateid4 id = confirm_open(opened->stateid, 2, file(1));
  stateid4 bad = id;
  bad.other[11] ^= 1;
  EXPECT_EQ(use(zero, bad, file(1), reading), xdr::NFS4ERR_BAD_STATEID);
  stateid4 stale = id;
  stale.other[0] ^= 1;
  EXPECT_EQ(use(zero, stale, file(1), reading), xdr::NFS4ERR_STALE_STATEID);
  id.seqid = 0;  // Is not special here.
  EXPECT_EQ(use(zero, id, file(1), reading), xdr::NFS4ERR_OLD_STATEID);
}

TEST_F(OpenTest, SpecialStateidsMeetDenyModes) {
  stateid4 ones;
  ones.seqid = ~0U;
  ones.other.fill(0xff);
  EXPECT_EQ(use(two, {}, file(1), both), xdr::NFS4_OK);
  ASSERT_TRUE(open(one, "o", file(1), reading, deny_read));
  EXPECT_EQ(use(two, {}, file(1), reading), xdr::NFS4ERR_LOCKED);
  EXPECT_EQ(use(two, {}, file(1), writing), xdr::NFS4_OK);
  EXPECT_EQ(use(two, ones, file(1), reading), xdr::NFS4_OK);
  ASSERT_TRUE(open(one, "o", file(2), reading, deny_write));
  EXPECT_EQ(use(two, {}, file(2), writing), xdr::NFS4ERR_LOCKED);
  EXPECT_EQ(use(two, ones, file(2), writing), xdr::NFS4ERR_LOCKED);
  EXPECT_TRUE(state->use_stateid(two, ones, file(1), reading)->special);
}

TEST_F(OpenTest, AccessIsThatOfTheOpen) {
  auto opened = open(one, "o", file(1), reading);
  EXPECT_EQ(use(one, opened->stateid, file(1), writing), xdr::NFS4ERR_OPENMODE);
  EXPECT_EQ(use(one, opened->stateid, file(1), 0), xdr::NFS4_OK);
  EXPECT_EQ(state->use_stateid(one, opened->stateid, file(1), reading)->client, one.client);
  auto locked = lock(one, lock_args(opened->stateid, "l", xdr::READ_LT, 0, 1), file(1));
  ASSERT_TRUE(locked);
  EXPECT_EQ(use(one, *locked, file(1), reading), xdr::NFS4_OK);
  EXPECT_EQ(use(one, *locked, file(1), writing), xdr::NFS4ERR_OPENMODE);
}

TEST_F(OpenTest, TestAndFreeStateids) {
  auto opened = open(one, "o", file(1), both);
  auto locked = lock(one, lock_args(opened->stateid, "l", xdr::WRITE_LT, 0, 10), file(1));
  stateid4 old = *locked;
  locked = lock(one, relock_args(*locked, xdr::WRITE_LT, 20, 5), file(1));
  stateid4 unknown = *locked;
  unknown.other[11] ^= 0x40;
  stateid4 any = *locked;
  any.seqid = 0;
  const stateid4 ids[] = {opened->stateid, *locked, old, unknown, any, {}};
  EXPECT_EQ(
      state->test_stateids(one, ids),
      (std::vector<nfsstat4>{xdr::NFS4_OK, xdr::NFS4_OK, xdr::NFS4ERR_OLD_STATEID,
                             xdr::NFS4ERR_BAD_STATEID, xdr::NFS4_OK, xdr::NFS4ERR_BAD_STATEID}));
  EXPECT_EQ(state->test_stateids(two, ids)[0], xdr::NFS4ERR_BAD_STATEID);

  EXPECT_EQ(state->free_stateid(one, opened->stateid), xdr::NFS4ERR_LOCKS_HELD);
  EXPECT_EQ(state->free_stateid(one, *locked), xdr::NFS4ERR_LOCKS_HELD);
  locked = unlock(one, *locked, 0, ~0ULL, file(1));
  EXPECT_EQ(state->free_stateid(one, old), xdr::NFS4ERR_OLD_STATEID);
  EXPECT_EQ(state->free_stateid(one, *locked), xdr::NFS4_OK);
  EXPECT_EQ(state->free_stateid(one, *locked), xdr::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(state->counts().lock_owners, 0U);
}

TEST_F(OpenTest, OpensAreBounded) {
  settings.max_opens_per_client = 2;
  start();
  one = client("one");
  auto first = open(one, "o", file(1), reading);
  ASSERT_TRUE(open(one, "o", file(2), reading));
  EXPECT_EQ(open(one, "o", file(3), reading).status(), xdr::NFS4ERR_DELAY);
  ASSERT_TRUE(state->close(one, first->stateid, file(1)));
  EXPECT_TRUE(open(one, "o", file(3), reading));
}

// Random opens, downgrades and closes against a list of (owner, access, deny) per file.
TEST_F(OpenTest, AgreesWithASimpleModel) {
  struct Share {
    std::uint32_t access = 0;
    std::uint32_t deny = 0;
    stateid4 id;
  };
  std::map<std::pair<int, int>, Share> model;  // Owner, file.
  const char* const names[] = {"a", "b", "c", "d"};
  std::mt19937 random(9);
  const auto pick = [&](int below) {
    return std::uniform_int_distribution<int>(0, below - 1)(random);
  };
  for (int step = 0; step < 5'000; ++step) {
    const int owner = pick(4), which = pick(3);
    const Caller caller = owner < 2 ? one : two;
    const FileKey key = file(static_cast<std::uint8_t>(which));
    const auto access = static_cast<std::uint32_t>(pick(3) + 1);
    const auto deny = static_cast<std::uint32_t>(pick(10) < 6 ? 0 : pick(4));
    const auto found = model.find({owner, which});
    if (pick(3) != 0) {
      bool denied = false;
      for (const auto& [at, share] : model) {
        if (at.second == which) {
          denied = denied || (access & share.deny) != 0 || (share.access & deny) != 0;
        }
      }
      auto opened = open(caller, names[owner], key, access, deny);
      ASSERT_EQ(status_of(opened), denied ? xdr::NFS4ERR_SHARE_DENIED : xdr::NFS4_OK) << step;
      if (denied) continue;
      Share& share = model[{owner, which}];
      share.access |= access;
      share.deny |= deny;
      share.id = opened->stateid;
      ASSERT_EQ(opened->access, share.access);
      ASSERT_EQ(opened->deny, share.deny);
    } else if (found != model.end() && pick(2) == 0) {
      auto narrowed = state->open_downgrade(caller, found->second.id, key, access, deny);
      if (!narrowed) continue;
      ASSERT_EQ(access & ~found->second.access, 0U);
      ASSERT_EQ(deny & ~found->second.deny, 0U);
      found->second = {access, deny, *narrowed};
    } else if (found != model.end()) {
      ASSERT_TRUE(state->close(caller, found->second.id, key));
      model.erase(found);
    }
    ASSERT_EQ(state->counts().opens, model.size());
  }
}

}  // namespace
}  // namespace selvage::server::nfs4::state
