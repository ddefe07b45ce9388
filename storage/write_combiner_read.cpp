// READs of a WriteCombiner's file, and the moments in which the leader keeps them out.
#include "storage/write_combiner.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace selvage::storage {

Awaitable<Result<std::size_t>> WriteCombiner::read(Worker& worker, std::span<std::byte> to,
                                                   std::uint64_t offset) {
  if (!co_await enter_read(worker)) co_return errno_code(ECANCELED);
  // What memory holds is taken before the device is asked: a page that is written and forgotten
  // meanwhile would be in neither.
  std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> dirty;
  std::uint64_t shown = 0;
  std::uint64_t on_disk = 0;
  {
    const std::lock_guard lock(mutex_);
    shown = shown_size_;
    on_disk = disk_size_;
    pages_.for_each(offset, offset + to.size(), [&](cache::EdgePage& page) {
      for (auto run = page.dirty.next(0); run.begin < run.end; run = page.dirty.next(run.end)) {
        dirty.emplace_back(page.offset + run.begin,
                           std::vector<std::byte>(page.data + run.begin, page.data + run.end));
      }
    });
  }
  Result<std::size_t> got = std::size_t{0};
  if (offset < on_disk) {
    const iovec target{to.data(), to.size()};
    got = co_await file_->read(worker, {&target, 1}, offset);
  }
  leave_read();
  if (got.has_error()) co_return got.error();
  std::fill(to.begin() + static_cast<std::ptrdiff_t>(*got), to.end(), std::byte{0});
  for (const auto& [at, bytes] : dirty) {
    const std::uint64_t begin = std::max(at, offset);
    const std::uint64_t end = std::min(at + bytes.size(), offset + to.size());
    if (begin < end) {
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin - at), end - begin,
                  to.begin() + static_cast<std::ptrdiff_t>(begin - offset));
    }
  }
  const std::uint64_t end = std::max(shown, offset + *got);
  co_return static_cast<std::size_t>(
      std::min<std::uint64_t>(end > offset ? end - offset : 0, to.size()));
}

Awaitable<bool> WriteCombiner::enter_read(Worker& worker) {
  for (;;) {
    std::shared_ptr<Suspended> turn;
    {
      const std::lock_guard lock(mutex_);
      if (retired_) co_return false;
      if (!reads_stopped_) {
        ++reads_;
        co_return true;
      }
      turn = std::make_shared<Suspended>(worker);
      waiting_reads_.push_back(turn);
    }
    co_await turn->wait();
  }
}

void WriteCombiner::leave_read() {
  std::vector<std::shared_ptr<Suspended>> leader;
  {
    const std::lock_guard lock(mutex_);
    if (--reads_ == 0 && waiting_leader_) leader.push_back(std::exchange(waiting_leader_, {}));
  }
  resume_all(leader);
}

Awaitable<> WriteCombiner::stop_reads(Worker& worker) {
  std::shared_ptr<Suspended> turn;
  {
    const std::lock_guard lock(mutex_);
    reads_stopped_ = true;
    if (reads_ == 0) co_return;
    turn = waiting_leader_ = std::make_shared<Suspended>(worker);
  }
  co_await turn->wait();
}

void WriteCombiner::resume_reads() {
  std::vector<std::shared_ptr<Suspended>> reads;
  {
    const std::lock_guard lock(mutex_);
    reads_stopped_ = false;
    reads.swap(waiting_reads_);
  }
  resume_all(reads);
}

}  // namespace selvage::storage
