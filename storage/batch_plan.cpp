#include "storage/batch_plan.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace selvage::storage {
namespace {

using cache::EdgePage;
using cache::EdgePages;
using Kind = BatchRequest::Kind;

// One thing to be written O_DIRECT: a page out of memory, or the middle of a WRITE.
struct Part {
  std::uint64_t offset;
  std::uint64_t length;
  const std::byte* data;
  std::uint64_t end() const { return offset + length; }
};

class Planner {
 public:
  Planner(std::span<const BatchRequest> requests, EdgePages& pages, std::uint64_t disk_size,
          std::uint64_t batch, const BatchLimits& limits)
      : requests_(requests),
        pages_(pages),
        page_size_(pages.page_size()),
        disk_size_(disk_size),
        batch_(batch),
        limits_(limits) {}

  BatchPlan plan() {
    plan_.waits.assign(requests_.size(), false);
    for (const BatchRequest& request : requests_) take(request);
    decide_waits();
    for (const auto& [offset, out] : touched_) {
      if (!out.page->whole() || out.page->dirty.empty()) continue;
      plan_.whole.push_back(out.page);
      add(parts_, *out.page);
    }
    direct_end_ = disk_size_;
    for (const Part& part : parts_) direct_end_ = std::max(direct_end_, part.end());
    for (const auto& [offset, out] : touched_) {
      if (out.must && !out.page->whole() && !out.page->dirty.empty()) place_partial(*out.page);
    }
    plan_.runs = join(parts_);
    plan_.padded = join(padded_);
    return std::move(plan_);
  }

 private:
  struct Touched {
    EdgePage* page;
    bool must = false;
  };

  // The pages at the ends of a request: none, one or two, where they are partial.
  template <class F>
  void for_each_edge(const BatchRequest& request, F f) {
    if (request.length == 0) return;
    const std::uint64_t end = request.offset + request.length;
    const std::uint64_t head = pages_.page_of(request.offset);
    const std::uint64_t tail = pages_.page_of(end);
    const bool head_partial = request.offset != head || end < head + page_size_;
    if (head_partial) f(head);
    if (end != tail && !(tail == head && head_partial)) f(tail);
  }

  static bool flushes(const BatchRequest& request, const EdgePage& page) {
    return !page.superseded && !page.dirty.empty() && page.dirty_since < request.before;
  }

  // The page in which the file ends, if it is in memory: who is to write its rest may never come,
  // and to write it now costs no read.
  const EdgePage* last_page() {
    const EdgePage* last = nullptr;
    pages_.for_each(pages_.page_of(disk_size_), ~std::uint64_t{0},
                    [&](const EdgePage& page) { last = &page; });
    return last;
  }

  void touch(EdgePage& page, bool must) {
    Touched& touched = touched_.try_emplace(page.offset, Touched{&page}).first->second;
    touched.must = touched.must || must;
  }

  // Copies the edges into their pages and notes the middle.
  void take(const BatchRequest& request) {
    const std::uint64_t end = request.offset + request.length;
    if (request.kind == Kind::flush) {
      const EdgePage* last = request.may_wait ? last_page() : nullptr;
      pages_.for_each(request.offset, end, [&](EdgePage& page) {
        if (flushes(request, page) && (!request.may_wait || &page == last)) touch(page, true);
      });
      return;
    }
    const bool must = request.stable && !request.may_wait;
    if (request.kind == Kind::carried) {
      for_each_edge(request, [&](std::uint64_t offset) {
        EdgePage* page = pages_.find(offset);
        if (page != nullptr && !page->superseded) touch(*page, must);
      });
      return;
    }
    for_each_edge(request, [&](std::uint64_t offset) {
      const std::uint64_t from = std::max(offset, request.offset);
      const std::uint64_t to = std::min(offset + page_size_, end);
      EdgePage& page =
          pages_.write(from, {request.data + (from - request.offset), to - from}, batch_);
      touch(page, must);
    });
    const std::uint64_t middle = (request.offset + page_size_ - 1) / page_size_ * page_size_;
    const std::uint64_t middle_end = pages_.page_of(end);
    if (middle >= middle_end) return;
    // What memory holds of these pages is older.
    pages_.for_each(middle, middle_end, [&](EdgePage& page) {
      page.superseded = true;
      touched_.erase(page.offset);
      plan_.superseded.push_back(&page);
    });
    parts_.push_back({middle, middle_end - middle, request.data + (middle - request.offset)});
  }

