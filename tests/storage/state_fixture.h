// A whole local file system in the edge modes that differ, on XFS (4Kn) and on ext4 (what /tmp lies
// on), for what NFSv4 needs beyond NFSv3.
#pragma once

#include "tests/storage/data_fixture.h"
#include "tests/storage/names_fixture.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

namespace selvage::storage {

struct Place {
  const char* name;
  bool xfs;
  IoMode mode;
  EdgeMode edges;
};

class StateTest : public Names, public testing::WithParamInterface<Place> {
 protected:
  void SetUp() override {
    if (GetParam().xfs && !shared_xfs().ok()) GTEST_SKIP() << "needs root, loop and mkfs.xfs";
    options.read = options.write = GetParam().mode;
    options.edges = GetParam().edges;
    // Nothing happens by itself.
    options.write_back_seconds = options.idle_close_seconds = 3600;
    Names::SetUp();
  }
  std::string base() override { return GetParam().xfs ? shared_xfs().path() : temp.path(); }
  static bool assembles() { return GetParam().edges == EdgeMode::assemble; }

  /// A new file, empty.
  ObjectId make(const std::string& name, std::uint32_t mode = 0644,
                const Credentials& who = root_user) {
    const auto made = create(who, root, name, mode);
    EXPECT_EQ(errno_of(made), 0);
    return made->node.id;
  }
  Result<WriteResult> write(const ObjectId& id, std::uint64_t offset, const Bytes& bytes,
                            Stability stability = Stability::unstable,
                            const Credentials& who = root_user) {
    const Payload payload(offset, bytes);
    const WriteRequest request{offset, payload.data(), stability};
    return call(who, [&](Caller c) { return fs->write(c, id, request); });
  }
  Result<ReadResult> read(const ObjectId& id, std::uint64_t offset, std::uint32_t count,
                          ReadMemory memory = ReadMemory::pool) {
    return call(root_user, [&](Caller c) { return fs->read(c, id, offset, count, memory); });
  }
  Bytes content(const ObjectId& id, std::uint32_t count) {
    const auto got = read(id, 0, count);
    EXPECT_EQ(errno_of(got), 0);
    return got ? bytes_of(*got) : Bytes{};
  }
  Result<CommitResult> commit(const ObjectId& id) {
    return call(root_user, [&](Caller c) { return fs->commit(c, id, 0, 0); });
  }
  Result<Attributes> set_size(const ObjectId& id, std::uint64_t size) {
    SetAttributes set;
    set.size = size;
    return setattr(root_user, id, set);
  }
  Result<std::shared_ptr<void>> hold(const ObjectId& id) {
    return call(root_user, [&](Caller c) { return fs->hold(c, id); });
  }
  Result<Attributes> allocate(const ObjectId& id, std::uint64_t offset, std::uint64_t length,
                              const Credentials& who = root_user) {
    return call(who, [&](Caller c) { return fs->allocate(c, id, offset, length); });
  }
  Result<Attributes> deallocate(const ObjectId& id, std::uint64_t offset, std::uint64_t length,
                                const Credentials& who = root_user) {
    return call(who, [&](Caller c) { return fs->deallocate(c, id, offset, length); });
  }
  Result<SeekResult> seek(const ObjectId& id, std::uint64_t offset, SeekTo what,
                          const Credentials& who = root_user) {
    return call(who, [&](Caller c) { return fs->seek(c, id, offset, what); });
  }
  Result<> lock_range(const ObjectId& id, std::uint64_t offset, std::uint64_t length,
                      KernelLock lock) {
    Worker& worker = runtime->worker(0);
    return run_on(worker, [&] { return fs->lock_range(worker, id, offset, length, lock); });
  }

  /// How many descriptors of this process are of removed files of the export.
  std::size_t deleted_descriptors() const {
    std::size_t found = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;
      const std::string target = std::filesystem::read_symlink(entry, ignored).string();
      const bool ours = target.find("/export/") != std::string::npos;
      if (ours && target.ends_with(" (deleted)")) ++found;
    }
    return found;
  }

  /// Waits until it is so; false after a long time.
  template <class Condition>
  static bool eventually(Condition condition) {
    for (int tries = 0; tries < 3000; ++tries) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
};

inline std::string place_name(const testing::TestParamInfo<Place>& info) {
  return info.param.name;
}

inline const auto all_places =
    testing::Values(Place{"XfsAssemble", true, IoMode::direct, EdgeMode::assemble},
                    Place{"XfsPagecache", true, IoMode::direct, EdgeMode::pagecache},
                    Place{"XfsBuffered", true, IoMode::buffered, EdgeMode::buffered},
                    Place{"Ext4Assemble", false, IoMode::direct, EdgeMode::assemble},
                    Place{"Ext4Pagecache", false, IoMode::direct, EdgeMode::pagecache});

}  // namespace selvage::storage
