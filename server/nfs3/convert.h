// Between the types of RFC 1813 and those of storage.
#pragma once

#include "server/names.h"
#include "server/verifier.h"
#include "storage/attributes.h"
#include "storage/filesystem.h"
#include "xdr/nfs3.h"

#include <cstdint>
#include <ctime>
#include <optional>

namespace selvage::server::nfs3 {

/// Highest offset and size of a file: off_t's. RFC 1813's are unsigned.
inline constexpr std::uint64_t max_offset = (std::uint64_t{1} << 63) - 1;

/// Times that 32 unsigned bits of seconds cannot say become the nearest that they can.
xdr::nfstime3 to_nfstime3(const timespec& time);

xdr::fattr3 to_fattr3(const storage::Attributes& attributes, std::uint64_t fsid);

/// EINVAL for a time with 10^9 nanoseconds or more, EFBIG for a size over max_offset.
storage::Result<storage::SetAttributes> to_set_attributes(const xdr::sattr3& wire);

/// EINVAL for 10^9 nanoseconds or more.
storage::Result<timespec> to_timespec(const xdr::nfstime3& wire);

}  // namespace selvage::server::nfs3
