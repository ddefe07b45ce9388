// A data path over a real file system, with faults, driven from a test's thread.
#pragma once

#include "tests/support/fault_device.h"
#include "tests/support/run_on.h"
#include "tests/support/xfs.h"

#include "storage/local/data_path.h"
#include "storage/page_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace selvage::storage {

using Bytes = std::vector<std::byte>;

/// Bytes that depend on the seed and on their place.
inline Bytes pattern(std::size_t size, std::uint64_t seed) {
  Bytes bytes(size);
  std::uint64_t state = seed * 6364136223846793005U + 1442695040888963407U;
  for (auto& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

/// A payload at an address congruent with its file offset, as the receiver places it.
class Payload {
 public:
  Payload(std::uint64_t offset, const Bytes& bytes, std::size_t shift = 0)
      : memory_(
            static_cast<std::byte*>(std::aligned_alloc(4096, (bytes.size() / 4096 + 3) * 4096))),
        data_(memory_.get() + (offset + shift) % 4096, bytes.size()) {
    if (!bytes.empty()) std::memcpy(data_.data(), bytes.data(), bytes.size());
  }
  std::span<const std::byte> data() const { return data_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::span<std::byte> data_;
};

/// One file system for all tests of the program.
inline XfsOn4kn& shared_xfs() {
  static XfsOn4kn xfs;
  return xfs;
}

/// Everything a DataPath needs. Options may be changed before start().
class DataSetup {
 public:
  explicit DataSetup(std::string base, bool use_io_uring = true) {
    std::string name = base + "/data-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    path = name;
    options.notice = [this](const std::string&) { ++notices; };
    runtime_options.workers = 2;
    runtime_options.pool_threads = 4;
    runtime_options.buffer_bytes = 64 << 20;
    runtime_options.use_io_uring = use_io_uring;
    runtime_options.wrap_device = faults.wrapper();
  }
  ~DataSetup() {
    if (data) {
      faults.clear();
      close();
    }
    if (runtime) runtime->stop();
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  DataSetup(const DataSetup&) = delete;
  DataSetup& operator=(const DataSetup&) = delete;

  void start() {
    runtime = std::make_unique<Runtime>(runtime_options);
    opener.emplace(ObjectOpener::open(path).value());
    data = std::make_unique<DataPath>(*opener, options, counters, *runtime);
  }
  Result<> close() {
    auto path_of_data = std::move(data);
    Worker& worker = runtime->worker(0);
    return run_on(worker, [&] { return path_of_data->close(worker); });
  }

  std::string operator/(const std::string& name) const { return path + "/" + name; }
  ObjectId id(const std::string& name) const {
    return opener->id_of(opener->root_fd(), name).value();
  }
  /// A new file; empty unless given a size.
  ObjectId make(const std::string& name, mode_t mode = 0644, std::uint64_t size = 0) {
    const int fd = ::open((*this / name).c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
    EXPECT_GE(fd, 0);
    EXPECT_EQ(::fchmod(fd, mode), 0);
    EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(size)), 0);
    ::close(fd);
    return id(name);
  }
  void fill(const std::string& name, const Bytes& bytes) const {
    const int fd = ::open((*this / name).c_str(), O_WRONLY);
    ASSERT_EQ(::pwrite(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    ASSERT_EQ(::fsync(fd), 0);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }
  Bytes content(const std::string& name) const {
    const int fd = ::open((*this / name).c_str(), O_RDONLY);
    struct stat status{};
    EXPECT_EQ(::fstat(fd, &status), 0);
    Bytes bytes(static_cast<std::size_t>(status.st_size));
    EXPECT_EQ(::pread(fd, bytes.data(), bytes.size(), 0), status.st_size);
    ::close(fd);
    return bytes;
  }
  std::uint64_t resident(const std::string& name) const {
    const int fd = ::open((*this / name).c_str(), O_RDONLY);
    const auto pages = cached_pages(fd, 0, 0);
    ::close(fd);
    return pages.value().cached;
  }

  Caller caller(unsigned worker = 0) { return {runtime->worker(worker), credentials}; }
  Result<WriteResult> write(const ObjectId& file, std::uint64_t offset, const Bytes& bytes,
                            Stability stability = Stability::unstable, unsigned worker = 0) {
    const Payload payload(offset, bytes);
    const WriteRequest request{offset, payload.data(), stability};
    const Caller who = caller(worker);
    return run_on(who.worker, [&] { return data->write(who, file, request); });
  }
  /// Runs until it ends elsewhere; the setup must not go away before.
  std::future<Result<WriteResult>> start_write(const ObjectId& file, std::uint64_t offset,
                                               const Bytes& bytes, Stability stability,
                                               unsigned worker = 0) {
    const auto payload = std::make_shared<Payload>(offset, bytes);
    const Caller who = caller(worker);
    return start_on(who.worker, [this, who, file, payload, offset, stability] {
      const WriteRequest request{offset, payload->data(), stability};
      return data->write(who, file, request);
    });
  }
  Result<ReadResult> read(const ObjectId& file, std::uint64_t offset, std::uint32_t count,
                          unsigned worker = 0) {
    const Caller who = caller(worker);
    return run_on(who.worker, [&] { return data->read(who, file, offset, count); });
  }
  Result<CommitResult> commit(const ObjectId& file, std::uint64_t offset = 0,
                              std::uint32_t count = 0, unsigned worker = 0) {
    const Caller who = caller(worker);
    return run_on(who.worker, [&] { return data->commit(who, file, offset, count); });
  }
  /// A round of the background work, `later` from now.
  void tend(std::chrono::seconds later) {
    Worker& worker = runtime->worker(1);
    const auto now = std::chrono::steady_clock::now() + later;
    run_on(worker, [&]() -> Awaitable<bool> {
      co_await data->tend(worker, now);
      co_return true;
    });
  }

  std::string path;
  ExportOptions options;
  Credentials credentials{0, 0, {}};
  DataCounters counters;
  FaultScript faults;
  Runtime::Options runtime_options;
  std::atomic<int> notices{0};
  std::unique_ptr<Runtime> runtime;
  std::optional<ObjectOpener> opener;
  std::unique_ptr<DataPath> data;
};

inline Bytes bytes_of(const ReadResult& result) {
  return {result.data.begin(), result.data.end()};
}

/// A running data path on the shared 4Kn XFS, direct with edges=pagecache unless changed before
/// start().
class DataTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!shared_xfs().ok()) GTEST_SKIP() << "needs root, loop devices and mkfs.xfs";
    setup_ = std::make_unique<DataSetup>(shared_xfs().path());
  }
  DataSetup& setup() { return *setup_; }
  ExportOptions& options() { return setup_->options; }
  FaultScript& faults() { return setup_->faults; }
  const DataCounters& counters() { return setup_->counters; }

 private:
  std::unique_ptr<DataSetup> setup_;
};

}  // namespace selvage::storage
