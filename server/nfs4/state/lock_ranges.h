// Byte-range locks of one owner on one file, and what several owners' locks are together. Pure: no
// clients, no stateids.
#pragma once

#include "server/nfs4/state/types.h"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace selvage::server::nfs4::state {

enum class LockMode : std::uint8_t { none, read, write };

/// Bytes first to last, both included: up to the end of the address space without overflow.
struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t last = ~std::uint64_t{0};
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// The range of LOCK, LOCKT and LOCKU (RFC 8881, 18.10.3): a length of all ones reaches to the end
/// of the file, wherever that is; else NFS4ERR_INVAL for length 0 or a sum beyond 2^64 - 1.
Outcome<ByteRange> byte_range(xdr::offset4 offset, xdr::length4 length);
/// The length4 of a range.
xdr::length4 length_of(const ByteRange& range);

struct LockedRange {
  ByteRange range;
  LockMode mode = LockMode::none;
  friend bool operator==(const LockedRange&, const LockedRange&) = default;
};

/// Ranges do not overlap; neighbours of one mode are one range.
class LockRanges {
 public:
  /// Locks, changes or unlocks (none) these bytes, whatever they were before.
  void set(const ByteRange& range, LockMode mode);

  /// The first range that keeps another owner from locking `range` in `mode`.
  std::optional<LockedRange> conflict(const ByteRange& range, LockMode mode) const;

  /// Whether unlocking `range` makes two ranges of one.
  bool splits(const ByteRange& range) const;

  /// What is locked inside `range`, cut to it, in order.
  std::vector<LockedRange> within(const ByteRange& range) const;

  /// The ranges that overlap `range` or border on it, whole.
  std::vector<LockedRange> touching(const ByteRange& range) const;

  bool empty() const { return ranges_.empty(); }
  std::size_t size() const { return ranges_.size(); }

 private:
  struct Rest {
    std::uint64_t last;
    LockMode mode;
  };
  /// By first byte.
  std::map<std::uint64_t, Rest> ranges_;
};

/// What the ranges of any number of owners are together: how many hold each byte.
class LockSum {
 public:
  /// A range of somebody's LockRanges, whole, comes or goes.
  void add(const LockedRange& held) { count(held, 1); }
  void remove(const LockedRange& held) { count(held, -1); }

  /// Whether anybody's ranges but `own` (null: nobody's), which are part of the sum, keep `range`
  /// from being locked in `mode`.
  bool blocks(const ByteRange& range, LockMode mode, const LockRanges* own) const;

  /// Pieces in order that cover `range` without a gap; unlocked ones have mode none, and a byte
  /// that anybody locks for writing is `write`.
  std::vector<LockedRange> within(const ByteRange& range) const;

  bool empty() const { return pieces_.empty(); }

 private:
  struct Piece {
    std::uint32_t readers = 0;
    std::uint32_t writers = 0;
    std::uint32_t ends = 0;  ///< Ranges that begin here, or ended just before.
  };
  using Pieces = std::map<std::uint64_t, Piece>;

  void count(const LockedRange& held, int by);
  /// The piece that begins there, split off if it must be.
  Pieces::iterator cut(std::uint64_t first);
  /// The piece with that byte; end() before the first one.
  Pieces::const_iterator at(std::uint64_t byte) const;
  ByteRange range_of(Pieces::const_iterator piece) const;

  /// By first byte; each reaches to the next one, the last one to the end.
  Pieces pieces_;
};

}  // namespace selvage::server::nfs4::state
