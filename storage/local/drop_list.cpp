#include "storage/local/drop_list.h"

#include <algorithm>
#include <iterator>

namespace selvage::storage {

void DropList::add(std::span<const cache::PageRun> runs, Time since) {
  const std::lock_guard lock(mutex_);
  for (const cache::PageRun& run : runs) {
    std::uint64_t first = run.offset;
    Item item{run.offset + run.length, since};
    auto next = runs_.upper_bound(first);
    if (next != runs_.begin() && std::prev(next)->second.last >= first) --next;
    while (next != runs_.end() && next->first <= item.last) {
      first = std::min(first, next->first);
      item.last = std::max(item.last, next->second.last);
      item.since = std::min(item.since, next->second.since);
      next = runs_.erase(next);
    }
    runs_.emplace_hint(next, first, item);
    if (runs_.size() > max_runs) runs_.erase(runs_.begin());
  }
}

std::vector<cache::PageRun> DropList::take(std::uint64_t first, std::uint64_t last) {
  std::vector<cache::PageRun> taken;
  const std::lock_guard lock(mutex_);
  auto next = runs_.upper_bound(first);
  if (next != runs_.begin() && std::prev(next)->second.last > first) --next;
  while (next != runs_.end() && next->first < last) {
    const std::uint64_t from = next->first;
    const Item item = next->second;
    next = runs_.erase(next);
    const std::uint64_t begin = std::max(from, first);
    const std::uint64_t end = std::min(item.last, last);
    taken.push_back({begin, end - begin});
    if (from < begin) runs_.emplace(from, Item{begin, item.since});
    if (end < item.last) runs_.emplace(end, Item{item.last, item.since});
  }
  return taken;
}

std::vector<cache::PageRun> DropList::take_older(Time time) {
  std::vector<cache::PageRun> taken;
  const std::lock_guard lock(mutex_);
  for (auto next = runs_.begin(); next != runs_.end();) {
    if (next->second.since > time) {
      ++next;
      continue;
    }
    taken.push_back({next->first, next->second.last - next->first});
    next = runs_.erase(next);
  }
  return taken;
}

void DropList::clear() {
  const std::lock_guard lock(mutex_);
  runs_.clear();
}

std::size_t DropList::size() const {
  const std::lock_guard lock(mutex_);
  return runs_.size();
}

}  // namespace selvage::storage
