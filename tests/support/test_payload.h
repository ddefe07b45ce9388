// Where the test program's WRITE carries its payload; shared with the fuzz target.
#pragma once

#include "server/rpc/program.h"
#include "xdr/stream.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace selvage::testing {

inline constexpr std::uint32_t test_program = 0x20000099;
inline constexpr std::uint32_t proc_write = 3;
inline constexpr std::uint32_t proc_keep = 11;
inline constexpr std::uint32_t proc_held_write = 12;

inline std::uint32_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (const std::byte byte : bytes.subspan(at, 4)) {
    value = value << 8 | std::to_integer<unsigned>(byte);
  }
  return value;
}

/// handle<64>, offset, count, stable, data<>: as NFSv3 WRITE.
inline std::optional<server::rpc::PayloadPlace> find_test_payload(std::uint32_t procedure,
                                                                  std::span<const std::byte> head) {
  const bool writes =
      procedure == proc_write || procedure == proc_keep || procedure == proc_held_write;
  if (!writes || head.size() < 4) return std::nullopt;
  const std::uint32_t handle = word_at(head, 0);
  if (handle > 64) return std::nullopt;
  const std::size_t at = 4 + handle + xdr::padding(handle);
  if (head.size() < at + 20) return std::nullopt;
  server::rpc::PayloadPlace place;
  place.position = at + 20;
  place.file_offset = std::uint64_t{word_at(head, at)} << 32 | word_at(head, at + 4);
  place.length = word_at(head, at + 16);
  return place;
}

}  // namespace selvage::testing
