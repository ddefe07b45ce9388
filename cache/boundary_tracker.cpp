#include "cache/boundary_tracker.h"

#include "cache/byte_ranges.h"

#include <algorithm>
#include <compare>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <set>

namespace selvage::cache {

namespace {

struct Key {
  std::uint64_t file;
  std::uint64_t offset;
  // Normally a function of the file; part of the key so that a change of it does no harm.
  std::uint32_t size;
  auto operator<=>(const Key&) const = default;
};

// A writer between ask() and release(), with its bytes in the page.
struct Flight {
  std::uint64_t claim;
  std::uint32_t begin, end;
};

struct Entry;
using Pages = std::map<Key, Entry>;

struct Entry {
  explicit Entry(std::uint32_t page_size) : done(page_size) {}
  ByteRanges done;  // Bytes of completed WRITEs.
  std::vector<Flight> flights;
  BoundaryTracker::Time touched;                  // When the last flight ended.
  std::list<Pages::iterator>::iterator position;  // In Shard::idle, or Shard::busy with a flight.
};

std::uint64_t mix(std::uint64_t x) {  // splitmix64's finalizer
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// The bytes of the page at `page` that lie in [begin, end), relative to the page.
struct Part {
  std::uint32_t begin, end;
};
Part part_of_page(std::uint64_t page, std::uint32_t page_size, std::uint64_t begin,
                  std::uint64_t end) {
  const std::uint64_t from = begin > page ? std::min<std::uint64_t>(begin - page, page_size) : 0;
  const std::uint64_t to = end > page ? std::min<std::uint64_t>(end - page, page_size) : 0;
  return {static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(std::max(from, to))};
}

// Calls f(page_offset) for the pages that [offset, offset + length) touches.
template <class F>
void for_each_page(std::uint64_t offset, std::uint64_t length, std::uint32_t page_size, F f) {
  if (length == 0 || page_size == 0) return;
  const std::uint64_t last = (offset + (length - 1)) / page_size;
  for (std::uint64_t page = offset / page_size; page <= last; ++page) f(page * page_size);
}

void append(std::vector<PageRun>& runs, std::uint64_t page, std::uint32_t page_size) {
  if (!runs.empty() && runs.back().offset + runs.back().length == page) {
    runs.back().length += page_size;
  } else {
    runs.push_back({page, page_size});
  }
}

}  // namespace

struct BoundaryTracker::Shard {
  mutable std::mutex mutex;
  std::size_t capacity = 0;
  Pages pages;
  // Each page has its node in one of the two; moving it cannot fail.
  std::list<Pages::iterator> idle;  // Pages without a flight, longest idle first.
  std::list<Pages::iterator> busy;
  std::set<Key> orphans;  // Evicted, not in `pages`.
  std::uint64_t evicted = 0;
  std::uint64_t untracked = 0;

