// Which bytes of one page are known: a set of byte ranges, exact, in bounded memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace selvage::cache {

/// A set of bytes of [0, size). A few ranges are kept in place; a page that is written in more
/// pieces than that gets a bitmap of size / 8 bytes, so no pattern of writes costs more. Not
/// thread-safe.
class ByteRanges {
 public:
  explicit ByteRanges(std::uint32_t size) : size_(size) {}

  std::uint32_t size() const { return size_; }
  bool empty() const { return count_ == 0 && bitmap_.empty(); }

  /// Adds [begin, end); what lies outside [0, size) is ignored.
  void add(std::uint32_t begin, std::uint32_t end);
  /// Takes out everything at or after `begin`.
  void erase_from(std::uint32_t begin);
  void clear();

  /// The first run of members that ends after `from`, cut to start at `from` or later; {size, size}
  /// if there is none. `for (auto r = s.next(0); r.begin < r.end; r = s.next(r.end))` visits all.
  struct Run {
    std::uint32_t begin, end;
  };
  Run next(std::uint32_t from) const;
  /// Whether all of [begin, end) is in the set; true for an empty range.
  bool covers(std::uint32_t begin, std::uint32_t end) const;
  bool complete() const { return covers(0, size_); }

 private:
  struct Range {
    std::uint32_t begin, end;
  };
  static constexpr std::size_t max_in_place = 4;

  void set_bits(std::uint32_t begin, std::uint32_t end);
  bool bit(std::uint32_t at) const { return (bitmap_[at / 64] >> (at % 64) & 1) != 0; }

  std::uint32_t size_;
  std::uint32_t count_ = 0;                 // Ranges in place: sorted, apart by at least a byte.
  std::array<Range, max_in_place> ranges_;  // NOLINT: the first count_ are valid.
  std::vector<std::uint64_t> bitmap_;       // Replaces the ranges once it is there.
};

}  // namespace selvage::cache
