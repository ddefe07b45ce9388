// WRITE and READ of one file at a time: what ends up in it, and what is said of it.
#include "tests/storage/data_fixture.h"

#include <cerrno>
#include <limits>

namespace selvage::storage {
namespace {

constexpr std::uint64_t max_offset = std::numeric_limits<std::int64_t>::max();

class DataWrite : public DataTest {};
class DataRead : public DataTest {};

bool is_write(const Op& op) {
  return op.kind == OpKind::writev;
}

TEST_F(DataWrite, MisalignedGoesAsHeadMiddleTail) {
  setup().start();
  const ObjectId file = setup().make("f");
  const Bytes bytes = pattern(47008, 1);
  const auto written = setup().write(file, 47008, bytes, Stability::file_sync);
  ASSERT_TRUE(written.has_value()) << written.error().message();
  EXPECT_EQ(written->count, 47008U);
  EXPECT_EQ(written->committed, Stability::file_sync);
  EXPECT_EQ(written->after.size, 94016U);
  std::vector<Op> writes;
  for (const Op& op : faults().log()) {
    if (is_write(op)) writes.push_back(op);
  }
  ASSERT_EQ(writes.size(), 3U);
  EXPECT_EQ(writes[0].offset, 47008U);
  EXPECT_EQ(writes[1].offset, 49152U);
  EXPECT_EQ(writes[1].length, 40960U);
  EXPECT_NE(writes[1].fd, writes[0].fd);
  EXPECT_EQ(writes[2].offset, 90112U);
  EXPECT_EQ(writes[2].fd, writes[0].fd);
  EXPECT_EQ(faults().seen(OpKind::sync), 1U);
  Bytes expected(47008);
  expected.insert(expected.end(), bytes.begin(), bytes.end());
  EXPECT_EQ(setup().content("f"), expected);
  EXPECT_EQ(counters().writes_by_reason[static_cast<std::size_t>(PlanReason::split)].get(), 1U);
  EXPECT_EQ(counters().bounce_copies.get(), 0U);
}

TEST_F(DataWrite, SyncIsAsStrongAndAsWideAsAsked) {
  setup().start();
  const ObjectId file = setup().make("f");
  const auto unstable = setup().write(file, 0, pattern(6000, 1), Stability::unstable);
  EXPECT_EQ(unstable->committed, Stability::unstable);
  EXPECT_EQ(faults().seen(OpKind::sync), 0U);
  const auto data = setup().write(file, 6000, pattern(6000, 2), Stability::data_sync);
  EXPECT_EQ(data->committed, Stability::data_sync);
  const auto all = setup().write(file, 12000, pattern(100, 3), Stability::file_sync);
  EXPECT_EQ(all->committed, Stability::file_sync);
  std::vector<Op> syncs;
  for (const Op& op : faults().log()) {
    if (op.kind == OpKind::sync) syncs.push_back(op);
  }
  ASSERT_EQ(syncs.size(), 2U);
  EXPECT_EQ(syncs[0].flags, static_cast<int>(SyncKind::data));
  EXPECT_EQ(syncs[0].offset, 4096U);
  EXPECT_EQ(syncs[0].length, 8192U);
  EXPECT_EQ(syncs[1].flags, static_cast<int>(SyncKind::all));
  EXPECT_EQ(syncs[1].offset, 8192U);
  EXPECT_EQ(syncs[1].length, 4096U);
}

TEST_F(DataWrite, StableFloorRaises) {
  options().stable_floor = Stability::data_sync;
  setup().start();
  const ObjectId file = setup().make("f");
  EXPECT_EQ(setup().write(file, 0, pattern(10, 1))->committed, Stability::data_sync);
  const auto written = setup().write(file, 0, pattern(10, 1), Stability::file_sync);
  EXPECT_EQ(written->committed, Stability::file_sync);
  EXPECT_EQ(faults().seen(OpKind::sync), 2U);
}

TEST_F(DataWrite, CountZeroTouchesNothing) {
  setup().start();
  const ObjectId file = setup().make("f");
  const auto written = setup().write(file, 1'000'000, {}, Stability::file_sync);
  ASSERT_TRUE(written.has_value());
  EXPECT_EQ(written->count, 0U);
  EXPECT_EQ(written->committed, Stability::file_sync);
  EXPECT_EQ(written->after.size, 0U);
  EXPECT_EQ(faults().log().size(), 0U);
}

TEST_F(DataWrite, PastTheLargestOffsetIsTooBig) {
  setup().start();
  const ObjectId file = setup().make("f");
  const Bytes byte = pattern(1, 1);
  EXPECT_EQ(setup().write(file, max_offset, byte).error(), errno_code(EFBIG));
  EXPECT_EQ(setup().write(file, ~std::uint64_t{0}, byte).error(), errno_code(EFBIG));
  EXPECT_EQ(setup().content("f").size(), 0U);
}

TEST_F(DataWrite, PayloadElsewhereIsCopiedOnce) {
  setup().start();
  const ObjectId file = setup().make("f");
  const Bytes bytes = pattern(47008, 5);
  const Payload payload(0, bytes, 12);
  const Caller who = setup().caller();
  const auto written = run_on(who.worker, [&] {
    const WriteRequest request{0, payload.data(), Stability::unstable};
    return setup().data->write(who, file, request);
  });
  EXPECT_EQ(written->count, 47008U);
  EXPECT_EQ(counters().bounce_copies.get(), 1U);
  EXPECT_EQ(counters().direct_fallbacks.get(), 0U);
  EXPECT_EQ(setup().content("f"), bytes);
}

TEST_F(DataWrite, ShortSegmentEndsIt) {
  setup().start();
  const ObjectId file = setup().make("f");
  const Bytes bytes = pattern(47008, 1);
  faults().shorten(OpKind::writev, 8192, {.skip = 1, .times = 1});
  const auto written = setup().write(file, 100, bytes, Stability::file_sync);
  ASSERT_TRUE(written.has_value());
  EXPECT_EQ(written->count, 3996U + 8192U);
  EXPECT_EQ(faults().seen(OpKind::writev), 2U);
  EXPECT_EQ(counters().short_writes.get(), 1U);
  const Bytes found = setup().content("f");
  ASSERT_EQ(found.size(), 12288U);
  EXPECT_EQ(std::memcmp(found.data() + 100, bytes.data(), 12188), 0);
}

TEST_F(DataWrite, NothingWrittenIsNotSynced) {
  setup().start();
  const ObjectId file = setup().make("f");
  faults().shorten(OpKind::writev, 0, {.times = 1});
  const auto written = setup().write(file, 100, pattern(47008, 1), Stability::file_sync);
  ASSERT_TRUE(written.has_value());
  EXPECT_EQ(written->count, 0U);
  EXPECT_EQ(faults().seen(OpKind::sync), 0U);
}

TEST_F(DataWrite, ErrorOfAnySegmentIsReturnedAndNothingStaysClaimed) {
  setup().start();
  const ObjectId file = setup().make("f");
  const Bytes bytes = pattern(47008, 1);
  for (unsigned segment = 0; segment < 3; ++segment) {
    faults().reset_seen();
    faults().fail(OpKind::writev, ENOSPC, {.skip = segment, .times = 1});
    const auto failed = setup().write(file, 2000, bytes, Stability::file_sync);
    EXPECT_EQ(failed.error(), errno_code(ENOSPC));
    EXPECT_EQ(faults().seen(OpKind::writev), segment + 1);
    EXPECT_EQ(faults().seen(OpKind::sync), 0U);
    faults().clear();
  }
  // Both neighbours and the record itself: the pages that the failed ones held complete and go.
  EXPECT_TRUE(setup().write(file, 2000, bytes, Stability::file_sync).has_value());
  EXPECT_TRUE(setup().write(file, 0, pattern(2000, 2), Stability::file_sync).has_value());
  EXPECT_TRUE(setup().write(file, 49008, pattern(144, 3), Stability::file_sync).has_value());
  EXPECT_EQ(setup().resident("f"), 0U);
  EXPECT_EQ(counters().boundary_completed.get(), 2U);
}

TEST_F(DataWrite, BytesOfAFailedWriteCompleteNoPage) {
  setup().start();
  const ObjectId file = setup().make("f");
  const Bytes bytes = pattern(47008, 1);
  // The head, from 2000 on, is written; the middle is not.
  faults().fail(OpKind::writev, ENOSPC, {.skip = 1, .times = 1});
  EXPECT_FALSE(setup().write(file, 2000, bytes, Stability::file_sync).has_value());
  EXPECT_TRUE(setup().write(file, 0, pattern(2000, 2), Stability::file_sync).has_value());
  EXPECT_EQ(counters().boundary_completed.get(), 0U);
  EXPECT_TRUE(setup().write(file, 2000, bytes, Stability::file_sync).has_value());
  EXPECT_EQ(counters().boundary_completed.get(), 1U);
}

TEST_F(DataWrite, DirectRefusedGoesBufferedFromThenOn) {
  setup().start();
  const ObjectId file = setup().make("f");
  const Bytes bytes = pattern(200'000, 1);
  faults().fail(OpKind::writev, EINVAL, {.skip = 1, .times = 1});
  EXPECT_EQ(setup().write(file, 1000, bytes, Stability::file_sync)->count, 200'000U);
  EXPECT_EQ(faults().seen(OpKind::writev), 4U);
  EXPECT_EQ(setup().write(file, 1000, bytes, Stability::file_sync)->count, 200'000U);
  EXPECT_EQ(faults().seen(OpKind::writev), 5U);
  EXPECT_EQ(counters().direct_fallbacks.get(), 2U);
  EXPECT_EQ(setup().notices.load(), 1);
  const auto found = setup().read(file, 1000, 200'000);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(bytes_of(*found), bytes);
}

TEST_F(DataWrite, WithoutAlignmentEverythingIsBufferedAndSaidOnce) {
  DataSetup other("/dev/shm");
  other.start();
  const ObjectId file = other.make("f");
  const ObjectId second = other.make("g");
  const Bytes bytes = pattern(100'000, 1);
  EXPECT_EQ(other.write(file, 1000, bytes, Stability::file_sync)->count, 100'000U);
  EXPECT_EQ(other.write(second, 1000, bytes, Stability::file_sync)->count, 100'000U);
  EXPECT_EQ(other.faults.seen(OpKind::writev), 2U);
  EXPECT_EQ(other.notices.load(), 1);
  EXPECT_EQ(other.counters.direct_fallbacks.get(), 2U);
  EXPECT_EQ(bytes_of(*other.read(file, 1000, 100'000)), bytes);
}

TEST_F(DataWrite, CompletedPagesLeaveTheCacheAndHalvesStay) {
  setup().start();
  const ObjectId file = setup().make("f");
  EXPECT_TRUE(setup().write(file, 0, pattern(47008, 1), Stability::file_sync).has_value());
  EXPECT_EQ(setup().resident("f"), 1U);
  EXPECT_TRUE(setup().write(file, 47008, pattern(47008, 2), Stability::file_sync, 1).has_value());
  EXPECT_EQ(setup().resident("f"), 1U);
  EXPECT_EQ(counters().boundary_asked.get(), 3U);
  EXPECT_EQ(counters().boundary_completed.get(), 1U);
  EXPECT_EQ(counters().boundary_dropped.get(), 1U);
  EXPECT_EQ(counters().boundary_drop_failed.get(), 0U);
}

TEST_F(DataWrite, UnstablePagesGoAtCommit) {
  setup().start();
  const ObjectId file = setup().make("f");
  for (std::uint64_t record = 0; record < 40; ++record) {
    const unsigned worker = record % 2;
    EXPECT_TRUE(setup()
                    .write(file, record * 6000, pattern(6000, record), Stability::unstable, worker)
                    .has_value());
  }
  EXPECT_GE(setup().resident("f"), 40U);
  EXPECT_TRUE(setup().commit(file).has_value());
  EXPECT_LE(setup().resident("f"), 1U);  // The last record's tail.
}

TEST_F(DataWrite, UnstablePagesGoWithoutCommitToo) {
  setup().start();
  const ObjectId file = setup().make("f");
  EXPECT_TRUE(setup().write(file, 0, pattern(6000, 1)).has_value());
  EXPECT_TRUE(setup().write(file, 6000, pattern(6000, 2)).has_value());
  for (int rounds = 0; rounds < 1000 && setup().resident("f") > 1; ++rounds) {
    setup().tend(std::chrono::seconds(6));
  }
  EXPECT_EQ(setup().resident("f"), 1U);
  EXPECT_EQ(faults().seen(OpKind::sync), 0U);
}

TEST_F(DataWrite, PagesWithoutNeighbourGoInTheEnd) {
  setup().start();
  const ObjectId file = setup().make("f");
  EXPECT_TRUE(setup().write(file, 1000, pattern(47008, 1)).has_value());
  for (int rounds = 0; rounds < 1000 && setup().resident("f") > 0; ++rounds) {
    setup().tend(std::chrono::seconds(11));
  }
  EXPECT_EQ(setup().resident("f"), 0U);
  EXPECT_EQ(counters().boundary_orphaned.get(), 2U);
}

TEST_F(DataWrite, BufferedEdgesAreKept) {
  options().edges = EdgeMode::buffered;
  setup().start();
  const ObjectId file = setup().make("f");
  EXPECT_TRUE(setup().write(file, 0, pattern(47008, 1), Stability::file_sync).has_value());
  EXPECT_TRUE(setup().write(file, 47008, pattern(47008, 2), Stability::file_sync).has_value());
  EXPECT_EQ(setup().resident("f"), 2U);
  EXPECT_EQ(counters().boundary_asked.get(), 0U);
}

TEST_F(DataWrite, DontcacheEdgesCarryTheFlag) {
  options().edges = EdgeMode::dontcache;
  setup().start();
  const ObjectId file = setup().make("f");
  const Bytes bytes = pattern(47008, 1);
  EXPECT_TRUE(setup().write(file, 100, bytes, Stability::file_sync).has_value());
  const auto log = faults().log();
  ASSERT_GE(log.size(), 3U);
  EXPECT_EQ(log[0].flags, 0x80);
  EXPECT_EQ(log[1].flags, 0);
  EXPECT_EQ(log[2].flags, 0x80);
  EXPECT_EQ(bytes_of(*setup().read(file, 100, 47008)), bytes);
}

TEST_F(DataWrite, DontcacheWhereThereIsNone) {
  options().write = IoMode::dontcache;
  options().read = IoMode::dontcache;
  setup().start();
  faults().fail(OpKind::writev, EOPNOTSUPP,
                {.matches = [](const Op& op) { return op.flags != 0; }});
  faults().fail(OpKind::readv, EOPNOTSUPP, {.matches = [](const Op& op) { return op.flags != 0; }});
  const ObjectId file = setup().make("f");
  const Bytes bytes = pattern(47008, 1);
  EXPECT_EQ(setup().write(file, 100, bytes)->count, 47008U);
  EXPECT_EQ(setup().write(file, 100, bytes)->count, 47008U);
  EXPECT_EQ(faults().seen(OpKind::writev), 3U);
  EXPECT_EQ(bytes_of(*setup().read(file, 100, 47008)), bytes);
  EXPECT_EQ(setup().notices.load(), 1);
}

TEST_F(DataRead, EveryPlaceInEverySize) {
  for (const IoMode mode : {IoMode::direct, IoMode::buffered, IoMode::dontcache}) {
    DataSetup here(shared_xfs().path());
    here.options.read = mode;
    here.start();
    for (const std::size_t size : {0U, 1U, 511U, 4095U, 4096U, 4097U, 10'000U}) {
      const std::string name = "f" + std::to_string(size);
      const ObjectId file = here.make(name);
      const Bytes bytes = pattern(size, size);
      here.fill(name, bytes);
      for (const std::size_t offset :
           {0U, 1U, 511U, 512U, 4095U, 4096U, 4097U, 9999U, 10'000U, 100'000U}) {
        for (const std::size_t count : {0U, 1U, 4096U, 5000U, 100'000U}) {
          const auto found = here.read(file, offset, static_cast<std::uint32_t>(count));
          ASSERT_TRUE(found.has_value()) << found.error().message();
          const std::size_t begin = std::min(offset, size);
          const std::size_t end = std::min(offset + count, size);
          const Bytes expected(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                               bytes.begin() + static_cast<std::ptrdiff_t>(std::max(begin, end)));
          EXPECT_EQ(bytes_of(*found), expected) << size << ' ' << offset << ' ' << count;
          EXPECT_EQ(found->eof, offset + count >= size) << size << ' ' << offset << ' ' << count;
          EXPECT_EQ(found->after.size, size);
        }
      }
    }
  }
}

TEST_F(DataRead, FarBeyondTheEnd) {
  setup().start();
  const ObjectId file = setup().make("f", 0644, 5000);
  for (const std::uint64_t offset :
       {max_offset - 1, max_offset, max_offset + 1, ~std::uint64_t{0}}) {
    const auto found = setup().read(file, offset, 1'000'000);
    ASSERT_TRUE(found.has_value()) << offset;
    EXPECT_EQ(found->data.size(), 0U);
    EXPECT_TRUE(found->eof);
  }
}

TEST_F(DataRead, DirectLeavesNothingInTheCache) {
  setup().start();
  const ObjectId file = setup().make("f");
  const Bytes bytes = pattern(100'000, 1);
  setup().fill("f", bytes);
  const auto found = setup().read(file, 47008, 47008);
  EXPECT_EQ(bytes_of(*found), Bytes(bytes.begin() + 47008, bytes.begin() + 94016));
  EXPECT_EQ(setup().resident("f"), 0U);
}

TEST_F(DataRead, SeesUnstableEdges) {
  setup().start();
  const ObjectId file = setup().make("f");
  const Bytes bytes = pattern(47008, 1);
  EXPECT_TRUE(setup().write(file, 1000, bytes).has_value());
  EXPECT_EQ(bytes_of(*setup().read(file, 1000, 50'000, 1)), bytes);
}

TEST_F(DataRead, ErrorIsReturned) {
  setup().start();
  const ObjectId file = setup().make("f", 0644, 5000);
  faults().fail(OpKind::readv, EIO);
  EXPECT_EQ(setup().read(file, 0, 100).error(), errno_code(EIO));
  EXPECT_EQ(counters().read_errors.get(), 1U);
}

TEST_F(DataRead, MoreThanThePoolCanHold) {
  setup().runtime_options.buffer_bytes = 2 << 20;
  setup().start();
  const ObjectId file = setup().make("f", 0644, 8 << 20);
  EXPECT_EQ(setup().read(file, 0, 8 << 20).error(), errno_code(ENOMEM));
}

}  // namespace
}  // namespace selvage::storage
