// Durable names: which operation syncs what, how syncs are shared, what their failures do.
#include "storage/local/name_sync.h"
#include "tests/storage/names_fixture.h"

#include <set>
#include <thread>

namespace selvage::storage {
namespace {

class NamesSync : public Names {
 protected:
  std::uint64_t syncs_of(const std::function<int()>& operation) {
    faults.reset_seen();
    EXPECT_EQ(operation(), 0);
    return faults.seen(OpKind::sync);
  }
};

TEST_F(NamesSync, EveryChangeOfANameIsSynced) {
  const auto other = mkdir(alice, root, "other");
  ASSERT_EQ(errno_of(other), 0);
  const ObjectId to = other->node.id;
  EXPECT_EQ(syncs_of([&] { return errno_of(create(alice, root, "file")); }), 1U);
  EXPECT_EQ(syncs_of([&] { return errno_of(mkdir(alice, root, "directory")); }), 1U);
  EXPECT_EQ(syncs_of([&] { return errno_of(symlink(alice, root, "link", "to")); }), 1U);
  EXPECT_EQ(syncs_of([&] { return errno_of(mknod(alice, root, "fifo", MknodRequest{})); }), 1U);
  const ObjectId file = lookup(alice, root, "file")->node.id;
  EXPECT_EQ(syncs_of([&] { return errno_of(link(alice, file, root, "second")); }), 1U);
  EXPECT_EQ(syncs_of([&] { return errno_of(rename(alice, root, "second", root, "third")); }), 1U);
  EXPECT_EQ(syncs_of([&] { return errno_of(rename(alice, root, "third", to, "fourth")); }), 2U);
  EXPECT_EQ(syncs_of([&] { return errno_of(remove(alice, root, "link")); }), 1U);
  EXPECT_EQ(syncs_of([&] { return errno_of(rmdir(alice, root, "directory")); }), 1U);
  // The file with its verifier, then the name.
  EXPECT_EQ(syncs_of([&] { return errno_of(create_exclusive(alice, "exclusive", 1)); }), 2U);
  // A retry: the first copy may have died before its sync.
  EXPECT_EQ(syncs_of([&] { return errno_of(create_exclusive(alice, "exclusive", 1)); }), 1U);
  // Attributes set after creation are not covered by the directory's sync.
  SetAttributes set;
  set.mtime = {SetTime::How::client_time, {1, 0}};
  EXPECT_EQ(syncs_of([&] { return errno_of(mkdir(alice, root, "dated", set)); }), 2U);
  EXPECT_EQ(syncs_of([&] { return errno_of(lookup(alice, root, "dated")); }), 0U);
}

TEST_F(NamesSync, TheSyncIsOfTheDirectory) {
  struct stat wanted{};
  ASSERT_EQ(::stat(export_path.c_str(), &wanted), 0);
  const auto hold = faults.hold_before(OpKind::sync);
  Worker& worker = runtime->worker(0);
  CreateRequest request;
  auto creating =
      start_on(worker, [&] { return fs->create(Caller{worker, alice}, root, "file", request); });
  ASSERT_TRUE(hold->wait_held());
  const auto log = faults.log();
  ASSERT_EQ(log.size(), 1U);
  EXPECT_EQ(log[0].flags, static_cast<int>(SyncKind::all));
  EXPECT_EQ(log[0].length, 0U);
  struct stat synced{};
  EXPECT_EQ(::fstat(log[0].fd, &synced), 0);
  EXPECT_EQ(synced.st_ino, wanted.st_ino);
  // Not answered before.
  EXPECT_EQ(creating.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  hold->release();
  EXPECT_EQ(errno_of(creating.get()), 0);
}

TEST_F(NamesSync, FailuresAreReported) {
  ASSERT_EQ(errno_of(create(alice, root, "file")), 0);
  ASSERT_EQ(errno_of(create(alice, root, "second")), 0);
  ASSERT_EQ(errno_of(mkdir(alice, root, "directory")), 0);
  const ObjectId directory = lookup(alice, root, "directory")->node.id;
  const ObjectId file = lookup(alice, root, "file")->node.id;
  faults.fail(OpKind::sync, EIO);
  EXPECT_EQ(errno_of(create(alice, root, "x")), EIO);
  EXPECT_EQ(errno_of(create_exclusive(alice, "e", 1)), EIO);
  EXPECT_EQ(errno_of(mkdir(alice, root, "d")), EIO);
  EXPECT_EQ(errno_of(symlink(alice, root, "l", "to")), EIO);
  EXPECT_EQ(errno_of(mknod(alice, root, "f", MknodRequest{})), EIO);
  EXPECT_EQ(errno_of(link(alice, file, root, "link")), EIO);
  EXPECT_EQ(errno_of(rename(alice, root, "file", root, "renamed")), EIO);
  EXPECT_EQ(errno_of(remove(alice, root, "second")), EIO);
  EXPECT_EQ(errno_of(rmdir(alice, root, "directory")), EIO);
  EXPECT_EQ(errno_of(getattr(directory)), ESTALE);
  faults.clear();
  // The second of two directories counts as well.
  ASSERT_EQ(errno_of(mkdir(alice, root, "to")), 0);
  const ObjectId to = lookup(alice, root, "to")->node.id;
  When second;
  second.skip = 1;
  faults.fail(OpKind::sync, ENOSPC, second);
  EXPECT_EQ(errno_of(rename(alice, root, "renamed", to, "there")), ENOSPC);
  faults.clear();
}

TEST_F(NamesSync, WithoutSyncNothingIsSynced) {
  options.sync = false;
  reopen();
  faults.fail(OpKind::sync, EIO);
  faults.reset_seen();
  EXPECT_EQ(errno_of(create(alice, root, "file")), 0);
  EXPECT_EQ(errno_of(create_exclusive(alice, "exclusive", 1)), 0);
  EXPECT_EQ(errno_of(mkdir(alice, root, "directory")), 0);
  SetAttributes set;
  set.mode = 0700;
  EXPECT_EQ(errno_of(setattr(alice, lookup(alice, root, "file")->node.id, set)), 0);
  EXPECT_EQ(errno_of(rename(alice, root, "file", root, "renamed")), 0);
  EXPECT_EQ(errno_of(remove(alice, root, "renamed")), 0);
  EXPECT_EQ(faults.seen(OpKind::sync), 0U);
  faults.clear();
}

// Who arrives while a sync runs was too late for it: they share the next one.
TEST_F(NamesSync, WaitersShareTheNextSync) {
  NameSync sync;
  const int fd = ::open(export_path.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_GE(fd, 0);
  When first;
  first.times = 1;
  const auto hold = faults.hold_before(OpKind::sync, first);
  faults.reset_seen();
  auto one = [&](unsigned index) {
    Worker& worker = runtime->worker(index % 2);
    return start_on(worker, [&]() -> Awaitable<bool> {
      const auto before = std::this_thread::get_id();
      const auto done = co_await sync.sync(worker, root, fd);
      co_return done.has_value() && std::this_thread::get_id() == before;
    });
  };
  std::vector<std::future<bool>> calls;
  calls.push_back(one(0));
  ASSERT_TRUE(hold->wait_held());
  for (unsigned i = 1; i <= 20; ++i) calls.push_back(one(i));
  // Round trips to both workers: all have arrived.
  for (unsigned i = 0; i < 2; ++i) {
    auto nothing = []() -> Awaitable<int> { co_return 0; };
    run_on(runtime->worker(i), nothing);
  }
  EXPECT_EQ(faults.seen(OpKind::sync), 1U);
  hold->release();
  for (auto& each : calls) EXPECT_TRUE(each.get());
  EXPECT_EQ(faults.seen(OpKind::sync), 2U);
  ::close(fd);
}

TEST_F(NamesSync, AFailureIsOfThoseItWasFor) {
  NameSync sync;
  const int fd = ::open(export_path.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_GE(fd, 0);
  When first;
  first.times = 1;
  const auto hold = faults.hold_before(OpKind::sync, first);
  When second;
  second.times = 1;
  faults.fail(OpKind::sync, EIO, second);
  auto one = [&](unsigned index) {
    Worker& worker = runtime->worker(index % 2);
    return start_on(worker, [&] { return sync.sync(worker, root, fd); });
  };
  auto leader = one(0);
  ASSERT_TRUE(hold->wait_held());
  std::vector<std::future<Result<>>> group;
  for (unsigned i = 0; i < 10; ++i) group.push_back(one(i));
  for (unsigned i = 0; i < 2; ++i) {
    auto nothing = []() -> Awaitable<int> { co_return 0; };
    run_on(runtime->worker(i), nothing);
  }
  hold->release();
  EXPECT_EQ(errno_of(leader.get()), 0);
  for (auto& each : group) EXPECT_EQ(errno_of(each.get()), EIO);
  EXPECT_EQ(errno_of(one(1).get()), 0);
  ::close(fd);
}

TEST_F(NamesSync, ObjectsDoNotWaitForEachOther) {
  NameSync sync;
  const auto other = mkdir(alice, root, "other");
  ASSERT_EQ(errno_of(other), 0);
  const int fd = ::open(export_path.c_str(), O_RDONLY | O_DIRECTORY);
  const int other_fd = ::open(path_of("other").c_str(), O_RDONLY | O_DIRECTORY);
  When on_root;
  on_root.matches = [fd](const Op& op) { return op.fd == fd; };
  const auto hold = faults.hold_before(OpKind::sync, on_root);
  Worker& worker = runtime->worker(0);
  auto held = start_on(worker, [&] { return sync.sync(worker, root, fd); });
  ASSERT_TRUE(hold->wait_held());
  auto passing = [&] { return sync.sync(worker, other->node.id, other_fd); };
  EXPECT_EQ(errno_of(run_on(worker, passing)), 0);
  hold->release();
  EXPECT_EQ(errno_of(held.get()), 0);
  ::close(fd);
  ::close(other_fd);
}

TEST_F(NamesSync, ManyNamesAtOnce) {
  faults.reset_seen();
  std::vector<std::future<Result<CreateResult>>> calls;
  for (unsigned i = 0; i < 200; ++i) {
    Worker& worker = runtime->worker(i % 2);
    calls.push_back(start_on(worker, [this, &worker, i] {
      return fs->create(Caller{worker, alice}, root, std::to_string(i), CreateRequest{});
    }));
  }
  std::set<std::uint64_t> fileids;
  for (auto& each : calls) {
    const auto result = each.get();
    ASSERT_EQ(errno_of(result), 0);
    fileids.insert(result->node.attributes.fileid);
  }
  EXPECT_EQ(fileids.size(), 200U);
  EXPECT_LE(faults.seen(OpKind::sync), 200U);
}

}  // namespace
}  // namespace selvage::storage
