// READDIR and READDIRPLUS of a local file system.
#include "tests/storage/names_fixture.h"

#include <map>
#include <set>
#include <thread>

namespace selvage::storage {
namespace {

class NamesReaddir : public Names, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) == "xfs") {
      xfs_.emplace();
      if (!xfs_->mounted()) GTEST_SKIP() << "cannot mount XFS";
    }
    Names::SetUp();
  }
  std::string base() override { return xfs_ ? xfs_->path() : Names::base(); }

  /// The whole directory in calls of at most `chunk` entries; how often each name came.
  std::map<std::string, int> list(const Credentials& who, const ObjectId& directory,
                                  std::size_t chunk, bool with_nodes) {
    std::map<std::string, int> names;
    std::uint64_t cookie = 0;
    for (;;) {
      std::size_t taken = 0;
      auto sink = [&](DirectoryEntry&& entry) {
        if (taken == chunk) return false;
        ++taken;
        ++names[entry.name];
        cookie = entry.cookie;
        return true;
      };
      const auto result = readdir(who, directory, cookie, with_nodes, sink);
      EXPECT_EQ(errno_of(result), 0);
      if (!result || result->end) return names;
      EXPECT_EQ(taken, chunk);
    }
  }

 private:
  std::optional<XfsMount> xfs_;
};

TEST_P(NamesReaddir, EveryEntryOnceInAnyChunks) {
  std::map<std::string, int> expected{{".", 1}, {"..", 1}};
  for (int i = 0; i < 300; ++i) {
    const std::string name = "a-longer-name-for-more-than-one-buffer-" + std::to_string(i) +
                             std::string(static_cast<std::size_t>(i) % 200, '.');
    write_file(name, "");
    expected[name] = 1;
  }
  for (const std::size_t chunk : {1U, 7U, 302U, 1000U}) {
    EXPECT_EQ(list(alice, root, chunk, false), expected) << chunk;
    EXPECT_EQ(list(alice, root, chunk, true), expected) << chunk;
  }
}

TEST_P(NamesReaddir, NodesAreThoseOfLookup) {
  ASSERT_EQ(errno_of(create(alice, root, "file", 0600)), 0);
  const auto directory = mkdir(alice, root, "directory");
  ASSERT_EQ(errno_of(directory), 0);
  ASSERT_EQ(errno_of(symlink(alice, root, "link", "to")), 0);
  const ObjectId id = directory->node.id;
  ASSERT_EQ(errno_of(create(alice, id, "inner")), 0);
  for (const ObjectId& where : {root, id}) {
    std::size_t count = 0;
    auto sink = [&](DirectoryEntry&& entry) {
      ++count;
      EXPECT_TRUE(entry.node) << entry.name;
      if (!entry.node) return true;
      EXPECT_EQ(entry.fileid, entry.node->attributes.fileid) << entry.name;
      return true;
    };
    const auto result = readdir(bob, where, 0, true, sink);
    ASSERT_EQ(errno_of(result), 0);
    EXPECT_TRUE(result->end);
    EXPECT_EQ(result->directory.fileid, getattr(where)->fileid);
    EXPECT_EQ(count, where == root ? 5U : 3U);
  }
  std::map<std::string, ObjectId> ids;
  auto collect = [&](DirectoryEntry&& entry) {
    ids[entry.name] = entry.node->id;
    return true;
  };
  ASSERT_EQ(errno_of(readdir(bob, root, 0, true, collect)), 0);
  for (const auto& [name, node] : ids) EXPECT_EQ(lookup(bob, root, name)->node.id, node) << name;
}

TEST_P(NamesReaddir, NothingIsSaidOfTheDirectoryAbove) {
  std::map<std::string, DirectoryEntry> entries;
  auto sink = [&](DirectoryEntry&& entry) {
    entries[entry.name] = entry;
    return true;
  };
  ASSERT_EQ(errno_of(readdir(alice, root, 0, true, sink)), 0);
  EXPECT_EQ(entries[".."].fileid, getattr(root)->fileid);
  EXPECT_EQ(entries[".."].node->id, root);
  EXPECT_EQ(entries["."].node->id, root);
  const auto moved = mkdir(alice, root, "moved");
  ASSERT_EQ(errno_of(moved), 0);
  const std::string outside = base() + "/outside";
  ASSERT_EQ(::rename(path_of("moved").c_str(), outside.c_str()), 0);
  ASSERT_EQ(errno_of(readdir(alice, moved->node.id, 0, true, sink)), 0);
  EXPECT_FALSE(entries[".."].node);
  ASSERT_EQ(::rmdir(outside.c_str()), 0);
}

