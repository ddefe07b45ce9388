#include "allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

#if __has_feature(thread_sanitizer)
#include <sanitizer/allocator_interface.h>
#endif

namespace {
std::atomic<std::size_t> allocated_calls{0};
std::atomic<std::size_t> allocated_bytes{0};
}  // namespace

#if __has_feature(thread_sanitizer)
// Its runtime has an operator new of its own, which calls hooks; they see malloc() as well.
namespace {
void count(const volatile void*, std::size_t size) {
  allocated_calls.fetch_add(1, std::memory_order_relaxed);
  allocated_bytes.fetch_add(size, std::memory_order_relaxed);
}
void ignore(const volatile void*) {}
const int installed = __sanitizer_install_malloc_and_free_hooks(count, ignore);
}  // namespace
#else
void* operator new(std::size_t size) {
  allocated_calls.fetch_add(1, std::memory_order_relaxed);
  allocated_bytes.fetch_add(size, std::memory_order_relaxed);
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
#endif

namespace selvage::xdr::test {

Allocations::Allocations() {
  allocated_calls.store(0, std::memory_order_relaxed);
  allocated_bytes.store(0, std::memory_order_relaxed);
}

std::size_t Allocations::calls() const {
  return allocated_calls.load(std::memory_order_relaxed);
}
std::size_t Allocations::bytes() const {
  return allocated_bytes.load(std::memory_order_relaxed);
}

}  // namespace selvage::xdr::test
