// Batches of a WriteCombiner that are carried out at the same time.
//
// One batch in flight orders everything of a growing file. Inside the file nothing needs that order
// but WRITEs to the same pages, so the leader need not wait for one batch before it starts the
// next. All of them run on the leader's worker.
#include "storage/write_combiner_parts.h"

#include <boost/asio/co_spawn.hpp>

#include <algorithm>
#include <exception>
#include <utility>

namespace selvage::storage {

// Nothing but UNSTABLE WRITEs inside the file, none to a page that is being written. Stable ones
// stay together: they share a sync. Mutex held.
bool WriteCombiner::may_fly(const Requests& batch) const {
  if (batch.empty() || flights_.size() >= limits_.most_flights) return false;
  const std::uint64_t size = pages_.page_size();
  return std::ranges::all_of(batch, [&](const auto& request) {
    if (request->kind != Request::Kind::write || request->wants_sync()) return false;
    if (request->write_through || request->waited != 0) return false;
    const std::uint64_t begin = pages_.page_of(request->offset);
    const std::uint64_t end = pages_.page_of(request->end() + size - 1);
    return end <= disk_size_ && !in_flight(begin, end);
  });
}

bool WriteCombiner::in_flight(std::uint64_t begin, std::uint64_t end) const {
  return std::ranges::any_of(flights_, [&](const Batch* flight) {
    return std::ranges::any_of(flight->plan.runs, [&](const BatchRun& run) {
      return run.offset < end && begin < run.offset + run.length;
    });
  });
}

// Where a batch sorted by offset may be cut, at `at` or after. Not in a page of which memory holds
// something from before: either part may make it whole, and would write it. Mutex held.
std::size_t WriteCombiner::cut(const Requests& batch, std::size_t at) {
  const auto shared = [&](std::uint64_t offset) {
    const std::uint64_t page = pages_.page_of(offset);
    return page != offset && pages_.find(page) != nullptr;
  };
  while (at < batch.size() && shared(batch[at]->offset)) ++at;
  return at;
}

// As many batches as there may be, each of neighbours.
void WriteCombiner::launch(Worker& worker, Requests batch) {
  std::ranges::sort(batch, {}, [](const auto& request) { return request->offset; });
  const std::size_t flights =
      std::clamp<std::size_t>(batch.size() / std::max<std::size_t>(limits_.least_flight, 1), 1,
                              limits_.most_flights - flights_.size());
  std::vector<std::shared_ptr<Batch>> started;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0, begin = 0; i < flights && begin < batch.size(); ++i) {
      const std::size_t end = cut(batch, batch.size() * (i + 1) / flights);
      if (end <= begin) continue;
      const auto flight = std::make_shared<Batch>();
      flight->requests.assign(batch.begin() + static_cast<std::ptrdiff_t>(begin),
                              batch.begin() + static_cast<std::ptrdiff_t>(end));
      started.push_back(flight);
      begin = end;
    }
  }
  for (const auto& flight : started) {
    plan(*flight);
    if (!flights_.empty()) counters_.batches_together.add();
    flights_.push_back(flight.get());
  }
  for (const auto& flight : started) {
    auto fly = [self = shared_from_this(), flight, &worker]() -> Awaitable<> {
      co_await self->carry_out(worker, *flight);
      self->landed(*flight);
    };
    auto ended = [](std::exception_ptr error) {
      if (error) std::terminate();  // As for the leader.
    };
    boost::asio::co_spawn(worker.context, std::move(fly), std::move(ended));
  }
}

// Returns when one of those in flight has ended since the leader took its last batch.
Awaitable<> WriteCombiner::landing(Worker& worker) {
  if (std::exchange(landed_, false)) co_return;
  const auto turn = std::make_shared<Suspended>(worker);
  waits_for_landing_ = turn;
  co_await turn->wait();
}

void WriteCombiner::landed(const Batch& flight) {
  std::erase(flights_, &flight);
  landed_ = true;
  if (!waits_for_landing_) return;
  landed_ = false;
  const std::vector<std::shared_ptr<Suspended>> leader{std::exchange(waits_for_landing_, {})};
  resume_all(leader);
}

}  // namespace selvage::storage
