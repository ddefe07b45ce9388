// REMOVE, RMDIR, RENAME and LINK over the wire (RFC 1813 3.3.12 to 3.3.15).
#include "tests/protocol/fixture.h"

#include <sys/stat.h>

namespace selvage::tests {
namespace {

using RemoveTest = ProtocolTest;

TEST_F(RemoveTest, Remove) {
  const Bytes file = root_->make_file(top_, "f");
  const auto answer = root_->remove(top_, "f");
  ASSERT_OK(answer);
  EXPECT_EQ(after(RESOK(answer, REMOVE).dir_wcc).type, NF3DIR);
  EXPECT_FALSE(std::filesystem::exists(path("rw/f")));
  EXPECT_STATUS(NFS3ERR_STALE, root_->getattr(file));
  for (const ftype3 type : {NF3FIFO, NF3SOCK}) {
    ASSERT_OK(root_->mknod(top_, "n", type));
    ASSERT_OK(root_->remove(top_, "n"));
  }
  ASSERT_OK(root_->symlink(top_, "l", "nowhere"));
  ASSERT_OK(root_->remove(top_, "l"));
}

TEST_F(RemoveTest, RemoveFails) {
  const auto missing = root_->remove(top_, "missing");
  EXPECT_STATUS(NFS3ERR_NOENT, missing);
  EXPECT_EQ(after(RESFAIL(missing, REMOVE).dir_wcc).type, NF3DIR);
  const Bytes file = root_->make_file(top_, "f");
  EXPECT_STATUS(NFS3ERR_ACCES, alice_->remove(top_, "f"));
  EXPECT_STATUS(NFS3ERR_NOTDIR, root_->remove(file, "f"));
  root_->make_directory(top_, "d");
  EXPECT_STATUS(NFS3ERR_ISDIR, root_->remove(top_, "d"));
  EXPECT_STATUS(NFS3ERR_INVAL, root_->remove(top_, "."));
  EXPECT_STATUS(NFS3ERR_INVAL, root_->remove(top_, ".."));
  // Sticky: others' files stay, though the directory is writable for all.
  const Bytes sticky = root_->make_directory(top_, "sticky", 01777);
  alice_->make_file(sticky, "hers");
  EXPECT_STATUS(NFS3ERR_PERM, bob_->remove(sticky, "hers"));
  ASSERT_OK(alice_->remove(sticky, "hers"));
  const Bytes gone = root_->make_directory(top_, "gone");
  ASSERT_OK(root_->rmdir(top_, "gone"));
  EXPECT_STATUS(NFS3ERR_STALE, root_->remove(gone, "x"));
}

TEST_F(RemoveTest, Rmdir) {
  const Bytes directory = root_->make_directory(top_, "d");
  root_->make_file(directory, "f");
  const auto full = root_->rmdir(top_, "d");
  EXPECT_STATUS(NFS3ERR_NOTEMPTY, full);
  EXPECT_EQ(after(RESFAIL(full, RMDIR).dir_wcc).nlink, 3u);
  ASSERT_OK(root_->remove(directory, "f"));
  EXPECT_STATUS(NFS3ERR_ACCES, alice_->rmdir(top_, "d"));
  const auto answer = root_->rmdir(top_, "d");
  ASSERT_OK(answer);
  EXPECT_EQ(after(RESOK(answer, RMDIR).dir_wcc).nlink, 2u);
  EXPECT_STATUS(NFS3ERR_NOENT, root_->rmdir(top_, "d"));
  EXPECT_STATUS(NFS3ERR_STALE, root_->getattr(directory));
  EXPECT_STATUS(NFS3ERR_INVAL, root_->rmdir(top_, "."));
  EXPECT_STATUS(NFS3ERR_EXIST, root_->rmdir(top_, ".."));
  root_->make_file(top_, "f");
  EXPECT_STATUS(NFS3ERR_NOTDIR, root_->rmdir(top_, "f"));
}

TEST_F(RemoveTest, RenameKeepsTheHandle) {
  const Bytes a = root_->make_directory(top_, "a");
  const Bytes b = root_->make_directory(top_, "b");
  const Bytes file = root_->make_file(a, "f");
  ASSERT_OK(root_->write(file, 0, "content"));
  const auto answer = root_->rename(a, "f", b, "g");
  ASSERT_OK(answer);
  EXPECT_EQ(after(RESOK(answer, RENAME).fromdir_wcc).fileid,
            RESOK(root_->getattr(a), GETATTR).obj_attributes.fileid);
  EXPECT_EQ(after(RESOK(answer, RENAME).todir_wcc).fileid,
            RESOK(root_->getattr(b), GETATTR).obj_attributes.fileid);
  EXPECT_STATUS(NFS3ERR_NOENT, root_->lookup(a, "f"));
  EXPECT_EQ(root_->look(b, "g"), file);
  EXPECT_EQ(root_->read_all(file), "content");
  ASSERT_OK(root_->rename(top_, "a", b, "a"));  // A directory, to another parent.
  EXPECT_EQ(root_->look(a, ".."), b);
}

TEST_F(RemoveTest, RenameReplaces) {
  const Bytes old_file = root_->make_file(top_, "old");
  ASSERT_OK(root_->write(old_file, 0, "old"));
  const Bytes new_file = root_->make_file(top_, "new");
  ASSERT_OK(root_->rename(top_, "new", top_, "old"));
  EXPECT_STATUS(NFS3ERR_STALE, root_->getattr(old_file));
  EXPECT_STATUS(NFS3ERR_STALE, root_->read(old_file, 0, 3));
  EXPECT_EQ(root_->look(top_, "old"), new_file);

  // Two names of one file: nothing happens (RFC 1813 3.3.14).
  ASSERT_OK(root_->link(new_file, top_, "alias"));
  ASSERT_OK(root_->rename(top_, "alias", top_, "old"));
  EXPECT_EQ(root_->look(top_, "alias"), new_file);
  EXPECT_EQ(root_->look(top_, "old"), new_file);
  ASSERT_OK(root_->rename(top_, "old", top_, "old"));

  const Bytes empty = root_->make_directory(top_, "empty");
  const Bytes mover = root_->make_directory(top_, "mover");
  ASSERT_OK(root_->rename(top_, "mover", top_, "empty"));
  EXPECT_STATUS(NFS3ERR_STALE, root_->getattr(empty));
  EXPECT_EQ(root_->look(top_, "empty"), mover);
}

TEST_F(RemoveTest, RenameFails) {
  const Bytes file = root_->make_file(top_, "f");
  const Bytes directory = root_->make_directory(top_, "d");
  const Bytes below = root_->make_directory(directory, "below");
  const auto missing = root_->rename(top_, "missing", directory, "x");
  EXPECT_STATUS(NFS3ERR_NOENT, missing);
  EXPECT_EQ(after(RESFAIL(missing, RENAME).fromdir_wcc).fileid,
            RESOK(root_->getattr(top_), GETATTR).obj_attributes.fileid);
  EXPECT_EQ(after(RESFAIL(missing, RENAME).todir_wcc).fileid,
            RESOK(root_->getattr(directory), GETATTR).obj_attributes.fileid);
  EXPECT_STATUS(NFS3ERR_ISDIR, root_->rename(top_, "f", top_, "d"));
  EXPECT_STATUS(NFS3ERR_NOTDIR, root_->rename(top_, "d", top_, "f"));
  EXPECT_STATUS(NFS3ERR_INVAL, root_->rename(top_, "d", below, "loop"));
  root_->make_directory(top_, "e");
  const nfsstat3 full = root_->rename(top_, "e", top_, "d").status();
  EXPECT_TRUE(full == NFS3ERR_NOTEMPTY || full == NFS3ERR_EXIST) << full;
  EXPECT_STATUS(NFS3ERR_ACCES, alice_->rename(top_, "f", top_, "g"));
  EXPECT_STATUS(NFS3ERR_NOTDIR, root_->rename(file, "x", top_, "g"));
  EXPECT_STATUS(NFS3ERR_NOTDIR, root_->rename(top_, "f", file, "g"));
  for (const std::string name : {".", ".."}) {
    EXPECT_STATUS(NFS3ERR_INVAL, root_->rename(directory, name, top_, "g"));
    EXPECT_STATUS(NFS3ERR_INVAL, root_->rename(top_, "f", directory, name));
  }
  const Bytes other = root_->root(path("other"));
  EXPECT_STATUS(NFS3ERR_XDEV, root_->rename(top_, "f", other, "f"));
  EXPECT_EQ(root_->look(top_, "f"), file);
  ASSERT_OK(root_->rmdir(directory, "below"));
  EXPECT_STATUS(NFS3ERR_STALE, root_->rename(below, "x", top_, "g"));
  EXPECT_STATUS(NFS3ERR_STALE, root_->rename(top_, "f", below, "g"));
}

TEST_F(RemoveTest, Link) {
  const Bytes file = root_->make_file(top_, "f");
  const Bytes directory = root_->make_directory(top_, "d");
  const auto answer = root_->link(file, directory, "g");
  ASSERT_OK(answer);
  EXPECT_EQ(attributes(RESOK(answer, LINK).file_attributes).nlink, 2u);
  EXPECT_EQ(after(RESOK(answer, LINK).linkdir_wcc).type, NF3DIR);
  EXPECT_EQ(root_->look(directory, "g"), file);
  ASSERT_OK(root_->remove(top_, "f"));
  EXPECT_EQ(RESOK(root_->getattr(file), GETATTR).obj_attributes.nlink, 1u);
  ASSERT_OK(root_->write(file, 0, "still there"));
  ASSERT_OK(root_->remove(directory, "g"));
  EXPECT_STATUS(NFS3ERR_STALE, root_->getattr(file));
  EXPECT_STATUS(NFS3ERR_STALE, root_->link(file, directory, "h"));
}

TEST_F(RemoveTest, LinkFails) {
  const Bytes file = root_->make_file(top_, "f");
  const Bytes directory = root_->make_directory(top_, "d");
  const auto exists = root_->link(file, top_, "f");
  EXPECT_STATUS(NFS3ERR_EXIST, exists);
  EXPECT_EQ(attributes(RESFAIL(exists, LINK).file_attributes).nlink, 1u);
  EXPECT_EQ(after(RESFAIL(exists, LINK).linkdir_wcc).type, NF3DIR);
  EXPECT_STATUS(NFS3ERR_PERM, root_->link(directory, top_, "hard"));
  EXPECT_STATUS(NFS3ERR_NOTDIR, root_->link(file, file, "g"));
  // A file that she may write to: another's is refused by fs.protected_hardlinks with PERM.
  const Bytes writable = root_->make_file(top_, "writable", 0666);
  EXPECT_STATUS(NFS3ERR_ACCES, alice_->link(writable, top_, "g"));
  EXPECT_STATUS(NFS3ERR_XDEV, root_->link(file, root_->root(path("other")), "g"));
  ASSERT_OK(root_->rmdir(top_, "d"));
  EXPECT_STATUS(NFS3ERR_STALE, root_->link(file, directory, "g"));
  EXPECT_EQ(RESOK(root_->getattr(file), GETATTR).obj_attributes.nlink, 1u);
}

TEST_F(RemoveTest, LinkOfASymlinkLinksTheSymlink) {
  root_->make_file(top_, "f");
  ASSERT_OK(root_->symlink(top_, "l", "f"));
  const Bytes link = root_->look(top_, "l");
  ASSERT_OK(root_->link(link, top_, "m"));
  EXPECT_EQ(root_->look(top_, "m"), link);
  EXPECT_TRUE(std::filesystem::is_symlink(path("rw/m")));
}

}  // namespace
}  // namespace selvage::tests
