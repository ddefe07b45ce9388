// Boundary pages assembled in memory (edge mode `assemble`, DESIGN 4): the pages of one file.
#pragma once

#include "cache/byte_ranges.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace selvage::cache {

/// How many pages all files of an export hold in memory, and memory for them: a little is kept for
/// the next pages, which come and go with every batch. Any thread.
class EdgePageBudget {
 public:
  static constexpr std::size_t max_spare = 512;  ///< Pages kept.

  explicit EdgePageBudget(std::size_t max_bytes);
  ~EdgePageBudget();
  EdgePageBudget(const EdgePageBudget&) = delete;
  EdgePageBudget& operator=(const EdgePageBudget&) = delete;

  /// More than the bound is held: who adds pages writes them out again. The pages of WRITEs in
  /// flight are never refused, the RPC front end bounds those.
  bool over() const { return bytes() > max_bytes_; }
  /// The bound is near: the file whose pages are the oldest writes out, so that files in use keep
  /// theirs.
  bool pressed() const { return bytes() > max_bytes_ - max_bytes_ / 8; }
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::size_t max_bytes() const { return max_bytes_; }

 private:
  friend class EdgePage;
  std::byte* take(std::uint32_t size);
  void give_back(std::byte* page, std::uint32_t size);

  const std::size_t max_bytes_;
  std::atomic<std::size_t> bytes_{0};
  std::atomic<std::uint64_t> turns_{0};
  std::mutex mutex_;  // Of what follows.
  std::vector<std::byte*> spare_;
  std::uint32_t spare_size_ = 0;  // Of each, bytes.
};

/// One page of a file. Bytes that are neither valid nor beyond the end of the file on disk are
/// unknown. Memory starts zeroed and is aligned to the page size.
class EdgePage {
 public:
  EdgePage(std::uint64_t offset, std::uint32_t size, EdgePageBudget& budget);
  ~EdgePage();
  EdgePage(const EdgePage&) = delete;
  EdgePage& operator=(const EdgePage&) = delete;

  const std::uint64_t offset;  ///< In the file, bytes.
  const std::uint32_t size;    ///< Bytes.
  std::byte* const data;
  ByteRanges valid;               ///< Bytes that memory knows: written, read, or known to be zero.
  ByteRanges dirty;               ///< Of those, the ones that are not on disk yet.
  std::uint64_t used = 0;         ///< The batch that wrote to it last.
  std::uint64_t turn = 0;         ///< The same among all pages of the budget: when, in a row.
  bool superseded = false;        ///< A WRITE in flight covers it wholly; until it is on disk,
                                  ///< READs still find these bytes.
  std::uint64_t dirty_since = 0;  ///< The batch that made it dirty, if it is.

  bool whole() const { return valid.complete(); }
  /// Bytes from a WRITE of this batch: valid and dirty. Inside the page.
  void write(std::uint32_t at, std::span<const std::byte> bytes, std::uint64_t batch);
  /// Takes what is not valid from `content` (the whole page as it is on disk): all becomes valid.
  void fill(std::span<const std::byte> content);
  /// Takes the bytes of [begin, end) that are not valid for zeros: they lie beyond the end of file.
  void known_zero(std::uint32_t begin, std::uint32_t end);

 private:
  EdgePageBudget& budget_;
};

/// The pages of one file by offset. Not thread-safe: the file's mutex guards it.
class EdgePages {
 public:
  EdgePages(std::uint32_t page_size, EdgePageBudget& budget)
      : page_size_(page_size), budget_(budget) {}

  std::uint32_t page_size() const { return page_size_; }
  std::uint64_t page_of(std::uint64_t offset) const { return offset / page_size_ * page_size_; }
  std::size_t size() const { return pages_.size(); }
  bool empty() const { return pages_.empty(); }
  const EdgePageBudget& budget() const { return budget_; }

  EdgePage* find(std::uint64_t page_offset);
  /// The page, made if it is not there.
  EdgePage& get(std::uint64_t page_offset);
  void erase(std::uint64_t page_offset) { pages_.erase(page_offset); }
  void clear() { pages_.clear(); }

  /// Copies `bytes` into the page that holds them. @pre they lie inside one page.
  EdgePage& write(std::uint64_t offset, std::span<const std::byte> bytes, std::uint64_t batch);

  /// Lays the dirty bytes of [offset, offset + out.size()) over `out`, which was read from disk.
  void patch(std::uint64_t offset, std::span<std::byte> out) const;
  /// Whether patch() would change anything.
  bool dirty_in(std::uint64_t offset, std::uint64_t length) const;

  /// Of all pages: bytes that are not on disk yet.
  std::uint64_t dirty_bytes() const;
  /// The smallest `turn` of its pages; none if it has none.
  std::optional<std::uint64_t> oldest_turn() const;

  /// Visits the pages that overlap [begin, end), in ascending order.
  void for_each(std::uint64_t begin, std::uint64_t end, const std::function<void(EdgePage&)>& f);

  /// With more than `keep` pages in all, forgets clean ones, least recently used first, until three
  /// quarters of that are left.
  void trim_clean(std::size_t keep);

 private:
  using Map = std::map<std::uint64_t, std::unique_ptr<EdgePage>>;
  const std::uint32_t page_size_;
  EdgePageBudget& budget_;
  Map pages_;
};

}  // namespace selvage::cache
