// One RPC record as it was received.
#pragma once

#include "server/rpc/gate.h"
#include "storage/buffer_pool.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace selvage::server::rpc {

/// Heap bytes that grow as they are received; new ones are not cleared. Aligned for XDR.
class ByteBuffer {
 public:
  ByteBuffer() = default;
  ByteBuffer(ByteBuffer&& other) noexcept
      : data_(std::move(other.data_)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  ByteBuffer& operator=(ByteBuffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }

  /// Room behind the bytes, to be received into.
  std::span<std::byte> spare() { return {data_.get() + size_, capacity_ - size_}; }
  /// The first `count` bytes of spare() have been filled.
  void commit(std::size_t count) { size_ += count; }

  void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    auto larger = std::make_unique_for_overwrite<std::byte[]>(capacity);
    if (size_ > 0) std::memcpy(larger.get(), data_.get(), size_);
    data_ = std::move(larger);
    capacity_ = capacity;
  }
  /// Within the capacity.
  void append(std::span<const std::byte> more) {
    if (more.empty()) return;
    std::memcpy(data_.get() + size_, more.data(), more.size());
    size_ += more.size();
  }

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

/// Without a steered payload everything is in `head`. With one, `head` ends right after the
/// payload's length word and `tail` begins with its padding.
struct Record {
  ByteBuffer head;
  storage::Buffer payload_owner;
  std::span<const std::byte> payload;  ///< Congruent with its file offset modulo 4096.
  ByteBuffer tail;
  Gate::Permit large;  ///< Held while `head` may be larger than Limits::small_record.
};

}  // namespace selvage::server::rpc
