#include "storage/page_order.h"
#include "tests/storage/data_fixture.h"

#include <future>

namespace selvage::storage {
namespace {

class PageOrderTest : public DataTest {
 protected:
  /// Both workers have done what they could.
  void settle() {
    const auto nothing = []() -> Awaitable<int> { co_return 0; };
    for (int round = 0; round < 20; ++round) {
      for (unsigned i = 0; i < 2; ++i) run_on(setup().runtime->worker(i), nothing);
    }
  }
};

TEST_F(PageOrderTest, ABufferedWriteWaitsForADirectOneOfItsPages) {
  setup().start();
  const ObjectId file = setup().make("f", 0644, 1 << 20);
  setup().read(file, 0, 1, 0).value();
  const auto hold = faults().hold_before(OpKind::writev, {.times = 1});
  auto direct = setup().start_write(file, 0, pattern(65536, 1), Stability::unstable, 0);
  ASSERT_TRUE(hold->wait_held());
  auto buffered = setup().start_write(file, 5000, pattern(100, 2), Stability::unstable, 1);
  // Neither a page beside it nor another direct write has to wait.
  EXPECT_TRUE(setup().write(file, 65536, pattern(100, 3), Stability::unstable, 1).has_value());
  EXPECT_TRUE(setup().write(file, 16384, pattern(4096, 4), Stability::unstable, 1).has_value());
  settle();
  EXPECT_EQ(faults().seen(OpKind::writev), 3U);
  EXPECT_EQ(buffered.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  // One that comes later than the waiting one does not pass it.
  auto last = setup().start_write(file, 4096, pattern(4096, 5), Stability::unstable, 1);
  settle();
  EXPECT_EQ(faults().seen(OpKind::writev), 3U);
  hold->release();
  EXPECT_EQ(direct.get()->count, 65536U);
  EXPECT_EQ(buffered.get()->count, 100U);
  EXPECT_EQ(last.get()->count, 4096U);
  Bytes expected = pattern(65536, 1);
  const Bytes over = pattern(4096, 5);
  std::copy(over.begin(), over.end(), expected.begin() + 4096);
  EXPECT_EQ(bytes_of(*setup().read(file, 0, 65536)), expected);
}

TEST_F(PageOrderTest, ADirectWriteWaitsForBufferedOnesOfItsPages) {
  setup().start();
  const ObjectId file = setup().make("f", 0644, 1 << 20);
  setup().read(file, 0, 1, 0).value();
  const auto hold = faults().hold_before(OpKind::writev, {.times = 2});
  auto first = setup().start_write(file, 100, pattern(100, 1), Stability::unstable, 0);
  ASSERT_TRUE(hold->wait_held());
  auto second = setup().start_write(file, 9000, pattern(100, 2), Stability::unstable, 1);
  while (faults().seen(OpKind::writev) < 2) std::this_thread::yield();
  auto direct = setup().start_write(file, 0, pattern(65536, 3), Stability::unstable, 1);
  settle();
  EXPECT_EQ(faults().seen(OpKind::writev), 2U);
  hold->release();
  EXPECT_EQ(first.get()->count, 100U);
  EXPECT_EQ(second.get()->count, 100U);
  EXPECT_EQ(direct.get()->count, 65536U);
  EXPECT_EQ(bytes_of(*setup().read(file, 0, 65536)), pattern(65536, 3));
}

// Without an order the kernel fails a sync with EIO now and then.
TEST_F(PageOrderTest, OverlappingRecordsAreSynced) {
  setup().start();
  const ObjectId file = setup().make("f");
  for (std::uint64_t batch = 0; batch < 30; ++batch) {
    std::vector<std::future<Result<WriteResult>>> writes;
    for (std::uint64_t i = 0; i < 32; ++i) {
      const std::uint64_t offset = (batch * 32 + i) * 9000;
      writes.push_back(setup().start_write(file, offset, pattern(12'000, i), Stability::unstable,
                                           static_cast<unsigned>(i % 2)));
    }
    for (auto& write : writes) EXPECT_EQ(write.get()->count, 12'000U);
    EXPECT_TRUE(setup().commit(file).has_value());
  }
  EXPECT_EQ(counters().sync_errors.get(), 0U);
}

}  // namespace
}  // namespace selvage::storage
