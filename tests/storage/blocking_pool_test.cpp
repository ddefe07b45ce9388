#include "storage/blocking_pool.h"

#include "tests/support/run_on.h"
#include "tests/support/temp_dir.h"

#include "storage/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <latch>
#include <memory>
#include <semaphore>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace selvage::storage {
namespace {

class BlockingPoolTest : public testing::Test {
 protected:
  Runtime runtime_{{.workers = 2, .pool_threads = 3, .buffer_bytes = 1}};
  Worker& worker_ = runtime_.worker(0);
  BlockingPool& pool_ = runtime_.pool();
};

TEST_F(BlockingPoolTest, RunsElsewhereAndComesBack) {
  auto coroutine = [this]() -> Awaitable<bool> {
    const std::thread::id before = std::this_thread::get_id();
    auto job = [] { return std::this_thread::get_id(); };
    const std::thread::id elsewhere = co_await pool_.run(job);
    co_return before != elsewhere&& std::this_thread::get_id() == before;
  };
  EXPECT_TRUE(run_on(worker_, coroutine));
}

TEST_F(BlockingPoolTest, ValuesMoveOnlyValuesAndNone) {
  auto coroutine = [this]() -> Awaitable<int> {
    auto owner = [given = std::make_unique<int>(41)]() mutable { return std::move(given); };
    const std::unique_ptr<int> value = co_await pool_.run(std::move(owner));
    int ran = 0;
    auto nothing = [&ran] { ran = 1; };
    co_await pool_.run(nothing);
    co_return *value + ran;
  };
  EXPECT_EQ(run_on(worker_, coroutine), 42);
}

TEST_F(BlockingPoolTest, ExceptionsReachTheCaller) {
  auto coroutine = [this]() -> Awaitable<std::string> {
    auto job = []() -> int { throw std::runtime_error("from the pool"); };
    try {
      co_await pool_.run(job);
    } catch (const std::runtime_error& error) {
      co_return error.what();
    }
    co_return "nothing thrown";
  };
  EXPECT_EQ(run_on(worker_, coroutine), "from the pool");
}

TEST_F(BlockingPoolTest, CallsRunAtOnceUpToTheNumberOfThreads) {
  std::latch all_here(3);
  auto job = [&all_here] { all_here.arrive_and_wait(); };
  std::vector<std::future<void>> calls;
  for (int i = 0; i < 3; ++i) {
    calls.push_back(start_on(worker_, [&] { return pool_.run(job); }));
  }
  for (auto& each : calls) each.get();
}

TEST_F(BlockingPoolTest, CountsWhatIsInFlight) {
  std::counting_semaphore<> go(0);
  std::counting_semaphore<> started(0);
  auto job = [&] {
    started.release();
    go.acquire();
  };
  std::vector<std::future<void>> calls;
  for (unsigned i = 0; i < 2; ++i) {
    calls.push_back(start_on(runtime_.worker(i), [&] { return pool_.run(job); }));
  }
  started.acquire();
  started.acquire();
  EXPECT_EQ(pool_.in_flight(), 2U);
  go.release(2);
  for (auto& each : calls) each.get();
  EXPECT_EQ(pool_.in_flight(), 0U);
}

TEST(BlockingPool, ACallKeepsItsContextBusy) {
  BlockingPool pool(1);
  boost::asio::io_context context;
  std::binary_semaphore go(0);
  bool resumed = false;
  auto coroutine = [&]() -> Awaitable<> {
    auto job = [&go] { go.acquire(); };
    co_await pool.run(job);
    resumed = true;
  };
  boost::asio::co_spawn(context, coroutine, boost::asio::detached);
  context.poll();
  EXPECT_FALSE(context.stopped());
  go.release();
  context.run();
  EXPECT_TRUE(resumed);
}

TEST_F(BlockingPoolTest, StoppedItRefuses) {
  pool_.stop();
  auto coroutine = [this]() -> Awaitable<int> {
    auto job = [] { return 0; };
    try {
      co_return co_await pool_.run(job);
    } catch (const std::system_error& error) {
      co_return error.code().value();
    }
  };
  EXPECT_EQ(run_on(worker_, coroutine), ECANCELED);
}

TEST_F(BlockingPoolTest, PoolAndWorkerThreadsLeaveSignalsToOthers) {
  auto blocked = [] {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    return sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGUSR1) == 1 &&
           sigismember(&mask, SIGIO) == 1 && sigismember(&mask, SIGSEGV) == 0;
  };
  EXPECT_TRUE(run_on(worker_, [&] { return pool_.run(blocked); }));
  auto on_worker = [&]() -> Awaitable<bool> { co_return blocked(); };
  EXPECT_TRUE(run_on(worker_, on_worker));
  EXPECT_FALSE(blocked());
}

// --- Identity: what the kernel says of the thread, read from /proc.

std::string status_of_thread(const std::string& path = "/proc/thread-self/status") {
  std::ifstream file(path);
  std::string found;
  for (std::string line; std::getline(file, line);) {
    for (const char* name : {"Uid:", "Gid:", "Groups:", "CapEff:"}) {
      if (line.rfind(name, 0) == 0) found += line + "\n";
    }
  }
  return found;
}

std::string field(const std::string& status, const std::string& name) {
  const auto at = status.find(name + ":");
  const auto end = status.find('\n', at);
  return status.substr(at + name.size() + 2, end - at - name.size() - 2);
}

std::string fs_id(const std::string& status, const std::string& name) {
  std::istringstream words(field(status, name));
  std::string word;
  while (words >> word) {
  }
  return word;
}

