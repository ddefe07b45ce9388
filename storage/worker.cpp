#include "storage/worker.h"

#include "storage/local/lease.h"
#include "storage/pool_device.h"
#include "storage/thread_identity.h"
#include "storage/uring_device.h"

#include <boost/asio/executor_work_guard.hpp>

#include <algorithm>
#include <csignal>
#include <exception>
#include <future>
#include <optional>
#include <utility>

namespace selvage::storage {
namespace {

// One worker: everything but the context is made and destroyed on its thread.
struct WorkerThread {
  WorkerThread() : context(1), work(boost::asio::make_work_guard(context)) {}

  boost::asio::io_context context;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  std::optional<Worker> worker;
  bool uses_io_uring = false;
  std::thread thread;
};

}  // namespace

struct Runtime::Impl {
  Impl(Runtime& owner, Options given)
      : runtime(owner),
        options(std::move(given)),
        buffers(options.buffer_bytes),
        pool(options.pool_threads) {}

  void start();
  void run(WorkerThread& thread, unsigned index, std::promise<void> started);
  void stop();

  Runtime& runtime;
  Options options;
  Counter ring_submits;
  // Destroyed last to first: coroutines left over in the contexts hold buffers.
  BufferPool buffers;
  BlockingPool pool;
  std::vector<std::unique_ptr<WorkerThread>> workers;
  bool stopped = false;
};

void Runtime::Impl::start() {
  ::signal(SIGPIPE, SIG_IGN);
  block_lease_signals();
  const ScopedSignalBlock blocked;
  std::vector<std::future<void>> started;
  for (unsigned index = 0; index < std::max(options.workers, 1U); ++index) {
    WorkerThread& thread = *workers.emplace_back(std::make_unique<WorkerThread>());
    std::promise<void> promise;
    started.push_back(promise.get_future());
    thread.thread = std::thread(&Impl::run, this, std::ref(thread), index, std::move(promise));
  }
  for (std::future<void>& each : started) each.wait();
  for (std::future<void>& each : started) each.get();
}

void Runtime::Impl::run(WorkerThread& thread, unsigned index, std::promise<void> started) {
  UringDevice* uring = nullptr;
  std::unique_ptr<IoDevice> device;
  try {
    if (options.use_io_uring) {
      auto created = UringDevice::create(thread.context, ring_submits);
      if (created) {
        uring = created->get();
        device = std::move(*created);
      }
    }
    if (!device) device = std::make_unique<PoolDevice>(pool);
    if (options.wrap_device) device = options.wrap_device(std::move(device));
    restrict_thread_to_data();
    thread.uses_io_uring = uring != nullptr;
    thread.worker.emplace(Worker{.runtime = runtime,
                                 .index = index,
                                 .context = thread.context,
                                 .device = *device,
                                 .pool = pool,
                                 .buffers = buffers});
  } catch (...) {
    started.set_exception(std::current_exception());
    return;
  }
  started.set_value();

  thread.context.run();
  // Told to stop. The kernel still reads and writes the memory of operations in flight.
  thread.context.restart();
  while (uring != nullptr && uring->in_flight() > 0) thread.context.run_one();
}

void Runtime::Impl::stop() {
  if (std::exchange(stopped, true)) return;
  buffers.stop();
  for (const auto& each : workers) {
    // Posted, so that what is ready now runs first.
    boost::asio::post(each->context, [context = &each->context] { context->stop(); });
  }
  for (const auto& each : workers) {
    if (each->thread.joinable()) each->thread.join();
  }
  pool.stop();
}

Runtime::Runtime(Options options) : impl_(std::make_unique<Impl>(*this, std::move(options))) {
  try {
    impl_->start();
  } catch (...) {
    impl_->stop();
    throw;
  }
}

Runtime::~Runtime() {
  stop();
}

unsigned Runtime::size() const {
  return static_cast<unsigned>(impl_->workers.size());
}
Worker& Runtime::worker(unsigned index) {
  return *impl_->workers.at(index)->worker;
}
BlockingPool& Runtime::pool() {
  return impl_->pool;
}
BufferPool& Runtime::buffers() {
  return impl_->buffers;
}

std::uint64_t Runtime::ring_submits() const {
  return impl_->ring_submits.get();
}

bool Runtime::io_uring_active() const {
  return std::all_of(impl_->workers.begin(), impl_->workers.end(),
                     [](const auto& each) { return each->uses_io_uring; });
}

void Runtime::stop() {
  impl_->stop();
}

}  // namespace selvage::storage
