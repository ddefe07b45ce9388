#include "storage/write_combiner.h"

#include "storage/aligned_memory.h"
#include "storage/join.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

namespace selvage::storage {

struct WriteCombiner::Request final : Suspended {
  enum class Kind : std::uint8_t { write, commit, write_out, exclusive };
  Request(Worker& worker, Kind what) : Suspended(worker), kind(what) {}

  std::uint64_t end() const { return offset + length; }
  bool wants_sync() const { return stability != Stability::unstable; }

  const Kind kind;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::span<const std::byte> data;
  Stability stability = Stability::unstable;
  bool write_through = false;
  std::uint64_t before = ~std::uint64_t{0};  // write_out: only pages dirty before that batch.
  Work work;                                 // exclusive
  bool retires = false;                      // The combiner ends with it,
  bool discard = false;                      // and what it holds is of no use any more.

  bool carried = false;     // Has waited for one batch.
  std::uint64_t batch = 0;  // The first it was in.
  // The answer.
  ErrorCode error;
  std::uint64_t verifier = 0;
  Attributes after;
};

struct WriteCombiner::Batch {
  struct Failure {
    std::uint64_t begin, end;  // Of the file, bytes.
    ErrorCode error;
    bool tried;  // A write failed: what is on disk is unknown. Otherwise nothing was written.
  };
  Requests requests;
  Requests waiting;
  BatchPlan plan;
  std::vector<Failure> failures;
  std::uint64_t written_end = 0;  // What the writes that succeeded made the size at least.

