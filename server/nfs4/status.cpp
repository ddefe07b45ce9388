#include "server/nfs4/status.h"

#include <cerrno>

namespace selvage::server::nfs4 {
namespace {

using storage::Errc;
using xdr::nfsstat4;

nfsstat4 status_of_errc(Errc error) {
  switch (error) {
    case Errc::bad_handle:
      return xdr::NFS4ERR_BADHANDLE;
    case Errc::not_sync:
      return xdr::NFS4ERR_NOT_SAME;
    case Errc::bad_cookie:
      return xdr::NFS4ERR_BAD_COOKIE;
    case Errc::bad_type:
      return xdr::NFS4ERR_BADTYPE;
    case Errc::too_small:
      return xdr::NFS4ERR_TOOSMALL;
    case Errc::bad_name:
    case Errc::reserved_name:
      return xdr::NFS4ERR_BADNAME;
  }
  return xdr::NFS4ERR_SERVERFAULT;
}

nfsstat4 status_of_errno(int error) {
  switch (error) {
    case EPERM:
      return xdr::NFS4ERR_PERM;
    case ENOENT:
      return xdr::NFS4ERR_NOENT;
    case ENXIO:
    case ENODEV:
      return xdr::NFS4ERR_NXIO;
    case EACCES:
      return xdr::NFS4ERR_ACCESS;
    case EEXIST:
      return xdr::NFS4ERR_EXIST;
    case EXDEV:
      return xdr::NFS4ERR_XDEV;
    case ENOTDIR:
      return xdr::NFS4ERR_NOTDIR;
    case EISDIR:
      return xdr::NFS4ERR_ISDIR;
    case EINVAL:
      return xdr::NFS4ERR_INVAL;
    case EFBIG:
      return xdr::NFS4ERR_FBIG;
    case ENOSPC:
      return xdr::NFS4ERR_NOSPC;
    case EROFS:
      return xdr::NFS4ERR_ROFS;
    case EMLINK:
      return xdr::NFS4ERR_MLINK;
    case ENAMETOOLONG:
      return xdr::NFS4ERR_NAMETOOLONG;
    case ENOTEMPTY:
      return xdr::NFS4ERR_NOTEMPTY;
    case EDQUOT:
      return xdr::NFS4ERR_DQUOT;
    case ESTALE:
      return xdr::NFS4ERR_STALE;

    case ELOOP:
      return xdr::NFS4ERR_SYMLINK;
    case ENODATA:
    case EOVERFLOW:
    case ERANGE:
      return xdr::NFS4ERR_INVAL;
    case ETXTBSY:
    case EBUSY:
      return xdr::NFS4ERR_FILE_OPEN;
    case EOPNOTSUPP:
    case ENOSYS:
    case ENOTTY:
      return xdr::NFS4ERR_NOTSUPP;

    case EAGAIN:
    case EINTR:
    case ENOMEM:
    case ENOBUFS:
    case EMFILE:
    case ENFILE:
    case ETIMEDOUT:
    case ECANCELED:
    case ENOLCK:
      return xdr::NFS4ERR_DELAY;

    case EBADF:
    case EFAULT:
    case ESRCH:
      return xdr::NFS4ERR_SERVERFAULT;
    default:
      return xdr::NFS4ERR_IO;
  }
}

}  // namespace

nfsstat4 status_of(const storage::ErrorCode& error) {
  if (error.category() == storage::storage_category()) {
    return status_of_errc(static_cast<Errc>(error.value()));
  }
  if (error.category() == boost::system::system_category() ||
      error.category() == boost::system::generic_category()) {
    return status_of_errno(error.value());
  }
  return xdr::NFS4ERR_SERVERFAULT;
}

}  // namespace selvage::server::nfs4
