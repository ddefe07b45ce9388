// Bounded huge-page memory for payloads and reads (DESIGN 3 and 7).
#pragma once

#include "storage/io_device.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace selvage::storage {

class BufferPool;

/// A run of whole pages out of a BufferPool; gives them back on destruction. Movable, any thread.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::byte* data() const { return data_; }   ///< Page-aligned (4096).
  std::size_t size() const { return size_; }  ///< Bytes, a multiple of 4096.
  explicit operator bool() const { return data_ != nullptr; }

 private:
  friend class BufferPool;
  Buffer(BufferPool* pool, std::byte* data, std::size_t size)
      : pool_(pool), data_(data), size_(size) {}
  BufferPool* pool_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Any thread. Pages are touched only as far as they are used; freed low addresses are used first.
class BufferPool {
 public:
  struct Gauges {
    std::uint64_t bytes_limit;
    std::uint64_t bytes_used;
    std::uint64_t bytes_peak;
    std::uint64_t waits;  ///< acquire() calls that had to wait, ever.
  };

  /// Reserves address space for `bytes` (rounded up to 2 MiB) with MADV_HUGEPAGE.
  explicit BufferPool(std::uint64_t bytes);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// At least `bytes` bytes (> 0), rounded up to pages. Waits, first come first served, while the
  /// pool has no run that long: this is the back-pressure on connections. ENOMEM if the pool could
  /// never hold it; ECANCELED once stop() was called. Resumes on the caller's executor.
  Awaitable<Result<Buffer>> acquire(std::size_t bytes);

  /// The same without waiting: an empty Buffer if there is no room now.
  Buffer try_acquire(std::size_t bytes);

  Gauges gauges() const;

  /// Somebody waits for memory now.
  bool awaited() const;

  /// Refuses all waiters and later calls.
  void stop();

 private:
  friend class Buffer;
  void release(std::byte* data, std::size_t size);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace selvage::storage
