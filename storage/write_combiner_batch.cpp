// How a WriteCombiner carries out a batch.
#include "storage/aligned_memory.h"
#include "storage/join.h"
#include "storage/probes.h"
#include "storage/write_combiner_parts.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace selvage::storage {

Awaitable<> WriteCombiner::run_batch(Worker& worker, Requests requests) {
  Batch batch;
  batch.requests = std::move(requests);
  plan(batch);
  co_await carry_out(worker, batch);
}

void WriteCombiner::plan(Batch& batch) {
  counters_.batches.add();
  const auto now = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (batch.requests.size() > 1 || !queue_.empty()) {
      waits_.writes.next();
      waits_.commits.next();
    }
    const auto is_new = [](const auto& request) { return request->waited == 0; };
    const bool arrivals = std::ranges::any_of(batch.requests, is_new);
    batch.planned = now;
    batch.quiet_since = arrivals ? std::exchange(arrived_, now) : arrived_;
    batch.number = ++batch_number_;
    std::vector<BatchRequest> wanted;
    wanted.reserve(batch.requests.size());
    for (const auto& request : batch.requests) {
      BatchRequest one;
      one.offset = request->offset;
      one.length = request->length;
      const bool first = request->waited == 0;
      if (first) {
        request->batch = batch_number_;
        request->waits_since = now;
      }
      one.may_wait = may_wait_on(*request, now);
      one.stable = request->wants_sync() || request->write_through;
      if (request->kind == Request::Kind::write) {
        if (first) {
          // Before the bytes enter memory: should they be lost from here on, it changes.
          request->verifier = verifier_.get();
          counters_.batch_writes.add();
        }
        one.kind = first ? BatchRequest::Kind::write : BatchRequest::Kind::carried;
        one.data = request->data.data();
        one.may_wait = one.may_wait && !request->write_through;
      } else {
        // A COMMIT is for what was acknowledged before it came: nothing of this batch.
        const bool commit = request->kind == Request::Kind::commit;
        one.kind = BatchRequest::Kind::flush;
        one.before = std::min(request->before, commit ? request->batch : batch_number_);
      }
      request->gave_up = !first && !one.may_wait;
      wanted.push_back(one);
    }
    batch.plan = plan_batch(wanted, pages_, disk_size_, batch_number_);
  }
  Requests going;
  for (std::size_t i = 0; i < batch.requests.size(); ++i) {
    (batch.plan.waits[i] ? batch.waiting : going).push_back(batch.requests[i]);
  }
  batch.requests = std::move(going);
  note_waits(batch);
  counters_.waits.add(batch.waiting.size());
  counters_.runs.add(batch.plan.runs.size() + batch.plan.padded.size());
  counters_.run_pieces.add(batch.plan.pieces.size());
  counters_.pages_whole.add(batch.plan.whole.size());
  counters_.pages_partial.add(batch.plan.partial.size());
  counters_.pages_read.add(batch.plan.reads.size());
  counters_.tails.add(batch.plan.tails.size());
  SELVAGE_PROBE(batch, this, batch_number_, batch.requests.size(), batch.waiting.size(),
                batch.plan.runs.size() + batch.plan.padded.size(), batch.plan.tails.size());
  SELVAGE_PROBE(batch_pages, this, batch_number_, batch.plan.whole.size(),
                batch.plan.partial.size(), batch.plan.reads.size());
}

Awaitable<> WriteCombiner::carry_out(Worker& worker, Batch& batch) {
  co_await read_missing(worker, batch);
  const std::uint64_t size = disk_size_;
  std::uint64_t end = size;
  std::uint64_t bytes = 0;
  const auto count = [&](std::uint64_t offset, std::uint64_t length) {
    end = std::max(end, offset + length);
    bytes += length;
  };
  for (const BatchRun& run : batch.plan.runs) count(run.offset, run.length);
  for (const BatchTail& tail : batch.plan.tails) count(tail.offset, tail.data.size());
  if (end > size) co_await file_->grow(worker, size, end, bytes);
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

bool WriteCombiner::may_wait_on(const Request& request, Clock::time_point now) const {
  return request.waits != nullptr && request.waited < limits_.most_waits &&
         now - request.waits_since < limits_.longest_wait &&
         now - arrived_ < request.waits->longest_quiet();
}

// Whether those that have waited did so for something. A WRITE may have got its answer without its
// neighbour, as others had the page written; a COMMIT is for pages of others anyway.
void WriteCombiner::note_waits(const Batch& batch) {
  bool write_in_vain = false;
  bool commit_in_vain = false;
  for (const auto& request : batch.requests) {
    if (request->waited == 0) continue;
    const bool write = request->kind == Request::Kind::write;
    const auto is_of = [&](const cache::EdgePage* page) {
      return page->offset < request->end() && request->offset < page->offset + page->size;
    };
    const bool partial = write && std::ranges::any_of(batch.plan.partial, is_of);
    if (partial || request->gave_up) {
      (write ? write_in_vain : commit_in_vain) = true;
    } else {
      request->waits->filled(batch.planned - std::max(request->waits_since, batch.quiet_since));
    }
  }
  if (write_in_vain) waits_.writes.in_vain();
  if (commit_in_vain) waits_.commits.in_vain();
  if (write_in_vain || commit_in_vain) waits_learned_.set(waits_);
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
    ++request->waited;
  }
  pages_.trim_clean(pages_.budget().pressed() ? 0 : limits_.clean_pages);
}

Awaitable<> WriteCombiner::answer(Worker& worker, Batch& batch) {
  const auto is_clients = [&batch](const auto& request) {
    return request->kind == Request::Kind::write && request->batch == batch.number;
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
    expected_ = queue_.size() + carried_.size() + ready.size() + stable.size();
    expect_turns_ = stable.empty() ? 1 : 3;
  }
  resume_all(ready);
  if (stable.empty()) co_return;
  data_counters_.syncs.add();
  data_counters_.syncs_shared.add(stable.size() - 1);
  SELVAGE_PROBE(sync_begin, this, static_cast<unsigned>(kind), stable.size());
  const Result<> synced = co_await file_->sync(worker, kind);
  SELVAGE_PROBE(sync_end, this, synced.has_error() ? synced.error().value() : 0);
  if (synced.has_error()) {
    data_counters_.sync_errors.add();
    verifier_.failed(synced.error());
  }
  for (const auto& request : stable) {
    if (synced.has_error()) request->error = synced.error();
    if (request->kind == Request::Kind::commit) request->verifier = verifier_.get();
  }
  resume_all(stable);
}

void WriteCombiner::note_answered(Worker& worker) {
  if (std::ranges::find(answered_workers_, &worker) == answered_workers_.end()) {
    answered_workers_.push_back(&worker);
  }
}

}  // namespace selvage::storage
