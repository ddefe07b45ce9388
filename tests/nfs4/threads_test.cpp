// Many threads at one state: of use with ThreadSanitizer, and nothing is left at the end.
#include "state_fixture.h"

#include <thread>
#include <vector>

namespace selvage::server::nfs4::state {
namespace {

TEST_F(StateTest, ManyThreads) {
  Directory directory;
  start(directory.path());
  std::vector<Caller> callers;
  std::vector<sessionid4> sessions;
  for (const char* name : {"a", "b", "c", "d"}) {
    callers.push_back(connect(name));
    sessions.push_back(session);
  }
  std::atomic<int> granted = 0;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < callers.size(); ++i) {
    threads.emplace_back([this, i, &callers, &sessions, &granted] {
      const Caller caller = callers[i];
      ASSERT_EQ(state->reclaim_complete(caller, {}), xdr::NFS4_OK);
      for (std::uint32_t round = 1; round <= 200; ++round) {
        xdr::SEQUENCE4args args;
        args.sa_sessionid = sessions[i];
        args.sa_sequenceid = round;
        args.sa_cachethis = true;
        auto sequenced = state->sequence(args, {round, 100, 3, i});
        ASSERT_EQ(sequenced.kind, Sequenced::Kind::execute);
        const FileKey key = file(static_cast<std::uint8_t>(round % 3));
        const bool denies = round % 5 == 0;
        auto opened = open(caller, "o", key, both, denies ? xdr::OPEN4_SHARE_DENY_WRITE : none);
        if (opened) {
          ++granted;
          auto locked =
              lock(caller, lock_args(opened->stateid, "l", xdr::WRITE_LT, round % 7, 3), key);
          if (locked) {
            EXPECT_TRUE(unlock(caller, *locked, 0, ~0ULL, key));
          }
          EXPECT_FALSE(state->lock_union(key, {}).empty());
          EXPECT_TRUE(state->close(caller, opened->stateid, key));
        }
        sequenced.ticket.finish(bytes(50));
        state->tick();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(granted, 200);
  const Counts counts = state->counts();
  EXPECT_EQ(counts.opens, 0U);
  EXPECT_EQ(counts.locks, 0U);
  EXPECT_EQ(counts.files, 0U);
  EXPECT_EQ(counts.open_owners + counts.lock_owners, 0U);
}

}  // namespace
}  // namespace selvage::server::nfs4::state
