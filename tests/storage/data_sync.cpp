// Durability: group commit, COMMIT, the write verifier, the file table's closing.
#include "tests/storage/data_fixture.h"

#include <sys/sysmacros.h>
#include <cerrno>

#include <future>
#include <set>
#include <thread>

namespace selvage::storage {
namespace {

class DataSync : public DataTest {};
class DataTable : public DataTest {};

constexpr std::chrono::seconds long_idle{3600};

TEST_F(DataSync, ThoseReadyDuringASyncShareTheNext) {
  setup().start();
  const ObjectId file = setup().make("f", 0644, 1 << 20);
  const auto hold = faults().hold_before(OpKind::sync, {.times = 1});
  std::vector<std::future<Result<WriteResult>>> writes;
  writes.push_back(setup().start_write(file, 0, pattern(5000, 0), Stability::file_sync));
  ASSERT_TRUE(hold->wait_held());
  for (unsigned n = 1; n <= 8; ++n) {
    const auto stability = n % 2 == 0 ? Stability::file_sync : Stability::data_sync;
    writes.push_back(setup().start_write(file, n * 50'000, pattern(5000, n), stability, n % 2));
  }
  // All have been written; 5000 bytes at these places are one or two segments each.
  while (counters().writes.get() < 9) std::this_thread::yield();
  for (int rounds = 0; rounds < 20; ++rounds) {
    setup().read(file, 0, 1, 0).value();
    setup().read(file, 0, 1, 1).value();
  }
  hold->release();
  for (auto& write : writes) EXPECT_EQ(write.get()->count, 5000U);
  std::vector<Op> syncs;
  for (const Op& op : faults().log()) {
    if (op.kind == OpKind::sync) syncs.push_back(op);
  }
  ASSERT_EQ(syncs.size(), 2U);
  EXPECT_EQ(syncs[0].offset, 0U);
  EXPECT_EQ(syncs[0].length, 8192U);
  EXPECT_EQ(syncs[1].flags, static_cast<int>(SyncKind::all));
  EXPECT_EQ(syncs[1].offset, 49152U);
  EXPECT_EQ(syncs[1].offset + syncs[1].length, 405504U);  // 8 * 50000 + 5000, rounded up.
  EXPECT_EQ(counters().syncs.get(), 2U);
  EXPECT_EQ(counters().syncs_shared.get(), 7U);
}

TEST_F(DataSync, OneAfterTheOtherSyncsEach) {
  setup().start();
  const ObjectId file = setup().make("f");
  for (unsigned n = 0; n < 5; ++n) {
    EXPECT_TRUE(
        setup().write(file, n * 6000, pattern(6000, n), Stability::file_sync, n % 2).has_value());
  }
  EXPECT_EQ(faults().seen(OpKind::sync), 5U);
}

TEST_F(DataSync, FailureReachesAllWhoShareItAndChangesTheVerifierOnce) {
  setup().start();
  const ObjectId file = setup().make("f", 0644, 1 << 20);
  const auto before = setup().write(file, 0, pattern(10, 0))->verifier;
  const auto hold = faults().hold_before(OpKind::sync, {.times = 1});
  auto first = setup().start_write(file, 0, pattern(5000, 0), Stability::file_sync);
  ASSERT_TRUE(hold->wait_held());
  faults().fail(OpKind::sync, EIO, {.times = 1});
  std::vector<std::future<Result<WriteResult>>> others;
  for (unsigned n = 1; n <= 4; ++n) {
    others.push_back(
        setup().start_write(file, n * 50'000, pattern(5000, n), Stability::file_sync, n % 2));
  }
  while (counters().writes.get() < 6) std::this_thread::yield();
  for (int rounds = 0; rounds < 20; ++rounds) {
    setup().read(file, 0, 1, 0).value();
    setup().read(file, 0, 1, 1).value();
  }
  hold->release();
  EXPECT_EQ(first.get()->verifier, before);
  for (auto& other : others) EXPECT_EQ(other.get().error(), errno_code(EIO));
  EXPECT_EQ(counters().verifier_changes.get(), 1U);
  EXPECT_EQ(counters().sync_errors.get(), 1U);
  const auto after = setup().write(file, 0, pattern(10, 0), Stability::file_sync);
  ASSERT_TRUE(after.has_value());
  EXPECT_NE(after->verifier, before);
}

TEST_F(DataSync, VerifierIsReadBeforeTheBytesAreWritten) {
  setup().start();
  const ObjectId file = setup().make("f");
  const ObjectId other = setup().make("g");
  const auto before = setup().write(file, 0, pattern(10, 0))->verifier;
  const auto hold = faults().hold_after(OpKind::writev, {.times = 1});
  auto held = setup().start_write(file, 0, pattern(100, 1), Stability::unstable);
  ASSERT_TRUE(hold->wait_held());
  faults().fail(OpKind::sync, EIO, {.times = 1});
  EXPECT_FALSE(setup().write(other, 0, pattern(10, 0), Stability::file_sync, 1).has_value());
  hold->release();
  EXPECT_EQ(held.get()->verifier, before);
  const auto commit = setup().commit(file);
  ASSERT_TRUE(commit.has_value());
  EXPECT_NE(commit->verifier, before);
}

TEST_F(DataSync, FailedCommitChangesTheVerifier) {
  setup().start();
  const ObjectId file = setup().make("f");
  const auto before = setup().write(file, 0, pattern(6000, 0))->verifier;
  EXPECT_EQ(setup().commit(file)->verifier, before);
  faults().fail(OpKind::sync, EIO, {.times = 1});
  EXPECT_EQ(setup().commit(file).error(), errno_code(EIO));
  const auto commit = setup().commit(file);
  ASSERT_TRUE(commit.has_value());
  EXPECT_NE(commit->verifier, before);
  EXPECT_EQ(counters().verifier_changes.get(), 1U);
}

TEST_F(DataSync, WhatLosesNothingChangesNothing) {
  setup().start();
  const ObjectId file = setup().make("f");
  const auto before = setup().write(file, 0, pattern(6000, 0))->verifier;
  for (const int error : {EAGAIN, ESTALE}) {
    faults().fail(OpKind::sync, error, {.times = 1});
    EXPECT_EQ(setup().commit(file).error(), errno_code(error));
    faults().clear();
  }
  faults().fail(OpKind::writev, EIO, {.times = 1});
  EXPECT_FALSE(setup().write(file, 0, pattern(6000, 0), Stability::file_sync).has_value());
  EXPECT_EQ(setup().commit(file)->verifier, before);
  EXPECT_EQ(counters().verifier_changes.get(), 0U);
}

TEST_F(DataSync, AfterAFailedSyncNothingIsDropped) {
  setup().start();
  const ObjectId file = setup().make("f");
  EXPECT_TRUE(setup().write(file, 0, pattern(6000, 1), Stability::file_sync).has_value());
  const auto resident = setup().resident("f");
  faults().fail(OpKind::sync, EIO, {.times = 1});
  EXPECT_FALSE(setup().write(file, 6000, pattern(6000, 2), Stability::file_sync).has_value());
  EXPECT_GT(setup().resident("f"), resident);
  EXPECT_EQ(counters().boundary_dropped.get(), 0U);
  // Sent again, both halves: the page goes, so nobody still holds it.
  EXPECT_TRUE(setup().write(file, 0, pattern(6000, 1), Stability::file_sync).has_value());
  EXPECT_TRUE(setup().write(file, 6000, pattern(6000, 2), Stability::file_sync).has_value());
  EXPECT_EQ(counters().boundary_dropped.get(), 1U);
}

TEST_F(DataSync, BytesOfAFailedSyncCompleteNoPage) {
  setup().start();
  const ObjectId file = setup().make("f");
  faults().fail(OpKind::sync, EIO, {.times = 1});
  EXPECT_FALSE(setup().write(file, 6000, pattern(6000, 2), Stability::file_sync).has_value());
  EXPECT_TRUE(setup().write(file, 0, pattern(6000, 1), Stability::file_sync).has_value());
  EXPECT_EQ(counters().boundary_completed.get(), 0U);
  EXPECT_EQ(counters().boundary_dropped.get(), 0U);
}

TEST_F(DataSync, CommitOfAnyRange) {
  setup().start();
  const ObjectId file = setup().make("f");
  EXPECT_TRUE(setup().write(file, 0, pattern(100'000, 1)).has_value());
  faults().reset_seen();
  EXPECT_TRUE(setup().commit(file, 5000, 5000).has_value());
  EXPECT_TRUE(setup().commit(file, ~std::uint64_t{0}, 5).has_value());
  EXPECT_TRUE(setup().commit(file, (std::uint64_t{1} << 63) - 2, 5).has_value());
  EXPECT_TRUE(setup().commit(file, 5000, 0).has_value());
  const auto log = faults().log();
  ASSERT_EQ(log.size(), 4U);
  EXPECT_EQ(log[0].offset, 4096U);
  EXPECT_EQ(log[0].length, 8192U);
  EXPECT_EQ(log[0].flags, static_cast<int>(SyncKind::all));
  EXPECT_EQ(log[1].length, 0U);
  EXPECT_EQ(log[2].length, 0U);
  EXPECT_EQ(log[3].offset, 4096U);
  EXPECT_EQ(log[3].length, 0U);
  EXPECT_EQ(counters().commits.get(), 4U);
}

TEST_F(DataSync, CommitOfAFileNobodyHasOpenSyncsIt) {
  setup().start();
  const ObjectId file = setup().make("f");
  EXPECT_TRUE(setup().commit(file).has_value());
  EXPECT_EQ(faults().seen(OpKind::sync), 1U);
}

TEST_F(DataTable, IdleFilesAreSyncedAndClosed) {
  setup().start();
  const ObjectId file = setup().make("f");
  const Bytes bytes = pattern(50'000, 1);
  const auto before = setup().write(file, 100, bytes)->verifier;
  setup().tend(long_idle);
  EXPECT_EQ(faults().seen(OpKind::sync), 1U);
  EXPECT_EQ(counters().files_closed.get(), 1U);
  EXPECT_EQ(setup().resident("f"), 0U);
  EXPECT_EQ(setup().commit(file)->verifier, before);
  EXPECT_EQ(counters().files_opened.get(), 2U);
  EXPECT_EQ(bytes_of(*setup().read(file, 100, 50'000)), bytes);
}

TEST_F(DataTable, WhatIsSyncedIsClosedWithoutASync) {
  setup().start();
  const ObjectId file = setup().make("f");
  EXPECT_TRUE(setup().write(file, 0, pattern(10, 1)).has_value());
  EXPECT_TRUE(setup().commit(file).has_value());
  setup().tend(long_idle);
  EXPECT_EQ(faults().seen(OpKind::sync), 1U);
  EXPECT_EQ(counters().files_closed.get(), 1U);
}

TEST_F(DataTable, FailureNobodyWaitedForIsReportedOnceByTheNextCommit) {
  setup().start();
  const ObjectId file = setup().make("f");
  const auto before = setup().write(file, 0, pattern(6000, 1))->verifier;
  faults().fail(OpKind::sync, EIO, {.times = 1});
  setup().tend(long_idle);
  EXPECT_EQ(counters().files_closed.get(), 0U);
  EXPECT_EQ(counters().verifier_changes.get(), 1U);
  setup().tend(long_idle);
  EXPECT_EQ(counters().files_closed.get(), 0U);
  EXPECT_EQ(setup().commit(file).error(), errno_code(EIO));
  const auto commit = setup().commit(file);
  ASSERT_TRUE(commit.has_value());
  EXPECT_NE(commit->verifier, before);
}

TEST_F(DataTable, FailureNobodyWaitedForIsReportedOnceByTheNextWrite) {
  setup().start();
  const ObjectId file = setup().make("f");
  EXPECT_TRUE(setup().write(file, 0, pattern(6000, 1)).has_value());
  faults().fail(OpKind::sync, ENOSPC, {.times = 1});
  setup().tend(long_idle);
  EXPECT_EQ(setup().write(file, 0, pattern(10, 1)).error(), errno_code(ENOSPC));
  EXPECT_TRUE(setup().write(file, 0, pattern(10, 1)).has_value());
}

TEST_F(DataTable, CloseReturnsTheFirstError) {
  setup().start();
  const ObjectId file = setup().make("f");
  EXPECT_TRUE(setup().write(file, 0, pattern(6000, 1)).has_value());
  faults().fail(OpKind::sync, EIO, {.times = 1});
  EXPECT_EQ(setup().close().error(), errno_code(EIO));
}

TEST_F(DataTable, StaysWithinItsBound) {
  options().max_open_files = 4;
  setup().start();
  std::vector<ObjectId> files;
  for (unsigned n = 0; n < 20; ++n) files.push_back(setup().make("f" + std::to_string(n)));
  for (unsigned round = 0; round < 3; ++round) {
    std::vector<std::future<Result<WriteResult>>> writes;
    for (unsigned n = 0; n < 20; ++n) {
      writes.push_back(setup().start_write(files[n], round * 6000, pattern(6000, n + 100 * round),
                                           Stability::unstable, n % 2));
    }
    for (auto& write : writes) EXPECT_TRUE(write.get().has_value());
    EXPECT_LE(counters().files_opened.get() - counters().files_closed.get(), 4U);
  }
  EXPECT_GE(faults().seen(OpKind::sync), 16U);
  for (unsigned n = 0; n < 20; ++n) {
    Bytes expected;
    for (unsigned round = 0; round < 3; ++round) {
      const Bytes part = pattern(6000, n + 100 * round);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    EXPECT_EQ(setup().content("f" + std::to_string(n)), expected);
  }
}

TEST_F(DataTable, ConcurrentOpensAreOne) {
  setup().start();
  const ObjectId file = setup().make("f");
  std::vector<std::future<Result<WriteResult>>> writes;
  for (unsigned n = 0; n < 16; ++n) {
    writes.push_back(
        setup().start_write(file, n * 6000, pattern(6000, n), Stability::unstable, n % 2));
  }
  for (auto& write : writes) EXPECT_TRUE(write.get().has_value());
  EXPECT_EQ(counters().files_opened.get(), 1U);
  std::set<int> descriptors;
  for (const Op& op : faults().log()) descriptors.insert(op.fd);
  EXPECT_EQ(descriptors.size(), 2U);
}

TEST_F(DataTable, OnlyRegularFilesAreOpened) {
  setup().start();
  ASSERT_EQ(::mkdir((setup() / "d").c_str(), 0755), 0);
  ASSERT_EQ(::mkfifo((setup() / "p").c_str(), 0644), 0);
  ASSERT_EQ(::mknod((setup() / "c").c_str(), S_IFCHR | 0644, makedev(1, 3)), 0);
  ASSERT_EQ(::symlink("d", (setup() / "l").c_str()), 0);
  EXPECT_EQ(setup().read(setup().id("d"), 0, 1).error(), errno_code(EISDIR));
  for (const char* name : {"p", "c", "l"}) {
    EXPECT_EQ(setup().read(setup().id(name), 0, 1).error(), errno_code(EINVAL));
    EXPECT_EQ(setup().write(setup().id(name), 0, pattern(1, 1)).error(), errno_code(EINVAL));
  }
  EXPECT_EQ(counters().files_opened.get(), 0U);
}

TEST_F(DataTable, RemovedFilesAreStaleAtOnceAndNotSynced) {
  setup().start();
  const ObjectId file = setup().make("f");
  EXPECT_TRUE(setup().write(file, 0, pattern(100'000, 1)).has_value());
  ASSERT_EQ(::unlink((setup() / "f").c_str()), 0);
  Worker& worker = setup().runtime->worker(1);
  run_on(worker, [&]() -> Awaitable<bool> {
    co_await setup().data->files().forget(worker, file);
    co_return true;
  });
  EXPECT_EQ(counters().files_closed.get(), 1U);
  EXPECT_EQ(setup().read(file, 0, 1).error(), errno_code(ESTALE));
  EXPECT_EQ(setup().write(file, 0, pattern(1, 1)).error(), errno_code(ESTALE));
  EXPECT_EQ(setup().commit(file).error(), errno_code(ESTALE));
  EXPECT_EQ(faults().seen(OpKind::sync), 0U);
}

TEST_F(DataTable, FilesRemovedByOthersAreStale) {
  setup().start();
  const ObjectId file = setup().make("f");
  EXPECT_TRUE(setup().write(file, 0, pattern(10, 1)).has_value());
  ASSERT_EQ(::unlink((setup() / "f").c_str()), 0);
  EXPECT_EQ(setup().read(file, 0, 1).error(), errno_code(ESTALE));
  EXPECT_EQ(setup().write(file, 0, pattern(1, 1)).error(), errno_code(ESTALE));
}

TEST_F(DataTable, ReadOnlyExport) {
  options().read_only = true;
  setup().start();
  const ObjectId file = setup().make("f", 0644, 100);
  EXPECT_EQ(setup().write(file, 0, pattern(1, 1)).error(), errno_code(EROFS));
  EXPECT_EQ(setup().read(file, 0, 200)->data.size(), 100U);
}

TEST_F(DataTable, RightsAreTheKernels) {
  setup().start();
  const ObjectId secret = setup().make("secret", 0600, 100);
  const ObjectId program = setup().make("program", 0711, 100);
  const ObjectId group = setup().make("group", 0060, 100);
  const ObjectId own = setup().make("own", 0000, 100);
  ASSERT_EQ(::chmod(setup().path.c_str(), 0755), 0);
  ASSERT_EQ(::chown((setup() / "group").c_str(), 0, 4321), 0);
  ASSERT_EQ(::chown((setup() / "own").c_str(), 1234, 1234), 0);
  setup().credentials = {1234, 1234, {}};
  const Bytes byte = pattern(1, 1);
  EXPECT_EQ(setup().read(secret, 0, 1).error(), errno_code(EACCES));
  EXPECT_EQ(setup().write(secret, 0, byte).error(), errno_code(EACCES));
  EXPECT_EQ(setup().commit(secret).error(), errno_code(EACCES));
  EXPECT_TRUE(setup().read(program, 0, 1).has_value());
  EXPECT_EQ(setup().write(program, 0, byte).error(), errno_code(EACCES));
  EXPECT_EQ(setup().write(group, 0, byte).error(), errno_code(EACCES));
  EXPECT_TRUE(setup().read(own, 0, 1).has_value());
  EXPECT_TRUE(setup().write(own, 0, byte).has_value());
  setup().credentials = {1234, 1234, {4321}};
  EXPECT_TRUE(setup().write(group, 0, byte).has_value());
  // A change through the server counts at once.
  ASSERT_EQ(::chmod((setup() / "secret").c_str(), 0666), 0);
  Worker& worker = setup().runtime->worker(0);
  const auto opened =
      run_on(worker, [&] { return setup().data->files().open(worker, secret, OpenFor::reading); });
  opened.value()->attributes_changed();
  EXPECT_TRUE(setup().read(secret, 0, 1).has_value());
}

}  // namespace
}  // namespace selvage::storage
