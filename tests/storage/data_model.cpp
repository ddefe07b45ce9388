// Many writers of one file at once, against a byte-array model.
#include "tests/storage/data_fixture.h"

#include <cerrno>
#include <future>
#include <mutex>
#include <numeric>
#include <random>

namespace selvage::storage {
namespace {

struct Mode {
  const char* name;
  IoMode write;
  EdgeMode edges;
  IoMode read;
  bool io_uring;
  bool faults;
};

class DataModel : public testing::TestWithParam<Mode> {};

struct Record {
  std::uint64_t offset;
  std::size_t length;
};

/// The whole file cut into records, most of them misaligned; each belongs to one writer.
std::vector<Record> cut(std::mt19937_64& random, std::uint64_t size) {
  const std::array<std::size_t, 6> lengths{700, 4096, 6000, 12'288, 47'008, 9001};
  std::vector<Record> records;
  for (std::uint64_t at = 0; at < size;) {
    const std::uint64_t left = size - at;
    const std::size_t length = std::min<std::uint64_t>(lengths[random() % lengths.size()], left);
    records.push_back({at, length});
    at += length;
  }
  return records;
}

class Writer {
 public:
  Writer(DataSetup& setup, Caller caller, ObjectId file, std::vector<Record> records,
         std::uint64_t seed, Bytes& model)
      : setup_(setup),
        caller_(caller),
        file_(file),
        records_(std::move(records)),
        random_(seed),
        model_(model) {}

  /// Rewrites its records in random order, reads them back, and keeps the model.
  Awaitable<bool> run(int operations) {
    for (int n = 0; n < operations; ++n) {
      const Record record = records_[random_() % records_.size()];
      const auto action = random_() % 8;
      if (action == 0) {
        co_await commit();
      } else if (action < 3) {
        co_await check(record);
      } else {
        co_await write(record);
      }
    }
    for (const Record& record : records_) {
      co_await write(record);
      co_await check(record);
    }
    co_return true;
  }

 private:
  /// Until all of it has been acknowledged: what fails or is short is sent again.
  Awaitable<> write(Record record) {
    const Bytes bytes = pattern(record.length, random_());
    const auto stability = static_cast<Stability>(random_() % 3);
    std::size_t done = 0;
    while (done < bytes.size()) {
      const Bytes rest(bytes.begin() + static_cast<std::ptrdiff_t>(done), bytes.end());
      const Payload payload(record.offset + done, rest, random_() % 16 == 0 ? 4 : 0);
      const WriteRequest request{record.offset + done, payload.data(), stability};
      const auto written = co_await setup_.data->write(caller_, file_, request);
      if (written.has_error()) continue;
      EXPECT_GE(written->committed, stability);
      EXPECT_GE(written->after.size, record.offset + done + written->count);
      done += written->count;
    }
    std::copy(bytes.begin(), bytes.end(),
              model_.begin() + static_cast<std::ptrdiff_t>(record.offset));
  }

  Awaitable<> check(Record record) {
    const auto count = static_cast<std::uint32_t>(record.length);
    const auto found = co_await setup_.data->read(caller_, file_, record.offset, count);
    EXPECT_TRUE(found.has_value());
    if (found.has_error()) co_return;
    const auto from = model_.begin() + static_cast<std::ptrdiff_t>(record.offset);
    // A record nobody has written yet may lie beyond the end of the file, all or in part.
    Bytes data = bytes_of(*found);
    data.resize(record.length);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), from))
        << "record at " << record.offset << ", " << record.length << " bytes";
  }

  Awaitable<> commit() {
    const auto committed = co_await setup_.data->commit(caller_, file_, 0, 0);
    EXPECT_TRUE(committed.has_value() || setup_.counters.sync_errors.get() > 0);
  }

  DataSetup& setup_;
  Caller caller_;
  ObjectId file_;
  std::vector<Record> records_;
  std::mt19937_64 random_;
  Bytes& model_;
};

void add_faults(FaultScript& faults) {
  const auto every = [](std::uint64_t nth) {
    auto count = std::make_shared<std::atomic<std::uint64_t>>(0);
    return [count, nth](const Op&) { return ++*count % nth == 0; };
  };
  faults.fail(OpKind::writev, EIO, {.matches = every(23)});
  faults.fail(OpKind::writev, ENOSPC, {.matches = every(31)});
  faults.fail_after(OpKind::writev, EIO, {.matches = every(37)});
  faults.shorten(OpKind::writev, 4096, {.matches = every(17)});
  faults.shorten(OpKind::writev, 100, {.matches = [count = every(19)](const Op& op) {
                   // A short direct write ends at a block.
                   return op.length % 4096 != 0 && count(op);
                 }});
  faults.fail(OpKind::sync, EIO, {.matches = every(13)});
  faults.fail_after(OpKind::sync, EIO, {.matches = every(29)});
}

