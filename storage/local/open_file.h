// One open regular file: its descriptors, its syncs, the rights to it. Private to storage/local.
#pragma once

#include "storage/group_commit.h"
#include "storage/local/access_cache.h"
#include "storage/local/assembled_file.h"
#include "storage/local/data_context.h"
#include "storage/local/descriptors.h"
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

enum class Right : std::uint8_t { read, write };

/// Any worker. Lives as long as the table or a request refers to it.
class OpenFile final : public File, public std::enable_shared_from_this<OpenFile> {
 public:
  OpenFile(DataContext& context, const ObjectId& id);
  ~OpenFile() override;

  const ObjectId& id() const override { return id_; }
  int fd() const override { return descriptors()->buffered; }
  Awaitable<Result<>> sync(Worker& worker, SyncKind kind, std::uint64_t offset,
                           std::uint64_t length) override;
  Awaitable<Result<>> exclusive(Worker& worker, Work work) override;
  void attributes_changed() override;

  /// Opens the descriptors if they are not open for that use yet. Those who come meanwhile share
  /// the attempt.
  Awaitable<Result<>> ensure_open(Worker& worker, OpenFor use);

  /// Whether ensure_open() has nothing to do.
  bool is_open(OpenFor use) const;

  /// @pre ensure_open() succeeded once. Hold the result for as long as a descriptor is used.
  std::shared_ptr<const Descriptors> descriptors() const;

  /// How data gets to and from the file, all of one moment.
  struct Way {
    std::shared_ptr<const Descriptors> descriptors;
    std::shared_ptr<WriteCombiner> combiner;  ///< See combiner().
    bool stale = false;                       ///< See stale(): no data goes this way any more.
  };
  /// Once it is neither stale nor through a combiner, it stays as it is.
  Way way() const;

  /// The combiner while the file is in edge mode `assemble`, else null. A request of it may still
  /// end with ECANCELED: then the file has left that mode, ensure_open() and go on from there.
  std::shared_ptr<WriteCombiner> combiner() const;
  /// Whether ensure_open() is needed (again): the file has left edge mode `assemble`.
  bool stale() const;
  /// Blocks: moves mtime and ctime as the file system did not for a change that a client asked for,
  /// the description being an invisible one.
  Result<> stamp_if_invisible();
  /// Leaves edge mode `assemble`, if it is in it: writes out what memory holds, gives up the lease.
  /// discard: the file was removed.
  Awaitable<Result<>> leave_assembly(Worker& worker, bool discard);
  /// The background's care for what memory holds.
  Awaitable<> tend(Worker& worker, std::chrono::steady_clock::time_point now);
  /// A set-user-id or set-group-id bit was there when last looked at: the next WRITE is to clear
  /// it.
  bool has_set_id() const { return (mode_.load(std::memory_order_relaxed) & 06000U) != 0; }
  Attributes shown(Attributes attributes) const;
  /// What was written before `covered` (see written()) has been synced.
  void mark_synced(std::uint64_t covered);
  std::uint64_t written() const { return written_.load(std::memory_order_acquire); }
  /// Takes note of attributes seen after an operation.
  Result<Attributes> observe(Attributes attributes);

  /// EACCES, EROFS, ... unless the caller has the right.
  Awaitable<Result<>> authorise(Caller caller, Right right);
  /// Whether authorise() would grant it without asking the kernel.
  bool known_to_allow(const Credentials& credentials, Right right);

  /// statx(2) after an operation. ESTALE once the file has no link and nobody holds it.
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

  /// After a sync: lets go of those pages that are clean. The others go to the drop list, for a
  /// later sync or the janitor. For a few pages only on a worker, else on the pool.
  void drop(std::span<const cache::PageRun> runs);
  /// The same with what of the drop list lies in [first, last), bytes, and is not in play again.
  void drop_listed(std::uint64_t first, std::uint64_t last);

  /// Blocks, for the pool: what has been on the drop list since `time` leaves the cache if it is
  /// clean. Otherwise its write-back is started, and it comes up again at the next call.
  void write_back(DropList::Time time);
  /// Whether write_back() may find anything.
  bool wants_write_back() const { return !drop_list_.empty() || !stuck_.empty(); }

  std::uint64_t key() const { return key_; }  ///< Names the file to the boundary tracker.
  std::uint32_t page_size() const;            ///< boundary_page_size(), whatever was refused.
  DropList& drop_list() { return drop_list_; }

 private:
  class Opening;
  struct Opener final : Suspended {
    Opener(Worker& worker, OpenFor opens_for) : Suspended(worker), use(opens_for) {}
    OpenFor use;
    Result<> result;
  };
  std::vector<cache::PageRun> not_in_play(std::span<const cache::PageRun> runs) const;
  void drop_locked(std::span<const cache::PageRun> runs);
  DropOutcome drop_counted(std::span<const cache::PageRun> runs, DropList::Time since);
  struct Opened {
    std::shared_ptr<const Descriptors> descriptors;
    std::shared_ptr<AssembledFile> assembled;  // In edge mode `assemble`.
  };
  Result<Opened> open_now(OpenFor use, bool assemble);
  bool may_assemble() const;
  bool is_open_locked(OpenFor use) const {
    return descriptors_ && !stale_ && (use == OpenFor::reading || descriptors_->writable);
  }
  void opened(OpenFor use, Result<Opened> result);

  DataContext& context_;
  const ObjectId id_;
  const std::uint64_t key_;
  GroupCommit commit_;
  AccessCache access_;
  // Held from finding that a page cannot go yet to putting it on a list: who drops after a later
  // sync finds it there.
  std::mutex drop_mutex_;
  DropList drop_list_;             // Dirty, most of them.
  DropList stuck_;                 // Clean, but did not leave.
  std::uint64_t stuck_since_ = 0;  // commit_.syncs() when one last did not.
  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> synced_{0};
  std::atomic<bool> direct_refused_{false};
  std::atomic<std::uint32_t> mode_{0};

  mutable std::mutex mutex_;  // Of what follows. Never held across I/O.
  std::shared_ptr<const Descriptors> descriptors_;
  std::shared_ptr<const Descriptors> read_only_;  // Replaced by the first WRITE; fd() may have
                                                  // given it away.
  std::shared_ptr<AssembledFile> assembled_;
  std::shared_ptr<WriteCombiner> combiner_;
  bool stale_ = false;    // descriptors_ are of an assembled file that was given up.
  bool leaving_ = false;  // leave_assembly() is at it.
  std::vector<std::shared_ptr<Suspended>> leavers_;
  std::chrono::steady_clock::time_point lease_retry_;
  std::uint64_t tended_batch_ = 0;
  std::chrono::steady_clock::time_point tended_;
  bool opening_ = false;
  std::vector<std::shared_ptr<Opener>> openers_;
  std::optional<ErrorCode> kept_error_;
};

}  // namespace selvage::storage
