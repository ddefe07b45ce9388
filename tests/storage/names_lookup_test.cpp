// GETATTR, LOOKUP, READLINK, FSSTAT, FSINFO of a local file system.
#include "tests/storage/names_fixture.h"

#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

namespace selvage::storage {
namespace {

class NamesLookup : public Names {};

TEST_F(NamesLookup, OpenRefusesWhatIsNoDirectory) {
  write_file("file", "x");
  EXPECT_EQ(errno_of(LocalFileSystem::open(path_of("file"), options, *runtime)), ENOTDIR);
  EXPECT_EQ(errno_of(LocalFileSystem::open(path_of("none"), options, *runtime)), ENOENT);
}

TEST_F(NamesLookup, AttributesAreThoseOfStat) {
  write_file("file", "12345");
  ASSERT_EQ(::chown(path_of("file").c_str(), 7, 8), 0);
  ASSERT_EQ(::chmod(path_of("file").c_str(), 04751), 0);
  ASSERT_EQ(::link(path_of("file").c_str(), path_of("second").c_str()), 0);
  struct stat stats{};
  ASSERT_EQ(::stat(path_of("file").c_str(), &stats), 0);
  const auto found = lookup(alice, root, "file");
  ASSERT_EQ(errno_of(found), 0);
  for (const Attributes& a : {found->node.attributes, *getattr(found->node.id)}) {
    EXPECT_EQ(a.type, FileType::regular);
    EXPECT_EQ(a.mode, 04751U);
    EXPECT_EQ(a.nlink, 2U);
    EXPECT_EQ(a.uid, 7U);
    EXPECT_EQ(a.gid, 8U);
    EXPECT_EQ(a.size, 5U);
    EXPECT_EQ(a.used, static_cast<std::uint64_t>(stats.st_blocks) * 512);
    EXPECT_EQ(a.fileid, stats.st_ino);
    EXPECT_TRUE(same_time(a.atime, stats.st_atim));
    EXPECT_TRUE(same_time(a.mtime, stats.st_mtim));
    EXPECT_TRUE(same_time(a.ctime, stats.st_ctim));
  }
  EXPECT_EQ(found->directory.type, FileType::directory);
  EXPECT_EQ(found->directory.fileid, getattr(root)->fileid);
}

TEST_F(NamesLookup, TypesOfObjects) {
  ASSERT_EQ(::mkfifo(path_of("fifo").c_str(), 0600), 0);
  ASSERT_EQ(::mknod(path_of("char").c_str(), S_IFCHR | 0600, makedev(1, 3)), 0);
  ASSERT_EQ(::mknod(path_of("block").c_str(), S_IFBLK | 0600, makedev(7, 300)), 0);
  ASSERT_EQ(::mknod(path_of("socket").c_str(), S_IFSOCK | 0600, 0), 0);
  ASSERT_EQ(::symlink("nowhere", path_of("link").c_str()), 0);
  const std::vector<std::pair<std::string, FileType>> expected{
      {"fifo", FileType::fifo},     {"char", FileType::character}, {"block", FileType::block},
      {"socket", FileType::socket}, {"link", FileType::symlink},   {".", FileType::directory}};
  for (const auto& [name, type] : expected) {
    const auto found = lookup(root_user, root, name);
    ASSERT_EQ(errno_of(found), 0) << name;
    EXPECT_EQ(found->node.attributes.type, type) << name;
    EXPECT_EQ(getattr(found->node.id)->type, type) << name;
  }
  const auto block = lookup(root_user, root, "block");
  EXPECT_EQ(block->node.attributes.rdev_major, 7U);
  EXPECT_EQ(block->node.attributes.rdev_minor, 300U);
}

TEST_F(NamesLookup, BadNames) {
  EXPECT_TRUE(is(lookup(alice, root, ""), Errc::bad_name));
  EXPECT_TRUE(is(lookup(alice, root, "a/b"), Errc::bad_name));
  EXPECT_TRUE(is(lookup(alice, root, "/"), Errc::bad_name));
  EXPECT_TRUE(is(lookup(alice, root, std::string("a\0b", 3)), Errc::bad_name));
  EXPECT_EQ(errno_of(lookup(alice, root, std::string(255, 'n'))), ENOENT);
  EXPECT_EQ(errno_of(lookup(alice, root, std::string(256, 'n'))), ENAMETOOLONG);
  EXPECT_EQ(errno_of(lookup(alice, root, std::string(100000, 'n'))), ENAMETOOLONG);
  EXPECT_EQ(errno_of(lookup(alice, root, "...")), ENOENT);
}

TEST_F(NamesLookup, OnlyDirectoriesHaveNames) {
  write_file("file", "");
  ASSERT_EQ(::symlink(".", path_of("link").c_str()), 0);
  for (const char* name : {"file", "link"}) {
    const auto found = lookup(root_user, root, name);
    ASSERT_EQ(errno_of(found), 0);
    for (const char* below : {"x", ".", ".."}) {
      EXPECT_EQ(errno_of(lookup(root_user, found->node.id, below)), ENOTDIR) << name << below;
    }
  }
}

TEST_F(NamesLookup, DotDotStaysInsideTheExport) {
  const auto one = mkdir(root_user, root, "one");
  ASSERT_EQ(errno_of(one), 0);
  const auto two = mkdir(root_user, one->node.id, "two");
  ASSERT_EQ(errno_of(two), 0);
  EXPECT_EQ(lookup(alice, two->node.id, "..")->node.id, one->node.id);
  EXPECT_EQ(lookup(alice, one->node.id, "..")->node.id, root);
  EXPECT_EQ(lookup(alice, root, "..")->node.id, root);
  EXPECT_EQ(lookup(alice, root, ".")->node.id, root);

  // Moved out by somebody local: its handle stays, the way up from it does not.
  ASSERT_EQ(::rename(path_of("one").c_str(), (temp / "outside").c_str()), 0);
  EXPECT_EQ(errno_of(getattr(one->node.id)), 0);
  EXPECT_EQ(errno_of(lookup(root_user, one->node.id, "..")), EACCES);
  EXPECT_EQ(errno_of(lookup(root_user, two->node.id, "..")), EACCES);
}

TEST_F(NamesLookup, MountPointsAreNotCrossed) {
  const auto made = mkdir(root_user, root, "mnt");
  ASSERT_EQ(errno_of(made), 0);
  const std::string point = path_of("mnt");
  if (::mount("none", point.c_str(), "tmpfs", 0, "size=1M") != 0) GTEST_SKIP() << "cannot mount";
  EXPECT_EQ(errno_of(lookup(root_user, root, "mnt")), EACCES);
  EXPECT_EQ(errno_of(create(root_user, root, "mnt", 0644, CreateMode::unchecked)), EEXIST);
  EXPECT_EQ(errno_of(create_exclusive(root_user, "mnt", 1)), EEXIST);
  EXPECT_EQ(errno_of(rmdir(root_user, root, "mnt")), EBUSY);
  bool seen = false;
  auto sink = [&](DirectoryEntry&& entry) {
    if (entry.name == "mnt") {
      seen = true;
      EXPECT_FALSE(entry.node);
      EXPECT_EQ(entry.fileid, made->node.attributes.fileid);
    }
    return true;
  };
  EXPECT_EQ(errno_of(readdir(root_user, root, 0, true, sink)), 0);
  EXPECT_TRUE(seen);
  ASSERT_EQ(::umount(point.c_str()), 0);
  // The same file system mounted once more is another mount too.
  ASSERT_EQ(::mount(export_path.c_str(), point.c_str(), nullptr, MS_BIND, nullptr), 0);
  EXPECT_EQ(errno_of(lookup(root_user, root, "mnt")), EACCES);
  ASSERT_EQ(::umount(point.c_str()), 0);
  EXPECT_EQ(lookup(root_user, root, "mnt")->node.id, made->node.id);
}

TEST_F(NamesLookup, SearchPermissionOfTheDirectoryOnly) {
  const auto closed = mkdir(alice, root, "closed", 0700);
  ASSERT_EQ(errno_of(closed), 0);
  const auto open = mkdir(alice, closed->node.id, "open", 0755);
  ASSERT_EQ(errno_of(open), 0);
  ASSERT_EQ(errno_of(create(alice, open->node.id, "file")), 0);
  EXPECT_EQ(errno_of(lookup(bob, closed->node.id, "open")), EACCES);
  EXPECT_EQ(errno_of(lookup(bob, closed->node.id, ".")), EACCES);
  // A handle is as good as a working directory.
  EXPECT_EQ(errno_of(lookup(bob, open->node.id, "file")), 0);
  EXPECT_EQ(errno_of(lookup(bob, open->node.id, "..")), 0);
  EXPECT_EQ(errno_of(lookup(alice, closed->node.id, "open")), 0);
}

TEST_F(NamesLookup, HandlesSurviveReopenAndRename) {
  const auto made = create(alice, root, "before");
  ASSERT_EQ(errno_of(made), 0);
  ASSERT_EQ(::rename(path_of("before").c_str(), path_of("after").c_str()), 0);
  reopen();
  EXPECT_EQ(getattr(made->node.id)->fileid, made->node.attributes.fileid);
  EXPECT_EQ(lookup(alice, root, "after")->node.id, made->node.id);
}

TEST_F(NamesLookup, StaleHandles) {
  const auto file = create(alice, root, "file");
  const auto directory = mkdir(alice, root, "directory");
  ASSERT_EQ(errno_of(file), 0);
  ASSERT_EQ(errno_of(directory), 0);
  const int held_file = ::open(path_of("file").c_str(), O_RDONLY);
  const int held_directory = ::open(path_of("directory").c_str(), O_RDONLY);
  ASSERT_EQ(::unlink(path_of("file").c_str()), 0);
  ASSERT_EQ(::rmdir(path_of("directory").c_str()), 0);
  const ObjectId gone_file = file->node.id;
  const ObjectId gone = directory->node.id;
  SetAttributes mode;
  mode.mode = 0600;
  auto none = [](DirectoryEntry&&) { return true; };
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(errno_of(getattr(gone_file)), ESTALE);
    EXPECT_EQ(errno_of(setattr(root_user, gone_file, mode)), ESTALE);
    EXPECT_EQ(errno_of(access(root_user, gone_file)), ESTALE);
    EXPECT_EQ(errno_of(link(root_user, gone_file, root, "again")), ESTALE);
    EXPECT_EQ(errno_of(getattr(gone)), ESTALE);
    EXPECT_EQ(errno_of(setattr(root_user, gone, mode)), ESTALE);
    EXPECT_EQ(errno_of(lookup(root_user, gone, "x")), ESTALE);
    EXPECT_EQ(errno_of(create(root_user, gone, "x")), ESTALE);
    EXPECT_EQ(errno_of(mkdir(root_user, gone, "x")), ESTALE);
    EXPECT_EQ(errno_of(remove(root_user, gone, "x")), ESTALE);
    EXPECT_EQ(errno_of(rename(root_user, gone, "x", root, "y")), ESTALE);
    EXPECT_EQ(errno_of(readdir(root_user, gone, 0, false, none)), ESTALE);
    if (round == 0) {
      ::close(held_file);
      ::close(held_directory);
    }
  }
  EXPECT_EQ(errno_of(getattr(ObjectId())), ESTALE);
}

TEST_F(NamesLookup, Readlink) {
  const std::string target(1000, 't');
  ASSERT_EQ(::symlink(target.c_str(), path_of("link").c_str()), 0);
  write_file("file", "");
  const auto found = lookup(alice, root, "link");
  ASSERT_EQ(errno_of(found), 0);
  const auto text = readlink(alice, found->node.id);
  ASSERT_EQ(errno_of(text), 0);
  EXPECT_EQ(text->target, target);
  EXPECT_EQ(text->attributes.type, FileType::symlink);
  EXPECT_EQ(errno_of(readlink(alice, root)), EINVAL);
  EXPECT_EQ(errno_of(readlink(alice, lookup(alice, root, "file")->node.id)), EINVAL);
}

TEST_F(NamesLookup, UsageAndLimits) {
  const auto usage = call(alice, [&](Caller c) { return fs->usage(c, root); });
  ASSERT_EQ(errno_of(usage), 0);
  struct statvfs stats{};
  ASSERT_EQ(::statvfs(export_path.c_str(), &stats), 0);
  EXPECT_EQ(usage->total_bytes, stats.f_blocks * stats.f_frsize);
  EXPECT_EQ(usage->total_files, stats.f_files);
  EXPECT_LE(usage->available_bytes, usage->free_bytes);
  EXPECT_LE(usage->free_bytes, usage->total_bytes);

  const auto limits = call(alice, [&](Caller c) { return fs->limits(c, root); });
  ASSERT_EQ(errno_of(limits), 0);
  EXPECT_EQ(limits->max_name, 255U);
  EXPECT_EQ(limits->max_links,
            static_cast<std::uint32_t>(::pathconf(export_path.c_str(), _PC_LINK_MAX)));
  // The limit is what the file system takes, and one byte more it does not.
  const int fd = ::open(path_of("probe").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(limits->max_file_size)), 0);
  if (limits->max_file_size < static_cast<std::uint64_t>(INT64_MAX)) {
    EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(limits->max_file_size + 1)), -1);
    EXPECT_EQ(errno, EFBIG);
  }
  ::close(fd);
}

}  // namespace
}  // namespace selvage::storage
