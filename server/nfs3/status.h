// The one place where errors of storage become nfsstat3 (RFC 1813, 2.6).
#pragma once

#include "storage/result.h"
#include "xdr/nfs3.h"

namespace selvage::server::nfs3 {

/// Never NFS3_OK. Any thread.
///
/// | errno or Errc                           | nfsstat3            |
/// |-----------------------------------------|---------------------|
/// | EPERM, ENOENT, EIO, ENXIO, EACCES, EEXIST, EXDEV, ENODEV, ENOTDIR, EISDIR, EINVAL, EFBIG,
/// ENOSPC, EROFS, EMLINK, ENAMETOOLONG, ENOTEMPTY, EDQUOT, ESTALE | the one of that name | |
/// bad_handle, not_sync, bad_cookie, bad_type, too_small | the one of that name | | bad_name,
/// reserved_name                 | NFS3ERR_INVAL: no name, or none that the operation takes | |
/// ELOOP                                   | NFS3ERR_INVAL: a symlink where a file is needed | |
/// ENODATA, EOVERFLOW, ERANGE              | NFS3ERR_INVAL: no value that the object can take | |
/// ETXTBSY, EBUSY                          | NFS3ERR_ACCES: running as a program, or mounted on; a
/// client that retries or gives up on a hard error would both be wrong | | EOPNOTSUPP, ENOSYS,
/// ENOTTY              | NFS3ERR_NOTSUPP     | | EAGAIN, EINTR, ENOMEM, ENOBUFS, EMFILE, ENFILE,
/// ETIMEDOUT, ECANCELED, ENOLCK | NFS3ERR_JUKEBOX: nothing is wrong with the request, and a later
/// one may find room, or the restarted server | | EBADF, EFAULT, ESRCH, any other Errc    |
/// NFS3ERR_SERVERFAULT: a bug of ours | | any other (EUCLEAN, EREMOTEIO, ...)     | NFS3ERR_IO: the
/// file system is not well |
xdr::nfsstat3 status_of(const storage::ErrorCode& error);

}  // namespace selvage::server::nfs3
