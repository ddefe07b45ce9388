// The range of file offsets.
#pragma once

#include <cstdint>
#include <limits>

namespace selvage::storage {

/// The largest that off_t holds, in bytes: no file ends beyond it.
inline constexpr std::uint64_t max_offset = std::numeric_limits<std::int64_t>::max();

}  // namespace selvage::storage