  void fail(std::uint64_t begin, std::uint64_t end, const ErrorCode& error, bool tried) {
    failures.push_back({begin, end, error, tried});
  }
  const Failure* failure_in(std::uint64_t begin, std::uint64_t end) const {
    const auto hit = [&](const Failure& f) { return f.begin < end && begin < f.end; };
    const auto found = std::ranges::find_if(failures, hit);
    return found == failures.end() ? nullptr : &*found;
  }
};

WriteCombiner::WriteCombiner(std::shared_ptr<CombinedFile> file, std::uint32_t page_size,
                             std::uint64_t disk_size, cache::EdgePageBudget& budget,
                             WriteVerifier& verifier, DataCounters& data_counters,
                             CombinerCounters& counters, Limits limits)
    : file_(std::move(file)),
      verifier_(verifier),
      data_counters_(data_counters),
      counters_(counters),
      limits_(limits),
      pages_(page_size, budget),
      disk_size_(disk_size),
      shown_size_(disk_size),
      patience_(limits.patience) {}

WriteCombiner::~WriteCombiner() = default;

std::uint64_t WriteCombiner::shown_size() const {
  const std::lock_guard lock(mutex_);
  return shown_size_;
}

bool WriteCombiner::busy() const {
  const std::lock_guard lock(mutex_);
  return leading_ || reads_ != 0 || pages_.dirty_in(0, ~std::uint64_t{0});
}

std::uint64_t WriteCombiner::batch_number() const {
  const std::lock_guard lock(mutex_);
  return batch_number_;
}

// --- The requests

Awaitable<Result<WriteResult>> WriteCombiner::write(Worker& worker, std::uint64_t offset,
                                                    std::span<const std::byte> data,
                                                    Stability stability, bool write_through) {
  auto request = std::make_shared<Request>(worker, Request::Kind::write);
  request->offset = offset;
  request->length = data.size();
  request->data = data;
  request->stability = stability;
  request->write_through = write_through;
  const Result<> done = co_await submit(worker, request);
  if (done.has_error()) co_return done.error();
  WriteResult result;
  result.count = data.size();
  result.committed = stability;
  result.verifier = request->verifier;
  result.after = request->after;
  co_return result;
}

Awaitable<Result<CommitResult>> WriteCombiner::commit(Worker& worker, std::uint64_t offset,
                                                      std::uint64_t length) {
  auto request = std::make_shared<Request>(worker, Request::Kind::commit);
  request->offset = offset;
  const bool to_end = length == 0 || length > ~std::uint64_t{0} - offset;
  request->length = to_end ? ~std::uint64_t{0} - offset : length;
  request->stability = Stability::file_sync;
  const Result<> done = co_await submit(worker, request);
  if (done.has_error()) co_return done.error();
  CommitResult result;
  result.verifier = request->verifier;
  result.after = request->after;
  co_return result;
}

Awaitable<Result<>> WriteCombiner::exclusive(Worker& worker, Work work) {
  auto request = std::make_shared<Request>(worker, Request::Kind::exclusive);
  request->length = ~std::uint64_t{0};
  request->work = std::move(work);
  co_return co_await submit(worker, std::move(request));
}

Awaitable<Result<>> WriteCombiner::write_out(Worker& worker, bool sync) {
  auto request = std::make_shared<Request>(worker, Request::Kind::write_out);
  request->length = ~std::uint64_t{0};
  request->stability = sync ? Stability::file_sync : Stability::unstable;
  co_return co_await submit(worker, std::move(request));
}

Awaitable<Result<>> WriteCombiner::retire(Worker& worker, Work work, bool discard) {
  auto request = std::make_shared<Request>(worker, Request::Kind::exclusive);
  request->length = ~std::uint64_t{0};
  request->work = std::move(work);
  request->retires = true;
  request->discard = discard;
  co_return co_await submit(worker, std::move(request));
}

Awaitable<Result<>> WriteCombiner::write_out_older(Worker& worker, std::uint64_t before) {
  auto request = std::make_shared<Request>(worker, Request::Kind::write_out);
  request->length = ~std::uint64_t{0};
  request->before = before;
  co_return co_await submit(worker, std::move(request));
}

// Queues the request, leads if nobody does, and waits for the answer.
Awaitable<Result<>> WriteCombiner::submit(Worker& worker, std::shared_ptr<Request> request) {
  bool leads = false;
  {
    const std::lock_guard lock(mutex_);
    if (retired_) co_return errno_code(ECANCELED);
    queue_.push_back(request);
    leads = !std::exchange(leading_, true);
  }
  if (leads) {
    auto self = shared_from_this();
    auto leader = [self, &worker]() -> Awaitable<> { co_await self->lead(worker); };
    // An exception here would leave the file without a leader and its clients without answers.
    auto ended = [](std::exception_ptr error) {
      if (error) std::terminate();
    };
    boost::asio::co_spawn(worker.context, std::move(leader), std::move(ended));
  }
  co_await request->wait();
  if (request->error) co_return request->error;
  co_return Result<>();
}

// --- The leader

// Those just answered are likely to send again at once, and the more of them come into the next
// batch the longer its vectors, and the fewer pages are left partial. So until all are back, or no
// more come, others get their turn: first the queues of the workers concerned, then, by way of a
// pool thread, whatever else the kernel has to run, the clients on this machine included. That
// costs no time where nobody else wants to run. One alone has nobody to wait for.
Awaitable<> WriteCombiner::gather(Worker& worker) {
  constexpr int queue_turns = 3;  // Resume and answer; poll the sockets; read, decode and queue.
  constexpr int most_turns = 64;
  std::size_t before = 0;
  int idle_turns = 0;
  for (int turn = 0; turn < most_turns; ++turn) {
    if (turn >= queue_turns && limits_.patience > 0) {
      const auto nothing = [] {};
      co_await worker.pool.run(nothing);
    }
    for (Worker* other : answered_workers_) {
      co_await boost::asio::post(other->context, boost::asio::use_awaitable);
    }
    if (answered_workers_.empty()) {
      co_await boost::asio::post(worker.context, boost::asio::use_awaitable);
    }
    if (turn + 1 < queue_turns) continue;
    const std::lock_guard lock(mutex_);
    const std::size_t queued = queue_.size() + carried_.size();
    if (queued >= expected_) {
      patience_ = limits_.patience;
      co_return;
    }
    idle_turns = queued == before ? idle_turns + 1 : 0;
    before = queued;
    if (expected_ <= 1 || idle_turns >= patience_) break;
  }
  // Clients that take their time are not waited for as long the next time.
  patience_ = std::min(std::max(patience_ / 2, 1), limits_.patience);
}

Awaitable<> WriteCombiner::lead(Worker& worker) {
  for (;;) {
    Requests batch;
    {
      const std::lock_guard lock(mutex_);
      batch = take_batch();
      if (batch.empty()) {
        leading_ = false;
        co_return;
      }
    }
    if (batch.front()->kind == Request::Kind::exclusive) {
      co_await run_exclusive(worker, batch.front());
    } else {
      co_await run_batch(worker, std::move(batch));
    }
    co_await gather(worker);
  }
}

// The carried ones, and from the queue what may go with them: no WRITE that overlaps another (the
// later one goes in a later batch, so that they keep their order), nothing past a barrier. Mutex
// held.
WriteCombiner::Requests WriteCombiner::take_batch() {
  Requests batch = std::exchange(carried_, {});
  std::uint64_t bytes = 0;
  while (!queue_.empty() && batch.size() < limits_.max_requests && bytes < limits_.max_bytes) {
    const auto& next = queue_.front();
    const bool alone = next->kind == Request::Kind::exclusive;
    if (alone && !batch.empty()) break;
    if (next->kind == Request::Kind::write && !fits(batch, *next)) break;
    if (next->kind == Request::Kind::write) bytes += next->length;
    batch.push_back(next);
    queue_.pop_front();
    if (alone) break;
  }
  return batch;
}

bool WriteCombiner::fits(const Requests& batch, const Request& next) const {
  const auto overlaps = [&](const std::shared_ptr<Request>& other) {
    return other->kind == Request::Kind::write && !other->carried && other->offset < next.end() &&
           next.offset < other->end();
  };
  return std::ranges::none_of(batch, overlaps);
}

Awaitable<> WriteCombiner::run_batch(Worker& worker, Requests requests) {
  Batch batch;
  batch.requests = std::move(requests);
  counters_.batches.add();
  {
    const std::lock_guard lock(mutex_);
    const bool others = batch.requests.size() > 1 || !queue_.empty();
    ++batch_number_;
    std::vector<BatchRequest> wanted;
    wanted.reserve(batch.requests.size());
    for (const auto& request : batch.requests) {
      BatchRequest one;
      one.offset = request->offset;
      one.length = request->length;
      one.may_wait = !request->carried;
      if (!request->carried) request->batch = batch_number_;
      one.stable = request->wants_sync() || request->write_through;
      if (request->kind == Request::Kind::write) {
        if (!request->carried) {
          // Before the bytes enter memory: should they be lost from here on, it changes.
          request->verifier = verifier_.get();
          counters_.batch_writes.add();
        }
        one.kind = request->carried ? BatchRequest::Kind::carried : BatchRequest::Kind::write;
        one.data = request->data.data();
        one.may_wait = one.may_wait && !request->write_through;
      } else {
        // A COMMIT is for what was acknowledged before it came: nothing of this batch.
        const bool commit = request->kind == Request::Kind::commit;
        one.kind = BatchRequest::Kind::flush;
        one.before = std::min(request->before, commit ? request->batch : batch_number_);
        one.may_wait = one.may_wait && commit;
      }
      wanted.push_back(one);
    }
    batch.plan = plan_batch(wanted, pages_, disk_size_, others, batch_number_);
  }
  Requests now;
  for (std::size_t i = 0; i < batch.requests.size(); ++i) {
    (batch.plan.waits[i] ? batch.waiting : now).push_back(batch.requests[i]);
  }
  batch.requests = std::move(now);
  counters_.waits.add(batch.waiting.size());
  counters_.runs.add(batch.plan.runs.size() + batch.plan.padded.size());
  counters_.run_pieces.add(batch.plan.pieces.size());
  counters_.pages_whole.add(batch.plan.whole.size());
  counters_.pages_partial.add(batch.plan.partial.size());
  counters_.pages_read.add(batch.plan.reads.size());
  counters_.tails.add(batch.plan.tails.size());

  co_await read_missing(worker, batch);
  std::uint64_t end = 0;
  for (const BatchRun& run : batch.plan.runs) end = std::max(end, run.offset + run.length);
  if (end > disk_size_) co_await file_->grow(worker, end);
  co_await write_runs(worker, batch, batch.plan.runs);
  // Padded pages are right only if the file has become as long as was planned.
  const std::uint64_t reached = std::max(disk_size_, batch.written_end);
  for (const BatchRun& run : batch.plan.padded) {
    if (run.offset + run.length <= reached || batch.failures.empty()) continue;
    const ErrorCode error = batch.failures.front().error;
    batch.fail(run.offset, run.offset + run.length, error, false);
  }
  co_await write_runs(worker, batch, batch.plan.padded);
  co_await write_tails(worker, batch);
  settle(batch);
  co_await answer(worker, batch);
}

// A page that cannot be read stays as it is; who needs it written gets the error.
Awaitable<> WriteCombiner::read_missing(Worker& worker, Batch& batch) {
  if (batch.plan.reads.empty()) co_return;
  const std::uint32_t size = pages_.page_size();
  const auto& reads = batch.plan.reads;
  // Not from the buffer pool: the WRITEs that wait for this hold its buffers.
  const AlignedMemory memory(reads.size() * size, size);
  std::vector<Result<std::size_t>> got(reads.size(), Result<std::size_t>(0));
  auto read_one = [&](std::size_t i) -> Awaitable<> {
    const iovec to{memory.data() + i * size, size};
    got[i] = co_await file_->read(worker, {&to, 1}, reads[i]->offset);
  };
  co_await join(worker, reads.size(), read_one);
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    cache::EdgePage& page = *reads[i];
    if (got[i].has_error()) {
      batch.fail(page.offset, page.offset + size, got[i].error(), false);
      continue;
    }
    std::byte* content = memory.data() + i * size;
    std::fill(content + *got[i], content + size, std::byte{0});
    page.fill({content, size});
  }
}

