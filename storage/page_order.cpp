#include "storage/page_order.h"

#include <utility>

namespace selvage::storage {

struct PageOrder::Entry final : Suspended {
  Entry(Worker& worker, cache::PageRun run, Way which)
      : Suspended(worker), pages(run), way(which) {}
  const cache::PageRun pages;
  const Way way;
  bool waits = false;
};

bool PageOrder::blocked(const Entries& entries, std::size_t index) {
  const Entry& one = *entries[index];
  for (std::size_t i = 0; i < index; ++i) {
    const Entry& other = *entries[i];
    if (other.way != one.way && other.pages.offset < one.pages.offset + one.pages.length &&
        one.pages.offset < other.pages.offset + other.pages.length) {
      return true;
    }
  }
  return false;
}

Awaitable<PageOrder::Turn> PageOrder::enter(Worker& worker, std::uint64_t file,
                                            cache::PageRun pages, Way way) {
  auto entry = std::make_shared<Entry>(worker, pages, way);
  bool waits = false;
  {
    const std::lock_guard lock(mutex_);
    Entries& entries = files_[file];
    entries.push_back(entry);
    waits = entry->waits = blocked(entries, entries.size() - 1);
  }
  Turn turn(*this, file, entry);
  if (waits) co_await entry->wait();
  co_return turn;
}

void PageOrder::leave(std::uint64_t file, const std::shared_ptr<Entry>& entry) {
  Entries next;
  {
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(file);
    Entries& entries = found->second;
    std::erase(entries, entry);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!entries[i]->waits || blocked(entries, i)) continue;
      entries[i]->waits = false;
      next.push_back(entries[i]);
    }
    if (entries.empty()) files_.erase(found);
  }
  if (!next.empty()) resume_all(next);
}

}  // namespace selvage::storage
