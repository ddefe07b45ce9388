// What every procedure answers to handles that are no good, to read-only exports, and to clients
// that an export does not list.
#include "tests/protocol/fixture.h"

namespace selvage::tests {
namespace {

class HandlesTest : public ProtocolTest {
 protected:
  void SetUp() override {
    file_ = root_->make_file(top_, "file");
    ASSERT_OK(root_->symlink(top_, "symlink", "target"));
    symlink_ = root_->look(top_, "symlink");
  }

  /// Every procedure but NULL with this handle wherever it takes one.
  void expect_everywhere(const Bytes& handle, std::uint32_t status) {
    for (const Sample& sample : samples(handle, handle, handle, "x-")) {
      const RpcReply reply = root_->raw(sample.procedure, sample.arguments);
      ASSERT_TRUE(reply.accepted && reply.status == 0) << sample.name;
      EXPECT_EQ(status_of(reply), status) << sample.name;
    }
  }

  Bytes file_, symlink_;
};

TEST_F(HandlesTest, TheSamplesAreGood) {
  for (const Sample& sample : samples(top_, file_, symlink_, "x-")) {
    const RpcReply reply = root_->raw(sample.procedure, sample.arguments);
    ASSERT_TRUE(reply.accepted && reply.status == 0) << sample.name;
    const bool about_missing = sample.procedure >= 12 && sample.procedure <= 14;
    EXPECT_EQ(status_of(reply), about_missing ? NFS3ERR_NOENT : NFS3_OK) << sample.name;
  }
}

TEST_F(HandlesTest, BadHandlesOnEveryProcedure) {
  Bytes altered = file_;
  altered.back() = static_cast<char>(altered.back() ^ 1);
  for (const Bytes& handle :
       {Bytes(), Bytes(1, '\0'), Bytes(8, 'x'), Bytes(32, '\0'), Bytes(64, '\xff'),
        file_.substr(0, file_.size() - 1), file_ + Bytes(1, '\0'), altered}) {
    SCOPED_TRACE("handle of " + std::to_string(handle.size()) + " bytes");
    expect_everywhere(handle, NFS3ERR_BADHANDLE);
  }
}

TEST_F(HandlesTest, EveryBitCounts) {
  for (const Bytes& good : {top_, file_, symlink_}) {
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      Bytes handle = good;
      handle[bit / 8] = static_cast<char>(handle[bit / 8] ^ (1 << bit % 8));
      ASSERT_EQ(root_->getattr(handle).status(), NFS3ERR_BADHANDLE) << "bit " << bit;
    }
  }
}

TEST_F(HandlesTest, PartsOfTwoHandlesAreNoHandle) {
  ASSERT_EQ(top_.size(), file_.size());
  for (std::size_t cut = 1; cut < top_.size(); ++cut) {
    const Bytes mixed = top_.substr(0, cut) + file_.substr(cut);
    if (mixed == top_ || mixed == file_) continue;
    EXPECT_STATUS(NFS3ERR_BADHANDLE, root_->getattr(mixed)) << cut;
  }
}

TEST_F(HandlesTest, StaleHandlesOnEveryProcedure) {
  const Bytes directory = root_->make_directory(top_, "d");
  ASSERT_OK(root_->rmdir(top_, "d"));
  expect_everywhere(directory, NFS3ERR_STALE);
}

TEST_F(HandlesTest, AnotherKeysHandles) {
  std::filesystem::remove_all(state_folder());
  restart_server();
  expect_everywhere(file_, NFS3ERR_BADHANDLE);
}

TEST_F(HandlesTest, HandlesSurviveARestart) {
  restart_server();
  EXPECT_STATUS(NFS3_OK, root_->getattr(file_));
  EXPECT_STATUS(NFS3_OK, root_->getattr(symlink_));
  EXPECT_EQ(root_->look(top_, "file"), file_);
}

TEST_F(HandlesTest, ReadOnlyExport) {
  const Bytes top = root_->root(path("ro"));
  const Bytes file = root_->look(top, "file");
  const Bytes symlink = root_->look(top, "symlink");
  for (const Sample& sample : samples(top, file, symlink, "x-")) {
    const RpcReply reply = root_->raw(sample.procedure, sample.arguments);
    ASSERT_TRUE(reply.accepted && reply.status == 0) << sample.name;
    const bool refused = sample.modifies || sample.name == "COMMIT";
    EXPECT_EQ(status_of(reply), refused ? NFS3ERR_ROFS : NFS3_OK) << sample.name;
  }
  EXPECT_EQ(root_->read_all(file), "read only\n");
  const auto refused = root_->write(file, 0, "x");
  EXPECT_STATUS(NFS3ERR_ROFS, refused);
  EXPECT_EQ(after(RESFAIL(refused, WRITE).file_wcc).size, 10u);
  const auto made = root_->mkdir(top, "d");
  EXPECT_STATUS(NFS3ERR_ROFS, made);
  EXPECT_EQ(after(RESFAIL(made, MKDIR).dir_wcc).type, NF3DIR);
}

TEST_F(HandlesTest, ClientsThatAreNotListed) {
  EXPECT_EQ(root_->mnt(path("near")).first, static_cast<std::uint32_t>(MNT3ERR_ACCES));
  Nfs3Client listed(port(), {}, "127.0.0.2");
  const Bytes top = listed.root(path("near"));
  EXPECT_STATUS(NFS3_OK, listed.getattr(top));
  expect_everywhere(top, NFS3ERR_ACCES);  // From 127.0.0.1.
}

TEST_F(HandlesTest, HandlesOfObjectsOutsideTheExport) {
  // A handle of another export names that export, whichever path was mounted: its rules hold.
  const Bytes read_only = root_->root(path("ro"));
  EXPECT_STATUS(NFS3ERR_ROFS, root_->create(read_only, "f", GUARDED));
  EXPECT_STATUS(NFS3ERR_XDEV, root_->rename(top_, "file", root_->root(path("other")), "file"));
}

}  // namespace
}  // namespace selvage::tests