  // A stable request that may wait does so if a page of it is still partial and nobody else has
  // the page written now.
  void decide_waits() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const BatchRequest& request = requests_[i];
      if (!request.may_wait) continue;
      bool wait = false;
      const auto look = [&](EdgePage& page) {
        const auto touched = touched_.find(page.offset);
        const bool must = touched != touched_.end() && touched->second.must;
        wait = wait || (!page.whole() && !page.dirty.empty() && !must);
      };
      if (request.kind == Kind::flush) {
        pages_.for_each(request.offset, request.offset + request.length, [&](EdgePage& page) {
          if (flushes(request, page)) look(page);
        });
      } else if (request.stable) {
        for_each_edge(request, [&](std::uint64_t offset) {
          EdgePage* page = pages_.find(offset);
          if (page != nullptr && !page->superseded) look(*page);
        });
      }
      plan_.waits[i] = wait;
    }
  }

  void add(std::vector<Part>& parts, const EdgePage& page) {
    parts.push_back({page.offset, page_size_, page.data});
  }

  void place_partial(EdgePage& page) {
    const std::uint64_t page_end = page.offset + page_size_;
    const auto on_disk =
        static_cast<std::uint32_t>(std::clamp(disk_size_, page.offset, page_end) - page.offset);
    plan_.partial.push_back(&page);
    std::uint32_t end = 0;  // Of what is known of the page.
    for (auto run = page.valid.next(0); run.begin < run.end; run = page.valid.next(run.end)) {
      end = run.end;
    }
    const bool ends_with_page = end == page_size_;
    if (!ends_with_page && page_end > direct_end_) {
      // The file ends in this page. Gaps before its end that are not on disk are zeros.
      if (on_disk < end) page.known_zero(on_disk, end);
      for (auto run = page.dirty.next(0); run.begin < run.end; run = page.dirty.next(run.end)) {
        plan_.tails.push_back(
            {page.offset + run.begin, {page.data + run.begin, run.end - run.begin}, &page});
      }
      return;
    }
    page.known_zero(on_disk, page_size_);
    if (!page.whole()) plan_.reads.push_back(&page);
    add(ends_with_page || page_end <= disk_size_ ? parts_ : padded_, page);
  }

  std::vector<BatchRun> join(std::vector<Part>& parts) {
    std::ranges::sort(parts, {}, &Part::offset);
    std::vector<BatchRun> runs;
    for (const Part& part : parts) {
      const bool adjacent = !runs.empty() &&
                            runs.back().offset + runs.back().length == part.offset &&
                            runs.back().count < limits_.max_pieces &&
                            runs.back().length + part.length <= limits_.max_run_bytes;
      if (!adjacent) runs.push_back({part.offset, 0, plan_.pieces.size(), 0});
      // iovec is not const-correct; the kernel only reads what is written.
      plan_.pieces.push_back({const_cast<std::byte*>(part.data), part.length});
      runs.back().length += part.length;
      ++runs.back().count;
    }
    return runs;
  }

  std::span<const BatchRequest> requests_;
  EdgePages& pages_;
  const std::uint32_t page_size_;
  const std::uint64_t disk_size_;
  const std::uint64_t batch_;
  const BatchLimits& limits_;
  BatchPlan plan_;
  std::map<std::uint64_t, Touched> touched_;
  std::vector<Part> parts_;   // Written first.
  std::vector<Part> padded_;  // Written when the size is right.
  std::uint64_t direct_end_ = 0;
};

}  // namespace

BatchPlan plan_batch(std::span<const BatchRequest> requests, EdgePages& pages,
                     std::uint64_t disk_size, std::uint64_t batch, const BatchLimits& limits) {
  return Planner(requests, pages, disk_size, batch, limits).plan();
}

}  // namespace selvage::storage
