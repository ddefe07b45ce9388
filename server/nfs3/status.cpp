#include "server/nfs3/status.h"

#include <cerrno>

namespace selvage::server::nfs3 {
namespace {

using storage::Errc;
using xdr::nfsstat3;

nfsstat3 status_of_errc(Errc error) {
  switch (error) {
    case Errc::bad_handle:
      return xdr::NFS3ERR_BADHANDLE;
    case Errc::not_sync:
      return xdr::NFS3ERR_NOT_SYNC;
    case Errc::bad_cookie:
      return xdr::NFS3ERR_BAD_COOKIE;
    case Errc::bad_type:
      return xdr::NFS3ERR_BADTYPE;
    case Errc::too_small:
      return xdr::NFS3ERR_TOOSMALL;
    case Errc::bad_name:
      return xdr::NFS3ERR_INVAL;
    case Errc::reserved_name:
      return xdr::NFS3ERR_INVAL;
  }
  return xdr::NFS3ERR_SERVERFAULT;
}

nfsstat3 status_of_errno(int error) {
  switch (error) {
    case EPERM:
      return xdr::NFS3ERR_PERM;
    case ENOENT:
      return xdr::NFS3ERR_NOENT;
    case EIO:
      return xdr::NFS3ERR_IO;
    case ENXIO:
      return xdr::NFS3ERR_NXIO;
    case EACCES:
      return xdr::NFS3ERR_ACCES;
    case EEXIST:
      return xdr::NFS3ERR_EXIST;
    case EXDEV:
      return xdr::NFS3ERR_XDEV;
    case ENODEV:
      return xdr::NFS3ERR_NODEV;
    case ENOTDIR:
      return xdr::NFS3ERR_NOTDIR;
    case EISDIR:
      return xdr::NFS3ERR_ISDIR;
    case EINVAL:
      return xdr::NFS3ERR_INVAL;
    case EFBIG:
      return xdr::NFS3ERR_FBIG;
    case ENOSPC:
      return xdr::NFS3ERR_NOSPC;
    case EROFS:
      return xdr::NFS3ERR_ROFS;
    case EMLINK:
      return xdr::NFS3ERR_MLINK;
    case ENAMETOOLONG:
      return xdr::NFS3ERR_NAMETOOLONG;
    case ENOTEMPTY:
      return xdr::NFS3ERR_NOTEMPTY;
    case EDQUOT:
      return xdr::NFS3ERR_DQUOT;
    case ESTALE:
      return xdr::NFS3ERR_STALE;

    case ELOOP:
    case ENODATA:
    case EOVERFLOW:
    case ERANGE:
      return xdr::NFS3ERR_INVAL;

    case ETXTBSY:
    case EBUSY:
      return xdr::NFS3ERR_ACCES;

    case EOPNOTSUPP:
    case ENOSYS:
    case ENOTTY:
      return xdr::NFS3ERR_NOTSUPP;

    case EAGAIN:
    case EINTR:
    case ENOMEM:
    case ENOBUFS:
    case EMFILE:
    case ENFILE:
    case ETIMEDOUT:
    case ECANCELED:
    case ENOLCK:
      return xdr::NFS3ERR_JUKEBOX;

    case EBADF:
    case EFAULT:
    case ESRCH:
      return xdr::NFS3ERR_SERVERFAULT;

    default:
      return xdr::NFS3ERR_IO;
  }
}

}  // namespace

nfsstat3 status_of(const storage::ErrorCode& error) {
  if (error.category() == storage::storage_category()) {
    return status_of_errc(static_cast<Errc>(error.value()));
  }
  if (error.category() == boost::system::system_category() ||
      error.category() == boost::system::generic_category()) {
    return status_of_errno(error.value());
  }
  return xdr::NFS3ERR_SERVERFAULT;
}

}  // namespace selvage::server::nfs3
