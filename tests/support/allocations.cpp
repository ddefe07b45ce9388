#include "tests/support/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<bool> counting{false};
std::atomic<std::uint64_t> counted{0};
thread_local bool left_out = false;

}  // namespace

// ThreadSanitizer brings an operator new of its own: nothing is counted there.
#if !__has_feature(thread_sanitizer)

namespace {

void* allocate(std::size_t size, std::size_t alignment) {
  if (counting.load(std::memory_order_relaxed) && !left_out) {
    counted.fetch_add(1, std::memory_order_relaxed);
  }
  void* memory = alignment == 0 ? std::malloc(size == 0 ? 1 : size)
                                : std::aligned_alloc(
                                      alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) {
  return allocate(size, 0);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

#endif

namespace selvage::tests {

OtherThreadsAllocations::OtherThreadsAllocations() {
  left_out = true;
  counted.store(0);
  counting.store(true);
}

OtherThreadsAllocations::~OtherThreadsAllocations() {
  counting.store(false);
  left_out = false;
}

std::uint64_t OtherThreadsAllocations::calls() const {
  return counted.load();
}

}  // namespace selvage::tests
