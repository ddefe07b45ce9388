// RWF_DONTCACHE (Linux 6.14), which Debian 12's headers do not have yet.
#pragma once

namespace selvage::storage {

inline constexpr int rwf_dontcache = 0x80;
inline constexpr const char* no_dontcache_message =
    "the file system has no RWF_DONTCACHE: data stays in the page cache";

}  // namespace selvage::storage
