// REMOVE, RMDIR, RENAME, LINK of a local file system.
#include "tests/storage/names_fixture.h"

#include <gmock/gmock.h>

namespace selvage::storage {
namespace {

class NamesRemove : public Names {
 protected:
  ObjectId make(const std::string& name, const Credentials& who = alice) {
    const auto made = create(who, root, name, 0644);
    EXPECT_EQ(errno_of(made), 0) << name;
    return made->node.id;
  }
  ObjectId make_directory(const std::string& name, std::uint32_t mode = 0755) {
    const auto made = mkdir(alice, root, name, mode);
    EXPECT_EQ(errno_of(made), 0) << name;
    return made->node.id;
  }
  bool exists(const std::string& name) const {
    struct stat stats{};
    return ::lstat(path_of(name).c_str(), &stats) == 0;
  }
};

TEST_F(NamesRemove, RemovedHandlesAreStaleAtOnce) {
  const ObjectId file = make("file");
  const int held = ::open(path_of("file").c_str(), O_RDONLY);
  ASSERT_GE(held, 0);
  const auto after = remove(alice, root, "file");
  ASSERT_EQ(errno_of(after), 0);
  EXPECT_EQ(after->directory.fileid, getattr(root)->fileid);
  EXPECT_FALSE(exists("file"));
  EXPECT_EQ(errno_of(getattr(file)), ESTALE);
  ::close(held);
  EXPECT_EQ(errno_of(remove(alice, root, "file")), ENOENT);
}

TEST_F(NamesRemove, AFileWithAnotherLinkLives) {
  const ObjectId file = make("file");
  const auto linked = link(alice, file, root, "other");
  ASSERT_EQ(errno_of(linked), 0);
  EXPECT_EQ(linked->file.nlink, 2U);
  ASSERT_EQ(errno_of(remove(alice, root, "file")), 0);
  EXPECT_EQ(getattr(file)->nlink, 1U);
  EXPECT_EQ(lookup(alice, root, "other")->node.id, file);
}

TEST_F(NamesRemove, WrongTypes) {
  make("file");
  make_directory("directory");
  ASSERT_EQ(errno_of(create(alice, lookup(alice, root, "directory")->node.id, "x")), 0);
  ASSERT_EQ(::symlink("directory", path_of("link").c_str()), 0);
  EXPECT_EQ(errno_of(remove(alice, root, "directory")), EISDIR);
  EXPECT_EQ(errno_of(rmdir(alice, root, "file")), ENOTDIR);
  EXPECT_EQ(errno_of(rmdir(alice, root, "directory")), ENOTEMPTY);
  EXPECT_EQ(errno_of(rmdir(root_user, root, "link")), ENOTDIR);
  EXPECT_EQ(errno_of(remove(root_user, root, "link")), 0);
  EXPECT_EQ(errno_of(remove(alice, lookup(alice, root, "directory")->node.id, "x")), 0);
  EXPECT_EQ(errno_of(rmdir(alice, root, "directory")), 0);
  const ObjectId file = lookup(alice, root, "file")->node.id;
  EXPECT_EQ(errno_of(remove(alice, file, "x")), ENOTDIR);
  EXPECT_EQ(errno_of(rename(alice, file, "x", root, "y")), ENOTDIR);
  EXPECT_EQ(errno_of(link(alice, file, file, "x")), ENOTDIR);
}

TEST_F(NamesRemove, BadNames) {
  const ObjectId file = make("file");
  const std::vector<std::pair<std::string, Errc>> names{{"", Errc::bad_name},
                                                        {"a/b", Errc::bad_name},
                                                        {std::string("file\0", 5), Errc::bad_name},
                                                        {".", Errc::reserved_name},
                                                        {"..", Errc::reserved_name}};
  for (const auto& [name, error] : names) {
    EXPECT_TRUE(is(remove(alice, root, name), error)) << name;
    EXPECT_TRUE(is(rmdir(alice, root, name), error)) << name;
    EXPECT_TRUE(is(rename(alice, root, name, root, "x"), error)) << name;
    EXPECT_TRUE(is(rename(alice, root, "file", root, name), error)) << name;
    EXPECT_TRUE(is(link(alice, file, root, name), error)) << name;
  }
  EXPECT_EQ(errno_of(rename(alice, root, "file", root, std::string(256, 'n'))), ENAMETOOLONG);
  EXPECT_TRUE(exists("file"));
}

TEST_F(NamesRemove, RemovingNeedsTheDirectory) {
  const ObjectId directory = make_directory("directory");
  ASSERT_EQ(errno_of(create(alice, directory, "file", 0666)), 0);
  EXPECT_EQ(errno_of(remove(bob, directory, "file")), EACCES);
  EXPECT_EQ(errno_of(rename(bob, directory, "file", root, "taken")), EACCES);
  ASSERT_EQ(errno_of(create(bob, root, "own-of-bob")), 0);
  EXPECT_EQ(errno_of(rename(bob, root, "own-of-bob", directory, "x")), EACCES);
  // The right to write the directory is enough, whoever owns the file.
  EXPECT_EQ(errno_of(create(bob, root, "of-bob", 0600)), 0);
  EXPECT_EQ(errno_of(remove(alice, root, "of-bob")), 0);
}

TEST_F(NamesRemove, StickyDirectoryProtectsOthersNames) {
  ASSERT_EQ(::chmod(export_path.c_str(), 01777), 0);
  make("file");
  make("of-bob", bob);
  EXPECT_EQ(errno_of(remove(bob, root, "file")), EPERM);
  EXPECT_EQ(errno_of(rename(bob, root, "file", root, "taken")), EPERM);
  EXPECT_EQ(errno_of(rename(bob, root, "of-bob", root, "file")), EPERM);
  EXPECT_TRUE(exists("file"));
  EXPECT_EQ(errno_of(remove(alice, root, "file")), 0);
  EXPECT_EQ(errno_of(remove(root_user, root, "of-bob")), 0);
}

TEST_F(NamesRemove, RenameKeepsTheHandle) {
  const ObjectId file = make("file");
  const ObjectId directory = make_directory("directory");
  const auto moved = rename(alice, root, "file", directory, "moved");
  ASSERT_EQ(errno_of(moved), 0);
  EXPECT_EQ(moved->from.fileid, getattr(root)->fileid);
  EXPECT_EQ(moved->to.fileid, getattr(directory)->fileid);
  EXPECT_EQ(lookup(alice, directory, "moved")->node.id, file);
  EXPECT_EQ(errno_of(lookup(alice, root, "file")), ENOENT);
  EXPECT_EQ(errno_of(rename(alice, root, "file", root, "x")), ENOENT);
  EXPECT_EQ(errno_of(rename(alice, directory, "moved", directory, "moved")), 0);
  EXPECT_EQ(errno_of(getattr(file)), 0);
}

TEST_F(NamesRemove, RenameOverTakesTheVictimsHandle) {
  const ObjectId victim = make("victim");
  const ObjectId file = make("file");
  const int held = ::open(path_of("victim").c_str(), O_RDONLY);
  ASSERT_EQ(errno_of(rename(alice, root, "file", root, "victim")), 0);
  EXPECT_EQ(errno_of(getattr(victim)), ESTALE);
  EXPECT_EQ(lookup(alice, root, "victim")->node.id, file);
  ::close(held);
}

TEST_F(NamesRemove, RenameOfHardLinksToOneFileDoesNothing) {
  const ObjectId file = make("one");
  ASSERT_EQ(errno_of(link(alice, file, root, "two")), 0);
  ASSERT_EQ(errno_of(rename(alice, root, "one", root, "two")), 0);
  EXPECT_EQ(getattr(file)->nlink, 2U);
}

TEST_F(NamesRemove, RenameOfDirectories) {
  const ObjectId one = make_directory("one");
  const ObjectId two = make_directory("two");
  const auto inner = mkdir(alice, one, "inner");
  ASSERT_EQ(errno_of(inner), 0);
  make("file");
  EXPECT_EQ(errno_of(rename(alice, root, "one", inner->node.id, "x")), EINVAL);
  // XFS says EEXIST, as rename(2) allows.
  EXPECT_THAT(errno_of(rename(alice, root, "two", root, "one")), testing::AnyOf(ENOTEMPTY, EEXIST));
  EXPECT_EQ(errno_of(rename(alice, root, "one", root, "file")), ENOTDIR);
  EXPECT_EQ(errno_of(rename(alice, root, "file", root, "one")), EISDIR);
  ASSERT_EQ(errno_of(rename(alice, one, "inner", two, "inner")), 0);
  EXPECT_EQ(lookup(alice, inner->node.id, "..")->node.id, two);
  ASSERT_EQ(errno_of(rename(alice, root, "two", root, "one")), 0);
  EXPECT_EQ(errno_of(getattr(one)), ESTALE);
  EXPECT_EQ(lookup(alice, root, "one")->node.id, two);
}

TEST_F(NamesRemove, LookupDuringRenameOverAlwaysFinds) {
  make("target");
  Worker& renamer = runtime->worker(1);
  std::atomic<bool> done{false};
  auto job = [&]() -> Awaitable<int> {
    int failed = 0;
    for (int i = 0; i < 200; ++i) {
      CreateRequest request;
      const Caller caller{renamer, alice};
      const auto made = co_await fs->create(caller, root, "new", request);
      const auto moved = co_await fs->rename(caller, root, "new", root, "target");
      if (!made || !moved) ++failed;
    }
    done = true;
    co_return failed;
  };
  auto renaming = start_on(renamer, job);
  while (!done) EXPECT_EQ(errno_of(lookup(bob, root, "target")), 0);
  EXPECT_EQ(renaming.get(), 0);
}

TEST_F(NamesRemove, Links) {
  const ObjectId file = make("file");
  const ObjectId directory = make_directory("directory", 0755);
  ASSERT_EQ(::symlink("file", path_of("link").c_str()), 0);
  const ObjectId symlink_id = lookup(alice, root, "link")->node.id;
  EXPECT_EQ(errno_of(link(alice, directory, root, "x")), EPERM);
  EXPECT_EQ(errno_of(link(alice, file, root, "file")), EEXIST);
  // Its own file: whether others' may be linked is up to fs.protected_hardlinks.
  EXPECT_EQ(errno_of(link(bob, make("of-bob", bob), directory, "x")), EACCES);
  // The symlink itself gets the name, not what it points to.
  ASSERT_EQ(errno_of(link(root_user, symlink_id, root, "second")), 0);
  EXPECT_EQ(lookup(alice, root, "second")->node.id, symlink_id);
  const auto linked = link(alice, file, directory, "x");
  ASSERT_EQ(errno_of(linked), 0);
  EXPECT_EQ(linked->file.nlink, 2U);
  EXPECT_EQ(linked->directory.fileid, getattr(directory)->fileid);
  EXPECT_EQ(lookup(alice, directory, "x")->node.id, file);
}

}  // namespace
}  // namespace selvage::storage
