#include "server/nfs3/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <utility>
#include <vector>

namespace selvage::server::nfs3 {
namespace {

using storage::Errc;
using storage::errno_code;

TEST(Nfs3Status, ErrnoValuesOfRfc1813KeepTheirName) {
  const std::vector<std::pair<int, xdr::nfsstat3>> same = {
      {EPERM, xdr::NFS3ERR_PERM},
      {ENOENT, xdr::NFS3ERR_NOENT},
      {EIO, xdr::NFS3ERR_IO},
      {ENXIO, xdr::NFS3ERR_NXIO},
      {EACCES, xdr::NFS3ERR_ACCES},
      {EEXIST, xdr::NFS3ERR_EXIST},
      {EXDEV, xdr::NFS3ERR_XDEV},
      {ENODEV, xdr::NFS3ERR_NODEV},
      {ENOTDIR, xdr::NFS3ERR_NOTDIR},
      {EISDIR, xdr::NFS3ERR_ISDIR},
      {EINVAL, xdr::NFS3ERR_INVAL},
      {EFBIG, xdr::NFS3ERR_FBIG},
      {ENOSPC, xdr::NFS3ERR_NOSPC},
      {EROFS, xdr::NFS3ERR_ROFS},
      {EMLINK, xdr::NFS3ERR_MLINK},
      {ENAMETOOLONG, xdr::NFS3ERR_NAMETOOLONG},
      {ENOTEMPTY, xdr::NFS3ERR_NOTEMPTY},
      {EDQUOT, xdr::NFS3ERR_DQUOT},
      {ESTALE, xdr::NFS3ERR_STALE},
  };
  for (const auto& [error, status] : same) EXPECT_EQ(status_of(errno_code(error)), status) << error;
}

TEST(Nfs3Status, ErrorsOfStorageItself) {
  EXPECT_EQ(status_of(Errc::bad_handle), xdr::NFS3ERR_BADHANDLE);
  EXPECT_EQ(status_of(Errc::not_sync), xdr::NFS3ERR_NOT_SYNC);
  EXPECT_EQ(status_of(Errc::bad_cookie), xdr::NFS3ERR_BAD_COOKIE);
  EXPECT_EQ(status_of(Errc::bad_type), xdr::NFS3ERR_BADTYPE);
  EXPECT_EQ(status_of(Errc::too_small), xdr::NFS3ERR_TOOSMALL);
  EXPECT_EQ(status_of(Errc::bad_name), xdr::NFS3ERR_INVAL);
  EXPECT_EQ(status_of(Errc::reserved_name), xdr::NFS3ERR_INVAL);
}

TEST(Nfs3Status, PassingConditionsAreJukebox) {
  for (const int error : {EAGAIN, EINTR, ENOMEM, EMFILE, ENFILE, ENOBUFS, ETIMEDOUT, ECANCELED}) {
    EXPECT_EQ(status_of(errno_code(error)), xdr::NFS3ERR_JUKEBOX) << error;
  }
}

TEST(Nfs3Status, EveryErrnoIsAnError) {
  for (int error = 1; error < 200; ++error) {
    EXPECT_NE(status_of(errno_code(error)), xdr::NFS3_OK) << error;
  }
  EXPECT_EQ(status_of(errno_code(EUCLEAN)), xdr::NFS3ERR_IO);
  EXPECT_EQ(status_of(errno_code(EBADF)), xdr::NFS3ERR_SERVERFAULT);
  EXPECT_EQ(status_of(errno_code(EOPNOTSUPP)), xdr::NFS3ERR_NOTSUPP);
  EXPECT_EQ(status_of(errno_code(ETXTBSY)), xdr::NFS3ERR_ACCES);
}

}  // namespace
}  // namespace selvage::server::nfs3
