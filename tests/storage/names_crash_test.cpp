// What was answered is there after the power went off: XFS shut down without a log flush.
#include "tests/storage/names_fixture.h"

#include <sys/ioctl.h>

#include <functional>

namespace selvage::storage {
namespace {

/// XFS_IOC_GOINGDOWN without a log flush: as if the power went off now. Then mounts what is on the
/// disk. Nothing may be open on it but what `let_go`, which runs between the two, closes.
bool crash_xfs(const XfsMount& xfs, const std::function<void()>& let_go) {
  const std::string point = xfs.path();
  const std::string image = std::filesystem::path(point).replace_filename("image");
  const int fd = ::open(point.c_str(), O_RDONLY | O_DIRECTORY);
  std::uint32_t no_log_flush = 2;
  const bool down = fd >= 0 && ::ioctl(fd, _IOR('X', 125, std::uint32_t), &no_log_flush) == 0;
  ::close(fd);
  let_go();
  const std::string again = "umount " + point + " && mount -o loop " + image + " " + point;
  return std::system(again.c_str()) == 0 && down;
}

class NamesCrash : public Names {
 protected:
  void SetUp() override {
    if (!xfs_.mounted()) GTEST_SKIP() << "cannot mount XFS";
    Names::SetUp();
    ::sync();  // The export itself.
  }
  std::string base() override { return xfs_.path(); }

  void crash(const std::function<void()>& before_close = [] {}) {
    const auto let_go = [&] {
      before_close();
      // Fails, as everything on it does now.
      auto close = [&] { return fs->close(runtime->worker(0)); };
      static_cast<void>(run_on(runtime->worker(0), close));
      fs.reset();
    };
    ASSERT_TRUE(crash_xfs(xfs_, let_go));
    reopen();
  }

  Attributes attributes_at(const std::string& name) {
    const auto found = lookup(root_user, root, name);
    EXPECT_EQ(errno_of(found), 0) << name;
    return found ? found->node.attributes : Attributes{};
  }

