// What the connections of one server share.
#pragma once

#include "server/rpc/client_table.h"
#include "server/rpc/counters.h"
#include "server/rpc/dispatcher.h"
#include "server/rpc/duplicate_request_cache.h"
#include "server/rpc/gate.h"
#include "server/rpc/options.h"
#include "server/rpc/program_table.h"
#include "storage/buffer_pool.h"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <unordered_set>
#include <vector>

namespace selvage::server::rpc {

class Connection;

/// Kept alive by the server and by each of its coroutines.
struct Core {
  Core(std::span<const Program> served, const Options& given, unsigned workers)
      : options(given),
        max_connections(given.max_connections),
        programs(served),
        duplicates(given.duplicates, counters),
        dispatcher(programs, duplicates, counters, options),
        requests(given.max_in_flight),
        large_records(given.max_large_records),
        connections(workers) {}

  const Options options;
  std::atomic<std::size_t> max_connections;  ///< Instead of options.max_connections.
  Counters counters;
  ClientTable clients;
  ProgramTable programs;
  DuplicateRequestCache duplicates;
  Dispatcher dispatcher;
  Gate requests;  ///< In flight, on all connections.
  Gate large_records;

  /// By worker; each is touched on its worker's thread only.
  std::vector<std::unordered_set<Connection*>> connections;

  std::atomic<unsigned> next_worker{0};
  std::atomic<std::uint64_t> next_connection{1};
  std::atomic<bool> draining{false};
  std::atomic<bool> crowded{false};  ///< There was no room for a connection, and hardly is now.
  std::mutex mutex;                  ///< Of `open`.
  std::condition_variable none_open;
  std::size_t open = 0;  ///< Connections accepted whose last coroutine has not ended.

  /// Somebody waits for what a client that sends or takes its bytes slowly may hold.
  bool contended(const storage::BufferPool& buffers) const {
    return buffers.awaited() || requests.awaited() || large_records.awaited() || crowded.load();
  }

  /// False over the bound.
  bool enter() {
    const std::lock_guard lock(mutex);
    if (open >= max_connections.load()) {
      crowded.store(true);
      return false;
    }
    ++open;
    counters.connections_open.value.store(open, std::memory_order_relaxed);
    return true;
  }
  void leave() {
    const std::lock_guard lock(mutex);
    --open;
    const std::size_t most = max_connections.load();
    if (open < most - most / 16) crowded.store(false);
    counters.connections_open.value.store(open, std::memory_order_relaxed);
    if (open == 0) none_open.notify_all();
  }
};

}  // namespace selvage::server::rpc
