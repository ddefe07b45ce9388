// Memory for O_DIRECT that does not come from the buffer pool.
#pragma once

#include <cstddef>
#include <new>

namespace selvage::storage {

/// `size` bytes aligned to `alignment` (a power of two). For requests that hold a buffer of the
/// pool already: waiting for a second one could be waiting for each other.
class AlignedMemory {
 public:
  AlignedMemory(std::size_t size, std::size_t alignment)
      : alignment_(alignment),
        data_(static_cast<std::byte*>(::operator new(size, std::align_val_t{alignment}))) {}
  ~AlignedMemory() { ::operator delete(data_, std::align_val_t{alignment_}); }
  AlignedMemory(const AlignedMemory&) = delete;
  AlignedMemory& operator=(const AlignedMemory&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::size_t alignment_;
  std::byte* data_;
};

}  // namespace selvage::storage
