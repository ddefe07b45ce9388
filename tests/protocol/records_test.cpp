// What this server is for: several libnfs connections writing misaligned records into one file.
#include "tests/protocol/fixture.h"
#include "tests/support/libnfs_mount.h"

#include <nfsc/libnfs.h>

#include <fcntl.h>

#include <fstream>
#include <iterator>
#include <random>
#include <thread>

namespace selvage::tests {
namespace {

std::string record_data(unsigned writer, unsigned number, std::size_t size) {
  std::mt19937 random(writer * 10007 + number);
  std::string data(size, '\0');
  for (char& byte : data) byte = static_cast<char>(random());
  return data;
}

class RecordsTest : public ProtocolTest {
 protected:
  std::string local(const std::string& name) const {
    std::ifstream in(path("rw/" + name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  /// `writers` connections, each its own share of `each * writers` interleaved records.
  void interleave(std::size_t size, unsigned writers, unsigned each, int flags) {
    root_->make_file(top_, "shared");
    std::vector<std::thread> threads;
    for (unsigned writer = 0; writer < writers; ++writer) {
      threads.emplace_back([=, this] {
        try {
          LibnfsMount mount(port(), path("rw"));
          auto file = mount.open("/shared", O_RDWR | flags);
          for (unsigned i = 0; i < each; ++i) {
            const std::uint64_t offset = (std::uint64_t{i} * writers + writer) * size;
            file.write(offset, record_data(writer, i, size));
          }
          file.fsync();
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();

    std::string model;
    for (unsigned i = 0; i < each; ++i) {
      for (unsigned writer = 0; writer < writers; ++writer) model += record_data(writer, i, size);
    }
    LibnfsMount reader(port(), path("rw"));
    auto file = reader.open("/shared", O_RDONLY);
    EXPECT_TRUE(file.read(0, model.size() + 1) == model);
    EXPECT_TRUE(local("shared") == model);
  }
};

TEST_F(RecordsTest, InterleavedStable) {
  interleave(47008, 4, 60, O_SYNC);
}

TEST_F(RecordsTest, InterleavedUnstableAndCommit) {
  interleave(47008, 4, 60, 0);
}

TEST_F(RecordsTest, SmallRecordsStable) {
  interleave(6000, 4, 60, O_SYNC);
}

TEST_F(RecordsTest, SmallRecordsUnstable) {
  interleave(6000, 4, 60, 0);
}

TEST_F(RecordsTest, OverlappingWritesInTurnAgainstAModel) {
  root_->make_file(top_, "shared");
  constexpr unsigned connections = 4;
  std::vector<std::unique_ptr<LibnfsMount>> mounts;
  std::vector<LibnfsMount::File> files;
  for (unsigned i = 0; i < connections; ++i) {
    mounts.push_back(std::make_unique<LibnfsMount>(port(), path("rw")));
    files.push_back(mounts.back()->open("/shared", O_RDWR | (i % 2 == 0 ? O_SYNC : 0)));
  }
  std::mt19937 random(7);
  std::string model;
  for (unsigned i = 0; i < 400; ++i) {
    LibnfsMount::File& file = files[random() % connections];
    const std::size_t offset = random() % 300000;
    if (random() % 3 == 0) {
      const std::size_t count = random() % 100000;
      const std::string expected = offset < model.size() ? model.substr(offset, count) : "";
      ASSERT_TRUE(file.read(offset, count) == expected) << "READ " << offset << "+" << count;
    } else {
      const std::string data = record_data(99, i, 1 + random() % 100000);
      file.write(offset, data);
      model.resize(std::max(model.size(), offset + data.size()));
      model.replace(offset, data.size(), data);
    }
    if (i % 50 == 0) file.fsync();
  }
  for (LibnfsMount::File& file : files) file.fsync();
  EXPECT_TRUE(local("shared") == model);
}

TEST_F(RecordsTest, FileOperationsOfAThirdPartyClient) {
  LibnfsMount mount(port(), path("rw"));
  nfs_context* nfs = mount.context();
  mount.check(nfs_mkdir(nfs, "/d"), "mkdir");
  {
    auto file = mount.open("/d/f", O_CREAT | O_EXCL | O_RDWR, 0640);
    file.write(0, "hello");
    EXPECT_EQ(file.read(0, 100), "hello");
  }
  mount.check(nfs_symlink(nfs, "f", "/d/l"), "symlink");
  mount.check(nfs_link(nfs, "/d/f", "/d/hard"), "link");
  mount.check(nfs_rename(nfs, "/d/hard", "/moved"), "rename");
  mount.check(nfs_truncate(nfs, "/moved", 2), "truncate");
  nfs_stat_64 st{};
  mount.check(nfs_stat64(nfs, "/d/f", &st), "stat");
  EXPECT_EQ(st.nfs_size, 2u);
  EXPECT_EQ(st.nfs_nlink, 2u);
  EXPECT_EQ(st.nfs_mode & 07777u, 0640u);
  nfsdir* directory = nullptr;
  mount.check(nfs_opendir(nfs, "/d", &directory), "opendir");
  std::vector<std::string> names;
  while (const nfsdirent* entry = nfs_readdir(nfs, directory)) names.emplace_back(entry->name);
  nfs_closedir(nfs, directory);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{".", "..", "f", "l"}));
  mount.check(nfs_unlink(nfs, "/moved"), "unlink");
  mount.check(nfs_unlink(nfs, "/d/f"), "unlink");
  mount.check(nfs_unlink(nfs, "/d/l"), "unlink");
  mount.check(nfs_rmdir(nfs, "/d"), "rmdir");
  EXPECT_TRUE(std::filesystem::is_empty(path("rw")));
}

}  // namespace
}  // namespace selvage::tests
