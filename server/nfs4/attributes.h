// Attribute values on the wire: RFC 7530, 5; RFC 8881, 5; RFC 7862, 12.
#pragma once

#include "server/nfs4/attribute_set.h"
#include "server/nfs4/owner_names.h"
#include "server/nfs4/state/types.h"
#include "storage/attributes.h"
#include "storage/filesystem.h"
#include "xdr/nfs4_types.h"

#include <cstdint>
#include <optional>
#include <string>

namespace selvage::server::nfs4 {

using state::Outcome;

/// Bytes of data in one READ or WRITE: what Linux takes.
inline constexpr std::uint32_t max_io_bytes = 1U << 20;
/// Highest offset and size of a file: off_t's.
inline constexpr std::uint64_t max_offset = (std::uint64_t{1} << 63) - 1;

/// All there is to tell of an object. Optional members only if an attribute asks for them.
struct Facts {
  std::uint32_t minor = 0;
  storage::Attributes attributes;
  xdr::fsid4 fsid;
  xdr::nfs_fh4 handle;
  std::uint64_t mounted_on_fileid = 0;
  std::uint32_t lease_seconds = 0;
  xdr::nfsstat4 rdattr_error = xdr::NFS4_OK;
  /// As text; without, they are numbers.
  std::optional<std::string> owner;
  std::optional<std::string> group;
  std::optional<storage::FileSystemUsage> usage;
  std::optional<storage::FileSystemLimits> limits;
};

/// Attributes that take Facts::usage, and Facts::limits.
const AttributeSet& usage_attributes();
const AttributeSet& limits_attributes();

/// The values of those of `wanted` that the minor version supports.
xdr::fattr4 encode_attributes(const AttributeSet& wanted, const Facts& facts);

/// From ctime, which moves with every change (RFC 7862, 12.2.3:
/// NFS4_CHANGE_TYPE_IS_TIME_METADATA). Kernels before 6.13 may give two changes of one tick the
/// same ctime.
xdr::changeid4 change_of(const storage::Attributes& attributes);

/// What a client wants set.
struct NewAttributes {
  AttributeSet given;
  storage::SetAttributes set;
};

/// NFS4ERR_ATTRNOTSUPP for what the minor version does not know, INVAL for what cannot be set or a
/// value that cannot be, BADOWNER, BADXDR, FBIG. Blocks if `owners` must ask for a name.
Outcome<NewAttributes> decode_attributes(const xdr::fattr4& wire, std::uint32_t minor,
                                         OwnerNames& owners);

/// nfstime4 of RFC 7530, 2.2.
xdr::nfstime4 to_nfstime4(const timespec& time);
xdr::nfs_ftype4 to_ftype4(storage::FileType type);

}  // namespace selvage::server::nfs4
