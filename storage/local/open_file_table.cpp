#include "storage/local/open_file_table.h"

#include "storage/local/held_files.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cerrno>
#include <limits>
#include <utility>

namespace selvage::storage {
namespace {

// With every file in use, a place comes free as soon as some request ends: wait here for it.
constexpr std::chrono::milliseconds room_poll{10};
constexpr int room_polls = 200;
constexpr int descriptor_retries = 8;

Awaitable<> pause(Worker& worker, std::chrono::milliseconds time) {
  boost::asio::steady_timer timer(worker.context, time);
  co_await timer.async_wait(boost::asio::use_awaitable);
}

bool out_of_descriptors(const ErrorCode& error) {
  return error == errno_code(EMFILE) || error == errno_code(ENFILE);
}

}  // namespace

Awaitable<Result<std::shared_ptr<File>>> OpenFileTable::open(Worker& worker, const ObjectId& id,
                                                             OpenFor use) {
  auto file = co_await open_file(worker, id, use);
  if (file.has_error()) co_return file.error();
  co_return std::shared_ptr<File>(std::move(*file));
}

Awaitable<Result<std::shared_ptr<OpenFile>>> OpenFileTable::open_file(Worker& worker, ObjectId id,
                                                                      OpenFor use) {
  if (use == OpenFor::writing && context_.options.read_only) co_return errno_code(EROFS);
  Result<std::shared_ptr<OpenFile>> file = errno_code(ENFILE);
  for (int polls = 0;; ++polls) {
    file = find_or_add(id);
    if (file.has_value()) break;
    if (file.error() != errno_code(ENFILE) || polls == room_polls) co_return file.error();
    const bool room = co_await make_room(worker);
    if (!room) co_await pause(worker, room_poll);
  }
  for (int tries = 0;; ++tries) {
    const auto opened = co_await (*file)->ensure_open(worker, use);
    if (opened.has_value()) break;
    if (out_of_descriptors(opened.error()) && tries < descriptor_retries) {
      const bool room = co_await make_room(worker);
      if (!room) co_await pause(worker, room_poll);
      continue;
    }
    // It may be open for reading, though not for writing.
    if (!(*file)->descriptors()) remove(*file);
    co_return opened.error();
  }
  co_return file;
}

std::shared_ptr<OpenFile> OpenFileTable::find_open(const ObjectId& id, OpenFor use) {
  const auto now = std::chrono::steady_clock::now();
  std::shared_ptr<OpenFile> file;
  {
    const std::lock_guard lock(mutex_);
    const auto found = by_id_.find(id);
    if (found == by_id_.end()) return nullptr;
    found->second->used = now;
    entries_.splice(entries_.begin(), entries_, found->second);
    file = found->second->file;
  }
  return file->is_open(use) ? file : nullptr;
}

Result<std::shared_ptr<OpenFile>> OpenFileTable::find_or_add(const ObjectId& id) {
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  if (closed_) return errno_code(ESHUTDOWN);
  if (const auto found = by_id_.find(id); found != by_id_.end()) {
    found->second->used = now;
    entries_.splice(entries_.begin(), entries_, found->second);
    return entries_.front().file;
  }
  if (entries_.size() >= context_.options.max_open_files) return errno_code(ENFILE);
  entries_.push_front({std::make_shared<OpenFile>(context_, id), now});
  by_id_.emplace(id, entries_.begin());
  return entries_.front().file;
}

std::shared_ptr<OpenFile> OpenFileTable::find(const ObjectId& id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second->file;
}

void OpenFileTable::attributes_changed(const ObjectId& id) {
  if (const auto file = find(id)) file->attributes_changed();
}

void OpenFileTable::show(const ObjectId& id, Attributes& attributes) {
  if (!context_.modes.may_assemble()) return;
  if (const auto file = find(id)) attributes = file->shown(attributes);
}

Awaitable<> OpenFileTable::forget(Worker& worker, const ObjectId& id) {
  if (context_.opener.held().held(id)) co_return;
  context_.opener.forget(id);
  if (context_.locks.has(id)) {
    auto drop = [&] { context_.locks.drop(id); };
    co_await worker.pool.run(drop);
  }
  std::shared_ptr<OpenFile> file;
  {
    const std::lock_guard lock(mutex_);
    const auto found = by_id_.find(id);
    if (found == by_id_.end()) co_return;
    file = found->second->file;
    entries_.erase(found->second);
    by_id_.erase(found);
  }
  co_await file->leave_assembly(worker, true);
  context_.tracker.forget(file->key());
  file->drop_list().clear();
  // The last close frees the file's space, which can take long.
  auto let_go = [file = std::move(file)]() mutable {
    file.reset();
    return true;
  };
  co_await worker.pool.run(std::move(let_go));
}

std::shared_ptr<OpenFile> OpenFileTable::least_recent_idle() {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<OpenFile> locked;
  std::shared_ptr<OpenFile> failed;
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (entry->file.use_count() != 1) continue;
    const bool error = entry->file->has_kept_error();
    if (!error && !context_.locks.has(entry->file->id())) return entry->file;
    auto& other = error ? failed : locked;
    if (!other) other = entry->file;
  }
  return locked ? locked : failed;
}

