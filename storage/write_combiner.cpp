#include "storage/write_combiner.h"

#include "storage/write_combiner_parts.h"

#include <boost/asio/co_spawn.hpp>

#include <cerrno>
#include <exception>
#include <utility>

namespace selvage::storage {

WriteCombiner::WriteCombiner(std::shared_ptr<CombinedFile> file, std::uint32_t page_size,
                             std::uint64_t disk_size, cache::EdgePageBudget& budget,
                             WriteVerifier& verifier, DataCounters& data_counters,
                             CombinerCounters& counters, WaitsLearned& waits, Limits limits)
    : file_(std::move(file)),
      verifier_(verifier),
      data_counters_(data_counters),
      counters_(counters),
      limits_(limits),
      pages_(page_size, budget),
      disk_size_(disk_size),
      shown_size_(disk_size),
      waits_learned_(waits),
      waits_(waits.get()) {}

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

WriteCombiner::Held WriteCombiner::held() const {
  const std::lock_guard lock(mutex_);
  return {pages_.size(), pages_.dirty_bytes()};
}

std::optional<std::uint64_t> WriteCombiner::oldest_page() const {
  const std::lock_guard lock(mutex_);
  return pages_.oldest_turn();
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
  if (stability != Stability::unstable && !write_through) request->waits = &waits_.writes;
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
  request->waits = &waits_.commits;
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

Awaitable<> WriteCombiner::lead(Worker& worker) {
  for (;;) {
    Requests batch;
    bool flies = false;
    landed_ = false;
    {
      const std::lock_guard lock(mutex_);
      batch = take_batch();
      if (batch.empty() && flights_.empty()) {
        leading_ = false;
        co_return;
      }
      flies = may_fly(batch);
    }
    if (flies) launch(worker, std::move(batch));
    if (flies || batch.empty()) {
      co_await landing(worker);
    } else {
      while (!flights_.empty()) co_await landing(worker);
      if (batch.front()->kind == Request::Kind::exclusive) {
        co_await run_exclusive(worker, batch.front());
      } else {
        co_await run_batch(worker, std::move(batch));
      }
    }
    co_await gather(worker);
    answered_workers_.clear();
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
