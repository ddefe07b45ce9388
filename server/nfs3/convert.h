// Between the types of RFC 1813 and those of storage.
#pragma once

#include "storage/attributes.h"
#include "storage/filesystem.h"
#include "xdr/nfs3.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

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

/// The verifiers are opaque: eight bytes, most significant first.
std::array<std::uint8_t, 8> to_verifier(std::uint64_t value);
std::uint64_t from_verifier(const std::array<std::uint8_t, 8>& verifier);

inline constexpr std::size_t max_name_bytes = 255;      ///< NAME_MAX of every Linux file system.
inline constexpr std::size_t max_symlink_bytes = 4095;  ///< PATH_MAX without the NUL.

/// Errc::bad_name if the name is empty or has '/' or NUL in it, ENAMETOOLONG.
storage::Result<> check_name(const std::string& name);

/// The same, and Errc::reserved_name for "." and "..": names that no operation makes or removes.
storage::Result<> check_real_name(const std::string& name);

/// check_real_name() for what makes an object: "." and ".." exist already, EEXIST.
storage::Result<> check_new_name(const std::string& name);

/// EINVAL if empty or with NUL in it, ENAMETOOLONG.
storage::Result<> check_symlink_target(const std::string& target);

}  // namespace selvage::server::nfs3
