#include "cache/edge_pages.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

namespace selvage::cache {
namespace {

void free_page(std::byte* page, std::uint32_t size) {
  ::operator delete(page, std::align_val_t{size});
}

// Calls f(begin, end) for each run of bytes of [begin, end) that is not in the set.
template <class F>
void for_each_gap(const ByteRanges& set, std::uint32_t begin, std::uint32_t end, F f) {
  while (begin < end) {
    const ByteRanges::Run run = set.next(begin);
    const std::uint32_t gap_end = std::min(run.begin < run.end ? run.begin : end, end);
    if (begin < gap_end) f(begin, gap_end);
    begin = run.begin < run.end ? std::max(run.end, gap_end) : end;
  }
}

}  // namespace

EdgePageBudget::EdgePageBudget(std::size_t max_bytes) : max_bytes_(max_bytes) {
  spare_.reserve(max_spare);  // Giving back must not fail.
}

EdgePageBudget::~EdgePageBudget() {
  for (std::byte* page : spare_) free_page(page, spare_size_);
}

std::byte* EdgePageBudget::take(std::uint32_t size) {
  std::byte* page = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (spare_size_ == size && !spare_.empty()) {
      page = spare_.back();
      spare_.pop_back();
    }
  }
  if (page == nullptr) {
    page = static_cast<std::byte*>(::operator new(size, std::align_val_t{size}));
  }
  bytes_.fetch_add(size, std::memory_order_relaxed);
  // Whatever went wrong, never another file's bytes.
  std::memset(page, 0, size);
  return page;
}

void EdgePageBudget::give_back(std::byte* page, std::uint32_t size) {
  bytes_.fetch_sub(size, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) spare_size_ = size;
    if (spare_size_ == size && spare_.size() < max_spare) {
      spare_.push_back(page);
      return;
    }
  }
  free_page(page, size);
}

EdgePage::EdgePage(std::uint64_t page_offset, std::uint32_t page_size, EdgePageBudget& budget)
    : offset(page_offset),
      size(page_size),
      data(budget.take(page_size)),
      valid(page_size),
      dirty(page_size),
      budget_(budget) {}

EdgePage::~EdgePage() {
  budget_.give_back(data, size);
}

void EdgePage::write(std::uint32_t at, std::span<const std::byte> bytes, std::uint64_t batch) {
  if (dirty.empty()) dirty_since = batch;
  used = batch;
  turn = budget_.turns_.fetch_add(1, std::memory_order_relaxed);
  std::memcpy(data + at, bytes.data(), bytes.size());
  const auto end = at + static_cast<std::uint32_t>(bytes.size());
  valid.add(at, end);
  dirty.add(at, end);
}

void EdgePage::fill(std::span<const std::byte> content) {
  for_each_gap(valid, 0, size, [&](std::uint32_t begin, std::uint32_t end) {
    std::memcpy(data + begin, content.data() + begin, end - begin);
  });
  valid.add(0, size);
}

void EdgePage::known_zero(std::uint32_t begin, std::uint32_t end) {
  for_each_gap(valid, begin, end, [&](std::uint32_t from, std::uint32_t to) {
    std::memset(data + from, 0, to - from);
  });
  valid.add(begin, end);
}

EdgePage* EdgePages::find(std::uint64_t page_offset) {
  const auto found = pages_.find(page_offset);
  return found == pages_.end() ? nullptr : found->second.get();
}

EdgePage& EdgePages::get(std::uint64_t page_offset) {
  auto& page = pages_[page_offset];
  if (!page) page = std::make_unique<EdgePage>(page_offset, page_size_, budget_);
  return *page;
}

EdgePage& EdgePages::write(std::uint64_t offset, std::span<const std::byte> bytes,
                           std::uint64_t batch) {
  EdgePage& page = get(page_of(offset));
  page.write(static_cast<std::uint32_t>(offset - page.offset), bytes, batch);
  return page;
}

void EdgePages::patch(std::uint64_t offset, std::span<std::byte> out) const {
  const std::uint64_t out_end = offset + out.size();
  for (auto at = pages_.lower_bound(page_of(offset)); at != pages_.end(); ++at) {
    const EdgePage& page = *at->second;
    if (page.offset >= out_end) break;
    for (auto run = page.dirty.next(0); run.begin < run.end; run = page.dirty.next(run.end)) {
      const std::uint64_t begin = std::max(page.offset + run.begin, offset);
      const std::uint64_t end = std::min(page.offset + run.end, out_end);
      if (begin < end) {
        std::memcpy(out.data() + (begin - offset), page.data + (begin - page.offset), end - begin);
      }
    }
  }
}

bool EdgePages::dirty_in(std::uint64_t offset, std::uint64_t length) const {
  const std::uint64_t out_end = offset + length;
  for (auto at = pages_.lower_bound(page_of(offset)); at != pages_.end(); ++at) {
    if (at->second->offset >= out_end) break;
    if (!at->second->dirty.empty()) return true;
  }
  return false;
}

std::uint64_t EdgePages::dirty_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [offset, page] : pages_) {
    const ByteRanges& dirty = page->dirty;
    for (auto run = dirty.next(0); run.begin < run.end; run = dirty.next(run.end)) {
      bytes += run.end - run.begin;
    }
  }
  return bytes;
}

std::optional<std::uint64_t> EdgePages::oldest_turn() const {
  std::optional<std::uint64_t> oldest;
  for (const auto& [offset, page] : pages_) {
    if (!oldest || page->turn < *oldest) oldest = page->turn;
  }
  return oldest;
}

void EdgePages::for_each(std::uint64_t begin, std::uint64_t end,
                         const std::function<void(EdgePage&)>& f) {
  for (auto at = pages_.lower_bound(page_of(begin)); at != pages_.end(); ++at) {
    if (at->second->offset >= end) break;
    f(*at->second);
  }
}

void EdgePages::trim_clean(std::size_t keep) {
  if (pages_.size() <= keep) return;
  keep -= keep / 4;  // Lower than need be, so that not every batch has to sort.
  std::vector<EdgePage*> clean;
  for (const auto& [offset, page] : pages_) {
    if (page->dirty.empty() && !page->superseded) clean.push_back(page.get());
  }
  std::ranges::sort(clean, {}, &EdgePage::used);
  for (const EdgePage* page : clean) {
    if (pages_.size() <= keep) break;
    pages_.erase(page->offset);
  }
}

}  // namespace selvage::cache
