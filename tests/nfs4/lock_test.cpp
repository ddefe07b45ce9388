// Byte-range locks: RFC 8881, 9.1 to 9.5, 18.10 to 18.12.
#include "state_fixture.h"

#include <algorithm>
#include <array>
#include <map>
#include <random>

namespace selvage::server::nfs4::state {
namespace {

constexpr std::uint64_t to_end = ~std::uint64_t{0};

class LockTest : public StateTest {
 protected:
  LockTest() {
    one = client("one");
    two = client("two");
    open1 = open(one, "o", file(1), both)->stateid;
    open2 = open(two, "o", file(1), both)->stateid;
  }
  LockStart test(const Caller& caller, std::string_view owner, xdr::nfs_lock_type4 type,
                 std::uint64_t offset, std::uint64_t length) {
    xdr::LOCKT4args args;
    args.locktype = type;
    args.offset = offset;
    args.length = length;
    args.owner.clientid = caller.client;
    args.owner.owner = xdr::owner4(raw(owner));
    return state->test_lock(caller, args, file(1));
  }
  Caller one;
  Caller two;
  stateid4 open1;
  stateid4 open2;
};

TEST_F(LockTest, DeniedTellsByWhom) {
  ASSERT_TRUE(lock(one, lock_args(open1, "l", xdr::WRITEW_LT, 100, 50), file(1)));
  auto denied = state->begin_lock(two, lock_args(open2, "m", xdr::READ_LT, 140, to_end), file(1));
  EXPECT_EQ(denied.status, xdr::NFS4ERR_DENIED);
  EXPECT_EQ(denied.denied.offset, 100U);
  EXPECT_EQ(denied.denied.length, 50U);
  EXPECT_EQ(denied.denied.locktype, xdr::WRITE_LT);
  EXPECT_EQ(denied.denied.owner.clientid, one.client);
  EXPECT_EQ(denied.denied.owner.owner, xdr::owner4(raw("l")));
  EXPECT_FALSE(denied.ticket);
  EXPECT_EQ(state->counts().lock_owners, 1U);
  // Another owner of the same client is another owner.
  EXPECT_EQ(lock(one, lock_args(open1, "m", xdr::READW_LT, 149, 1), file(1)).status(),
            xdr::NFS4ERR_DENIED);
  EXPECT_TRUE(lock(two, lock_args(open2, "m", xdr::READ_LT, 150, to_end), file(1)));
}

TEST_F(LockTest, ArgumentsAreChecked) {
  const auto status = [&](xdr::nfs_lock_type4 type, std::uint64_t offset, std::uint64_t length) {
    return status_of(lock(one, lock_args(open1, "l", type, offset, length), file(1)));
  };
  EXPECT_EQ(status(xdr::READ_LT, 0, 0), xdr::NFS4ERR_INVAL);
  EXPECT_EQ(status(xdr::READ_LT, 2, to_end - 1), xdr::NFS4ERR_INVAL);
  EXPECT_EQ(test(one, "l", xdr::READ_LT, 0, 0).status, xdr::NFS4ERR_INVAL);
  auto locked = lock(one, lock_args(open1, "l", xdr::READ_LT, 0, 1), file(1));
  EXPECT_EQ(unlock(one, *locked, 0, 0, file(1)).status(), xdr::NFS4ERR_INVAL);
  EXPECT_EQ(unlock(one, *locked, 2, to_end - 1, file(1)).status(), xdr::NFS4ERR_INVAL);
  EXPECT_EQ(unlock(one, *locked, 0, 1, file(2)).status(), xdr::NFS4ERR_BAD_STATEID);
  // An open's stateid is no lock's, and the other way round.
  EXPECT_EQ(unlock(one, open1, 0, 1, file(1)).status(), xdr::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(lock(one, relock_args(open1, xdr::READ_LT, 0, 1), file(1)).status(),
            xdr::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(lock(one, lock_args(*locked, "l", xdr::READ_LT, 0, 1), file(1)).status(),
            xdr::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(state->close(one, *locked, file(1)).status(), xdr::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(status_of(lock(two, lock_args(open1, "l", xdr::READ_LT, 0, 1), file(1))),
            xdr::NFS4ERR_BAD_STATEID);
}

TEST_F(LockTest, TheOpenMustAllowIt) {
  const stateid4 reads = open(one, "r", file(2), reading)->stateid;
  const stateid4 writes = open(one, "w", file(2), writing)->stateid;
  EXPECT_EQ(lock(one, lock_args(reads, "l", xdr::WRITE_LT, 0, 1), file(2)).status(),
            xdr::NFS4ERR_OPENMODE);
  EXPECT_EQ(lock(one, lock_args(writes, "l", xdr::READ_LT, 0, 1), file(2)).status(),
            xdr::NFS4ERR_OPENMODE);
  EXPECT_TRUE(lock(one, lock_args(reads, "l", xdr::READ_LT, 0, 1), file(2)));
}

TEST_F(LockTest, OneStateidPerLockOwnerAndFile) {
  auto first = lock(one, lock_args(open1, "l", xdr::READ_LT, 0, 10), file(1));
  EXPECT_EQ(first->seqid, 1U);
  auto again = lock(one, lock_args(open1, "l", xdr::READ_LT, 20, 10), file(1));
  EXPECT_EQ(again->other, first->other);
  EXPECT_EQ(again->seqid, 2U);
  auto more = lock(one, relock_args(*again, xdr::WRITE_LT, 5, 2), file(1));
  EXPECT_EQ(more->seqid, 3U);
  EXPECT_EQ(state->counts().locks, 4U);
  auto less = unlock(one, *more, 0, to_end, file(1));
  EXPECT_EQ(less->seqid, 4U);
  EXPECT_EQ(state->counts().locks, 0U);
  // It stays good while the file is open (RFC 8881, 8.2.4).
  EXPECT_EQ(use(one, *less, file(1), reading), xdr::NFS4_OK);
}

TEST_F(LockTest, TestsChangeNothing) {
  EXPECT_EQ(test(two, "m", xdr::WRITE_LT, 0, to_end).status, xdr::NFS4_OK);
  ASSERT_TRUE(lock(one, lock_args(open1, "l", xdr::READ_LT, 10, 10), file(1)));
  EXPECT_EQ(test(two, "m", xdr::READ_LT, 0, to_end).status, xdr::NFS4_OK);
  EXPECT_EQ(test(one, "l", xdr::WRITE_LT, 0, to_end).status, xdr::NFS4_OK);
  auto denied = test(two, "l", xdr::WRITE_LT, 19, 1);
  EXPECT_EQ(denied.status, xdr::NFS4ERR_DENIED);
  EXPECT_EQ(denied.denied.offset, 10U);
  EXPECT_EQ(denied.denied.locktype, xdr::READ_LT);
  EXPECT_EQ(state->counts().lock_owners, 1U);
}

TEST_F(LockTest, AnUncommittedLockIsUndone) {
  auto held = lock(one, lock_args(open1, "l", xdr::READ_LT, 0, 100), file(1));
  auto upgrade = state->begin_lock(one, relock_args(*held, xdr::WRITE_LT, 50, 100), file(1));
  ASSERT_EQ(upgrade.status, xdr::NFS4_OK);
  EXPECT_EQ(upgrade.range, (ByteRange{50, 149}));
  EXPECT_EQ(test(two, "m", xdr::READ_LT, 149, 1).status, xdr::NFS4ERR_DENIED);
  upgrade.ticket = LockTicket();
  EXPECT_EQ(test(two, "m", xdr::READ_LT, 0, to_end).status, xdr::NFS4_OK);
  EXPECT_EQ(test(two, "m", xdr::WRITE_LT, 99, 1).status, xdr::NFS4ERR_DENIED);
  EXPECT_EQ(test(two, "m", xdr::WRITE_LT, 100, to_end).status, xdr::NFS4_OK);
  // The kernel may have some of it: it is applied again.
  ASSERT_TRUE(state->locks_changed());
  const auto changed = state->take_changed_locks();
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0].range, (ByteRange{50, 149}));
  EXPECT_EQ(use(one, *held, file(1), reading), xdr::NFS4_OK);  // No seqid was used.

  auto fresh = state->begin_lock(two, lock_args(open2, "m", xdr::WRITE_LT, 500, 1), file(1));
  ASSERT_EQ(fresh.status, xdr::NFS4_OK);
  fresh.ticket = LockTicket();
  EXPECT_EQ(state->counts().lock_owners, 1U);
}

TEST_F(LockTest, CloseReleasesAndSaysWhatTheKernelMustDrop) {
  auto hold = std::make_shared<int>(1);
  OpenRequest request;
  request.caller = one;
  request.owner = raw("p");
  request.file = file(2);
  request.access = both;
  auto ticket = state->begin_open(request);
  auto opened = state->commit_open(std::move(*ticket), hold);
  auto locked = lock(one, lock_args(opened->stateid, "l", xdr::WRITE_LT, 10, 10), file(2));
  locked = lock(one, relock_args(*locked, xdr::READ_LT, 100, to_end), file(2));
  EXPECT_FALSE(state->locks_changed());
  ASSERT_TRUE(state->close(one, opened->stateid, file(2)));
  EXPECT_EQ(use(one, *locked, file(2), reading), xdr::NFS4ERR_BAD_STATEID);
  ASSERT_TRUE(state->locks_changed());
  auto changed = state->take_changed_locks();
  EXPECT_FALSE(state->locks_changed());
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0].file, file(2));
  EXPECT_EQ(changed[0].hold, hold);
  EXPECT_EQ(changed[0].range, (ByteRange{10, to_end}));
  EXPECT_EQ(state->lock_union(file(2), changed[0].range),
            (std::vector<LockedRange>{{{10, to_end}, LockMode::none}}));
  EXPECT_EQ(state->counts().files, 1U);
}

TEST_F(LockTest, TheUnionIsWhatAnybodyHolds) {
  ASSERT_TRUE(lock(one, lock_args(open1, "l", xdr::READ_LT, 10, 20), file(1)));
  ASSERT_TRUE(lock(two, lock_args(open2, "m", xdr::READ_LT, 20, 20), file(1)));
  ASSERT_TRUE(lock(two, lock_args(open2, "m", xdr::WRITE_LT, 40, 10), file(1)));
  EXPECT_EQ(state->lock_union(file(1), {0, 59}),
            (std::vector<LockedRange>{{{0, 9}, LockMode::none},
                                      {{10, 39}, LockMode::read},
                                      {{40, 49}, LockMode::write},
                                      {{50, 59}, LockMode::none}}));
}

TEST_F(LockTest, LocksAreBounded) {
  settings.max_locks_per_client = 4;
  start();
  one = client("one");
  open1 = open(one, "o", file(1), both)->stateid;
  auto held = lock(one, lock_args(open1, "l", xdr::READ_LT, 0, 100), file(1));
  held = lock(one, relock_args(*held, xdr::WRITE_LT, 10, 10), file(1));
  ASSERT_EQ(state->counts().locks, 3U);
  EXPECT_EQ(lock(one, relock_args(*held, xdr::WRITE_LT, 200, 1), file(1)).status(),
            xdr::NFS4ERR_DELAY);
  held = unlock(one, *held, 50, 1, file(1));
  ASSERT_TRUE(held);
  EXPECT_EQ(unlock(one, *held, 60, 1, file(1)).status(), xdr::NFS4ERR_DELAY);
  EXPECT_TRUE(unlock(one, *held, 0, 20, file(1)));
  EXPECT_EQ(state->counts().locks, 2U);
}

// Two clients with two owners each, against a mode per byte.
TEST_F(LockTest, AgreesWithAByteModel) {
  constexpr std::uint64_t bytes = 40;
  const char* const names[] = {"a", "b", "c", "d"};
  std::array<std::array<LockMode, bytes>, 4> model{};
  std::array<std::optional<stateid4>, 4> ids;
  std::mt19937 random(3);
  const auto pick = [&](std::uint64_t below) {
    return std::uniform_int_distribution<std::uint64_t>(0, below - 1)(random);
  };
  for (int step = 0; step < 5'000; ++step) {
    const std::size_t who = pick(4);
    const Caller& caller = who < 2 ? one : two;
    const std::uint64_t first = pick(bytes);
    const std::uint64_t length = pick(bytes - first) + 1;
    const std::uint64_t action = pick(4);
    if (action == 0) {
      if (!ids[who]) continue;
      ids[who] = *unlock(caller, *ids[who], first, length, file(1));
      std::fill_n(model[who].begin() + static_cast<std::ptrdiff_t>(first), length, LockMode::none);
      continue;
    }
    const LockMode mode = action == 1 ? LockMode::write : LockMode::read;
    const auto type = mode == LockMode::write ? xdr::WRITE_LT : xdr::READ_LT;
    bool denied = false;
    for (std::size_t other = 0; other < 4; ++other) {
      for (std::uint64_t i = first; other != who && i < first + length; ++i) {
        denied = denied || (model[other][i] != LockMode::none &&
                            (mode == LockMode::write || model[other][i] == LockMode::write));
      }
    }
    ASSERT_EQ(test(caller, names[who], type, first, length).status,
              denied ? xdr::NFS4ERR_DENIED : xdr::NFS4_OK);
    auto args = ids[who] ? relock_args(*ids[who], type, first, length)
                         : lock_args(who < 2 ? open1 : open2, names[who], type, first, length);
    auto locked = lock(caller, args, file(1));
    ASSERT_EQ(status_of(locked), denied ? xdr::NFS4ERR_DENIED : xdr::NFS4_OK) << step;
    if (denied) continue;
    ids[who] = *locked;
    std::fill_n(model[who].begin() + static_cast<std::ptrdiff_t>(first), length, mode);
  }
}

}  // namespace
}  // namespace selvage::server::nfs4::state
