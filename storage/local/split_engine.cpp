#include "storage/local/write_engine.h"
#include "storage/page_order.h"
#include "storage/page_range.h"
#include "storage/probes.h"
#include "storage/rwf.h"
#include "storage/write_plan.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

namespace selvage::storage {
namespace {

using Clock = std::chrono::steady_clock;

// Above this many runs the system calls of dropping pages are work for the pool.
constexpr std::size_t runs_dropped_inline = 4;

/// For probes: bytes, or -errno.
long probe_result(const Result<std::size_t>& result) {
  return result.has_error() ? -result.error().value() : static_cast<long>(*result);
}

/// A segment whose pages the boundary tracker watches.
struct Tracked {
  Segment segment;
  cache::Claim claim;
  std::uint64_t written = 0;
};

/// At most one for each segment of a plan.
class TrackedSegments {
 public:
  Tracked& add(const Segment& segment, cache::Claim claim) {
    Tracked& added = parts_[count_++];
    added.segment = segment;
    added.claim = std::move(claim);
    return added;
  }
  std::span<Tracked> all() { return {parts_.data(), count_}; }

 private:
  std::array<Tracked, 3> parts_;
  std::size_t count_ = 0;
};

/// Of the boundary pages of `segment`, those that lie in `runs`.
std::uint64_t boundaries_in(std::span<const cache::PageRun> runs, const Segment& segment,
                            std::uint64_t page_size) {
  const std::uint64_t end = segment.offset + segment.length;
  const std::uint64_t first = segment.offset / page_size * page_size;
  const std::uint64_t last = (end - 1) / page_size * page_size;
  const bool head = segment.offset != first || (first == last && end % page_size != 0);
  const bool tail = first != last && end % page_size != 0;
  std::uint64_t found = 0;
  for (const cache::PageRun& run : runs) {
    const auto holds = [&](std::uint64_t page) {
      return run.offset <= page && page < run.offset + run.length;
    };
    if (head && holds(first)) ++found;
    if (tail && holds(last)) ++found;
  }
  return found;
}

class SplitEngine final : public WriteEngine {
 public:
  explicit SplitEngine(DataContext& context) : context_(context) {}

  Awaitable<Result<std::size_t>> write(Worker& worker, OpenFile& file,
                                       const WriteRequest& request) override;
  Awaitable<Result<>> commit(Worker& worker, OpenFile& file, std::uint64_t offset,
                             std::uint64_t length) override;

 private:
  Awaitable<Result<std::size_t>> put(Worker& worker, OpenFile& file, const Segment& segment,
                                     std::span<const std::byte> data, bool bounce);
  Awaitable<Result<std::size_t>> put_segments(Worker& worker, OpenFile& file, const WritePlan& plan,
                                              const WriteRequest& request, TrackedSegments& tracked,
                                              std::uint64_t& reached);
  Awaitable<Result<std::size_t>> put_dontcache(Worker& worker, const iovec& part, int fd,
                                               std::uint64_t offset);
  void give_up(OpenFile& file, TrackedSegments& tracked);
  std::vector<cache::PageRun> release(OpenFile& file, TrackedSegments& tracked,
                                      cache::Outcome outcome);
  Awaitable<> drop(Worker& worker, OpenFile& file, std::vector<cache::PageRun> runs);