Awaitable<bool> OpenFileTable::make_room(Worker& worker) {
  auto file = least_recent_idle();
  if (!file) co_return false;
  co_return co_await evict(worker, std::move(file), true);
}

Awaitable<bool> OpenFileTable::evict(Worker& worker, std::shared_ptr<OpenFile> file,
                                     bool even_failed) {
  if (file->unsynced()) {
    const auto synced = co_await file->sync(worker, SyncKind::all, 0, 0);
    if (synced.has_error()) file->keep_error(synced.error());
  }
  if (file->has_kept_error() && !even_failed) co_return false;
  if (file.use_count() != 2) co_return false;
  co_await file->leave_assembly(worker, false);
  if (!remove_if_unused(file)) co_return false;
  auto let_go = [this, file = std::move(file)]() mutable {
    const auto pages = context_.tracker.take_file(file->key());
    std::vector<cache::PageRun> runs =
        file->drop_list().take(0, std::numeric_limits<std::uint64_t>::max());
    for (const auto& page : pages) runs.push_back({page.offset, page.length});
    context_.counters.boundary_orphaned.add(pages.size());
    if (file->descriptors()) file->drop(runs);
    file.reset();
    return true;
  };
  co_return co_await worker.pool.run(std::move(let_go));
}

/// Between a successful sync and here a request may have come and gone, leaving new bytes.
bool OpenFileTable::remove_if_unused(const std::shared_ptr<OpenFile>& file) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(file->id());
  if (found == by_id_.end() || found->second->file != file) return false;
  if (file.use_count() != 2) return false;  // The table's and ours.
  if (file->unsynced() && !file->has_kept_error()) return false;
  entries_.erase(found->second);
  by_id_.erase(found);
  return true;
}

void OpenFileTable::remove(const std::shared_ptr<OpenFile>& file) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(file->id());
  if (found == by_id_.end() || found->second->file != file) return;
  entries_.erase(found->second);
  by_id_.erase(found);
}

Awaitable<> OpenFileTable::close_idle(Worker& worker, std::chrono::steady_clock::time_point time) {
  std::vector<std::shared_ptr<OpenFile>> idle;
  {
    const std::lock_guard lock(mutex_);
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
      if (entry->used > time) break;
      if (entry->file.use_count() == 1 && !entry->file->has_kept_error() &&
          !context_.locks.has(entry->file->id())) {
        idle.push_back(entry->file);
      }
    }
  }
  while (!idle.empty()) {
    auto file = std::move(idle.back());
    idle.pop_back();
    co_await evict(worker, std::move(file), false);
  }
}

Awaitable<> OpenFileTable::reopen(Worker& worker) {
  auto all = files();
  while (!all.empty()) {
    const auto file = std::move(all.back());
    all.pop_back();
    // Failures are kept with the file.
    co_await file->leave_assembly(worker, false);
  }
  co_await close_idle(worker, std::chrono::steady_clock::time_point::max());
}

Awaitable<Result<>> OpenFileTable::close_all(Worker& worker) {
  Result<> first;
  const std::uint64_t close_errors = context_.counters.close_errors.get();
  std::vector<std::shared_ptr<OpenFile>> all;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (Entry& entry : entries_) all.push_back(std::move(entry.file));
    entries_.clear();
    by_id_.clear();
  }
  for (const auto& file : all) {
    if (file->unsynced()) {
      const auto synced = co_await file->sync(worker, SyncKind::all, 0, 0);
      if (synced.has_error()) file->keep_error(synced.error());
    }
    co_await file->leave_assembly(worker, false);
    const auto error = file->take_kept_error();
    if (error && first.has_value()) first = *error;
  }
  auto let_go = [this, all = std::move(all)]() mutable {
    context_.locks.clear();
    all.clear();
    return true;
  };
  co_await worker.pool.run(std::move(let_go));
  if (first.has_value() && context_.counters.close_errors.get() != close_errors) {
    first = errno_code(EIO);
  }
  co_return first;
}

std::size_t OpenFileTable::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

Awaitable<Result<>> OpenFileTable::sync_all(Worker& worker) {
  Result<> first;
  for (const auto& file : files()) {
    const auto assembling = file->combiner();
    if (!file->unsynced() && !(assembling && assembling->busy())) continue;
    const auto synced = co_await file->sync(worker, SyncKind::all, 0, 0);
    if (synced.has_value()) continue;
    file->keep_error(synced.error());
    if (first.has_value()) first = synced.error();
  }
  co_return first;
}

std::vector<std::shared_ptr<OpenFile>> OpenFileTable::files() const {
  std::vector<std::shared_ptr<OpenFile>> all;
  const std::lock_guard lock(mutex_);
  all.reserve(entries_.size());
  for (const Entry& entry : entries_) {
    // Those still being opened have nothing to look after.
    if (entry.file->descriptors()) all.push_back(entry.file);
  }
  return all;
}

}  // namespace selvage::storage