 private:
  XfsMount xfs_;
};

TEST_F(NamesCrash, NewNames) {
  ASSERT_EQ(errno_of(create(alice, root, "file", 0640)), 0);
  ASSERT_EQ(errno_of(mkdir(alice, root, "directory")), 0);
  ASSERT_EQ(errno_of(symlink(alice, root, "link", "target")), 0);
  ASSERT_EQ(errno_of(mknod(alice, root, "fifo", MknodRequest{})), 0);
  ASSERT_EQ(errno_of(create_exclusive(alice, "exclusive", 0x1122334455667788U)), 0);
  crash();
  EXPECT_EQ(attributes_at("file").mode, 0640U);
  EXPECT_EQ(attributes_at("directory").type, FileType::directory);
  const auto link = lookup(alice, root, "link");
  ASSERT_EQ(errno_of(link), 0);
  EXPECT_EQ(readlink(alice, link->node.id)->target, "target");
  EXPECT_EQ(attributes_at("fifo").type, FileType::fifo);
  EXPECT_EQ(errno_of(create_exclusive(alice, "exclusive", 0x1122334455667789U)), EEXIST);
  EXPECT_EQ(errno_of(create_exclusive(alice, "exclusive", 0x1122334455667788U)), 0);
}

TEST_F(NamesCrash, ChangedNames) {
  const auto file = create(alice, root, "file");
  ASSERT_EQ(errno_of(file), 0);
  const auto directory = mkdir(alice, root, "directory");
  ASSERT_EQ(errno_of(directory), 0);
  ASSERT_EQ(errno_of(create(alice, root, "gone")), 0);
  ASSERT_EQ(errno_of(create(alice, root, "over")), 0);
  ASSERT_EQ(errno_of(create(alice, root, "victim")), 0);
  ASSERT_EQ(errno_of(mkdir(alice, root, "empty")), 0);
  ASSERT_EQ(errno_of(link(alice, file->node.id, directory->node.id, "second")), 0);
  ASSERT_EQ(errno_of(rename(alice, root, "file", directory->node.id, "moved")), 0);
  ASSERT_EQ(errno_of(rename(alice, root, "over", root, "victim")), 0);
  ASSERT_EQ(errno_of(remove(alice, root, "gone")), 0);
  ASSERT_EQ(errno_of(rmdir(alice, root, "empty")), 0);
  crash();
  for (const char* name : {"file", "gone", "over", "empty"}) {
    EXPECT_EQ(errno_of(lookup(alice, root, name)), ENOENT) << name;
  }
  EXPECT_EQ(errno_of(lookup(alice, root, "victim")), 0);
  const auto moved = lookup(alice, directory->node.id, "moved");
  ASSERT_EQ(errno_of(moved), 0);
  EXPECT_EQ(moved->node.id, file->node.id);
  EXPECT_EQ(getattr(file->node.id)->nlink, 2U);
}

TEST_F(NamesCrash, AttributesOfEveryType) {
  ASSERT_EQ(errno_of(create(alice, root, "file")), 0);
  ASSERT_EQ(errno_of(mkdir(alice, root, "directory")), 0);
  ASSERT_EQ(errno_of(symlink(alice, root, "link", "target")), 0);
  ASSERT_EQ(errno_of(mknod(alice, root, "fifo", MknodRequest{})), 0);
  SetAttributes set;
  set.mode = 0711;
  set.uid = 1002;
  set.mtime = {SetTime::How::client_time, {1'000'000'000, 0}};
  const std::vector<std::string> names{"file", "directory", "link", "fifo"};
  for (const std::string& name : names) {
    const ObjectId id = lookup(alice, root, name)->node.id;
    if (name == "file") set.size = 12345;
    ASSERT_EQ(errno_of(setattr(root_user, id, set)), 0) << name;
    set.size.reset();
  }
  crash();
  for (const std::string& name : names) {
    const Attributes a = attributes_at(name);
    EXPECT_EQ(a.uid, 1002U) << name;
    EXPECT_EQ(a.mtime.tv_sec, 1'000'000'000) << name;
    if (name != "link") EXPECT_EQ(a.mode, 0711U) << name;
    if (name == "file") EXPECT_EQ(a.size, 12345U);
  }
}

TEST_F(NamesCrash, InitialAttributes) {
  SetAttributes set;
  set.mode = 0711;
  set.uid = 1002;
  set.mtime = {SetTime::How::client_time, {1'000'000'000, 0}};
  CreateRequest request;
  request.attributes = set;
  MknodRequest fifo;
  fifo.attributes = set;
  ASSERT_EQ(errno_of(create(root_user, root, "file", request)), 0);
  ASSERT_EQ(errno_of(mkdir(root_user, root, "directory", set)), 0);
  ASSERT_EQ(errno_of(mknod(root_user, root, "fifo", fifo)), 0);
  ASSERT_EQ(errno_of(symlink(root_user, root, "link", "to", set)), 0);
  crash();
  for (const char* name : {"file", "directory", "fifo", "link"}) {
    EXPECT_EQ(attributes_at(name).uid, 1002U) << name;
    EXPECT_EQ(attributes_at(name).mtime.tv_sec, 1'000'000'000) << name;
  }
}

// XFS may answer a sync with success though a shutdown has just thrown away what it was for.
TEST_F(NamesCrash, ASyncThatEndsAfterTheShutdownCountsForNothing) {
  for (const EdgeMode edges : {EdgeMode::pagecache, EdgeMode::assemble}) {
    options.edges = edges;
    reopen();
    const std::string name = edges == EdgeMode::assemble ? "assemble" : "pagecache";
    const auto file = create(root_user, root, name);
    const auto other = create(root_user, root, name + "2");
    ASSERT_EQ(errno_of(file), 0);
    ASSERT_EQ(errno_of(other), 0);
    const auto hold = faults.hold_after(OpKind::sync);
    Worker& worker = runtime->worker(0);
    const Caller caller{worker, root_user};
    const std::vector<std::byte> data(6000);
    const WriteRequest request{0, data, Stability::file_sync};
    auto writing = start_on(worker, [&] { return fs->write(caller, file->node.id, request); });
    SetAttributes set;
    set.mode = 0711;
    auto setting = start_on(worker, [&] { return fs->setattr(caller, other->node.id, set, {}); });
    auto making = start_on(worker, [&] { return fs->mkdir(caller, root, name + "3", {}); });
    ASSERT_TRUE(hold->wait_held(3));
    crash([&] {
      hold->release();
      EXPECT_EQ(errno_of(writing.get()), EIO);
      EXPECT_EQ(errno_of(setting.get()), EIO);
      EXPECT_EQ(errno_of(making.get()), EIO);
    });
    faults.clear();
  }
}

}  // namespace
}  // namespace selvage::storage
