#include "server/nfs4/state/lock_ranges.h"

#include <algorithm>
#include <iterator>

namespace selvage::server::nfs4::state {
namespace {

constexpr std::uint64_t to_end = ~std::uint64_t{0};

}  // namespace

Outcome<ByteRange> byte_range(xdr::offset4 offset, xdr::length4 length) {
  if (length == 0) return xdr::NFS4ERR_INVAL;
  if (length == to_end) return ByteRange{offset, to_end};
  if (length > to_end - offset) return xdr::NFS4ERR_INVAL;
  return ByteRange{offset, offset + (length - 1)};
}

xdr::length4 length_of(const ByteRange& range) {
  return range.last == to_end ? to_end : range.last - range.first + 1;
}

void LockRanges::set(const ByteRange& range, LockMode mode) {
  // Cut whatever overlaps out of the map; its ends outside of the range stay.
  auto at = ranges_.lower_bound(range.first);
  if (at != ranges_.begin() && std::prev(at)->second.last >= range.first) --at;
  while (at != ranges_.end() && at->first <= range.last) {
    const std::uint64_t first = at->first;
    const Rest rest = at->second;
    at = ranges_.erase(at);
    if (first < range.first) ranges_.emplace(first, Rest{range.first - 1, rest.mode});
    if (rest.last > range.last) {
      at = ranges_.emplace(range.last + 1, Rest{rest.last, rest.mode}).first;
      break;
    }
  }
  if (mode == LockMode::none) return;

  auto added = ranges_.emplace(range.first, Rest{range.last, mode}).first;
  if (added != ranges_.begin()) {
    const auto before = std::prev(added);
    if (before->second.mode == mode && before->second.last + 1 == range.first) {
      before->second.last = range.last;
      ranges_.erase(added);
      added = before;
    }
  }
  const auto after = std::next(added);
  if (after != ranges_.end() && after->second.mode == mode && range.last + 1 == after->first) {
    added->second.last = after->second.last;
    ranges_.erase(after);
  }
}

std::optional<LockedRange> LockRanges::conflict(const ByteRange& range, LockMode mode) const {
  if (mode == LockMode::none) return std::nullopt;
  auto at = ranges_.lower_bound(range.first);
  if (at != ranges_.begin() && std::prev(at)->second.last >= range.first) --at;
  for (; at != ranges_.end() && at->first <= range.last; ++at) {
    if (mode == LockMode::write || at->second.mode == LockMode::write) {
      return LockedRange{{at->first, at->second.last}, at->second.mode};
    }
  }
  return std::nullopt;
}

bool LockRanges::splits(const ByteRange& range) const {
  const auto after = ranges_.lower_bound(range.first);
  return after != ranges_.begin() && std::prev(after)->second.last > range.last;
}

std::vector<LockedRange> LockRanges::within(const ByteRange& range) const {
  std::vector<LockedRange> found;
  auto at = ranges_.lower_bound(range.first);
  if (at != ranges_.begin() && std::prev(at)->second.last >= range.first) --at;
  for (; at != ranges_.end() && at->first <= range.last; ++at) {
    found.push_back({{std::max(at->first, range.first), std::min(at->second.last, range.last)},
                     at->second.mode});
  }
  return found;
}

std::vector<LockedRange> lock_union(std::span<const LockRanges* const> owners,
                                    const ByteRange& range) {
  LockRanges all;
  for (const LockMode mode : {LockMode::read, LockMode::write}) {
    for (const LockRanges* owner : owners) {
      for (const LockedRange& piece : owner->within(range)) {
        if (piece.mode == mode) all.set(piece.range, mode);
      }
    }
  }
  std::vector<LockedRange> pieces;
  std::uint64_t next = range.first;
  for (const LockedRange& piece : all.within(range)) {
    if (piece.range.first > next) {
      pieces.push_back({{next, piece.range.first - 1}, LockMode::none});
    }
    pieces.push_back(piece);
    if (piece.range.last == range.last) return pieces;
    next = piece.range.last + 1;
  }
  pieces.push_back({{next, range.last}, LockMode::none});
  return pieces;
}

}  // namespace selvage::server::nfs4::state
