// The write verifier of one export (RFC 1813 section 3.3.7, writeverf3).
#pragma once

#include "storage/counters.h"
#include "storage/result.h"

#include <atomic>
#include <cstdint>

namespace selvage::storage {

/// Random at construction, and again whenever unstable data may have been lost. Any thread.
class WriteVerifier {
 public:
  explicit WriteVerifier(DataCounters& counters);

  /// Read it before a WRITE's bytes enter the page cache, and after a COMMIT's sync succeeded.
  std::uint64_t get() const { return value_.load(std::memory_order_acquire); }

  /// A sync or close failed: clients must send their uncommitted data again. EAGAIN and ESTALE
  /// lose nothing and change nothing.
  void failed(const ErrorCode& error);

 private:
  DataCounters& counters_;
  std::atomic<std::uint64_t> value_;
};

}  // namespace selvage::storage
