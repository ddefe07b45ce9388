// The kernel's name for an object of one file system: name_to_handle_at(2).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace selvage::storage {

/// A kernel file handle by value. At most 40 bytes: what still fits, wrapped, into NFSv3's 64.
class ObjectId {
 public:
  static constexpr std::size_t max_bytes = 40;

  ObjectId() = default;
  /// @pre bytes.size() <= max_bytes
  ObjectId(std::int32_t type, std::span<const std::uint8_t> bytes)
      : type_(type), size_(static_cast<std::uint8_t>(bytes.size())) {
    std::copy(bytes.begin(), bytes.end(), bytes_.begin());
  }

  std::int32_t type() const { return type_; }  ///< file_handle::handle_type
  std::span<const std::uint8_t> bytes() const { return {bytes_.data(), size_}; }

  friend bool operator==(const ObjectId& a, const ObjectId& b) {
    return a.type_ == b.type_ && a.size_ == b.size_ &&
           std::memcmp(a.bytes_.data(), b.bytes_.data(), a.size_) == 0;
  }

 private:
  std::int32_t type_ = 0;
  std::uint8_t size_ = 0;
  std::array<std::uint8_t, max_bytes> bytes_{};
};

struct ObjectIdHash {
  std::size_t operator()(const ObjectId& id) const {
    const auto bytes = id.bytes();
    return std::hash<std::string_view>{}(
        {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
};

}  // namespace selvage::storage
