// The bounded table of open files. Private to storage/local.
#pragma once

#include "storage/local/open_file.h"

#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace selvage::storage {

/// At most options.max_open_files entries, the least recently used leaving first. Any worker.
///
/// A file leaves the table when no request refers to it and all its bytes have been synced, unless
/// it was removed. One whose sync failed stays until a client has been told, or its place is
/// needed; the verifier has changed anyhow. One with kernel locks does not leave for being idle,
/// and among the last for its place: from edge mode `assemble` it would not come back to that.
class OpenFileTable final : public FileTable {
 public:
  explicit OpenFileTable(DataContext& context) : context_(context) {}

  Awaitable<Result<std::shared_ptr<File>>> open(Worker& worker, const ObjectId& id,
                                                OpenFor use) override;
  void attributes_changed(const ObjectId& id) override;
  void show(const ObjectId& id, Attributes& attributes) override;
  Awaitable<> forget(Worker& worker, const ObjectId& id) override;

  /// open(), for the data path.
  Awaitable<Result<std::shared_ptr<OpenFile>>> open_file(Worker& worker, ObjectId id, OpenFor use);

  /// The same where there is nothing to wait for; null otherwise.
  std::shared_ptr<OpenFile> find_open(const ObjectId& id, OpenFor use);

  /// Syncs and closes the files that nobody has used since `time`.
  Awaitable<> close_idle(Worker& worker, std::chrono::steady_clock::time_point time);

  /// Closes the files that no request uses, and takes those in use out of `assemble`: they are
  /// opened as CurrentModes says when they are used next.
  Awaitable<> reopen(Worker& worker);

  /// Syncs and closes everything; open() then gives ESHUTDOWN. The first error.
  Awaitable<Result<>> close_all(Worker& worker);

  /// All files in the table, at this moment.
  std::vector<std::shared_ptr<OpenFile>> files() const;
  std::size_t size() const;

  /// FileSystem::sync().
  Awaitable<Result<>> sync_all(Worker& worker);

 private:
  struct Entry {
    std::shared_ptr<OpenFile> file;
    std::chrono::steady_clock::time_point used;
  };
  using Entries = std::list<Entry>;  // Most recently used first.

  std::shared_ptr<OpenFile> find(const ObjectId& id);
  /// The entry, made if there is room (or anyhow with `over_bound`); null if there is none.
  Result<std::shared_ptr<OpenFile>> find_or_add(const ObjectId& id);
  std::shared_ptr<OpenFile> least_recent_idle();
  Awaitable<bool> make_room(Worker& worker);
  /// False if it could not leave: in use again, or its sync failed.
  Awaitable<bool> evict(Worker& worker, std::shared_ptr<OpenFile> file, bool even_failed);
  bool remove_if_unused(const std::shared_ptr<OpenFile>& file);
  void remove(const std::shared_ptr<OpenFile>& file);

  DataContext& context_;
  mutable std::mutex mutex_;  // Never held across I/O.
  Entries entries_;
  std::unordered_map<ObjectId, Entries::iterator, ObjectIdHash> by_id_;
  bool closed_ = false;
};

}  // namespace selvage::storage
