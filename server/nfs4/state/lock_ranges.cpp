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

std::vector<LockedRange> LockRanges::touching(const ByteRange& range) const {
  const std::uint64_t first = range.first == 0 ? 0 : range.first - 1;
  const std::uint64_t last = range.last == to_end ? to_end : range.last + 1;
  std::vector<LockedRange> found;
  auto at = ranges_.lower_bound(first);
  if (at != ranges_.begin() && std::prev(at)->second.last >= first) --at;
  for (; at != ranges_.end() && at->first <= last; ++at) {
    found.push_back({{at->first, at->second.last}, at->second.mode});
  }
  return found;
}

LockSum::Pieces::iterator LockSum::cut(std::uint64_t first) {
  const auto after = pieces_.lower_bound(first);
  if (after != pieces_.end() && after->first == first) return after;
  Piece piece;
  if (after != pieces_.begin()) piece = std::prev(after)->second;
  piece.ends = 0;
  return pieces_.emplace_hint(after, first, piece);
}

void LockSum::count(const LockedRange& held, int by) {
  const auto step = static_cast<std::uint32_t>(by);
  const auto begin = cut(held.range.first);
  begin->second.ends += step;
  const auto end = held.range.last == to_end ? pieces_.end() : cut(held.range.last + 1);
  if (end != pieces_.end()) end->second.ends += step;
  for (auto piece = begin; piece != end; ++piece) {
    (held.mode == LockMode::write ? piece->second.writers : piece->second.readers) += step;
  }
  // Where nothing begins or ends any more, a piece is as the one before it.
  if (end != pieces_.end() && end->second.ends == 0) pieces_.erase(end);
  if (begin->second.ends == 0) pieces_.erase(begin);
}

LockSum::Pieces::const_iterator LockSum::at(std::uint64_t byte) const {
  const auto after = pieces_.upper_bound(byte);
  return after == pieces_.begin() ? pieces_.end() : std::prev(after);
}

ByteRange LockSum::range_of(Pieces::const_iterator piece) const {
  const auto next = std::next(piece);
  return {piece->first, next == pieces_.end() ? to_end : next->first - 1};
}

bool LockSum::blocks(const ByteRange& range, LockMode mode, const LockRanges* own) const {
  if (mode == LockMode::none) return false;
  std::vector<LockedRange> mine;
  if (own != nullptr) mine = own->within(range);
  auto held = mine.begin();
  auto piece = at(range.first);
  if (piece == pieces_.end()) piece = pieces_.begin();
  for (; piece != pieces_.end() && piece->first <= range.last; ++piece) {
    std::uint32_t readers = piece->second.readers;
    std::uint32_t writers = piece->second.writers;
    const std::uint64_t first = std::max(piece->first, range.first);
    while (held != mine.end() && held->range.last < first) ++held;
    // Own ranges begin and end with pieces.
    if (held != mine.end() && held->range.first <= first) {
      --(held->mode == LockMode::write ? writers : readers);
    }
    if (writers != 0 || (mode == LockMode::write && readers != 0)) return true;
  }
  return false;
}

std::vector<LockedRange> LockSum::within(const ByteRange& range) const {
  std::vector<LockedRange> found;
  std::uint64_t next = range.first;
  const auto append = [&](std::uint64_t last, LockMode mode) {
    if (!found.empty() && found.back().mode == mode) {
      found.back().range.last = last;
    } else {
      found.push_back({{next, last}, mode});
    }
    next = last + 1;
  };
  auto piece = at(range.first);
  if (piece == pieces_.end()) piece = pieces_.begin();
  for (; piece != pieces_.end() && piece->first <= range.last; ++piece) {
    if (piece->first > next) append(piece->first - 1, LockMode::none);
    const Piece& counts = piece->second;
    LockMode mode = counts.readers != 0 ? LockMode::read : LockMode::none;
    if (counts.writers != 0) mode = LockMode::write;
    const std::uint64_t last = std::min(range_of(piece).last, range.last);
    append(last, mode);
    if (last == range.last) return found;
  }
  append(range.last, LockMode::none);
  return found;
}

}  // namespace selvage::server::nfs4::state
