// Which requests a WriteCombiner's next batch is made of.
#include "storage/write_combiner_parts.h"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace selvage::storage {

namespace {

Awaitable<> pause(Worker& worker, int idle_turns) {
  constexpr std::chrono::microseconds shortest{25};
  constexpr std::chrono::microseconds longest{400};
  boost::asio::steady_timer timer(worker.context,
                                  std::min(shortest * (1 << std::min(idle_turns, 8)), longest));
  boost::system::error_code ignored;
  auto token = boost::asio::redirect_error(boost::asio::use_awaitable, ignored);
  co_await timer.async_wait(token);
}

}  // namespace

// Lets what has been received already join the next batch, and those just answered go on: resume
// and answer; poll the sockets; read, decode and queue. As long as that brings requests it goes on,
// a little longer where a sync makes batches dear. Where all that has come lies behind gaps that
// those just answered are to fill, they get more time: pauses that grow with every one that brings
// nothing, at most about 2 ms in a row.
Awaitable<> WriteCombiner::gather(Worker& worker) {
  constexpr int queue_turns = 2;
  constexpr int most_turns = 64;
  enum class Gaps : std::uint8_t { none, held, carried };
  int idle_turns = 0;
  std::size_t before = 0;
  Gaps gaps = Gaps::none;
  // One wait that was worth it makes up for several that were not.
  const HeldBack worth_it{.held = {}, .filled = 8, .in_vain = 0};
  for (int turn = 0; turn < most_turns; ++turn) {
    if (gaps != Gaps::none) co_await pause(worker, idle_turns);
    const auto answered = answered_workers_;  // Batches in flight may add to it meanwhile.
    for (Worker* other : answered) {
      co_await boost::asio::post(other->context, boost::asio::use_awaitable);
    }
    if (answered.empty()) {
      co_await boost::asio::post(worker.context, boost::asio::use_awaitable);
    }
    if (turn + 1 < queue_turns) continue;
    const std::lock_guard lock(mutex_);
    const std::size_t queued = queue_.size() + carried_.size();
    idle_turns = queued == before ? idle_turns + 1 : 0;
    before = queued;
    const bool held = gaps == Gaps::held;
    gaps = Gaps::none;
    if (limits_.patience > 0 && carried_alone()) {
      gaps = Gaps::carried;
    } else if (expected_ <= 1 || queued >= expected_) {
      if (held) hold_credit_.note(worth_it);
      co_return;
    } else if (limits_.patience > 0 && hold_credit_.left() && only_behind_gaps()) {
      gaps = Gaps::held;
    }
    if (held && gaps != Gaps::held) hold_credit_.note(worth_it);
    if (idle_turns > (gaps == Gaps::none ? expect_turns_ : limits_.patience)) {
      if (gaps == Gaps::held) hold_credit_.in_vain(1);
      co_return;
    }
  }
}

// All that has come lies behind a gap. Mutex held.
bool WriteCombiner::only_behind_gaps() {
  if (queue_.empty()) return false;
  std::uint64_t lowest = ~std::uint64_t{0};
  for (const auto& request : queue_) {
    if (request->kind != Request::Kind::write || continues(*request)) return false;
    lowest = std::min(lowest, request->offset);
  }
  bool neighbours = false;
  const std::uint64_t window = 2 * last_bytes_;
  pages_.for_each(lowest - std::min(lowest, window), lowest,
                  [&](const cache::EdgePage& page) { neighbours = neighbours || !page.whole(); });
  return neighbours;
}

// There is nothing to do but for requests that wait for neighbours, who mostly come. Mutex held.
bool WriteCombiner::carried_alone() const {
  const auto waits = [&](const auto& request) { return request->waits->left(); };
  return queue_.empty() && std::ranges::any_of(carried_, waits);
}

// Nothing of its first page is missing. Mutex held.
bool WriteCombiner::continues(const Request& request) {
  const auto in_page = static_cast<std::uint32_t>(request.offset % pages_.page_size());
  if (in_page == 0) return true;
  const cache::EdgePage* page = pages_.find(request.offset - in_page);
  return page != nullptr && page->valid.covers(in_page - 1, in_page);
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
    if (alone) return batch;
  }
  const bool barrier = !queue_.empty() && queue_.front()->kind == Request::Kind::exclusive;
  const std::uint64_t window = 2 * (bytes + std::exchange(last_bytes_, bytes));
  if (!barrier) put_back(batch, window);
  return batch;
}

// What is better written with the next batch goes back to the front of the queue. Mutex held.
void WriteCombiner::put_back(Requests& batch, std::uint64_t window) {
  std::vector<HoldCandidate> candidates;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Request& request = *batch[i];
    if (request.kind != Request::Kind::write || request.waited != 0 || request.length == 0)
      continue;
    candidates.push_back({request.offset, request.length, continues(request), request.held});
    which.push_back(i);
  }
  if (candidates.size() < 2) return;
  const HeldBack hold = hold_back(candidates, window, hold_credit_.next() ? limits_.most_holds : 0);
  hold_credit_.note(hold);
  for (std::size_t i = candidates.size(); i-- > 0;) {
    if (!hold.held[i]) continue;
    ++batch[which[i]]->held;
    counters_.held_back.add();
    queue_.push_front(std::move(batch[which[i]]));
  }
  std::erase(batch, nullptr);
}

bool WriteCombiner::fits(const Requests& batch, const Request& next) const {
  const auto overlaps = [&](const std::shared_ptr<Request>& other) {
    return other->kind == Request::Kind::write && other->waited == 0 &&
           other->offset < next.end() && next.offset < other->end();
  };
  return std::ranges::none_of(batch, overlaps);
}

}  // namespace selvage::storage
