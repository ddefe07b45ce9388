#include "server/mount3/mount_list.h"

#include <utility>

namespace selvage::server::mount3 {

void MountList::add(Entry entry) {
  const std::lock_guard lock(mutex_);
  entries_.remove(entry);
  if (entries_.size() == max_entries) entries_.pop_front();
  entries_.push_back(std::move(entry));
}

void MountList::remove(const Entry& entry) {
  const std::lock_guard lock(mutex_);
  entries_.remove(entry);
}

void MountList::remove_client(std::string_view client) {
  const std::lock_guard lock(mutex_);
  entries_.remove_if([&](const Entry& entry) { return entry.client == client; });
}

std::vector<MountList::Entry> MountList::entries() const {
  const std::lock_guard lock(mutex_);
  return {entries_.begin(), entries_.end()};
}

}  // namespace selvage::server::mount3