TEST_P(DataModel, ConcurrentWritersOfAdjacentRecords) {
  if (!shared_xfs().ok()) GTEST_SKIP() << "needs root, loop devices and mkfs.xfs";
  const Mode& mode = GetParam();
  constexpr std::uint64_t size = 3'000'000;
  constexpr unsigned writers = 8;
  DataSetup setup(shared_xfs().path(), mode.io_uring);
  setup.options.write = mode.write;
  setup.options.edges = mode.edges;
  setup.options.read = mode.read;
  setup.start();
  if (mode.faults) add_faults(setup.faults);
  const ObjectId file = setup.make("f");
  std::mt19937_64 random(std::hash<std::string>{}(mode.name));
  Bytes model(size);
  std::vector<std::vector<Record>> shares(writers);
  const auto records = cut(random, size);
  for (std::size_t n = 0; n < records.size(); ++n) shares[n % writers].push_back(records[n]);

  std::vector<std::unique_ptr<Writer>> tasks;
  std::vector<std::future<bool>> done;
  for (unsigned n = 0; n < writers; ++n) {
    tasks.push_back(
        std::make_unique<Writer>(setup, setup.caller(n % 2), file, shares[n], random(), model));
    Writer& task = *tasks.back();
    done.push_back(start_on(setup.runtime->worker(n % 2), [&task] { return task.run(100); }));
  }
  for (auto& one : done) EXPECT_TRUE(one.get());
  setup.faults.clear();

  EXPECT_TRUE(setup.commit(file).has_value());
  EXPECT_EQ(setup.counters.verifier_changes.get(), setup.counters.sync_errors.get());
  if (mode.write == IoMode::direct && mode.edges == EdgeMode::pagecache &&
      mode.read == IoMode::direct) {
    // The cached pages of a failed sync are nobody's; those of what is sent again are.
    for (const Record& record : records) {
      const auto from = model.begin() + static_cast<std::ptrdiff_t>(record.offset);
      const Bytes bytes(from, from + static_cast<std::ptrdiff_t>(record.length));
      EXPECT_EQ(setup.write(file, record.offset, bytes, Stability::data_sync)->count,
                record.length);
    }
    // What is left are pages of which one part was written again after they had been complete. A
    // page still claimed by a writer that is long gone would never leave.
    EXPECT_LE(setup.resident("f"), 2 * records.size());
    for (int rounds = 0; rounds < 1000 && setup.resident("f") > 0; ++rounds) {
      setup.tend(std::chrono::seconds(11));
    }
    EXPECT_EQ(setup.resident("f"), 0U);
  }
  EXPECT_TRUE(setup.content("f") == model);
  EXPECT_TRUE(setup.close().has_value());
  EXPECT_TRUE(setup.content("f") == model);
}

INSTANTIATE_TEST_SUITE_P(
    Modes, DataModel,
    testing::Values(
        Mode{"Pagecache", IoMode::direct, EdgeMode::pagecache, IoMode::direct, true, false},
        Mode{"PagecacheFaults", IoMode::direct, EdgeMode::pagecache, IoMode::direct, true, true},
        Mode{"PagecacheOnPool", IoMode::direct, EdgeMode::pagecache, IoMode::direct, false, true},
        Mode{"PagecacheBufferedReads", IoMode::direct, EdgeMode::pagecache, IoMode::buffered, true,
             false},
        Mode{"Assemble", IoMode::direct, EdgeMode::assemble, IoMode::direct, true, false},
        Mode{"BufferedEdges", IoMode::direct, EdgeMode::buffered, IoMode::direct, true, true},
        Mode{"DontcacheEdges", IoMode::direct, EdgeMode::dontcache, IoMode::dontcache, true, true},
        Mode{"Buffered", IoMode::buffered, EdgeMode::pagecache, IoMode::buffered, true, true},
        Mode{"Dontcache", IoMode::dontcache, EdgeMode::pagecache, IoMode::dontcache, true, false}),
    [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace selvage::storage
