// What all state together may take (Options::max_state_bytes).
#include "state_fixture.h"

#include <string>
#include <vector>

namespace selvage::server::nfs4::state {
namespace {

class MemoryTest : public StateTest {
 protected:
  static constexpr std::size_t limit = 256 << 10;
  MemoryTest() {
    settings.max_state_bytes = limit;
    start();
  }
  /// Opens another file until it is refused; the status.
  nfsstat4 fill(const Caller& caller, std::vector<std::pair<stateid4, FileKey>>& opens) {
    for (std::uint32_t i = 0; i < 100'000; ++i) {
      const std::string bytes = std::to_string(opens.size());
      const FileKey key{1, storage::ObjectId(1, raw(bytes))};
      const auto opened = open(caller, "o", key, both);
      EXPECT_LE(state->counts().state_bytes, limit);
      if (!opened) return opened.status();
      opens.emplace_back(opened->stateid, key);
    }
    return xdr::NFS4_OK;
  }
};

TEST_F(MemoryTest, NewStateIsRefusedAtTheBoundAndOldStateStays) {
  const Caller one = client("one");
  const Caller old = client0("old");
  std::vector<std::pair<stateid4, FileKey>> opens;
  EXPECT_EQ(fill(one, opens), xdr::NFS4ERR_DELAY);
  EXPECT_GT(opens.size(), 50U);
  EXPECT_EQ(open0(old, "p", 1, file(1), both).status(), xdr::NFS4ERR_RESOURCE);
  EXPECT_EQ(exchange("another").status(), xdr::NFS4ERR_DELAY);
  EXPECT_EQ(use(one, opens.front().first, opens.front().second, both), xdr::NFS4_OK);
  // What goes makes room.
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(state->close(one, opens.back().first, opens.back().second));
    opens.pop_back();
  }
  EXPECT_EQ(status_of(open0(old, "p", 1, file(1), both)), xdr::NFS4_OK);
}

TEST_F(MemoryTest, LocksCount) {
  const Caller one = client("one");
  const auto opened = open(one, "o", file(1), both);
  auto held = lock(one, lock_args(opened->stateid, "l", xdr::WRITE_LT, 0, 1), file(1));
  ASSERT_TRUE(held);
  nfsstat4 status = xdr::NFS4_OK;
  std::uint64_t at = 0;
  while (status == xdr::NFS4_OK && at < 200'000) {
    at += 2;
    const auto more = lock(one, relock_args(*held, xdr::WRITE_LT, at, 1), file(1));
    status = status_of(more);
    if (more) held = more;
    ASSERT_LE(state->counts().state_bytes, limit);
  }
  EXPECT_EQ(status, xdr::NFS4ERR_DELAY);
  EXPECT_GT(at, 200U);
  held = unlock(one, *held, 0, 1000, file(1));
  ASSERT_TRUE(held);
  EXPECT_EQ(status_of(lock(one, relock_args(*held, xdr::WRITE_LT, at, 1), file(1))), xdr::NFS4_OK);
}

TEST_F(MemoryTest, NothingIsCountedForLongerThanItIsHeld) {
  client0("old");
  const Caller one = client("one");
  const std::size_t before = state->counts().state_bytes;
  EXPECT_GT(before, 0U);
  for (int round = 0; round < 3; ++round) {
    const auto opened = open(one, "o", file(1), both);
    auto held = lock(one, lock_args(opened->stateid, "l", xdr::WRITE_LT, 10, 10), file(1));
    ASSERT_TRUE(held);
    held = lock(one, relock_args(*held, xdr::READ_LT, 12, 3), file(1));
    ASSERT_TRUE(held);
    EXPECT_GT(state->counts().state_bytes, before);
    if (round == 0) {
      held = unlock(one, *held, 0, 100, file(1));
      ASSERT_TRUE(held);
      EXPECT_EQ(state->free_stateid(one, *held), xdr::NFS4_OK);
    }
    ASSERT_TRUE(state->close(one, opened->stateid, file(1)));
    EXPECT_EQ(state->counts().state_bytes, before);
  }
  ASSERT_TRUE(open(one, "o", file(1), both));
  state->drop_export(1);
  EXPECT_EQ(state->counts().state_bytes, before);
}

TEST_F(MemoryTest, ExpiredClientsAreGivenUpForOthers) {
  const Caller one = client("one");
  std::vector<std::pair<stateid4, FileKey>> opens;
  EXPECT_EQ(fill(one, opens), xdr::NFS4ERR_DELAY);
  pass(settings.lease_time + std::chrono::seconds(2));
  const Caller two = client("two");
  EXPECT_EQ(status_of(open(two, "o", file(1), both)), xdr::NFS4_OK);
  EXPECT_EQ(state->counts().clients, 1U);
  EXPECT_EQ(use(one, opens.front().first, opens.front().second, both), xdr::NFS4ERR_BAD_STATEID);
}

TEST_F(MemoryTest, ALongerLeaseHoldsAtOnce) {
  const Caller one = client("one");
  ASSERT_TRUE(open(one, "o", file(1), both, xdr::OPEN4_SHARE_DENY_BOTH));
  state->lengthen_lease(2 * settings.lease_time);
  pass(settings.lease_time + std::chrono::seconds(2));
  const Caller two = client("two");
  EXPECT_EQ(open(two, "o", file(1), both).status(), xdr::NFS4ERR_SHARE_DENIED);
  pass(settings.lease_time);
  EXPECT_EQ(status_of(open(client("two", 2), "o", file(1), both)), xdr::NFS4_OK);
}

}  // namespace
}  // namespace selvage::server::nfs4::state