Awaitable<> WriteCombiner::write_runs(Worker& worker, Batch& batch,
                                      std::span<const BatchRun> runs) {
  auto write_one = [&](std::size_t i) -> Awaitable<> {
    const BatchRun& run = runs[i];
    std::vector<iovec> pieces(
        batch.plan.pieces.begin() + static_cast<std::ptrdiff_t>(run.first),
        batch.plan.pieces.begin() + static_cast<std::ptrdiff_t>(run.first + run.count));
    std::span<iovec> left(pieces);
    std::uint64_t done = 0;
    // A page that could not be read must not be written, nor what was joined with it.
    const Batch::Failure* unread = batch.failure_in(run.offset, run.offset + run.length);
    if (unread != nullptr) {
      const ErrorCode error = unread->error;
      batch.fail(run.offset, run.offset + run.length, error, false);
      co_return;
    }
    while (done < run.length) {
      const Result<std::size_t> wrote = co_await file_->write(worker, left, run.offset + done);
      if (wrote.has_error() || *wrote == 0) {
        const ErrorCode error = wrote.has_error() ? wrote.error() : errno_code(EIO);
        batch.fail(run.offset + done, run.offset + run.length, error, true);
        verifier_.failed(errno_code(EIO));  // Whatever it was, bytes may be lost.
        break;
      }
      done += *wrote;
      std::size_t skip = *wrote;
      while (!left.empty() && skip >= left.front().iov_len) {
        skip -= left.front().iov_len;
        left = left.subspan(1);
      }
      if (skip != 0) {
        left.front().iov_base = static_cast<std::byte*>(left.front().iov_base) + skip;
        left.front().iov_len -= skip;
      }
    }
    if (done != 0) batch.written_end = std::max(batch.written_end, run.offset + done);
  };
  if (!runs.empty()) co_await join(worker, runs.size(), write_one);
}

