#include "storage/buffer_pool.h"

#include "storage/parked.h"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define SELVAGE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SELVAGE_ASAN 1
#endif
#endif
#ifdef SELVAGE_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace selvage::storage {
namespace {

constexpr std::size_t memory_page_size = 4096;
constexpr std::size_t huge_page_size = std::size_t{2} << 20;

constexpr std::size_t round_up(std::size_t n, std::size_t unit) {
  return (n + unit - 1) / unit * unit;
}

// Released memory is poisoned until it is given out again: a use after release is then reported.
// Memory that was never given out is not, its shadow would cost an eighth of the pool at start.
void poison([[maybe_unused]] std::byte* data, [[maybe_unused]] std::size_t size) {
#ifdef SELVAGE_ASAN
  ASAN_POISON_MEMORY_REGION(data, size);
#endif
}
void unpoison([[maybe_unused]] std::byte* data, [[maybe_unused]] std::size_t size) {
#ifdef SELVAGE_ASAN
  ASAN_UNPOISON_MEMORY_REGION(data, size);
#endif
}

}  // namespace

Buffer::Buffer(Buffer&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    if (data_ != nullptr) pool_->release(data_, size_);
    pool_ = std::exchange(other.pool_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) pool_->release(data_, size_);
}

struct BufferPool::Impl {
  // In the frame of the coroutine that waits.
  struct Waiter {
    explicit Waiter(std::size_t size_wanted) : size(size_wanted) {}
    std::size_t size;
    std::byte* data = nullptr;  // Set with the pool's mutex held, before it is resumed.
    std::optional<Parked> coroutine;
  };

  explicit Impl(std::size_t bytes);
  ~Impl();

  // All of these: mutex held.
  std::byte* take(std::size_t size);
  void give_back(std::byte* data, std::size_t size);
  void serve_waiters(std::vector<Parked>& ready);

  std::mutex mutex;
  std::byte* base = nullptr;
  std::size_t limit;
  std::size_t high_water = 0;                    // Bytes from base ever given out.
  std::map<std::size_t, std::size_t> free_runs;  // Offset to length; no two touch.
  std::list<Waiter*> waiters;
  bool stopped = false;
  std::uint64_t used = 0;
  std::uint64_t peak = 0;
  std::uint64_t waits = 0;
};

BufferPool::Impl::Impl(std::size_t bytes)
    : limit(std::max(round_up(bytes, huge_page_size), huge_page_size)) {
  // One huge page more than needed, so that an aligned run lies inside.
  const std::size_t reserved = limit + huge_page_size;
  void* region = ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) {
    throw std::system_error(errno, std::system_category(), "buffer pool");
  }
  auto* start = static_cast<std::byte*>(region);
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const std::size_t skipped = round_up(address, huge_page_size) - address;
  if (skipped > 0) ::munmap(start, skipped);
  base = start + skipped;
  if (skipped < huge_page_size) ::munmap(base + limit, huge_page_size - skipped);
  ::madvise(base, limit, MADV_HUGEPAGE);  // Fails where the kernel has none: slower, not wrong.
  free_runs.emplace(0, limit);
}

BufferPool::Impl::~Impl() {
  assert(used == 0 && waiters.empty());
  unpoison(base, high_water);
  ::munmap(base, limit);
}

std::byte* BufferPool::Impl::take(std::size_t size) {
  const auto fits = [size](const auto& run) { return run.second >= size; };
  const auto run = std::find_if(free_runs.begin(), free_runs.end(), fits);
  if (run == free_runs.end()) return nullptr;
  const auto [offset, length] = *run;
  if (length > size) {
    // Its front goes; the rest keeps the node, and so the order.
    auto rest = free_runs.extract(run);
    rest.key() += size;
    rest.mapped() -= size;
    free_runs.insert(std::move(rest));
  } else {
    free_runs.erase(run);
  }
  used += size;
  peak = std::max(peak, used);
  high_water = std::max(high_water, offset + size);
  unpoison(base + offset, size);
  return base + offset;
}

void BufferPool::Impl::give_back(std::byte* data, std::size_t size) {
  poison(data, size);
  used -= size;
  auto offset = static_cast<std::size_t>(data - base);
  auto next = free_runs.lower_bound(offset);
  if (next != free_runs.end() && offset + size == next->first) {
    size += next->second;
    next = free_runs.erase(next);
  }
  if (next != free_runs.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      previous->second += size;
      return;
    }
  }
  free_runs.emplace_hint(next, offset, size);
}

// Strictly in order: what a large waiter needs is not given to small ones behind it.
void BufferPool::Impl::serve_waiters(std::vector<Parked>& ready) {
  while (!waiters.empty()) {
    Waiter& first = *waiters.front();
    first.data = take(first.size);
    if (first.data == nullptr) return;
    waiters.pop_front();
    ready.push_back(std::move(*first.coroutine));
  }
}

BufferPool::BufferPool(std::uint64_t bytes) : impl_(std::make_unique<Impl>(bytes)) {}
BufferPool::~BufferPool() = default;

Buffer BufferPool::try_acquire(std::size_t bytes) {
  if (bytes == 0 || bytes > impl_->limit) return {};
  const std::size_t size = round_up(bytes, memory_page_size);
  const std::lock_guard lock(impl_->mutex);
  if (impl_->stopped || !impl_->waiters.empty()) return {};
  std::byte* data = impl_->take(size);
  return data == nullptr ? Buffer() : Buffer(this, data, size);
}

Awaitable<Result<Buffer>> BufferPool::acquire(std::size_t bytes) {
  if (bytes == 0) co_return errno_code(EINVAL);
  if (bytes > impl_->limit) co_return errno_code(ENOMEM);
  Buffer now = try_acquire(bytes);
  if (now) co_return std::move(now);

  Impl::Waiter waiter(round_up(bytes, memory_page_size));
  auto queue = [this, &waiter](Parked coroutine) {
    waiter.coroutine.emplace(std::move(coroutine));
    std::vector<Parked> ready;
    {
      const std::lock_guard lock(impl_->mutex);
      if (impl_->stopped) {
        ready.push_back(std::move(*waiter.coroutine));
      } else {
        ++impl_->waits;
        impl_->waiters.push_back(&waiter);
        impl_->serve_waiters(ready);  // Room may have come since the try above.
      }
    }
    for (Parked& each : ready) std::move(each).resume();
  };
  co_await park(queue);
  if (waiter.data == nullptr) co_return errno_code(ECANCELED);
  co_return Buffer(this, waiter.data, waiter.size);
}

void BufferPool::release(std::byte* data, std::size_t size) {
  std::vector<Parked> ready;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->give_back(data, size);
    impl_->serve_waiters(ready);
  }
  for (Parked& each : ready) std::move(each).resume();
}

BufferPool::Gauges BufferPool::gauges() const {
  const std::lock_guard lock(impl_->mutex);
  return {.bytes_limit = impl_->limit,
          .bytes_used = impl_->used,
          .bytes_peak = impl_->peak,
          .waits = impl_->waits};
}

bool BufferPool::awaited() const {
  const std::lock_guard lock(impl_->mutex);
  return !impl_->waiters.empty();
}

void BufferPool::stop() {
  std::vector<Parked> ready;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopped = true;
    for (Impl::Waiter* waiter : impl_->waiters) ready.push_back(std::move(*waiter->coroutine));
    impl_->waiters.clear();
  }
  for (Parked& each : ready) std::move(each).resume();
}

}  // namespace selvage::storage
