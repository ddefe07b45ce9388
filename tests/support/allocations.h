// Counts what operator new gives out, in programs that use it.
#pragma once

#include <cstdint>

namespace selvage::tests {

/// Calls of operator new by other threads than the one that made it; one at a time.
class OtherThreadsAllocations {
 public:
  OtherThreadsAllocations();
  ~OtherThreadsAllocations();
  OtherThreadsAllocations(const OtherThreadsAllocations&) = delete;
  OtherThreadsAllocations& operator=(const OtherThreadsAllocations&) = delete;

  /// Since it was made. 0 under ThreadSanitizer.
  std::uint64_t calls() const;
};

}  // namespace selvage::tests