Awaitable<> WriteCombiner::write_tails(Worker& worker, Batch& batch) {
  if (batch.plan.tails.empty()) co_return;
  co_await stop_reads(worker);
  for (const BatchTail& tail : batch.plan.tails) {
    const std::uint64_t end = tail.offset + tail.data.size();
    std::size_t done = 0;
    while (done < tail.data.size()) {
      const Result<std::size_t> wrote =
          co_await file_->write_tail(worker, tail.data.subspan(done), tail.offset + done);
      if (wrote.has_error() || *wrote == 0) {
        const ErrorCode error = wrote.has_error() ? wrote.error() : errno_code(EIO);
        batch.fail(tail.page->offset, tail.page->offset + pages_.page_size(), error, true);
        verifier_.failed(errno_code(EIO));  // Whatever it was, bytes may be lost.
        break;
      }
      done += *wrote;
    }
    if (done != 0) batch.written_end = std::max(batch.written_end, end - tail.data.size() + done);
  }
  resume_reads();
}

// Pages on disk are clean or forgotten; those whose write failed are given up (the verifier has
// changed, so that clients send their bytes again); those that were not tried stay.
void WriteCombiner::settle(Batch& batch) {
  const std::lock_guard lock(mutex_);
  disk_size_ = std::max(disk_size_, batch.written_end);
  const auto failure_of = [&](const cache::EdgePage* page) {
    return batch.failure_in(page->offset, page->offset + page->size);
  };
  for (cache::EdgePage* page : batch.plan.superseded) {
    page->superseded = false;
    if (failure_of(page) == nullptr) pages_.erase(page->offset);
  }
  for (cache::EdgePage* page : batch.plan.whole) {
    const auto* failure = failure_of(page);
    if (failure == nullptr || failure->tried) pages_.erase(page->offset);
  }
  for (cache::EdgePage* page : batch.plan.partial) {
    const auto* failure = failure_of(page);
    if (failure == nullptr) {
      page->dirty.clear();
    } else if (failure->tried || page->offset + page->size > disk_size_) {
      // One that was padded beyond the end would make the file too long when it is tried again.
      if (!failure->tried) verifier_.failed(errno_code(EIO));
      pages_.erase(page->offset);
    }
  }
  for (const auto& request : batch.requests) {
    if (request->kind != Request::Kind::write) continue;
    const std::uint64_t size = pages_.page_size();
    const std::uint64_t begin = pages_.page_of(request->offset);
    const std::uint64_t end = pages_.page_of(request->end() + size - 1);
    if (const auto* failure = batch.failure_in(begin, end)) request->error = failure->error;
    if (!request->error) shown_size_ = std::max(shown_size_, request->end());
  }
  shown_size_ = std::max(shown_size_, disk_size_);
  for (const auto& request : batch.waiting) {
    const auto* failure = batch.failure_in(request->offset, request->end());
    if (failure != nullptr && request->kind == Request::Kind::write) {
      request->error = failure->error;
    }
    request->carried = true;
  }
  pages_.trim_clean(pages_.budget().over() ? 0 : limits_.clean_pages);
}

