// Names and link targets as every version of the protocol checks them before the kernel sees them.
#pragma once

#include "storage/result.h"

#include <cstddef>
#include <string>

namespace selvage::server {

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

}  // namespace selvage::server
