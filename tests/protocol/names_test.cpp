// LOOKUP, READLINK, CREATE, MKDIR, SYMLINK and MKNOD over the wire (RFC 1813 3.3.3, 3.3.5, 3.3.8 to
// 3.3.11).
#include "tests/protocol/fixture.h"

#include <sys/stat.h>

#include <bit>
#include <fstream>

namespace selvage::tests {
namespace {

class NamesTest : public ProtocolTest {
 protected:
  /// The status of an operation that libnfs could not encode.
  std::uint32_t raw_status(std::uint32_t procedure, const XdrWriter& arguments) {
    return status_of(root_->raw(procedure, arguments.bytes()));
  }
};

XdrWriter& no_sattr(XdrWriter& to) {
  for (int i = 0; i < 6; ++i) to.u32(0);
  return to;
}

TEST_F(NamesTest, LookupFindsAndSaysBothAttributes) {
  const Bytes directory = root_->make_directory(top_, "d");
  const Bytes file = root_->make_file(directory, "f", 0604);
  const auto answer = root_->lookup(directory, "f");
  ASSERT_OK(answer);
  EXPECT_EQ(bytes_of(RESOK(answer, LOOKUP).object), file);
  EXPECT_EQ(attributes(RESOK(answer, LOOKUP).obj_attributes).mode, 0604u);
  EXPECT_EQ(attributes(RESOK(answer, LOOKUP).dir_attributes).type, NF3DIR);
  EXPECT_EQ(attributes(RESOK(answer, LOOKUP).dir_attributes).fileid,
            RESOK(root_->getattr(directory), GETATTR).obj_attributes.fileid);
}

TEST_F(NamesTest, LookupOfDots) {
  const Bytes directory = root_->make_directory(top_, "d");
  const Bytes below = root_->make_directory(directory, "e");
  EXPECT_EQ(root_->look(below, "."), below);
  EXPECT_EQ(root_->look(below, ".."), directory);
  EXPECT_EQ(root_->look(directory, ".."), top_);
  EXPECT_EQ(root_->look(top_, ".."), top_);  // Nothing above the export is shown.
  EXPECT_EQ(root_->look(top_, "."), top_);
}

TEST_F(NamesTest, LookupFails) {
  const Bytes file = root_->make_file(top_, "f");
  const auto missing = root_->lookup(top_, "missing");
  EXPECT_STATUS(NFS3ERR_NOENT, missing);
  EXPECT_EQ(attributes(RESFAIL(missing, LOOKUP).dir_attributes).type, NF3DIR);
  EXPECT_STATUS(NFS3ERR_NOTDIR, root_->lookup(file, "x"));
  EXPECT_STATUS(NFS3ERR_NOTDIR, root_->lookup(file, "."));
  ASSERT_OK(root_->symlink(top_, "l", "."));
  const Bytes link = root_->look(top_, "l");
  EXPECT_STATUS(NFS3ERR_NOTDIR, root_->lookup(link, "f"));
  EXPECT_STATUS(NFS3ERR_NOTDIR, root_->create(link, "g", GUARDED));
  EXPECT_STATUS(NFS3ERR_NOTDIR, root_->remove(link, "f"));
  EXPECT_STATUS(NFS3ERR_NOTDIR, root_->readdir(link, 0, 8192));
  const Bytes closed = root_->make_directory(top_, "closed", 0744);
  ASSERT_OK(root_->mkdir(closed, "in"));
  const auto denied = alice_->lookup(closed, "in");
  EXPECT_STATUS(NFS3ERR_ACCES, denied);
  EXPECT_EQ(attributes(RESFAIL(denied, LOOKUP).dir_attributes).mode, 0744u);
  EXPECT_STATUS(NFS3ERR_ACCES, alice_->lookup(closed, "missing"));
  ASSERT_OK(root_->rmdir(closed, "in"));
  ASSERT_OK(root_->rmdir(top_, "closed"));
  EXPECT_STATUS(NFS3ERR_STALE, root_->lookup(closed, "in"));
  EXPECT_STATUS(NFS3ERR_STALE, root_->lookup(closed, "."));
}

TEST_F(NamesTest, LookupDoesNotFollowSymlinks) {
  root_->make_file(top_, "f");
  ASSERT_OK(root_->symlink(top_, "l", "f"));
  const auto answer = root_->lookup(top_, "l");
  ASSERT_OK(answer);
  EXPECT_EQ(attributes(RESOK(answer, LOOKUP).obj_attributes).type, NF3LNK);
}

TEST_F(NamesTest, NamesThatCannotBe) {
  root_->make_file(top_, "f");
  const std::vector<std::pair<std::string, std::uint32_t>> bad = {
      {"", NFS3ERR_INVAL},
      {"a/b", NFS3ERR_INVAL},
      {"/", NFS3ERR_INVAL},
      {"../f", NFS3ERR_INVAL},
      {std::string("f\0", 2), NFS3ERR_INVAL},
      {std::string("f\0g", 3), NFS3ERR_INVAL},
      {std::string(256, 'n'), NFS3ERR_NAMETOOLONG},
      {std::string(4096, 'n'), NFS3ERR_NAMETOOLONG},
  };
  for (const auto& [name, status] : bad) {
    SCOPED_TRACE(name.substr(0, 20));
    XdrWriter lookup, create, mkdir, symlink, mknod, remove, rename_from, rename_to, link;
    EXPECT_EQ(raw_status(3, lookup.opaque(top_).opaque(name)), status);
    EXPECT_EQ(raw_status(8, no_sattr(create.opaque(top_).opaque(name).u32(0))), status);
    EXPECT_EQ(raw_status(9, no_sattr(mkdir.opaque(top_).opaque(name))), status);
    EXPECT_EQ(raw_status(10, no_sattr(symlink.opaque(top_).opaque(name)).opaque("t")), status);
    EXPECT_EQ(raw_status(11, no_sattr(mknod.opaque(top_).opaque(name).u32(NF3FIFO))), status);
    EXPECT_EQ(raw_status(12, remove.opaque(top_).opaque(name)), status);
    EXPECT_EQ(raw_status(13, remove), status);
    EXPECT_EQ(raw_status(14, rename_from.opaque(top_).opaque(name).opaque(top_).opaque("g")),
              status);
    EXPECT_EQ(raw_status(14, rename_to.opaque(top_).opaque("f").opaque(top_).opaque(name)), status);
    EXPECT_EQ(raw_status(15, link.opaque(root_->look(top_, "f")).opaque(top_).opaque(name)),
              status);
  }
  EXPECT_EQ(root_->look(top_, "f"), root_->look(top_, "f"));
}

TEST_F(NamesTest, TheLongestName) {
  const std::string name(255, 'n');
  const Bytes file = root_->make_file(top_, name);
  EXPECT_EQ(root_->look(top_, name), file);
  ASSERT_OK(root_->remove(top_, name));
}

TEST_F(NamesTest, NamesAreBytes) {
  const std::string name = "\xff\xfe spa ce\t\n\xc3\xa4";
  const Bytes file = root_->make_file(top_, name);
  EXPECT_EQ(root_->look(top_, name), file);
  EXPECT_TRUE(std::filesystem::exists(path("rw/") + name));
}

TEST_F(NamesTest, DotsExistAlready) {
  for (const std::string name : {".", ".."}) {
    EXPECT_STATUS(NFS3ERR_EXIST, root_->create(top_, name, UNCHECKED));
    EXPECT_STATUS(NFS3ERR_EXIST, root_->create(top_, name, GUARDED));
    EXPECT_STATUS(NFS3ERR_EXIST, root_->create_exclusive(top_, name, 1));
    EXPECT_STATUS(NFS3ERR_EXIST, root_->mkdir(top_, name));
    EXPECT_STATUS(NFS3ERR_EXIST, root_->symlink(top_, name, "t"));
    EXPECT_STATUS(NFS3ERR_EXIST, root_->mknod(top_, name, NF3FIFO));
    EXPECT_STATUS(NFS3ERR_EXIST, root_->link(root_->root(path("rw")), top_, name));
  }
}

TEST_F(NamesTest, CreateMakesWhatIsAskedFor) {
  const Bytes directory = root_->make_directory(top_, "d", 0777);
  Sattr set;
  set.mode = 0606;
  set.size = 12345;
  set.mtime = nfstime3{1234567890, 5};
  const auto answer = alice_->create(directory, "f", GUARDED, set);
  ASSERT_OK(answer);
  const CREATE3resok& ok = RESOK(answer, CREATE);
  ASSERT_NE(ok.obj.handle_follows, 0u);
  const fattr3 made = attributes(ok.obj_attributes);
  EXPECT_EQ(made.type, NF3REG);
  EXPECT_EQ(made.mode, 0606u);  // Whatever the server's umask.
  EXPECT_EQ(made.uid, alice_uid);
  EXPECT_EQ(made.gid, alice_uid);
  EXPECT_EQ(made.size, 12345u);
  EXPECT_EQ(made.mtime.seconds, 1234567890u);
  EXPECT_EQ(made.mtime.nseconds, 5u);
  EXPECT_EQ(after(ok.dir_wcc).type, NF3DIR);
  EXPECT_EQ(root_->look(directory, "f"), bytes_of(ok.obj.post_op_fh3_u.handle));
}

TEST_F(NamesTest, CreateUncheckedTakesWhatIsThere) {
  const Bytes file = root_->make_file(top_, "f", 0640);
  ASSERT_OK(root_->write(file, 0, "some data"));
  const auto again = root_->create(top_, "f", UNCHECKED);
  ASSERT_OK(again);
  EXPECT_EQ(bytes_of(RESOK(again, CREATE).obj.post_op_fh3_u.handle), file);
  EXPECT_EQ(attributes(RESOK(again, CREATE).obj_attributes).mode, 0640u);
  EXPECT_EQ(root_->read_all(file), "some data");
  Sattr empty;
  empty.size = 0;
  const auto truncated = root_->create(top_, "f", UNCHECKED, empty);
  ASSERT_OK(truncated);
  EXPECT_EQ(attributes(RESOK(truncated, CREATE).obj_attributes).size, 0u);
  EXPECT_EQ(root_->read_all(file), "");
}

TEST_F(NamesTest, CreateFails) {
  root_->make_file(top_, "f");
  const auto exists = root_->create(top_, "f", GUARDED);
  EXPECT_STATUS(NFS3ERR_EXIST, exists);
  EXPECT_EQ(after(RESFAIL(exists, CREATE).dir_wcc).type, NF3DIR);
  const auto denied = alice_->create(top_, "g", GUARDED);
  EXPECT_STATUS(NFS3ERR_ACCES, denied);
  EXPECT_EQ(after(RESFAIL(denied, CREATE).dir_wcc).type, NF3DIR);
  EXPECT_STATUS(NFS3ERR_ACCES, alice_->create(top_, "g", UNCHECKED));
  EXPECT_STATUS(NFS3ERR_ACCES, alice_->create_exclusive(top_, "g", 1));
  EXPECT_STATUS(NFS3ERR_NOTDIR, root_->create(root_->look(top_, "f"), "g", GUARDED));
  Sattr huge;
  huge.size = ~std::uint64_t{0};
  EXPECT_STATUS(NFS3ERR_FBIG, root_->create(top_, "g", GUARDED, huge));
  EXPECT_STATUS(NFS3ERR_NOENT, root_->lookup(top_, "g"));
  const Bytes gone = root_->make_directory(top_, "d");
  ASSERT_OK(root_->rmdir(top_, "d"));
  EXPECT_STATUS(NFS3ERR_STALE, root_->create(gone, "g", GUARDED));
  // An existing object of another type is never taken for the file.
  root_->make_directory(top_, "dir");
  const nfsstat3 over_directory = root_->create(top_, "dir", UNCHECKED).status();
  EXPECT_TRUE(over_directory == NFS3ERR_EXIST || over_directory == NFS3ERR_ISDIR);
  ASSERT_OK(root_->symlink(top_, "l", "outside"));
  EXPECT_NE(root_->create(top_, "l", UNCHECKED).status(), NFS3_OK);
  EXPECT_STATUS(NFS3ERR_NOENT, root_->lookup(top_, "outside"));
}

TEST_F(NamesTest, CreateExclusive) {
  const std::uint64_t verifier = 0x8123456789abcdef;
  const auto first = root_->create_exclusive(top_, "f", verifier);
  ASSERT_OK(first);
  const Bytes file = bytes_of(RESOK(first, CREATE).obj.post_op_fh3_u.handle);
  attributes(RESOK(first, CREATE).obj_attributes);
  after(RESOK(first, CREATE).dir_wcc);

  const auto retry = root_->create_exclusive(top_, "f", verifier);  // As after a lost reply.
  ASSERT_OK(retry);
  EXPECT_EQ(bytes_of(RESOK(retry, CREATE).obj.post_op_fh3_u.handle), file);

  for (unsigned bit = 0; bit < 64; ++bit) {
    EXPECT_STATUS(NFS3ERR_EXIST,
                  root_->create_exclusive(top_, "f", verifier ^ (std::uint64_t{1} << bit)))
        << "bit " << bit;
  }

  // The SETATTR that follows every exclusive CREATE does not make it another file.
  Sattr set;
  set.mode = 0644;
  set.atime_now = set.mtime_now = true;
  ASSERT_OK(root_->setattr(file, set));
  EXPECT_EQ(RESOK(root_->getattr(file), GETATTR).obj_attributes.mode, 0644u);
  root_->make_file(top_, "other");
  EXPECT_STATUS(NFS3ERR_EXIST, root_->create_exclusive(top_, "other", verifier));
}

TEST_F(NamesTest, ExclusiveVerifierSurvivesARestart) {
  const auto first = root_->create_exclusive(top_, "f", 0xfedcba9876543210);
  ASSERT_OK(first);
  restart_server();
  const auto retry = root_->create_exclusive(top_, "f", 0xfedcba9876543210);
  ASSERT_OK(retry);
  EXPECT_EQ(bytes_of(RESOK(retry, CREATE).obj.post_op_fh3_u.handle),
            bytes_of(RESOK(first, CREATE).obj.post_op_fh3_u.handle));
  EXPECT_STATUS(NFS3ERR_EXIST, root_->create_exclusive(top_, "f", 0xfedcba9876543211));
}

TEST_F(NamesTest, Mkdir) {
  Sattr set;
  set.mode = 0750;
  set.uid = alice_uid;
  set.gid = team_gid;
  const auto answer = root_->mkdir(top_, "d", set);
  ASSERT_OK(answer);
  const MKDIR3resok& ok = RESOK(answer, MKDIR);
  const fattr3 made = attributes(ok.obj_attributes);
  EXPECT_EQ(made.type, NF3DIR);
  EXPECT_EQ(made.mode & 0777u, 0750u);
  EXPECT_EQ(made.uid, alice_uid);
  EXPECT_EQ(made.gid, team_gid);
  EXPECT_EQ(made.nlink, 2u);
  EXPECT_EQ(after(ok.dir_wcc).nlink, 3u);
  ASSERT_NE(ok.obj.handle_follows, 0u);
  EXPECT_EQ(root_->look(top_, "d"), bytes_of(ok.obj.post_op_fh3_u.handle));

  const auto exists = root_->mkdir(top_, "d");
  EXPECT_STATUS(NFS3ERR_EXIST, exists);
  after(RESFAIL(exists, MKDIR).dir_wcc);
  EXPECT_STATUS(NFS3ERR_ACCES, alice_->mkdir(top_, "e"));
  const Bytes file = root_->make_file(top_, "f");
  EXPECT_STATUS(NFS3ERR_EXIST, root_->mkdir(top_, "f"));
  EXPECT_STATUS(NFS3ERR_NOTDIR, root_->mkdir(file, "e"));
}

TEST_F(NamesTest, SetgidDirectoriesGiveTheirGroup) {
  const Bytes directory = root_->make_directory(top_, "d");
  Sattr group;
  group.gid = team_gid;
  ASSERT_OK(root_->setattr(directory, group));
  Sattr mode;
  mode.mode = 02777;
  ASSERT_OK(root_->setattr(directory, mode));
  Sattr plain;
  plain.mode = 0755;
  const auto made = bob_->mkdir(directory, "e", plain);
  ASSERT_OK(made);
  EXPECT_EQ(attributes(RESOK(made, MKDIR).obj_attributes).gid, team_gid);
  const auto file = bob_->create(directory, "f", GUARDED, plain);
  ASSERT_OK(file);
  EXPECT_EQ(attributes(RESOK(file, CREATE).obj_attributes).gid, team_gid);
}

TEST_F(NamesTest, SymlinkAndReadlink) {
  const std::string target = "../any thing/\xc3\xa4/" + std::string(200, 't');
  const auto answer = root_->symlink(top_, "l", target);
  ASSERT_OK(answer);
  EXPECT_EQ(attributes(RESOK(answer, SYMLINK).obj_attributes).type, NF3LNK);
  after(RESOK(answer, SYMLINK).dir_wcc);
  const Bytes link = bytes_of(RESOK(answer, SYMLINK).obj.post_op_fh3_u.handle);
  EXPECT_EQ(root_->look(top_, "l"), link);
  const auto read = root_->readlink(link);
  ASSERT_OK(read);
  EXPECT_EQ(std::string(RESOK(read, READLINK).data), target);
  EXPECT_EQ(attributes(RESOK(read, READLINK).symlink_attributes).size, target.size());
  EXPECT_EQ(std::filesystem::read_symlink(path("rw/l")), target);

  const std::string longest(4095, 'x');
  ASSERT_OK(root_->symlink(top_, "long", longest));
  const auto long_read = root_->readlink(root_->look(top_, "long"));
  ASSERT_OK(long_read);
  EXPECT_EQ(std::string(RESOK(long_read, READLINK).data), longest);
}

TEST_F(NamesTest, SymlinkAndReadlinkFail) {
  const Bytes file = root_->make_file(top_, "f");
  const auto no_link = root_->readlink(file);
  EXPECT_STATUS(NFS3ERR_INVAL, no_link);
  EXPECT_EQ(attributes(RESFAIL(no_link, READLINK).symlink_attributes).type, NF3REG);
  EXPECT_STATUS(NFS3ERR_INVAL, root_->readlink(top_));
  const auto exists = root_->symlink(top_, "f", "t");
  EXPECT_STATUS(NFS3ERR_EXIST, exists);
  after(RESFAIL(exists, SYMLINK).dir_wcc);
  EXPECT_STATUS(NFS3ERR_INVAL, root_->symlink(top_, "l", ""));
  EXPECT_STATUS(NFS3ERR_NAMETOOLONG, root_->symlink(top_, "l", std::string(4096, 'x')));
  XdrWriter with_nul;
  EXPECT_EQ(
      raw_status(10,
                 no_sattr(with_nul.opaque(top_).opaque("l")).opaque(std::string_view("a\0b", 3))),
      static_cast<std::uint32_t>(NFS3ERR_INVAL));
  EXPECT_STATUS(NFS3ERR_ACCES, alice_->symlink(top_, "l", "t"));
  EXPECT_STATUS(NFS3ERR_NOENT, root_->lookup(top_, "l"));
}

TEST_F(NamesTest, MknodByUsers) {
  const Bytes directory = root_->make_directory(top_, "d", 0777);
  Sattr set;
  set.mode = 0640;
  const auto fifo = alice_->mknod(directory, "p", NF3FIFO, set);
  ASSERT_OK(fifo);
  EXPECT_EQ(attributes(RESOK(fifo, MKNOD).obj_attributes).type, NF3FIFO);
  EXPECT_EQ(attributes(RESOK(fifo, MKNOD).obj_attributes).mode, 0640u);
  EXPECT_EQ(attributes(RESOK(fifo, MKNOD).obj_attributes).uid, alice_uid);
  after(RESOK(fifo, MKNOD).dir_wcc);
  ASSERT_OK(alice_->mknod(directory, "s", NF3SOCK));
  const auto device = alice_->mknod(directory, "c", NF3CHR, {}, 1, 3);
  EXPECT_STATUS(NFS3ERR_PERM, device);
  after(RESFAIL(device, MKNOD).dir_wcc);
  EXPECT_STATUS(NFS3ERR_PERM, alice_->mknod(directory, "b", NF3BLK, {}, 7, 0));
  EXPECT_STATUS(NFS3ERR_EXIST, alice_->mknod(directory, "p", NF3FIFO));
  EXPECT_STATUS(NFS3ERR_ACCES, alice_->mknod(top_, "p", NF3FIFO));
}

TEST_F(NamesTest, MknodOfOtherTypes) {
  for (const std::uint32_t type : {1u, 2u, 5u, 0u, 8u, 0xffffffffu}) {
    XdrWriter arguments;
    EXPECT_EQ(raw_status(11, arguments.opaque(top_).opaque("n").u32(type)),
              static_cast<std::uint32_t>(NFS3ERR_BADTYPE))
        << type;
  }
  EXPECT_STATUS(NFS3ERR_NOENT, root_->lookup(top_, "n"));
}

}  // namespace
}  // namespace selvage::tests
