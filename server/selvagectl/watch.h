// What changes from one moment to the next: `stats --watch` and `top`.
#pragma once

#include "server/selvagectl/connection.h"

#include <chrono>
#include <cstdint>
#include <optional>

namespace selvage::ctl {

struct Watch {
  std::chrono::milliseconds interval{1000};
  std::uint64_t count = 0;  ///< How many times; 0: until interrupted.
  bool json = false;
};

/// Prints per second what the counters of `request` (a StatsRequest) moved. Nothing when it has
/// ended by itself.
std::optional<Failure> watch_stats(Connection& connection, const control::Request& request,
                                   const Watch& watch);

/// Throughput, latency, what batches do, clients, memory; redraws a terminal.
std::optional<Failure> top(Connection& connection, const Watch& watch);

}  // namespace selvage::ctl
