// XFS's invisible descriptors (ioctl_xfs, XFS_IOC_OPEN_BY_HANDLE): I/O that moves no times.
#pragma once

#include "storage/object_id.h"
#include "storage/result.h"
#include "storage/unique_fd.h"

namespace selvage::storage {

/// Opens a regular file of the file system that `root_fd` lies on. EOPNOTSUPP where that is not
/// XFS, or its handles are not of a kind we know; EPERM without CAP_SYS_ADMIN.
Result<UniqueFd> open_invisible(int root_fd, const ObjectId& id, int flags);

}  // namespace selvage::storage