class IdentityTest : public BlockingPoolTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  }
  template <class F>
  auto on_pool(F f) {
    return run_on(worker_, [this, &f] { return pool_.run(f); });
  }
};

TEST_F(IdentityTest, ThreadTakesTheClientsIdentityAndGivesItBack) {
  const Credentials client{.uid = 1234, .gid = 2345, .groups = {10, 20, 30}};
  std::string before;
  std::string during;
  std::string after;
  on_pool([&] {
    before = status_of_thread();
    {
      const ScopedIdentity identity(client);
      during = status_of_thread();
    }
    after = status_of_thread();
  });
  EXPECT_EQ(fs_id(during, "Uid"), "1234");
  EXPECT_EQ(fs_id(during, "Gid"), "2345");
  EXPECT_EQ(field(during, "Groups"), "10 20 30 ");
  // CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID; LINUX_IMMUTABLE; SYS_RESOURCE; MKNOD;
  // MAC_OVERRIDE: by number in <linux/capability.h>.
  std::uint64_t bypassing = 0;
  for (const unsigned capability : {0U, 1U, 2U, 3U, 4U, 9U, 24U, 27U, 32U}) {
    bypassing |= std::uint64_t{1} << capability;
  }
  const std::uint64_t effective = std::stoull(field(before, "CapEff"), nullptr, 16);
  EXPECT_EQ(std::stoull(field(during, "CapEff"), nullptr, 16), effective & ~bypassing);
  for (const char* name : {"Uid", "Gid", "CapEff"}) {
    EXPECT_EQ(field(after, name), field(before, name));
  }
}

TEST_F(IdentityTest, RootKeepsItsCapabilities) {
  const Credentials root{.uid = 0, .gid = 0, .groups = {}};
  on_pool([&] {
    const std::string before = status_of_thread();
    const ScopedIdentity identity(root);
    const std::string during = status_of_thread();
    EXPECT_EQ(field(during, "CapEff"), field(before, "CapEff"));
    EXPECT_EQ(fs_id(during, "Uid"), "0");
  });
}

TEST_F(IdentityTest, EveryClientGetsItsOwnGroups) {
  const Credentials first{.uid = 1, .gid = 1, .groups = {11, 12}};
  const Credentials second{.uid = 2, .gid = 2, .groups = {}};
  on_pool([&] {
    for (int round = 0; round < 3; ++round) {
      {
        const ScopedIdentity identity(first);
        EXPECT_EQ(field(status_of_thread(), "Groups"), "11 12 ");
      }
      const ScopedIdentity identity(second);
      EXPECT_EQ(field(status_of_thread(), "Groups"), " ");
    }
  });
}

TEST_F(IdentityTest, OtherThreadsStayAsTheyAre) {
  const Credentials client{.uid = 1234, .gid = 2345, .groups = {10}};
  const std::string before = status_of_thread();
  on_pool([&] {
    const ScopedIdentity identity(client);
    EXPECT_EQ(status_of_thread("/proc/self/status"), before);  // The main thread's.
  });
  EXPECT_EQ(status_of_thread(), before);
}

TEST_F(IdentityTest, TheKernelJudgesTheClient) {
  TempDir dir;
  ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
  const std::string path = dir / "secret";
  ASSERT_TRUE(UniqueFd(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0640)));
  ASSERT_EQ(::chown(path.c_str(), 0, 77), 0);
  const auto open_as = [&](const Credentials& client) {
    return on_pool([&] {
      const ScopedIdentity identity(client);
      const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      return fd ? 0 : errno;
    });
  };
  EXPECT_EQ(open_as({.uid = 5, .gid = 5, .groups = {}}), EACCES);
  EXPECT_EQ(open_as({.uid = 5, .gid = 77, .groups = {}}), 0);
  EXPECT_EQ(open_as({.uid = 5, .gid = 5, .groups = {6, 77}}), 0);
  EXPECT_EQ(open_as({.uid = 5, .gid = 5, .groups = {}}), EACCES);
  EXPECT_EQ(open_as({.uid = 0, .gid = 0, .groups = {}}), 0);
}

// 2^32-1 asks the kernel for no change: a client with that uid must not be taken for root.
TEST_F(IdentityTest, AnIdentityThatCannotBeTakenIsRefused) {
  constexpr auto none = static_cast<uid_t>(-1);
  const std::vector<Credentials> impossible = {{.uid = none, .gid = 1, .groups = {}},
                                               {.uid = 1, .gid = none, .groups = {}},
                                               {.uid = 1, .gid = 1, .groups = {none}}};
  for (const Credentials& client : impossible) {
    on_pool([&] {
      const std::string before = status_of_thread();
      EXPECT_THROW(const ScopedIdentity identity(client), std::system_error);
      const std::string after = status_of_thread();
      for (const char* name : {"Uid", "Gid", "CapEff"}) {
        EXPECT_EQ(field(after, name), field(before, name));
      }
    });
  }
}

TEST_F(IdentityTest, WorkersHaveNoPrivilegesOnFiles) {
  auto coroutine = []() -> Awaitable<std::string> { co_return status_of_thread(); };
  const std::string status = run_on(worker_, coroutine);
  EXPECT_EQ(fs_id(status, "Uid"), "65534");
  EXPECT_EQ(fs_id(status, "Gid"), "65534");
  EXPECT_EQ(field(status, "Groups"), " ");
  constexpr std::uint64_t dac_override_fsetid_sys_resource = 1U << 1 | 1U << 4 | 1U << 24;
  EXPECT_EQ(std::stoull(field(status, "CapEff"), nullptr, 16) & dac_override_fsetid_sys_resource,
            0U);
}

}  // namespace
}  // namespace selvage::storage
