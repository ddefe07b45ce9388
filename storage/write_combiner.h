// One leader per file: WRITEs that wait while a batch is written leave together as the next
// (edge mode `assemble`, DESIGN 4).
//
// A request joins the file's queue, on whichever worker it came. If nobody leads, a leader starts
// on that worker. It takes what has queued, plans it (batch_plan.h), submits all of it together,
// answers the UNSTABLE ones, makes one sync if anybody asked for stability, answers the rest, lets
// the resumed connections queue again, and takes the next batch. UNSTABLE WRITEs inside the file
// leave as two batches, the lower offsets and the higher ones: while the device writes one, the
// clients of the other go on. One mutex guards queue and pages and is never held across I/O. Timers
// only bound how long a batch waits for neighbours that are due.
#pragma once

#include "cache/edge_pages.h"
#include "storage/batch_plan.h"
#include "storage/filesystem.h"
#include "storage/hold_back.h"
#include "storage/suspended.h"
#include "storage/wait_credit.h"
#include "storage/write_verifier.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace selvage::storage {

/// What a combiner needs of its file; tests simulate it. Called on the worker given only; offsets,
/// lengths and memory of read() and write() are aligned for O_DIRECT.
class CombinedFile {
 public:
  virtual ~CombinedFile() = default;

  virtual Awaitable<Result<std::size_t>> read(Worker& worker, std::span<const iovec> to,
                                              std::uint64_t offset) = 0;
  virtual Awaitable<Result<std::size_t>> write(Worker& worker, std::span<const iovec> from,
                                               std::uint64_t offset) = 0;
  /// Exactly these bytes, at any alignment; nothing else of the file is in flight meanwhile.
  virtual Awaitable<Result<std::size_t>> write_tail(Worker& worker, std::span<const std::byte> from,
                                                    std::uint64_t offset) = 0;
  virtual Awaitable<Result<>> sync(Worker& worker, SyncKind kind) = 0;
  /// Before a batch of `bytes` that makes the file grow from `size` to `end`: room may be allocated
  /// ahead.
  virtual Awaitable<> grow(Worker& worker, std::uint64_t size, std::uint64_t end,
                           std::uint64_t bytes) = 0;
  /// What a batch was for.
  enum class Did : std::uint8_t {
    nothing,       ///< Nothing was written.
    servers_work,  ///< Only what had been acknowledged before was: no time may show it.
    clients_work,  ///< WRITEs were in it: mtime and ctime move to now.
  };
  /// The attributes after a batch.
  virtual Awaitable<Result<Attributes>> finish(Worker& worker, Did did) = 0;
};

/// Once retired it does nothing more: every request ends with ECANCELED, for the caller to go
/// another way.
class WriteCombiner : public std::enable_shared_from_this<WriteCombiner> {
 public:
  struct Limits {
    std::size_t max_requests = 512;
    std::uint64_t max_bytes = std::uint64_t{32} << 20;
    int patience = 8;              ///< Turns without an arrival that a batch waits for what fills
                                   ///< the gaps before all of it.
    unsigned most_holds = 4;       ///< Batches that a WRITE is held back from (hold_back.h).
    std::size_t most_flights = 2;  ///< Batches at once, inside the file,
    std::size_t least_flight = 8;  ///< of so many WRITEs or more, if there is more than one.
    /// How long stable WRITEs and COMMITs wait for the neighbours of partial pages in all (in
    /// between nothing may come for long: wait_credit.h),
    std::chrono::milliseconds longest_wait{200};
    unsigned most_waits = 1000;      ///< and in batches.
    std::size_t clean_pages = 1024;  ///< Kept by an idle file for the neighbours of what it wrote.
  };

  /// `verifier`, `counters`, `budget` and `waits` must outlive it. `disk_size`: bytes.
  WriteCombiner(std::shared_ptr<CombinedFile> file, std::uint32_t page_size,
                std::uint64_t disk_size, cache::EdgePageBudget& budget, WriteVerifier& verifier,
                DataCounters& data_counters, CombinerCounters& counters, WaitsLearned& waits,
                Limits limits);
  ~WriteCombiner();

  /// `data` stays valid until this returns and is aligned for O_DIRECT wherever a page of the file
  /// starts. `write_through`: even an UNSTABLE one leaves no byte in memory.
  Awaitable<Result<WriteResult>> write(Worker& worker, std::uint64_t offset,
                                       std::span<const std::byte> data, Stability stability,
                                       bool write_through);
  /// Everything acknowledged in [offset, offset + length) is durable on return. length 0: to the
  /// end.
  Awaitable<Result<CommitResult>> commit(Worker& worker, std::uint64_t offset,
                                         std::uint64_t length);

