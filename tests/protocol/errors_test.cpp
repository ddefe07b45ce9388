// Failures of the device below WRITE, READ and COMMIT as a client sees them: status, verifier, and
// the attributes that every such reply carries.
#include "tests/protocol/fixture.h"

#include <cerrno>

namespace selvage::tests {
namespace {

using storage::OpKind;
using storage::When;

class ErrorsTest : public ProtocolTest {
 protected:
  static When once() {
    When when;
    when.times = 1;
    return when;
  }
};

TEST_F(ErrorsTest, WritesThatFail) {
  const Bytes file = root_->make_file(top_, "f");
  const std::vector<std::pair<int, nfsstat3>> errors = {
      {EIO, NFS3ERR_IO},     {ENOSPC, NFS3ERR_NOSPC}, {EDQUOT, NFS3ERR_DQUOT},
      {EFBIG, NFS3ERR_FBIG}, {EROFS, NFS3ERR_ROFS},   {ENOMEM, NFS3ERR_JUKEBOX},
      {EUCLEAN, NFS3ERR_IO},
  };
  for (const auto& [error, status] : errors) {
    faults_.fail(OpKind::writev, error, once());
    const auto answer = root_->write(file, 0, Bytes(8192, 'x'));
    EXPECT_STATUS(status, answer) << error;
    EXPECT_EQ(after(RESFAIL(answer, WRITE).file_wcc).type, NF3REG);
    ASSERT_OK(root_->write(file, 0, Bytes(8192, 'y')));
  }
  EXPECT_TRUE(root_->read_all(file) == Bytes(8192, 'y'));
}

TEST_F(ErrorsTest, ReadsThatFail) {
  const Bytes file = root_->make_file(top_, "f");
  ASSERT_OK(root_->write(file, 0, Bytes(8192, 'x')));
  faults_.fail(OpKind::readv, EIO, once());
  const auto answer = root_->read(file, 0, 8192);
  EXPECT_STATUS(NFS3ERR_IO, answer);
  EXPECT_EQ(attributes(RESFAIL(answer, READ).file_attributes).size, 8192u);
  EXPECT_TRUE(root_->read_all(file) == Bytes(8192, 'x'));
}

TEST_F(ErrorsTest, AFailedSyncIsToldAndChangesTheVerifier) {
  const Bytes file = root_->make_file(top_, "f");
  const auto written = root_->write(file, 0, Bytes(8192, 'x'), UNSTABLE);
  ASSERT_OK(written);
  const Bytes verifier(RESOK(written, WRITE).verf, 8);
  faults_.fail(OpKind::sync, EIO, once());
  const auto refused = root_->commit(file);
  EXPECT_STATUS(NFS3ERR_IO, refused);
  EXPECT_EQ(after(RESFAIL(refused, COMMIT).file_wcc).size, 8192u);
  const auto again = root_->write(file, 0, Bytes(8192, 'x'), UNSTABLE);
  ASSERT_OK(again);
  EXPECT_NE(Bytes(RESOK(again, WRITE).verf, 8), verifier);
  const auto committed = root_->commit(file);
  ASSERT_OK(committed);
  EXPECT_EQ(Bytes(RESOK(committed, COMMIT).verf, 8), Bytes(RESOK(again, WRITE).verf, 8));
}

TEST_F(ErrorsTest, AStableWriteIsNotAcknowledgedUnlessItsSyncSucceeds) {
  const Bytes file = root_->make_file(top_, "f");
  faults_.fail(OpKind::sync, EIO, once());
  EXPECT_STATUS(NFS3ERR_IO, root_->write(file, 0, Bytes(8192, 'x'), FILE_SYNC));
  ASSERT_OK(root_->write(file, 0, Bytes(8192, 'x'), FILE_SYNC));
}

TEST_F(ErrorsTest, AShortWriteIsCountedTruly) {
  const Bytes file = root_->make_file(top_, "f");
  faults_.shorten(OpKind::writev, 4096, once());
  const auto answer = root_->write(file, 0, Bytes(12288, 'x'), FILE_SYNC);
  ASSERT_OK(answer);
  const std::uint32_t count = RESOK(answer, WRITE).count;
  EXPECT_GE(count, 4096u);
  EXPECT_LE(count, 12288u);
  EXPECT_EQ(after(RESOK(answer, WRITE).file_wcc).size, count);
  EXPECT_TRUE(root_->read_all(file) == Bytes(count, 'x'));
}

}  // namespace
}  // namespace selvage::tests
