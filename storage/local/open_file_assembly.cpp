// An open file in edge mode `assemble`: how it enters and leaves that mode.
#include "storage/local/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <utility>

namespace selvage::storage {

OpenFile::Way OpenFile::way() const {
  const std::lock_guard lock(mutex_);
  return {descriptors_, combiner_, stale_};
}

std::shared_ptr<WriteCombiner> OpenFile::combiner() const {
  const std::lock_guard lock(mutex_);
  return combiner_;
}

bool OpenFile::stale() const {
  const std::lock_guard lock(mutex_);
  return stale_;
}

Attributes OpenFile::shown(Attributes attributes) const {
  std::shared_ptr<AssembledFile> assembled;
  std::shared_ptr<WriteCombiner> combining;
  {
    const std::lock_guard lock(mutex_);
    assembled = assembled_;
    combining = combiner_;
  }
  if (!assembled || assembled->given_up()) return attributes;
  attributes = assembled->shown(attributes);
  // Not the size on disk, which READs do not know of before the batch that moves it is complete.
  attributes.size = combining->shown_size();
  return attributes;
}

void OpenFile::attributes_changed() {
  access_.clear();
  std::shared_ptr<AssembledFile> assembled;
  {
    const std::lock_guard lock(mutex_);
    assembled = assembled_;
  }
  if (assembled) assembled->attributes_set();
}

Result<> OpenFile::stamp_if_invisible() {
  std::shared_ptr<AssembledFile> assembled;
  {
    const std::lock_guard lock(mutex_);
    assembled = assembled_;
  }
  if (!assembled || !assembled->invisible()) return {};
  std::array<timespec, 2> times{};
  times[0].tv_nsec = UTIME_OMIT;
  times[1].tv_nsec = UTIME_NOW;
  if (::futimens(fd(), times.data()) != 0) return errno_code(errno);
  return {};
}

Awaitable<Result<>> OpenFile::exclusive(Worker& worker, Work work) {
  const auto assembling = combiner();
  if (!assembling) {
    if (stale()) co_return errno_code(ECANCELED);
    co_return co_await work();
  }
  WriteCombiner::Work with_size = [this, &work](Worker&) -> Awaitable<Result<std::uint64_t>> {
    const auto done = co_await work();
    if (done.has_error()) co_return done.error();
    const auto now = attributes_of(descriptors()->buffered);
    if (now.has_error()) co_return now.error();
    co_return now->size;
  };
  const auto done = co_await assembling->exclusive(worker, std::move(with_size));
  if (done.has_error() && done.error() == errno_code(ECANCELED)) {
    co_await leave_assembly(worker, false);
  }
  co_return done;
}

Awaitable<Result<>> OpenFile::leave_assembly(Worker& worker, bool discard) {
  std::shared_ptr<WriteCombiner> combining;
  std::shared_ptr<AssembledFile> assembled;
  std::shared_ptr<Suspended> wait;
  {
    const std::lock_guard lock(mutex_);
    if (!combiner_) co_return Result<>();
    if (leaving_) {
      wait = std::make_shared<Suspended>(worker);
      leavers_.push_back(wait);
    } else {
      leaving_ = true;
      combining = combiner_;
      assembled = assembled_;
    }
  }
  if (wait) {
    co_await wait->wait();
    co_return Result<>();
  }
  WriteCombiner::Work give_up = [this, assembled](Worker& on) -> Awaitable<Result<std::uint64_t>> {
    auto job = [&] {
      const auto done = assembled->give_up(id_);
      context_.locks.give_back_lease(id_);
      return done;
    };
    const auto done = co_await on.pool.run(job);
    if (done.has_error()) {
      // Somebody else may have read or written while bytes were still in memory.
      if (done.error() == errno_code(ETIMEDOUT)) context_.counters.leases_late.add();
      context_.verifier.failed(errno_code(EIO));
    }
    co_return combiner()->shown_size();
  };
  const auto done = co_await combining->retire(worker, std::move(give_up), discard);
  std::vector<std::shared_ptr<Suspended>> waiting;
  {
    const std::lock_guard lock(mutex_);
    combiner_.reset();
    assembled_.reset();
    stale_ = true;
    leaving_ = false;
    waiting.swap(leavers_);
    lease_retry_ = std::chrono::steady_clock::now() +
                   std::chrono::seconds(context_.options.lease_retry_seconds);
  }
  resume_all(waiting);
  if (done.has_error() && !discard) keep_error(done.error());
  co_return done;
}

Awaitable<> OpenFile::tend(Worker& worker, std::chrono::steady_clock::time_point now) {
  const auto assembling = combiner();
  if (!assembling || now - tended_ < std::chrono::seconds(context_.options.write_back_seconds)) {
    co_return;
  }
  tended_ = now;
  const std::uint64_t before = std::exchange(tended_batch_, assembling->batch_number() + 1);
  const auto done = co_await assembling->write_out_older(worker, before);
  if (done.has_error() && done.error() != errno_code(ECANCELED)) keep_error(done.error());
}

}  // namespace selvage::storage
