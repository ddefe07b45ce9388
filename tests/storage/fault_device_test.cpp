// The test seam itself, and that Runtime puts it in place.

#include "tests/support/fault_device.h"

#include "tests/support/run_on.h"
#include "tests/support/temp_dir.h"

#include "storage/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>
#include <vector>

namespace selvage::storage {
namespace {

class FaultDeviceTest : public testing::Test {
 protected:
  Result<std::size_t> write(std::string text, std::uint64_t offset) {
    return start_write(std::move(text), offset).get();
  }
  std::future<Result<std::size_t>> start_write(std::string text, std::uint64_t offset) {
    auto coroutine = [this, text = std::move(text),
                      offset]() mutable -> Awaitable<Result<std::size_t>> {
      const std::size_t half = text.size() / 2;
      const std::array<iovec, 2> segments{
          {{text.data(), half}, {text.data() + half, text.size() - half}}};
      co_return co_await worker_.device.writev(fd_.get(), segments, offset, 0);
    };
    return start_on(worker_, std::move(coroutine));
  }
  std::string content() {
    std::string text(1000, '\0');
    text.resize(static_cast<std::size_t>(::pread(fd_.get(), text.data(), text.size(), 0)));
    return text;
  }
  Result<> sync() {
    return run_on(worker_, [this] { return worker_.device.sync(fd_.get(), SyncKind::all, 0, 0); });
  }

  static bool at_ten(const Op& op) { return op.offset == 10; }

  TempDir dir_;
  UniqueFd fd_{::open((dir_ / "f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  FaultScript script_;
  Runtime runtime_{
      {.workers = 1, .pool_threads = 1, .buffer_bytes = 1, .wrap_device = script_.wrapper()}};
  Worker& worker_ = runtime_.worker(0);
};

TEST_F(FaultDeviceTest, WithoutRulesEverythingPassesAndIsCounted) {
  EXPECT_EQ(*write("abcdef", 2), 6U);
  EXPECT_TRUE(sync());
  EXPECT_EQ(content(), std::string("\0\0abcdef", 8));
  EXPECT_EQ(script_.seen(OpKind::writev), 1U);
  EXPECT_EQ(script_.seen(OpKind::sync), 1U);
  EXPECT_EQ(script_.seen(OpKind::readv), 0U);
  ASSERT_EQ(script_.log().size(), 2U);
  EXPECT_EQ(script_.log()[0].offset, 2U);
  EXPECT_EQ(script_.log()[0].length, 6U);
  EXPECT_EQ(script_.log()[0].fd, fd_.get());
  script_.reset_seen();
  EXPECT_EQ(script_.seen(OpKind::writev), 0U);
}

TEST_F(FaultDeviceTest, FailsTheNthThatMatchesAndDoesNotPerformIt) {
  script_.fail(OpKind::writev, ENOSPC, {.matches = at_ten, .skip = 1, .times = 1});
  EXPECT_TRUE(write("aa", 0));
  EXPECT_TRUE(write("bb", 10));
  EXPECT_EQ(write("cc", 10).error(), errno_code(ENOSPC));
  EXPECT_EQ(content(), std::string("aa\0\0\0\0\0\0\0\0bb", 12));
  EXPECT_TRUE(write("dd", 10));
}

TEST_F(FaultDeviceTest, FailsAfterPerforming) {
  script_.fail_after(OpKind::writev, EIO, {.times = 1});
  EXPECT_EQ(write("abc", 0).error(), errno_code(EIO));
  EXPECT_EQ(content(), "abc");
}

TEST_F(FaultDeviceTest, ShortensAcrossSegments) {
  script_.shorten(OpKind::writev, 5, {.times = 1});
  EXPECT_EQ(*write("abcdefgh", 0), 5U);
  EXPECT_EQ(content(), "abcde");
  script_.shorten(OpKind::writev, 0, {.times = 1});
  EXPECT_EQ(*write("xyz", 0), 0U);
  EXPECT_EQ(content(), "abcde");
}

TEST_F(FaultDeviceTest, FailsSyncs) {
  script_.fail(OpKind::sync, EIO);
  EXPECT_EQ(sync().error(), errno_code(EIO));
  script_.clear();
  EXPECT_TRUE(sync());
}

TEST_F(FaultDeviceTest, HoldsBeforeUntilReleasedWhileOthersPass) {
  const auto hold = script_.hold_before(OpKind::writev, {.matches = at_ten, .times = 1});
  auto held = start_write("held", 10);
  ASSERT_TRUE(hold->wait_held());
  EXPECT_TRUE(write("newer", 10));
  EXPECT_EQ(content().substr(10), "newer");
  EXPECT_EQ(held.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  hold->release();
  EXPECT_EQ(*held.get(), 4U);
  EXPECT_EQ(content().substr(10), "heldr");
}

TEST_F(FaultDeviceTest, HoldsTheCompletion) {
  const auto hold = script_.hold_after(OpKind::writev);
  auto held = start_write("held", 0);
  ASSERT_TRUE(hold->wait_held());
  EXPECT_EQ(content(), "held");
  EXPECT_EQ(held.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  hold->release();
  EXPECT_EQ(*held.get(), 4U);
  EXPECT_EQ(*write("next", 0), 4U);  // Later ones pass.
}

TEST_F(FaultDeviceTest, ReleasesWithAnError) {
  const auto hold = script_.hold_before(OpKind::writev, {.times = 2});
  auto first = start_write("one", 0);
  auto second = start_write("two", 0);
  ASSERT_TRUE(hold->wait_held(2));
  hold->release_with_error(EIO);
  EXPECT_EQ(first.get().error(), errno_code(EIO));
  EXPECT_EQ(second.get().error(), errno_code(EIO));
  EXPECT_EQ(content(), "");
}

}  // namespace
}  // namespace selvage::storage
