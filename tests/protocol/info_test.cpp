// FSSTAT, FSINFO and PATHCONF over the wire (RFC 1813 3.3.18 to 3.3.20).
#include "tests/protocol/fixture.h"

#include <sys/statvfs.h>
#include <unistd.h>

namespace selvage::tests {
namespace {

using InfoTest = ProtocolTest;

TEST_F(InfoTest, FsstatSaysWhatStatvfsSays) {
  struct statvfs fs{};
  ASSERT_EQ(statvfs(path("rw").c_str(), &fs), 0);
  for (const Bytes& object : {top_, root_->make_file(top_, "f")}) {
    const auto answer = root_->fsstat(object);
    ASSERT_OK(answer);
    const FSSTAT3resok& ok = RESOK(answer, FSSTAT);
    attributes(ok.obj_attributes);
    EXPECT_EQ(ok.tbytes, fs.f_blocks * fs.f_frsize);
    EXPECT_LE(ok.fbytes, ok.tbytes);
    EXPECT_LE(ok.abytes, ok.fbytes);
    EXPECT_EQ(ok.tfiles, fs.f_files);
    EXPECT_LE(ok.ffiles, ok.tfiles);
    EXPECT_LE(ok.afiles, ok.ffiles);
    // Others use the file system too.
    const double slack = 0.2 * static_cast<double>(ok.tbytes);
    EXPECT_NEAR(static_cast<double>(ok.fbytes), static_cast<double>(fs.f_bfree * fs.f_frsize),
                slack);
    EXPECT_NEAR(static_cast<double>(ok.abytes), static_cast<double>(fs.f_bavail * fs.f_frsize),
                slack);
    EXPECT_EQ(ok.invarsec, 0u);
  }
}

TEST_F(InfoTest, Fsinfo) {
  const auto answer = root_->fsinfo(top_);
  ASSERT_OK(answer);
  const FSINFO3resok& ok = RESOK(answer, FSINFO);
  EXPECT_EQ(attributes(ok.obj_attributes).type, NF3DIR);
  EXPECT_EQ(ok.rtmax, 8u << 20);
  EXPECT_EQ(ok.wtmax, 8u << 20);
  EXPECT_EQ(ok.rtpref, 1u << 20);
  EXPECT_EQ(ok.wtpref, 1u << 20);
  EXPECT_GT(ok.rtmult, 0u);
  EXPECT_GT(ok.wtmult, 0u);
  EXPECT_EQ(ok.dtpref, 64u << 10);
  EXPECT_GE(ok.maxfilesize, std::uint64_t{1} << 40);
  EXPECT_LT(ok.maxfilesize, std::uint64_t{1} << 63);
  EXPECT_EQ(ok.time_delta.seconds, 0u);
  EXPECT_EQ(ok.time_delta.nseconds, 1u);
  EXPECT_EQ(ok.properties,
            static_cast<u_int>(FSF3_LINK | FSF3_SYMLINK | FSF3_HOMOGENEOUS | FSF3_CANSETTIME));
}

TEST_F(InfoTest, MaxfilesizeIsTrue) {
  const auto info = root_->fsinfo(top_);
  const std::uint64_t largest = RESOK(info, FSINFO).maxfilesize;
  const Bytes file = root_->make_file(top_, "f");
  Sattr size;
  size.size = largest;
  EXPECT_STATUS(NFS3_OK, root_->setattr(file, size));
  size.size = largest + 1;
  EXPECT_STATUS(NFS3ERR_FBIG, root_->setattr(file, size));
  size.size = 0;
  ASSERT_OK(root_->setattr(file, size));
}

TEST_F(InfoTest, Pathconf) {
  const auto answer = root_->pathconf(top_);
  ASSERT_OK(answer);
  const PATHCONF3resok& ok = RESOK(answer, PATHCONF);
  EXPECT_EQ(attributes(ok.obj_attributes).type, NF3DIR);
  EXPECT_EQ(ok.name_max, 255u);
  EXPECT_EQ(ok.linkmax, static_cast<u_int>(::pathconf(path("rw").c_str(), _PC_LINK_MAX)));
  EXPECT_EQ(ok.no_trunc, 1u);
  EXPECT_EQ(ok.chown_restricted, 1u);
  EXPECT_EQ(ok.case_insensitive, 0u);
  EXPECT_EQ(ok.case_preserving, 1u);
}

TEST_F(InfoTest, OfWhatIsGone) {
  const Bytes file = root_->make_file(top_, "f");
  ASSERT_OK(root_->remove(top_, "f"));
  EXPECT_STATUS(NFS3ERR_STALE, root_->fsstat(file));
  EXPECT_STATUS(NFS3ERR_STALE, root_->fsinfo(file));
  EXPECT_STATUS(NFS3ERR_STALE, root_->pathconf(file));
}

}  // namespace
}  // namespace selvage::tests
