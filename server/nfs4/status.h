// The one place where errors of storage become nfsstat4 (RFC 7530, 13.1; RFC 8881, 15.1).
#pragma once

#include "storage/result.h"
#include "xdr/nfs4_types.h"

namespace selvage::server::nfs4 {

/// Never NFS4_OK. Any thread. errno values become the status of the same name; what has none:
///
/// | errno or Errc                                | nfsstat4                                    |
/// |----------------------------------------------|---------------------------------------------|
/// | bad_name, reserved_name                      | NFS4ERR_BADNAME                             |
/// | not_sync                                     | NFS4ERR_NOT_SAME                            |
/// | ELOOP                                        | NFS4ERR_SYMLINK: where a file is needed     |
/// | ENODATA, EOVERFLOW, ERANGE                   | NFS4ERR_INVAL: no value the object can take |
/// | ETXTBSY, EBUSY                               | NFS4ERR_FILE_OPEN: in use on the server     |
/// | EOPNOTSUPP, ENOSYS, ENOTTY                   | NFS4ERR_NOTSUPP                             |
/// | EAGAIN, EINTR, ENOMEM, ENOBUFS, EMFILE, ENFILE, ETIMEDOUT, ECANCELED, ENOLCK |
/// NFS4ERR_DELAY: a later request may find room |
/// | ENODEV                                       | NFS4ERR_NXIO                                |
/// | EBADF, EFAULT, ESRCH                         | NFS4ERR_SERVERFAULT: a bug of ours          |
/// | any other                                    | NFS4ERR_IO: the file system is not well     |
xdr::nfsstat4 status_of(const storage::ErrorCode& error);

}  // namespace selvage::server::nfs4