  DataContext& context_;
  PageOrder order_;
  std::atomic<bool> no_dontcache_{false};
};

Awaitable<Result<std::size_t>> SplitEngine::write(Worker& worker, OpenFile& file,
                                                  const WriteRequest& request) {
  const DataModes modes = context_.modes.get();
  const WritePolicy policy{modes.write, modes.edges, modes.min_middle_pages};
  const auto address = reinterpret_cast<std::uintptr_t>(request.data.data());
  const WritePlan plan =
      plan_write(request.offset, request.data.size(), address, file.alignment(), policy);
  context_.counters.writes_by_reason[static_cast<std::size_t>(plan.reason)].add();
  SELVAGE_PROBE(write_plan, file.key(), request.offset, request.data.size(),
                static_cast<unsigned>(plan.reason), static_cast<unsigned>(plan.bounce), 0);
  if (plan.reason == PlanReason::no_alignment) context_.counters.direct_fallbacks.add();

  TrackedSegments tracked;
  std::uint64_t reached = 0;
  const auto written = co_await put_segments(worker, file, plan, request, tracked, reached);
  if (reached > 0 && (written.has_error() || request.stability == Stability::unstable)) {
    file.wrote_unsynced();
  }
  if (written.has_error()) {
    give_up(file, tracked);
    co_return written.error();
  }
  if (*written == 0) {
    release(file, tracked, cache::Outcome::written);
    co_return written;
  }
  if (request.stability == Stability::unstable) {
    const auto complete = release(file, tracked, cache::Outcome::written);
    file.drop_list().add(complete, Clock::now());
    co_return written;
  }
  const auto kind = request.stability == Stability::data_sync ? SyncKind::data : SyncKind::all;
  const auto pages = whole_pages(request.offset, *written, plan.page_size);
  const auto synced = co_await file.sync(worker, kind, pages.offset, pages.length);
  if (synced.has_error()) {
    release(file, tracked, cache::Outcome::sync_failed);
    co_return synced.error();
  }
  auto complete = release(file, tracked, cache::Outcome::written);
  co_await drop(worker, file, std::move(complete));
  co_return written;
}

/// `reached` counts what got into the file even if a later segment failed.
Awaitable<Result<std::size_t>> SplitEngine::put_segments(Worker& worker, OpenFile& file,
                                                         const WritePlan& plan,
                                                         const WriteRequest& request,
                                                         TrackedSegments& tracked,
                                                         std::uint64_t& reached) {
  for (Segment segment : plan.segments()) {
    const auto data = request.data.subspan(reached, segment.length);
    Result<std::size_t> written = errno_code(EINVAL);
    if (segment.kind == SegmentKind::direct) {
      written = co_await put(worker, file, segment, data, plan.bounce);
    }
    if (written.has_error() && written.error() == errno_code(EINVAL)) {
      if (segment.kind == SegmentKind::direct) {
        context_.counters.direct_fallbacks.add();
        segment.kind = SegmentKind::buffered;
        const EdgeMode edges = context_.modes.get().edges;
        segment.tracked = edges == EdgeMode::pagecache || edges == EdgeMode::assemble;
      }
      Tracked* watched = nullptr;
      if (segment.tracked) {
        // Not before now: a neighbour may have written its part of the page meanwhile.
        auto claim = context_.tracker.ask(file.key(), plan.page_size, segment.offset,
                                          segment.length, Clock::now());
        context_.counters.boundary_asked.add(claim.boundary_pages());
        SELVAGE_PROBE(edge_ask, file.key(), segment.offset, segment.length, claim.boundary_pages(),
                      claim.completing_pages());
        watched = &tracked.add(segment, std::move(claim));
      }
      written = co_await put(worker, file, segment, data, false);
      if (watched != nullptr && written.has_value()) watched->written = *written;
    }
    SELVAGE_PROBE(segment, file.key(), segment.offset, segment.length,
                  static_cast<unsigned>(segment.kind), probe_result(written));
    if (written.has_error()) co_return written.error();
    reached += *written;
    if (*written < segment.length) break;
  }
  co_return static_cast<std::size_t>(reached);
}

/// One segment. EINVAL for a direct one: it has to go through the page cache.
Awaitable<Result<std::size_t>> SplitEngine::put(Worker& worker, OpenFile& file,
                                                const Segment& segment,
                                                std::span<const std::byte> data, bool bounce) {
  const auto open = file.descriptors();
  const auto way =
      segment.kind == SegmentKind::direct ? PageOrder::Way::direct : PageOrder::Way::cached;
  const auto pages = whole_pages(segment.offset, segment.length, file.page_size());
  const auto turn = co_await order_.enter(worker, file.key(), pages, way);
  iovec part{const_cast<std::byte*>(data.data()), data.size()};
  const std::span<const iovec> parts(&part, 1);
  if (segment.kind == SegmentKind::buffered) {
    co_return co_await worker.device.writev(open->buffered, parts, segment.offset, 0);
  }
  if (segment.kind == SegmentKind::dontcache) {
    co_return co_await put_dontcache(worker, part, open->buffered, segment.offset);
  }
  Buffer copy;
  if (bounce) {
    // Without waiting: whoever fills the pool may be waiting for this very WRITE.
    copy = worker.buffers.try_acquire(data.size());
    if (!copy) co_return errno_code(EINVAL);
    std::memcpy(copy.data(), data.data(), data.size());
    part.iov_base = copy.data();
    context_.counters.bounce_copies.add();
  }
  const auto written = co_await worker.device.writev(open->direct, parts, segment.offset, 0);
  if (written.has_error() && written.error() == errno_code(EINVAL)) file.direct_refused();
  co_return written;
}

Awaitable<Result<std::size_t>> SplitEngine::put_dontcache(Worker& worker, const iovec& part, int fd,
                                                          std::uint64_t offset) {
  const std::span<const iovec> parts(&part, 1);
  if (!no_dontcache_.load(std::memory_order_relaxed)) {
    const auto written = co_await worker.device.writev(fd, parts, offset, rwf_dontcache);
    if (written.has_value() || written.error() != errno_code(EOPNOTSUPP)) co_return written;
    no_dontcache_.store(true, std::memory_order_relaxed);
    context_.notice(Fallback::no_dontcache, no_dontcache_message);
  }
  co_return co_await worker.device.writev(fd, parts, offset, 0);
}

/// After an error: what had been written stays in the cache until the janitor has written it back.
void SplitEngine::give_up(OpenFile& file, TrackedSegments& tracked) {
  for (const Tracked& part : tracked.all()) {
    if (part.written == 0) continue;
    const cache::PageRun pages = whole_pages(part.segment.offset, part.written, file.page_size());
    file.drop_list().add({&pages, 1}, Clock::now());
  }
  release(file, tracked, cache::Outcome::failed);
}

/// The pages that this WRITE has completed.
std::vector<cache::PageRun> SplitEngine::release(OpenFile& file, TrackedSegments& tracked,
                                                 cache::Outcome outcome) {
  std::vector<cache::PageRun> complete;
  const auto now = Clock::now();
  for (Tracked& part : tracked.all()) {
    const auto runs = context_.tracker.release(std::move(part.claim), part.written, outcome, now);
    std::uint64_t complete_bytes = 0;
    for (const cache::PageRun& run : runs) complete_bytes += run.length;
    SELVAGE_PROBE(edge_release, file.key(), part.segment.offset, part.written,
                  static_cast<unsigned>(outcome), complete_bytes);
    context_.counters.boundary_completed.add(boundaries_in(runs, part.segment, file.page_size()));
    complete.insert(complete.end(), runs.begin(), runs.end());
  }
  return complete;
}

Awaitable<> SplitEngine::drop(Worker& worker, OpenFile& file, std::vector<cache::PageRun> runs) {
  if (runs.empty()) co_return;
  if (runs.size() <= runs_dropped_inline) {
    file.drop(runs);
    co_return;
  }
  auto work = [&file, &runs] {
    file.drop(runs);
    return true;
  };
  co_await worker.pool.run(work);
}

Awaitable<Result<>> SplitEngine::commit(Worker& worker, OpenFile& file, std::uint64_t offset,
                                        std::uint64_t length) {
  const std::uint64_t page_size = file.page_size();
  cache::PageRun pages{offset / page_size * page_size, 0};
  if (length != 0) pages = whole_pages(offset, length, page_size);
  const auto synced = co_await file.sync(worker, SyncKind::all, pages.offset, pages.length);
  if (synced.has_error()) co_return synced;
  const std::uint64_t end =
      length == 0 ? std::numeric_limits<std::uint64_t>::max() : pages.offset + pages.length;
  auto work = [&file, first = pages.offset, end] {
    file.drop_listed(first, end);
    return true;
  };
  if (file.drop_list().size() <= runs_dropped_inline) {
    work();
  } else {
    co_await worker.pool.run(work);
  }
  co_return synced;
}

}  // namespace

std::unique_ptr<WriteEngine> make_split_engine(DataContext& context) {
  return std::make_unique<SplitEngine>(context);
}

}  // namespace selvage::storage
