// Worker threads: N io_contexts, one thread and one IoDevice each (DESIGN 7).
#pragma once

#include "storage/blocking_pool.h"
#include "storage/buffer_pool.h"
#include "storage/io_device.h"

#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace selvage::storage {

class Runtime;

/// What a coroutine needs of the thread it runs on. Lives as long as its Runtime. The io_context
/// may be posted to from any thread; the device is for the worker's own thread only.
struct Worker {
  Runtime& runtime;
  unsigned index;
  boost::asio::io_context& context;
  IoDevice& device;
  BlockingPool& pool;
  BufferPool& buffers;
};

/// Owns the workers, the blocking pool and the buffer pool.
///
/// Worker threads have fsuid and fsgid 65534 and none of the capabilities that bypass permissions
/// or quota (thread_identity.h): a WRITE that they submit clears set-id bits and counts against
/// quota and reserved blocks, as a client's should. So they only work on descriptors that are open
/// already; whatever opens, stats by path or changes attributes belongs on the pool, whose threads
/// have the server's identity. Worker and pool threads block signals; SIGPIPE is ignored.
class Runtime {
 public:
  struct Options {
    unsigned workers = 2;
    unsigned pool_threads = 16;
    std::uint64_t buffer_bytes = std::uint64_t{1} << 30;  ///< Bound of the buffer pool.
    bool use_io_uring = true;  ///< Falls back to the pool, with io_uring_active() false, anyhow
                               ///< where the kernel forbids it.
    /// Test seam: wraps each worker's device, called on the worker's own thread.
    std::function<std::unique_ptr<IoDevice>(std::unique_ptr<IoDevice>)> wrap_device{};
  };

  /// Starts all threads; returns when every device exists. The calling thread, the process's first
  /// as a rule, blocks the signals of lease breaks from then on (local/lease.h).
  explicit Runtime(Options options);
  /// stop(), if not called before.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  unsigned size() const;
  Worker& worker(unsigned index);
  BlockingPool& pool();
  BufferPool& buffers();
  bool io_uring_active() const;
  /// io_uring_enter(2) calls of all workers that submitted operations.
  std::uint64_t ring_submits() const;

  /// Refuses waiters for buffers, waits for the operations that the kernel has, ends the workers
  /// and joins all threads. Whoever calls it has ended all requests before: a coroutine that is
  /// still waiting for something else is destroyed with the Runtime, without being resumed.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace selvage::storage
