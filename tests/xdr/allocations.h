// Counts what operator new gives out, to show that a claimed length allocates nothing.
#pragma once

#include <cstddef>

namespace selvage::xdr::test {

/// Of the whole program since it was made; one at a time.
class Allocations {
 public:
  Allocations();
  std::size_t calls() const;
  std::size_t bytes() const;
};

}  // namespace selvage::xdr::test