Awaitable<> WriteCombiner::answer(Worker& worker, Batch& batch) {
  const auto is_clients = [this](const auto& request) {
    return request->kind == Request::Kind::write && request->batch == batch_number_;
  };
  const bool clients_work = std::ranges::any_of(batch.requests, is_clients) ||
                            std::ranges::any_of(batch.waiting, is_clients);
  const bool wrote = !batch.plan.pieces.empty() || !batch.plan.tails.empty();
  auto did = wrote ? CombinedFile::Did::servers_work : CombinedFile::Did::nothing;
  if (clients_work) did = CombinedFile::Did::clients_work;
  Result<Attributes> after = co_await file_->finish(worker, did);
  if (after.has_value()) {
    const std::lock_guard lock(mutex_);
    shown_size_ = std::max(shown_size_, after->size);
    after->size = shown_size_;
  }
  Requests ready;
  Requests stable;
  answered_workers_.clear();
  SyncKind kind = SyncKind::data;
  for (const auto& request : batch.requests) {
    if (after.has_value()) request->after = *after;
    if (after.has_error() && !request->error) request->error = after.error();
    // A flush whose pages failed: what it promised is not so.
    if (request->kind != Request::Kind::write) {
      const auto* failure = batch.failure_in(request->offset, request->end());
      if (failure != nullptr && !request->error) request->error = failure->error;
    }
    const bool sync = request->wants_sync() && !request->error;
    (sync ? stable : ready).push_back(request);
    note_answered(request->worker());
    if (sync && request->stability == Stability::file_sync) kind = SyncKind::all;
  }
  {
    const std::lock_guard lock(mutex_);
    for (const auto& request : batch.waiting) {
      if (request->error) {
        ready.push_back(request);
      } else {
        carried_.push_back(request);
      }
    }
  }
  note_expected(ready.size());
  resume_all(ready);
  if (stable.empty()) co_return;
  data_counters_.syncs.add();
  data_counters_.syncs_shared.add(stable.size() - 1);
  const Result<> synced = co_await file_->sync(worker, kind);
  if (synced.has_error()) {
    data_counters_.sync_errors.add();
    verifier_.failed(synced.error());
  }
  for (const auto& request : stable) {
    if (synced.has_error()) request->error = synced.error();
    if (request->kind == Request::Kind::commit) request->verifier = verifier_.get();
  }
  note_expected(stable.size());
  resume_all(stable);
}

