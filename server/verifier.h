// Verifiers are opaque to clients: eight bytes, most significant first.
#pragma once

#include <array>
#include <cstdint>

namespace selvage::server {

inline std::array<std::uint8_t, 8> to_verifier(std::uint64_t value) {
  std::array<std::uint8_t, 8> verifier{};
  for (auto byte = verifier.rbegin(); byte != verifier.rend(); ++byte) {
    *byte = static_cast<std::uint8_t>(value);
    value >>= 8U;
  }
  return verifier;
}

inline std::uint64_t from_verifier(const std::array<std::uint8_t, 8>& verifier) {
  std::uint64_t value = 0;
  for (const std::uint8_t byte : verifier) value = value << 8U | byte;
  return value;
}

}  // namespace selvage::server