  Pages::iterator find_or_make(const Key& key);
  void erase(Pages::iterator page);
  bool settle(Pages::iterator page, bool may_complete, Time now);
};

// End if there is no room for a new page.
Pages::iterator BoundaryTracker::Shard::find_or_make(const Key& key) {
  const auto found = pages.find(key);
  if (found != pages.end()) return found;
  orphans.erase(key);
  if (pages.size() >= capacity) {
    if (idle.empty()) return pages.end();
    const auto oldest = idle.front();
    // What does not fit is left to the kernel's own reclaim.
    if (orphans.size() < capacity) orphans.insert(oldest->first);
    ++evicted;
    erase(oldest);
  }
  const auto made = pages.emplace(key, Entry(key.size)).first;
  made->second.position = idle.insert(idle.end(), made);
  return made;
}

// A page without a flight.
void BoundaryTracker::Shard::erase(Pages::iterator page) {
  idle.erase(page->second.position);
  pages.erase(page);
}

// After a flight has ended: whether the page is complete (and forgotten).
bool BoundaryTracker::Shard::settle(Pages::iterator page, bool may_complete, Time now) {
  Entry& entry = page->second;
  if (!entry.flights.empty()) return false;
  // Keeps the list in order of time, whatever times the threads pass.
  entry.touched = idle.empty() ? now : std::max(now, idle.back()->second.touched);
  idle.splice(idle.end(), busy, entry.position);
  const bool completed = may_complete && entry.done.complete();
  if (completed || entry.done.empty()) erase(page);
  return completed;
}

Claim::~Claim() {
  if (tracker_ != nullptr) tracker_->abandon(*this);
}

void Claim::swap(Claim& other) noexcept {
  std::swap(tracker_, other.tracker_);
  std::swap(id_, other.id_);
  std::swap(file_, other.file_);
  std::swap(offset_, other.offset_);
  std::swap(length_, other.length_);
  std::swap(page_size_, other.page_size_);
  std::swap(boundary_pages_, other.boundary_pages_);
  std::swap(completing_pages_, other.completing_pages_);
  std::swap(untracked_pages_, other.untracked_pages_);
  std::swap(asked_, other.asked_);
}

BoundaryTracker::BoundaryTracker(std::size_t max_pages, std::size_t shards)
    : shard_count_(std::clamp<std::size_t>(shards, 1, std::max<std::size_t>(max_pages, 1))),
      shards_(std::make_unique<Shard[]>(shard_count_)) {
  for (std::size_t i = 0; i < shard_count_; ++i) shards_[i].capacity = max_pages / shard_count_;
}

BoundaryTracker::~BoundaryTracker() = default;

BoundaryTracker::Shard& BoundaryTracker::shard(std::uint64_t file,
                                               std::uint64_t page_offset) const {
  return shards_[mix(mix(file) + page_offset / 4096) % shard_count_];
}

Claim BoundaryTracker::ask(std::uint64_t file, std::uint32_t page_size, std::uint64_t offset,
                           std::uint64_t length, Time now) {
  Claim claim;
  claim.tracker_ = this;
  claim.id_ = next_claim_.fetch_add(1, std::memory_order_relaxed);
  claim.file_ = file;
  claim.offset_ = offset;
  claim.length_ = std::min(length, std::numeric_limits<std::uint64_t>::max() - offset);
  claim.page_size_ = page_size;
  claim.asked_ = now;
  for_each_page(offset, claim.length_, page_size, [&](std::uint64_t page) {
    const Part part = part_of_page(page, page_size, offset, offset + claim.length_);
    const bool boundary = part.begin > 0 || part.end < page_size;
    if (boundary) ++claim.boundary_pages_;

    Shard& shard = this->shard(file, page);
    const std::lock_guard lock(shard.mutex);
    const auto found = page_size > max_page_size ? shard.pages.end()
                                                 : shard.find_or_make(Key{file, page, page_size});
    if (found == shard.pages.end()) {
      ++claim.untracked_pages_;
      ++shard.untracked;
      return;
    }
    Entry& entry = found->second;
    entry.flights.push_back({claim.id_, part.begin, part.end});
    if (entry.flights.size() > 1) return;
    shard.busy.splice(shard.busy.end(), shard.idle, entry.position);
    if (boundary && entry.done.covers(0, part.begin) && entry.done.covers(part.end, page_size)) {
      ++claim.completing_pages_;
    }
  });
  return claim;
}

std::vector<PageRun> BoundaryTracker::release(Claim claim, std::uint64_t bytes_written,
                                              Outcome outcome, Time now) {
  if (claim.tracker_ == nullptr) return {};
  claim.tracker_ = nullptr;
  return end(claim, bytes_written, outcome, now);
}

void BoundaryTracker::abandon(Claim& claim) noexcept {
  claim.tracker_ = nullptr;
  end(claim, 0, Outcome::failed, claim.asked_);
}

std::vector<PageRun> BoundaryTracker::end(const Claim& claim, std::uint64_t bytes_written,
                                          Outcome outcome, Time now) {
  std::vector<PageRun> runs;
  const std::uint64_t reached = claim.offset_ + std::min(bytes_written, claim.length_);
  const std::uint32_t page_size = claim.page_size_;
  for_each_page(claim.offset_, claim.length_, page_size, [&](std::uint64_t page) {
    Shard& shard = this->shard(claim.file_, page);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.pages.find(Key{claim.file_, page, page_size});
    if (found == shard.pages.end()) return;
    Entry& entry = found->second;
    const auto flight = std::find_if(entry.flights.begin(), entry.flights.end(),
                                     [&](const Flight& f) { return f.claim == claim.id_; });
    if (flight == entry.flights.end()) return;
    const std::uint32_t begin = flight->begin;
    // forget_from() may have cut the flight short meanwhile.
    const std::uint32_t end =
        std::min(flight->end, part_of_page(page, page_size, claim.offset_, reached).end);
    *flight = entry.flights.back();
    entry.flights.pop_back();

    const bool wrote = outcome == Outcome::written && begin < end;
    if (wrote) entry.done.add(begin, end);
    if (outcome == Outcome::sync_failed) {
      // The write-back that failed may have been of any byte of the page, and a later sync of it
      // succeeds without having written them.
      entry.done.clear();
      for (Flight& other : entry.flights) other.end = other.begin;
    }
    if (shard.settle(found, wrote, now)) append(runs, page, page_size);
  });
  return runs;
}

std::vector<PageRun> BoundaryTracker::droppable(std::uint64_t file, std::uint32_t page_size,
                                                PageRun run) const {
  std::vector<PageRun> runs;
  for_each_page(run.offset, run.length, page_size, [&](std::uint64_t page) {
    const Shard& shard = this->shard(file, page);
    const std::lock_guard lock(shard.mutex);
    if (!shard.pages.contains(Key{file, page, page_size})) append(runs, page, page_size);
  });
  return runs;
}

std::vector<OrphanPage> BoundaryTracker::take_idle(Time now, Duration idle) {
  std::vector<OrphanPage> taken;
  for (std::size_t i = 0; i < shard_count_; ++i) {
    Shard& shard = shards_[i];
    const std::lock_guard lock(shard.mutex);
    for (const Key& key : shard.orphans) taken.push_back({key.file, key.offset, key.size});
    shard.orphans.clear();
    while (!shard.idle.empty() && now - shard.idle.front()->second.touched >= idle) {
      const Key& key = shard.idle.front()->first;
      taken.push_back({key.file, key.offset, key.size});
      shard.erase(shard.idle.front());
    }
  }
  return taken;
}

std::vector<OrphanPage> BoundaryTracker::take_file(std::uint64_t file) {
  std::vector<OrphanPage> taken;
  for (std::size_t i = 0; i < shard_count_; ++i) {
    Shard& shard = shards_[i];
    const std::lock_guard lock(shard.mutex);
    auto orphan = shard.orphans.lower_bound(Key{file, 0, 0});
    while (orphan != shard.orphans.end() && orphan->file == file) {
      taken.push_back({file, orphan->offset, orphan->size});
      orphan = shard.orphans.erase(orphan);
    }
    auto page = shard.pages.lower_bound(Key{file, 0, 0});
    while (page != shard.pages.end() && page->first.file == file) {
      const auto current = page++;
      if (!current->second.flights.empty()) continue;
      taken.push_back({file, current->first.offset, current->first.size});
      shard.erase(current);
    }
  }
  return taken;
}

void BoundaryTracker::forget_from(std::uint64_t file, std::uint64_t offset) {
  // The page that holds `offset` starts at most a page before it.
  const Key from{file, offset - std::min<std::uint64_t>(offset, max_page_size), 0};
  for (std::size_t i = 0; i < shard_count_; ++i) {
    Shard& shard = shards_[i];
    const std::lock_guard lock(shard.mutex);
    auto orphan = shard.orphans.lower_bound(from);
    while (orphan != shard.orphans.end() && orphan->file == file) {
      orphan = orphan->offset >= offset ? shard.orphans.erase(orphan) : std::next(orphan);
    }
    auto page = shard.pages.lower_bound(from);
    while (page != shard.pages.end() && page->first.file == file) {
      const auto current = page++;
      const Key& key = current->first;
      if (key.offset + (key.size - 1) < offset) continue;
      Entry& entry = current->second;
      const auto cut = static_cast<std::uint32_t>(offset > key.offset ? offset - key.offset : 0);
      entry.done.erase_from(cut);
      for (Flight& flight : entry.flights) {
        flight.end = std::max(flight.begin, std::min(flight.end, cut));
      }
      if (entry.flights.empty() && entry.done.empty()) shard.erase(current);
    }
  }
}

BoundaryTracker::Gauges BoundaryTracker::gauges() const {
  Gauges sum;
  for (std::size_t i = 0; i < shard_count_; ++i) {
    const Shard& shard = shards_[i];
    const std::lock_guard lock(shard.mutex);
    sum.pages += shard.pages.size();
    sum.in_flight += shard.busy.size();
    sum.orphans += shard.orphans.size();
    sum.evicted += shard.evicted;
    sum.untracked += shard.untracked;
  }
  return sum;
}

std::unordered_map<std::uint64_t, BoundaryTracker::FilePages> BoundaryTracker::pages_by_file()
    const {
  std::unordered_map<std::uint64_t, FilePages> all;
  for (std::size_t i = 0; i < shard_count_; ++i) {
    const Shard& shard = shards_[i];
    const std::lock_guard lock(shard.mutex);
    for (const auto& [key, entry] : shard.pages) {
      FilePages& file = all[key.file];
      ++file.pages;
      if (!entry.flights.empty()) ++file.in_flight;
    }
  }
  return all;
}

}  // namespace selvage::cache
