// Functions that read one of an export's data counters, for tables of them.
#pragma once

#include "storage/counters.h"

#include <cstddef>
#include <cstdint>

namespace selvage::server::counter_values {

template <storage::Counter storage::DataCounters::* Member>
std::uint64_t plain(const storage::DataCounters& counters) {
  return (counters.*Member).get();
}

template <auto Member, std::size_t Index>
std::uint64_t indexed(const storage::DataCounters& counters) {
  return (counters.*Member)[Index].get();
}

template <storage::Counter storage::CombinerCounters::* Member>
std::uint64_t combined(const storage::DataCounters& counters) {
  return (counters.combiner.*Member).get();
}

}  // namespace selvage::server::counter_values
