// One open regular file: its descriptors, its syncs, the rights to it. Private to storage/local.
#pragma once

#include "storage/group_commit.h"
#include "storage/local/access_cache.h"
#include "storage/local/data_context.h"
#include "storage/local/drop_list.h"
#include "storage/local/file_table.h"
#include "storage/page_cache.h"
#include "storage/suspended.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace selvage::storage {

/// One generation of a file's descriptors. Immutable; closes them, and looks at the results: a
/// failed close counts as lost data.
struct Descriptors {
  explicit Descriptors(DataContext& data_context) : context(data_context) {}
  ~Descriptors();
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  DataContext& context;
  int buffered = -1;  ///< Carries the file's write-back errors: all syncs go here.
  int direct = -1;    ///< O_DIRECT; -1 where the file does not do it.
  bool writable = false;
  DirectAlignment alignment;
};

enum class Right : std::uint8_t { read, write };

/// Any worker. Lives as long as the table or a request refers to it.
class OpenFile final : public File {
 public:
  OpenFile(DataContext& context, const ObjectId& id);
  ~OpenFile() override;

  const ObjectId& id() const override { return id_; }
  int fd() const override { return descriptors()->buffered; }
  Awaitable<Result<>> sync(Worker& worker, SyncKind kind, std::uint64_t offset,
                           std::uint64_t length) override;
  void attributes_changed() override { access_.clear(); }

  /// Opens the descriptors if they are not open for that use yet. Those who come meanwhile share
  /// the attempt.
  Awaitable<Result<>> ensure_open(Worker& worker, OpenFor use);

  /// @pre ensure_open() succeeded once. Hold the result for as long as a descriptor is used.
  std::shared_ptr<const Descriptors> descriptors() const;

  /// EACCES, EROFS, ... unless the caller has the right.
  Awaitable<Result<>> authorise(Caller caller, Right right);

  /// statx(2) after an operation. ESTALE once the file has no link.
  Result<Attributes> attributes_after();

  /// Alignment for O_DIRECT; none after the file system refused it.
  DirectAlignment alignment() const;
  void direct_refused();

  /// Bytes entered the page cache or the device that no sync has covered. Call it after they did
  /// and before the reply.
  void wrote_unsynced() { written_.fetch_add(1, std::memory_order_acq_rel); }
  bool unsynced() const {
    return written_.load(std::memory_order_acquire) != synced_.load(std::memory_order_acquire);
  }

  /// An error that no client has been told of, from a sync that none was waiting for.
  void keep_error(const ErrorCode& error);
  bool has_kept_error() const;
  /// Hands the error over, to be reported.
  std::optional<ErrorCode> take_kept_error();

  /// Lets go of those pages that are clean; the others are left to the janitor. For a few pages
  /// only on a worker, else on the pool.
  void drop(std::span<const cache::PageRun> runs);

  /// Blocks, for the pool: what has been on the drop list since `time` leaves the cache if it is
  /// clean. Otherwise its write-back is started, and it comes up again at the next call.
  void write_back(DropList::Time time);
  /// Whether write_back() may find anything.
  bool wants_write_back() const { return !drop_list_.empty() || !stuck_.empty(); }

  std::uint64_t key() const { return key_; }  ///< Names the file to the boundary tracker.
  std::uint32_t page_size() const;            ///< boundary_page_size(), whatever was refused.
  DropList& drop_list() { return drop_list_; }
  /// Takes what of the drop list in [first, last) may be dropped once it is clean.
  std::vector<cache::PageRun> take_droppable(std::uint64_t first, std::uint64_t last);

 private:
  class Opening;
  struct Opener final : Suspended {
    Opener(Worker& worker, OpenFor opens_for) : Suspended(worker), use(opens_for) {}
    OpenFor use;
    Result<> result;
  };
  std::vector<cache::PageRun> not_in_play(std::span<const cache::PageRun> runs) const;
  DropOutcome drop_counted(std::span<const cache::PageRun> runs);
  void opened(OpenFor use, Result<std::shared_ptr<const Descriptors>> result);

  DataContext& context_;
  const ObjectId id_;
  const std::uint64_t key_;
  GroupCommit commit_;
  AccessCache access_;
  DropList drop_list_;  // Dirty, most of them.
  DropList stuck_;      // Clean, but did not leave: once more, then the kernel may have them.
  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> synced_{0};
  std::atomic<bool> direct_refused_{false};

  mutable std::mutex mutex_;  // Of what follows. Never held across I/O.
  std::shared_ptr<const Descriptors> descriptors_;
  std::shared_ptr<const Descriptors> read_only_;  // Replaced by the first WRITE; fd() may have
                                                  // given it away.
  bool opening_ = false;
  std::vector<std::shared_ptr<Opener>> openers_;
  std::optional<ErrorCode> kept_error_;
};

}  // namespace selvage::storage
