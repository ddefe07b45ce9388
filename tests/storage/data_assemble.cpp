// Edge mode `assemble` over a real file: what becomes of the bytes in memory when something happens
// to the file, and what is said of it meanwhile.
#include "tests/storage/data_fixture.h"

#include <sys/vfs.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace selvage::storage {
namespace {

class DataAssemble : public DataTest {
 protected:
  void SetUp() override {
    DataTest::SetUp();
    if (IsSkipped()) return;
    options().edges = EdgeMode::assemble;
    // Nothing goes to the device by itself.
    options().write_back_seconds = 3600;
    options().idle_close_seconds = 3600;
  }

  struct stat status(const std::string& name) {
    struct stat status{};
    EXPECT_EQ(::stat((setup() / name).c_str(), &status), 0);
    return status;
  }

  /// As SETATTR(size) does it.
  void truncate(const ObjectId& id, std::uint64_t size) {
    Worker& worker = setup().runtime->worker(0);
    const bool done = run_on(worker, [&]() -> Awaitable<bool> {
      auto file = co_await setup().data->files().open(worker, id, OpenFor::writing);
      if (file.has_error()) co_return false;
      const File::Work work = [&]() -> Awaitable<Result<>> {
        if (::ftruncate((*file)->fd(), static_cast<off_t>(size)) != 0) {
          co_return errno_code(errno);
        }
        co_return Result<>();
      };
      const auto changed = co_await (*file)->exclusive(worker, work);
      (*file)->attributes_changed();
      co_return changed.has_value();
    });
    EXPECT_TRUE(done);
  }
};

Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

TEST_F(DataAssemble, MemoryRunsOutForTheOldestPagesFirst) {
  constexpr std::size_t pages = 32;
  options().max_edge_bytes = pages * 4096;
  setup().start();
  const ObjectId idle = setup().make("idle");
  const ObjectId busy = setup().make("busy");
  const auto in_memory = [&](const std::string& name) {
    const auto edges = setup().data->edges(8);
    return std::ranges::any_of(
        edges, [&](const FileEdges& file) { return file.path.ends_with(name) && file.pages != 0; });
  };
  // Each leaves one partial page.
  std::uint64_t at = 0;
  const auto write = [&](const ObjectId& file, std::size_t times) {
    for (std::size_t i = 0; i < times; ++i, at += 8192) {
      ASSERT_TRUE(setup().write(file, at, pattern(100, i)).has_value());
    }
  };
  write(idle, 12);
  write(busy, 16);
  EXPECT_TRUE(in_memory("/idle"));
  EXPECT_TRUE(in_memory("/busy"));
  write(busy, 1);  // More than seven eighths of the memory is in use.
  EXPECT_FALSE(in_memory("/idle"));
  EXPECT_TRUE(in_memory("/busy"));
  // With nobody else to take from it writes out its own, and goes on.
  write(busy, 60);
  ASSERT_TRUE(setup().commit(idle).has_value());
  ASSERT_TRUE(setup().commit(busy).has_value());
  const Bytes content = setup().content("busy");
  ASSERT_EQ(content.size(), at - 8192 + 100);
  EXPECT_EQ(Bytes(content.end() - 100, content.end()), pattern(100, 59));
  EXPECT_EQ(Bytes(content.begin() + 12 * 8192, content.begin() + 12 * 8192 + 100), pattern(100, 0));
}

TEST_F(DataAssemble, ReadsSeeWhatIsInMemory) {
  setup().start();
  const ObjectId file = setup().make("f");
  const Bytes first = pattern(6000, 1);
  const Bytes second = pattern(1000, 2);
  ASSERT_TRUE(setup().write(file, 0, first).has_value());
  const auto written = setup().write(file, 6000, second);
  ASSERT_TRUE(written.has_value());
  EXPECT_EQ(written->after.size, 7000U);
  EXPECT_EQ(status("f").st_size, 4096) << "the tail is not in memory: the test shows nothing";
  const auto found = setup().read(file, 0, 10'000);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(bytes_of(*found), first + second);
  EXPECT_TRUE(found->eof);
  EXPECT_EQ(found->after.size, 7000U);
  // Over old bytes of the device as well.
  const ObjectId old = setup().make("old", 0644, 12'000);
  setup().fill("old", pattern(12'000, 3));
  ASSERT_TRUE(setup().write(old, 5000, second).has_value());
  Bytes expected = pattern(12'000, 3);
  std::ranges::copy(second, expected.begin() + 5000);
  EXPECT_EQ(bytes_of(*setup().read(old, 0, 12'000)), expected);
}

TEST_F(DataAssemble, StableWritesAreSyncedAsAsked) {
  setup().start();
  const ObjectId file = setup().make("f");
  ASSERT_TRUE(setup().write(file, 0, pattern(6000, 1)).has_value());
  EXPECT_EQ(faults().seen(OpKind::sync), 0U);
  ASSERT_TRUE(setup().write(file, 6000, pattern(6000, 2), Stability::data_sync).has_value());
  ASSERT_TRUE(setup().write(file, 12'000, pattern(6000, 3), Stability::file_sync).has_value());
  ASSERT_TRUE(setup().commit(file).has_value());
  std::vector<int> kinds;
  for (const Op& op : faults().log()) {
    if (op.kind == OpKind::sync) kinds.push_back(op.flags);
  }
  EXPECT_EQ(kinds,
            (std::vector<int>{static_cast<int>(SyncKind::data), static_cast<int>(SyncKind::all),
                              static_cast<int>(SyncKind::all)}));
}

TEST_F(DataAssemble, AFailedWriteChangesTheVerifier) {
  setup().start();
  const ObjectId file = setup().make("f");
  const auto before = setup().write(file, 0, pattern(6000, 1));
  ASSERT_TRUE(before.has_value());
  faults().fail(OpKind::writev, EIO, {.times = 1});
  EXPECT_EQ(setup().write(file, 6000, pattern(6000, 2), Stability::file_sync).error(),
            errno_code(EIO));
  const auto committed = setup().commit(file);
  ASSERT_TRUE(committed.has_value());
  EXPECT_NE(committed->verifier, before->verifier) << "its bytes shared a page with lost ones";
}

TEST_F(DataAssemble, AFailedSyncChangesTheVerifier) {
  setup().start();
  const ObjectId file = setup().make("f");
  const auto before = setup().write(file, 0, pattern(6000, 1));
  ASSERT_TRUE(before.has_value());
  faults().fail(OpKind::sync, EIO, {.times = 1});
  EXPECT_EQ(setup().write(file, 6000, pattern(6000, 2), Stability::file_sync).error(),
            errno_code(EIO));
  const auto after = setup().commit(file);
  ASSERT_TRUE(after.has_value());
  EXPECT_NE(after->verifier, before->verifier);
}

// The file was to become longer, and a page before its new end, partial, went with that.
TEST_F(DataAssemble, AFailedWriteLeavesNoPaddedPageBehind) {
  setup().start();
  const ObjectId file = setup().make("f");
  const auto partial = setup().write(file, 5000, pattern(100, 1));
  ASSERT_TRUE(partial.has_value());
  const auto at = [](std::uint64_t offset) {
    return [offset](const Op& op) { return op.offset == offset; };
  };
  const auto hold = faults().hold_before(OpKind::writev, {.matches = at(0), .times = 1});
  faults().fail(OpKind::writev, EIO, {.matches = at(16'384), .times = 1});
  auto first = setup().start_write(file, 0, pattern(4096, 2), Stability::unstable);
  ASSERT_TRUE(hold->wait_held());
  // These two wait meanwhile, and go as one batch.
  auto growing = setup().start_write(file, 16'384, pattern(4096, 3), Stability::unstable);
  Worker& worker = setup().runtime->worker(0);
  auto syncing = start_on(worker, [this, &worker, &file]() -> Awaitable<bool> {
    auto open = co_await setup().data->files().open(worker, file, OpenFor::writing);
    const auto synced = co_await (*open)->sync(worker, SyncKind::all, 0, 0);
    co_return synced.has_value();
  });
  run_on(worker, []() -> Awaitable<bool> { co_return true; });
  hold->release();
  EXPECT_TRUE(first.get().has_value());
  EXPECT_EQ(growing.get().error(), errno_code(EIO));
  EXPECT_FALSE(syncing.get()) << "the two were not one batch: the test shows nothing";
  EXPECT_EQ(status("f").st_size, 4096);
  EXPECT_NE(setup().commit(file)->verifier, partial->verifier);
}

TEST_F(DataAssemble, ALocalOpenSeesWhatWasInMemory) {
  setup().start();
  const ObjectId file = setup().make("f");
  const Bytes bytes = pattern(6000, 1);
  ASSERT_TRUE(setup().write(file, 0, bytes).has_value());
  EXPECT_TRUE(setup().content("f") == bytes);
  EXPECT_EQ(counters().leases_broken.get(), 1U);
  EXPECT_EQ(counters().leases_late.get(), 0U);
  // From then on by way of the page cache.
  const Bytes more = pattern(6000, 2);
  ASSERT_TRUE(setup().write(file, 6000, more).has_value());
  EXPECT_TRUE(setup().content("f") == bytes + more);
  EXPECT_EQ(bytes_of(*setup().read(file, 0, 20'000)), bytes + more);
}

// A READ whose file leaves the mode while it waits for a buffer: the descriptor that it was to read
// from is good for nothing any more.
TEST_F(DataAssemble, AReadInFlightSurvivesABrokenLease) {
  setup().runtime_options.buffer_bytes = 2 << 20;
  setup().start();
  const ObjectId file = setup().make("f");
  const Bytes bytes = pattern(6000, 1);
  ASSERT_TRUE(setup().write(file, 0, bytes).has_value());
  Worker& worker = setup().runtime->worker(0);
  BufferPool& buffers = setup().runtime->buffers();
  std::vector<Buffer> taken;
  while (auto buffer = buffers.try_acquire(4096)) taken.push_back(std::move(buffer));
  auto reading = start_on(worker, [this, &file] {
    const Caller caller = setup().caller(0);
    return setup().data->read(caller, file, 0, 10'000);
  });
  while (buffers.gauges().waits == 0) std::this_thread::yield();
  EXPECT_TRUE(setup().content("f") == bytes);
  // Nothing says when the lease's end has come to the file's own notice; earlier shows nothing.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  taken.clear();
  const auto found = reading.get();
  ASSERT_TRUE(found.has_value()) << found.error().message();
  EXPECT_EQ(bytes_of(*found), bytes);
}

// The device has grown the file, the WRITE that does it is not complete: for everybody the old
// size.
TEST_F(DataAssemble, SizesAndReadsOfAGrowingFileAgree) {
  setup().start();
  const ObjectId file = setup().make("f");
  const Bytes bytes = pattern(8192, 1);
  const auto hold = faults().hold_after(OpKind::writev);
  auto writing = setup().start_write(file, 0, bytes, Stability::unstable);
  ASSERT_TRUE(hold->wait_held());
  while (status("f").st_size != 8192) std::this_thread::yield();
  const auto found = setup().read(file, 100, 100, 1);
  hold->release();
  ASSERT_TRUE(found.has_value()) << found.error().message();
  EXPECT_TRUE(found->eof);
  EXPECT_EQ(found->data.size(), 0U);
  EXPECT_EQ(found->after.size, 0U);
  EXPECT_EQ(writing.get()->after.size, 8192U);
  EXPECT_EQ(bytes_of(*setup().read(file, 0, 8192)), bytes);
}

TEST_F(DataAssemble, RoomAheadIsGivenBack) {
  setup().start();
  const ObjectId file = setup().make("f");
  Bytes all;
  for (unsigned i = 0; i < 20; ++i) {
    const Bytes bytes = pattern(47'008, i);
    ASSERT_TRUE(setup().write(file, all.size(), bytes, Stability::file_sync).has_value());
    all = std::move(all) + bytes;
  }
  ASSERT_GT(status("f").st_blocks * 512, static_cast<off_t>(all.size() + 65536))
      << "no room ahead: the test shows nothing";
  ASSERT_TRUE(setup().close().has_value());
  EXPECT_TRUE(setup().content("f") == all);
  EXPECT_LE(status("f").st_blocks * 512, static_cast<off_t>(all.size() + 65536));
}

// As one server's part of a striped file: its holes stay holes.
TEST_F(DataAssemble, RoomAheadDoesNotFillHoles) {
  setup().start();
  const ObjectId file = setup().make("f");
  constexpr std::uint64_t unit = 1 << 20;
  constexpr std::uint64_t stripes = 6;
  constexpr std::uint64_t servers = 4;
  const Bytes bytes = pattern(unit / 16, 1);
  for (std::uint64_t stripe = 0; stripe < stripes; ++stripe) {
    for (std::uint64_t at = 0; at < unit; at += bytes.size()) {
      const auto wrote =
          setup().write(file, stripe * servers * unit + at, bytes, Stability::file_sync);
      ASSERT_TRUE(wrote.has_value());
    }
  }
  ASSERT_TRUE(setup().close().has_value());
  EXPECT_LE(status("f").st_blocks * 512, static_cast<off_t>(stripes * unit + 65536));
  EXPECT_EQ(status("f").st_size, static_cast<off_t>(((stripes - 1) * servers + 1) * unit));
}

TEST_F(DataAssemble, TheServersOwnWorkMovesNoTimes) {
  // Where there are no invisible descriptors the times have to be put back.
  DataSetup elsewhere("/var/tmp");
  struct statfs kind{};
  ASSERT_EQ(::statfs(elsewhere.path.c_str(), &kind), 0);
  elsewhere.options = options();
  for (DataSetup* at : {&setup(), &elsewhere}) {
    at->start();
    const ObjectId file = at->make("f");
    ASSERT_TRUE(at->write(file, 0, pattern(6000, 1)).has_value());
    if (at->counters.leases_held.get() == 0) continue;  // On tmpfs, say.
    const auto before = at->read(file, 0, 1)->after;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // The kernel's clock ticks.
    at->options.write_back_seconds = 0;
    at->tend(std::chrono::seconds(1));
    at->tend(std::chrono::seconds(2));
    at->tend(std::chrono::seconds(3));
    struct stat status{};
    ASSERT_EQ(::stat((*at / "f").c_str(), &status), 0);
    EXPECT_EQ(status.st_size, 6000) << "not written out: the test shows nothing";
    const auto after = at->read(file, 0, 1)->after;
    EXPECT_TRUE(same_time(before.mtime, after.mtime));
    EXPECT_TRUE(same_time(before.ctime, after.ctime));
    EXPECT_TRUE(same_time(before.mtime, status.st_mtim));
    const auto later = at->write(file, 6000, pattern(6000, 2));
    EXPECT_FALSE(same_time(before.mtime, later->after.mtime)) << "a client's WRITE moves it";
  }
}

TEST_F(DataAssemble, ATruncateComesAfterWhatWasInMemory) {
  setup().start();
  const ObjectId file = setup().make("f");
  const Bytes bytes = pattern(6000, 1);
  ASSERT_TRUE(setup().write(file, 0, bytes).has_value());
  truncate(file, 9000);
  EXPECT_EQ(bytes_of(*setup().read(file, 0, 20'000)), bytes + Bytes(3000));
  truncate(file, 5000);
  const Bytes less(bytes.begin(), bytes.begin() + 5000);
  const auto found = setup().read(file, 0, 20'000);
  EXPECT_EQ(bytes_of(*found), less);
  EXPECT_EQ(found->after.size, 5000U);
  truncate(file, 7000);
  EXPECT_EQ(bytes_of(*setup().read(file, 0, 20'000)), less + Bytes(2000));
  ASSERT_TRUE(setup().close().has_value());
  EXPECT_EQ(setup().content("f"), less + Bytes(2000));
}

// Two that wait for their neighbours' halves must not wait for each other for ever.
TEST_F(DataAssemble, StableWritesWithoutNeighboursAreAnswered) {
  setup().start();
  const ObjectId file = setup().make("f", 0644, 1 << 20);
  const auto hold = faults().hold_before(OpKind::writev, {.times = 1});
  auto first = setup().start_write(file, 0, pattern(6000, 1), Stability::file_sync);
  ASSERT_TRUE(hold->wait_held());
  auto second = setup().start_write(file, 100'000, pattern(6000, 2), Stability::file_sync);
  auto third = setup().start_write(file, 300'000, pattern(6000, 3), Stability::data_sync, 1);
  hold->release();
  EXPECT_TRUE(first.get().has_value());
  EXPECT_TRUE(second.get().has_value());
  EXPECT_TRUE(third.get().has_value());
  Bytes expected(1 << 20);
  std::ranges::copy(pattern(6000, 1), expected.begin());
  std::ranges::copy(pattern(6000, 2), expected.begin() + 100'000);
  std::ranges::copy(pattern(6000, 3), expected.begin() + 300'000);
  EXPECT_TRUE(setup().content("f") == expected);
}

TEST_F(DataAssemble, StopWritesOutWhatIsInMemory) {
  setup().start();
  const ObjectId file = setup().make("f");
  const Bytes bytes = pattern(6000, 1);
  ASSERT_TRUE(setup().write(file, 0, bytes).has_value());
  faults().reset_seen();
  ASSERT_TRUE(setup().close().has_value());
  EXPECT_GE(faults().seen(OpKind::sync), 1U);
  EXPECT_TRUE(setup().content("f") == bytes);
}

}  // namespace
}  // namespace selvage::storage
