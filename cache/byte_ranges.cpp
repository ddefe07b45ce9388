#include "cache/byte_ranges.h"

#include <algorithm>

namespace selvage::cache {

namespace {

constexpr std::uint32_t bits = 64;

// Calls f(word, mask) for each word of the bitmap that [begin, end) touches.
template <class F>
void for_each_word(std::uint32_t begin, std::uint32_t end, F f) {
  while (begin < end) {
    const std::uint32_t in_word = begin % bits;
    const std::uint32_t n = std::min(bits - in_word, end - begin);
    const std::uint64_t ones = ~std::uint64_t{0} >> (bits - n);
    f(std::size_t{begin / bits}, ones << in_word);
    begin += n;
  }
}

}  // namespace

void ByteRanges::add(std::uint32_t begin, std::uint32_t end) {
  end = std::min(end, size_);
  if (begin >= end) return;
  if (!bitmap_.empty()) return set_bits(begin, end);

  // The ranges that touch the new one (adjacent ones too) become one with it.
  std::uint32_t first = 0;
  while (first < count_ && ranges_[first].end < begin) ++first;
  std::uint32_t last = first;
  for (; last < count_ && ranges_[last].begin <= end; ++last) {
    begin = std::min(begin, ranges_[last].begin);
    end = std::max(end, ranges_[last].end);
  }
  if (first == last && count_ == max_in_place) {
    bitmap_.assign((std::size_t{size_} + bits - 1) / bits, 0);
    for (const Range& range : ranges_) set_bits(range.begin, range.end);
    count_ = 0;
    return set_bits(begin, end);
  }
  if (first == last) {
    for (std::uint32_t i = count_; i > first; --i) ranges_[i] = ranges_[i - 1];
    ++count_;
  } else {
    for (std::uint32_t i = last; i < count_; ++i) ranges_[first + 1 + i - last] = ranges_[i];
    count_ -= last - first - 1;
  }
  ranges_[first] = {begin, end};
}

void ByteRanges::erase_from(std::uint32_t begin) {
  if (!bitmap_.empty()) {
    bool any = false;
    for_each_word(begin, size_, [&](std::size_t i, std::uint64_t mask) { bitmap_[i] &= ~mask; });
    for (const std::uint64_t word : bitmap_) any = any || word != 0;
    if (!any) clear();
    return;
  }
  while (count_ > 0 && ranges_[count_ - 1].begin >= begin) --count_;
  if (count_ > 0) ranges_[count_ - 1].end = std::min(ranges_[count_ - 1].end, begin);
}

void ByteRanges::clear() {
  count_ = 0;
  bitmap_.clear();
  bitmap_.shrink_to_fit();
}

bool ByteRanges::covers(std::uint32_t begin, std::uint32_t end) const {
  if (begin >= end) return true;
  if (end > size_) return false;
  if (!bitmap_.empty()) {
    bool all = true;
    for_each_word(begin, end, [&](std::size_t i, std::uint64_t mask) {
      all = all && (bitmap_[i] & mask) == mask;
    });
    return all;
  }
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (ranges_[i].begin <= begin && end <= ranges_[i].end) return true;
  }
  return false;
}

ByteRanges::Run ByteRanges::next(std::uint32_t from) const {
  if (!bitmap_.empty()) {
    while (from < size_ && !bit(from)) ++from;
    std::uint32_t end = from;
    while (end < size_ && bit(end)) ++end;
    return {from, end};
  }
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (ranges_[i].end > from) return {std::max(from, ranges_[i].begin), ranges_[i].end};
  }
  return {size_, size_};
}

void ByteRanges::set_bits(std::uint32_t begin, std::uint32_t end) {
  for_each_word(begin, end, [&](std::size_t i, std::uint64_t mask) { bitmap_[i] |= mask; });
}

}  // namespace selvage::cache
