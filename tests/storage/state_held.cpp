// Files that are held (NFSv4 OPEN) stay usable without a link, and only those.
#include "tests/storage/state_fixture.h"

#include <sys/vfs.h>

namespace selvage::storage {
namespace {

class StateHeld : public StateTest {
 protected:
  std::uint64_t free_blocks() const {
    struct statfs stats{};
    EXPECT_EQ(::statfs(export_path.c_str(), &stats), 0);
    return stats.f_bfree;
  }
};

TEST_P(StateHeld, AHeldFileIsUsedOnAfterItsRemoval) {
  const ObjectId id = make("f");
  Bytes model = pattern(30'000, 1);
  ASSERT_EQ(errno_of(write(id, 0, model)), 0);  // In edge mode assemble its tail is in memory only.
  auto held = hold(id);
  ASSERT_EQ(errno_of(held), 0);
  ASSERT_EQ(errno_of(remove(root_user, root, "f")), 0);
  EXPECT_EQ(errno_of(lookup(root_user, root, "f")), ENOENT);

  auto now = getattr(id);
  ASSERT_EQ(errno_of(now), 0);
  EXPECT_EQ(now->nlink, 0U);
  EXPECT_EQ(now->size, model.size());
  EXPECT_EQ(content(id, 100'000), model);

  const Bytes more = pattern(9'000, 2);
  const auto wrote = write(id, 30'000, more);
  ASSERT_EQ(errno_of(wrote), 0);
  EXPECT_EQ(wrote->after.nlink, 0U);
  model.insert(model.end(), more.begin(), more.end());
  ASSERT_EQ(errno_of(write(id, 39'000, more, Stability::file_sync)), 0);
  model.insert(model.end(), more.begin(), more.end());
  EXPECT_EQ(errno_of(commit(id)), 0);
  EXPECT_EQ(content(id, 100'000), model);

  ASSERT_EQ(errno_of(set_size(id, 12'345)), 0);
  model.resize(12'345);
  EXPECT_EQ(content(id, 100'000), model);
  ASSERT_EQ(errno_of(deallocate(id, 1000, 5000)), 0);
  std::fill_n(model.begin() + 1000, 5000, std::byte{0});
  EXPECT_EQ(content(id, 100'000), model);
  EXPECT_EQ(errno_of(access(alice, id)), 0);
  // It cannot get a name again.
  EXPECT_EQ(errno_of(link(root_user, id, root, "again")), ESTALE);

  held->reset();
  EXPECT_EQ(errno_of(getattr(id)), ESTALE);
  EXPECT_EQ(errno_of(read(id, 0, 10)), ESTALE);
  EXPECT_EQ(errno_of(write(id, 0, more)), ESTALE);
  EXPECT_EQ(errno_of(hold(id)), ESTALE);
  EXPECT_TRUE(eventually([&] { return deleted_descriptors() == 0; }));
}

TEST_P(StateHeld, AFileCanBeHeldFromItsCreationOn) {
  const auto before = getattr(root);
  CreateRequest request;
  request.hold = true;
  auto made = create(root_user, root, "f", request);
  ASSERT_EQ(errno_of(made), 0);
  ASSERT_TRUE(made->hold);
  ASSERT_EQ(errno_of(before), 0);
  EXPECT_TRUE(same_time(made->directory_before.mtime, before->mtime));
  const ObjectId id = made->node.id;
  ASSERT_EQ(errno_of(remove(root_user, root, "f")), 0);
  const auto now = getattr(id);
  ASSERT_EQ(errno_of(now), 0);
  EXPECT_EQ(now->nlink, 0U);
  made->hold.reset();
  EXPECT_EQ(errno_of(getattr(id)), ESTALE);
  EXPECT_TRUE(eventually([&] { return deleted_descriptors() == 0; }));
}

TEST_P(StateHeld, ACreateThatFindsTheFileHoldsNothing) {
  const ObjectId id = make("f");
  CreateRequest request;
  request.hold = true;
  const auto found = create(root_user, root, "f", request);
  ASSERT_EQ(errno_of(found), 0);
  EXPECT_EQ(found->node.id, id);
  EXPECT_FALSE(found->hold);
}

TEST_P(StateHeld, WhoeverRemovesAFileAfterItsLastHoldFreesIt) {
  const ObjectId id = make("f");
  auto held = hold(id);
  ASSERT_EQ(errno_of(held), 0);
  held->reset();
  EXPECT_EQ(errno_of(getattr(id)), 0);
  ASSERT_EQ(errno_of(remove(root_user, root, "f")), 0);
  EXPECT_EQ(errno_of(getattr(id)), ESTALE);
  EXPECT_TRUE(eventually([&] { return deleted_descriptors() == 0; }));
}

TEST_P(StateHeld, ItsSpaceIsFreeAfterTheLastHold) {
  if (!GetParam().xfs) GTEST_SKIP() << "others use that file system as well";
  const ObjectId id = make("f");
  const Bytes piece = pattern(1 << 20, 3);
  for (std::uint64_t n = 0; n < 16; ++n) {
    ASSERT_EQ(errno_of(write(id, n << 20, piece)), 0);
  }
  auto first = hold(id);
  auto second = hold(id);
  ASSERT_EQ(errno_of(commit(id)), 0);
  ASSERT_EQ(errno_of(remove(root_user, root, "f")), 0);
  first->reset();
  EXPECT_EQ(content(id, 1 << 20), piece);
  const std::uint64_t before = free_blocks();
  second->reset();
  // Some of its 4096 blocks; others may be taken or freed meanwhile by the file system itself.
  EXPECT_TRUE(eventually([&] { return free_blocks() >= before + 4000; }));
}

TEST_P(StateHeld, AFileThatIsRenamedOverStaysAsWell) {
  const ObjectId old = make("old");
  const ObjectId other = make("other");
  ASSERT_EQ(errno_of(write(old, 0, pattern(5000, 1))), 0);
  ASSERT_EQ(errno_of(write(other, 0, pattern(5000, 2))), 0);
  const auto held = hold(old);
  ASSERT_EQ(errno_of(rename(root_user, root, "other", root, "old")), 0);
  EXPECT_EQ(content(old, 9000), pattern(5000, 1));
  EXPECT_EQ(lookup(root_user, root, "old")->node.id, other);
  EXPECT_EQ(content(other, 9000), pattern(5000, 2));
}

TEST_P(StateHeld, NobodysFileIsStaleAtOnce) {
  const ObjectId id = make("f");
  ASSERT_EQ(errno_of(write(id, 0, pattern(5000, 1))), 0);
  {
    const auto held = hold(id);
    ASSERT_EQ(errno_of(held), 0);
  }
  EXPECT_EQ(content(id, 9000), pattern(5000, 1)) << "it has its name still";
  ASSERT_EQ(errno_of(remove(root_user, root, "f")), 0);
  EXPECT_EQ(errno_of(getattr(id)), ESTALE);
  EXPECT_EQ(errno_of(read(id, 0, 10)), ESTALE);
  EXPECT_EQ(errno_of(hold(id)), ESTALE);
  EXPECT_TRUE(eventually([&] { return deleted_descriptors() == 0; }));
}

TEST_P(StateHeld, ItsDescriptorsMayBeClosedAndOpenedAgain) {
  options.max_open_files = 1;
  reopen();
  const ObjectId id = make("f");
  const ObjectId other = make("other");
  const Bytes bytes = pattern(10'000, 1);
  ASSERT_EQ(errno_of(write(id, 0, bytes)), 0);
  const auto held = hold(id);
  ASSERT_EQ(errno_of(remove(root_user, root, "f")), 0);
  ASSERT_EQ(errno_of(write(other, 0, bytes)), 0);  // Takes the only place.
  EXPECT_EQ(content(id, 20'000), bytes);
  ASSERT_EQ(errno_of(write(other, 10'000, bytes)), 0);
  ASSERT_EQ(errno_of(write(id, 10'000, bytes)), 0);
  EXPECT_EQ(getattr(id)->size, 20'000U);
}

TEST_P(StateHeld, ALocalOpenerOfTheRemovedFileSeesItsBytes) {
  const ObjectId id = make("f");
  const Bytes bytes = pattern(10'000, 1);
  ASSERT_EQ(errno_of(write(id, 0, bytes)), 0);
  const auto held = hold(id);
  const UniqueFd path(::open(path_of("f").c_str(), O_PATH | O_CLOEXEC));
  ASSERT_EQ(errno_of(remove(root_user, root, "f")), 0);
  const std::string name = "/proc/self/fd/" + std::to_string(path.get());
  const UniqueFd local(::open(name.c_str(), O_RDWR | O_CLOEXEC));  // Breaks a lease.
  ASSERT_TRUE(local);
  Bytes seen(20'000);
  ASSERT_EQ(::pread(local.get(), seen.data(), seen.size(), 0), 10'000);
  seen.resize(10'000);
  EXPECT_EQ(seen, bytes);
  ASSERT_EQ(errno_of(write(id, 10'000, bytes)), 0);
  ASSERT_EQ(::pread(local.get(), seen.data(), seen.size(), 10'000), 10'000);
  EXPECT_EQ(seen, bytes);
  EXPECT_EQ(content(id, 10'000), bytes);
}

TEST_P(StateHeld, AnyThreadMayReleaseIt) {
  std::vector<std::shared_ptr<void>> holds;
  std::vector<ObjectId> ids;
  for (int n = 0; n < 40; ++n) {
    const std::string name = "f" + std::to_string(n % 20);
    if (n < 20) ids.push_back(make(name));
    holds.push_back(hold(ids[static_cast<std::size_t>(n % 20)]).value());
  }
  for (int n = 0; n < 20; ++n) {
    ASSERT_EQ(errno_of(remove(root_user, root, "f" + std::to_string(n))), 0);
  }
  std::vector<std::thread> threads;
  for (std::size_t n = 0; n < 4; ++n) {
    threads.emplace_back([&, n] {
      for (std::size_t i = n; i < holds.size(); i += 4) holds[i].reset();
    });
  }
  for (auto& thread : threads) thread.join();
  for (const ObjectId& id : ids) EXPECT_EQ(errno_of(getattr(id)), ESTALE);
  EXPECT_TRUE(eventually([&] { return deleted_descriptors() == 0; }));
}

TEST_P(StateHeld, AHoldMayOutliveTheFileSystem) {
  const auto file = hold(make("f"));
  const auto removed = hold(make("g"));
  ASSERT_EQ(errno_of(remove(root_user, root, "g")), 0);
  reopen();
  EXPECT_EQ(deleted_descriptors(), 0U);
  EXPECT_TRUE(*file && *removed);
}

TEST_P(StateHeld, OnlyRegularFilesCanBeHeld) {
  EXPECT_EQ(errno_of(hold(root)), EISDIR);
  const auto link = symlink(root_user, root, "s", "target");
  EXPECT_EQ(errno_of(hold(link->node.id)), EINVAL);
  EXPECT_EQ(errno_of(hold(ObjectId())), ESTALE);
}

INSTANTIATE_TEST_SUITE_P(Places, StateHeld, all_places, place_name);

}  // namespace
}  // namespace selvage::storage
