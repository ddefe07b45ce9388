// File handles as clients see them: version, export id, kernel handle, keyed MAC (DESIGN 8).
#pragma once

#include "storage/object_id.h"
#include "storage/result.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace selvage::storage {

using HandleKey = std::array<std::uint8_t, 32>;

/// The key kept in `path` (32 random bytes, mode 0600), made durably there if it does not exist.
/// A file of another size is an error (EINVAL): making a new key would turn every handle stale.
Result<HandleKey> load_or_make_handle_key(const std::string& path);

/// Wraps and unwraps handles. Immutable, any thread.
class HandleCodec {
 public:
  static constexpr std::size_t max_bytes = 64;  ///< NFS3_FHSIZE

  struct Decoded {
    std::uint32_t export_id;
    ObjectId object;
  };

  explicit HandleCodec(const HandleKey& key) : key_(key) {}

  /// At most max_bytes. The same for the same object at every call, start and mount. Throws
  /// std::invalid_argument for a handle type of more than 24 bits, which Linux does not make.
  std::vector<std::uint8_t> encode(std::uint32_t export_id, const ObjectId& object) const;

  /// Errc::bad_handle for anything that encode() under this key did not return. Constant time in
  /// the MAC.
  Result<Decoded> decode(std::span<const std::uint8_t> handle) const;

 private:
  HandleKey key_;
};

}  // namespace selvage::storage