// Those who wait already and those about to be answered: as many as there are in flight.
void WriteCombiner::note_expected(std::size_t answered) {
  const std::lock_guard lock(mutex_);
  expected_ = queue_.size() + carried_.size() + answered;
}

void WriteCombiner::note_answered(Worker& worker) {
  if (std::ranges::find(answered_workers_, &worker) == answered_workers_.end()) {
    answered_workers_.push_back(&worker);
  }
}

Awaitable<> WriteCombiner::run_exclusive(Worker& worker, std::shared_ptr<Request> request) {
  counters_.barriers.add();
  if (!request->discard) {
    auto flush = std::make_shared<Request>(worker, Request::Kind::write_out);
    flush->length = ~std::uint64_t{0};
    Requests batch{flush};
    co_await run_batch(worker, std::move(batch));
    request->error = flush->error;
  }
  // Bytes that could not be written out go with the combiner: clients must send them again.
  if (request->retires && request->error) verifier_.failed(errno_code(EIO));
  if (!request->error || request->retires) {
    co_await stop_reads(worker);
    const Result<std::uint64_t> size = co_await request->work(worker);
    {
      const std::lock_guard lock(mutex_);
      pages_.clear();
      if (size.has_value()) disk_size_ = shown_size_ = *size;
    }
    if (size.has_error() && !request->error) request->error = size.error();
    if (!request->retires) resume_reads();
  }
  Requests done{request};
  if (request->retires) {
    for (const auto& other : take_all()) done.push_back(other);
    resume_reads();
  }
  resume_all(done);
}

// Who came too late goes another way.
WriteCombiner::Requests WriteCombiner::take_all() {
  const std::lock_guard lock(mutex_);
  retired_ = true;
  Requests all(queue_.begin(), queue_.end());
  queue_.clear();
  for (const auto& request : all) request->error = errno_code(ECANCELED);
  return all;
}

}  // namespace selvage::storage