TEST_P(NamesReaddir, RightsToReadAndToSearch) {
  const auto made = mkdir(alice, root, "directory", 0700);
  ASSERT_EQ(errno_of(made), 0);
  const ObjectId id = made->node.id;
  ASSERT_EQ(errno_of(create(alice, id, "file")), 0);
  auto none = [](DirectoryEntry&&) { return true; };
  EXPECT_EQ(errno_of(readdir(bob, id, 0, false, none)), EACCES);
  ASSERT_EQ(::chmod(path_of("directory").c_str(), 0711), 0);
  EXPECT_EQ(errno_of(readdir(bob, id, 0, false, none)), EACCES);
  ASSERT_EQ(::chmod(path_of("directory").c_str(), 0744), 0);
  int with_node = 0;
  int count = 0;
  auto sink = [&](DirectoryEntry&& entry) {
    ++count;
    if (entry.node) ++with_node;
    return true;
  };
  ASSERT_EQ(errno_of(readdir(bob, id, 0, true, sink)), 0);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(with_node, 0);
  ASSERT_EQ(errno_of(create(alice, root, "file")), 0);
  EXPECT_EQ(errno_of(readdir(alice, lookup(alice, root, "file")->node.id, 0, false, none)),
            ENOTDIR);
}

TEST_P(NamesReaddir, BadCookiesAndNoRoom) {
  auto none = [](DirectoryEntry&&) { return true; };
  auto full = [](DirectoryEntry&&) { return false; };
  EXPECT_TRUE(is(readdir(alice, root, std::uint64_t{1} << 63U, false, none), Errc::bad_cookie));
  EXPECT_TRUE(is(readdir(alice, root, UINT64_MAX, false, none), Errc::bad_cookie));
  EXPECT_TRUE(is(readdir(alice, root, 0, false, full), Errc::too_small));
  // Any other cookie gives entries, none or an error, and harms nobody.
  for (std::uint64_t cookie = 1; cookie != 0 && cookie < std::uint64_t{1} << 62U; cookie *= 3) {
    static_cast<void>(readdir(alice, root, cookie, true, none));
  }
  EXPECT_EQ(list(alice, root, 2, true).size(), 2U);
}

TEST_P(NamesReaddir, TwentyThousandEntriesWhileOthersChange) {
  constexpr int total = 20000;
  std::map<std::string, int> expected{{".", 1}, {"..", 1}};
  for (int i = 0; i < total; ++i) {
    const std::string name = "stays-" + std::to_string(i);
    const int fd = ::open(path_of(name).c_str(), O_CREAT | O_WRONLY, 0644);
    ASSERT_GE(fd, 0);
    ::close(fd);
    expected[name] = 1;
    // The gaps that they leave, and new names, are what the others then use.
    if (i % 4 == 0) write_file("goes-" + std::to_string(i), "");
  }
  std::atomic<bool> stop{false};
  std::thread others([&] {
    int round = 0;
    while (!stop) {
      const int i = round++ * 4 % total;
      ::unlink(path_of("goes-" + std::to_string(i)).c_str());
      const std::string name = path_of("comes-" + std::to_string(round % 5000));
      const int fd = ::open(name.c_str(), O_CREAT | O_WRONLY, 0644);
      if (fd >= 0) ::close(fd);
      if (round % 3 == 0) ::unlink(name.c_str());
      // Lets the readers have the directory's lock.
      ::usleep(100);
    }
  });
  for (const bool with_nodes : {false, true}) {
    auto seen = list(alice, root, 100, with_nodes);
    std::erase_if(seen, [](const auto& entry) {
      return entry.first.starts_with("goes-") || entry.first.starts_with("comes-");
    });
    EXPECT_EQ(seen.size(), expected.size());
    EXPECT_TRUE(seen == expected);
  }
  stop = true;
  others.join();
}

INSTANTIATE_TEST_SUITE_P(FileSystems, NamesReaddir, ::testing::Values("own", "xfs"));

}  // namespace
}  // namespace selvage::storage