  /// Writes out all pages, without a sync, then runs `work` with nothing of the file in flight,
  /// READs included. For truncation, allocation, and before descriptors change. `work` returns the
  /// new size on disk. An error of the write-out is returned and `work` is not run.
  using Work = std::function<Awaitable<Result<std::uint64_t>>(Worker&)>;
  Awaitable<Result<>> exclusive(Worker& worker, Work work);
  /// The last exclusive work: whatever becomes of it, no other request is carried out after it.
  /// discard: the pages are forgotten, not written out (the file was removed).
  Awaitable<Result<>> retire(Worker& worker, Work work, bool discard);

  /// Writes out what memory holds; with sync, durably. Nobody's times move.
  Awaitable<Result<>> write_out(Worker& worker, bool sync);
  /// The same for what has been dirty since before that batch; see batch_number().
  Awaitable<Result<>> write_out_older(Worker& worker, std::uint64_t before);

  /// Reads [offset, offset + to.size()), aligned for O_DIRECT, and lays over it what memory holds.
  /// Returns how many bytes of it lie before the end of the file as shown.
  Awaitable<Result<std::size_t>> read(Worker& worker, std::span<std::byte> to,
                                      std::uint64_t offset);

  /// The size that clients are shown: never below the end of an acknowledged WRITE.
  std::uint64_t shown_size() const;
  /// Dirty bytes are held in memory, or requests are in flight.
  bool busy() const;
  std::uint64_t batch_number() const;
  struct Held {
    std::uint64_t pages = 0;
    std::uint64_t dirty_bytes = 0;
  };
  /// What memory holds of the file.
  Held held() const;
  /// When, in the order of the export, the oldest page in memory was written to; none if there is
  /// none.
  std::optional<std::uint64_t> oldest_page() const;

 private:
  struct Request;
  struct Batch;
  class Leader;
  using Requests = std::vector<std::shared_ptr<Request>>;
  using Clock = std::chrono::steady_clock;

  Awaitable<Result<>> submit(Worker& worker, std::shared_ptr<Request> request);
  Awaitable<> lead(Worker& worker);
  Awaitable<> gather(Worker& worker);
  void note_answered(Worker& worker);
  Requests take_batch();
  bool only_behind_gaps();
  bool carried_alone() const;
  bool continues(const Request& request);
  void put_back(Requests& batch, std::uint64_t window);
  bool fits(const Requests& batch, const Request& next) const;
  bool may_fly(const Requests& batch) const;
  bool in_flight(std::uint64_t begin, std::uint64_t end) const;
  std::size_t cut(const Requests& batch, std::size_t at);
  void launch(Worker& worker, Requests batch);
  Awaitable<> landing(Worker& worker);
  void landed(const Batch& flight);
  Awaitable<> run_batch(Worker& worker, Requests batch);
  void plan(Batch& batch);
  Awaitable<> carry_out(Worker& worker, Batch& batch);
  Awaitable<> run_exclusive(Worker& worker, std::shared_ptr<Request> request);
  Requests take_all();
  Awaitable<> read_missing(Worker& worker, Batch& batch);
  Awaitable<> write_runs(Worker& worker, Batch& batch, std::span<const BatchRun> runs);
  Awaitable<> write_tails(Worker& worker, Batch& batch);
  bool may_wait_on(const Request& request, Clock::time_point now) const;
  void note_waits(const Batch& batch);
  void settle(Batch& batch);
  Awaitable<> answer(Worker& worker, Batch& batch);

  Awaitable<bool> enter_read(Worker& worker);
  void leave_read();
  Awaitable<> stop_reads(Worker& worker);
  void resume_reads();

  const std::shared_ptr<CombinedFile> file_;
  WriteVerifier& verifier_;
  DataCounters& data_counters_;
  CombinerCounters& counters_;
  const Limits limits_;

  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<Request>> queue_;
  Requests carried_;  // Wait for the next batch; written by the leader only.
  bool leading_ = false;
  bool retired_ = false;
  cache::EdgePages pages_;
  std::uint64_t disk_size_;
  std::uint64_t shown_size_;
  std::uint64_t batch_number_ = 0;
  // Only touched on the leader's worker.
  std::vector<const Batch*> flights_;
  bool landed_ = false;                           // One has ended, unseen by the leader.
  std::shared_ptr<Suspended> waits_for_landing_;  // The leader.
  HoldCredit hold_credit_;
  Clock::time_point arrived_;  // The last request that was new,
  WaitsLearned& waits_learned_;
  WaitsLearned::Credits waits_;
  std::size_t expected_ = 0;      // Requests that wait and those just answered: those in flight.
  int expect_turns_ = 0;          // Turns that may bring nothing before the next batch starts.
  std::uint64_t last_bytes_ = 0;  // Of the WRITEs of the last batch.
  std::vector<Worker*> answered_workers_;  // Since the leader has waited for them.

  // READs in flight, and the leader that keeps them out for a moment.
  std::size_t reads_ = 0;
  bool reads_stopped_ = false;
  std::shared_ptr<Suspended> waiting_leader_;
  std::vector<std::shared_ptr<Suspended>> waiting_reads_;
};

}  // namespace selvage::storage
