#include "storage/uring_device.h"

#include "storage/offsets.h"
#include "storage/unique_fd.h"

#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <liburing.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <climits>
#include <limits>
#include <optional>
#include <utility>

namespace selvage::storage {
namespace {

constexpr unsigned max_retries = 100;

using Handler = boost::asio::async_result<boost::asio::use_awaitable_t<>, void(int)>::handler_type;

// Lives in the frame of the coroutine that waits for it; the kernel's user_data points to it.
struct Operation {
  enum class Kind : std::uint8_t { readv, writev, sync, allocate };

  Kind kind;
  int fd;
  int flags;  // RWF flags, IORING_FSYNC flags, or fallocate's mode.
  std::uint64_t offset;
  std::uint64_t length = 0;
  std::span<const iovec> segments;
  unsigned retries = 0;
  std::optional<Handler> handler;
  Operation* next = nullptr;

  void prepare(io_uring_sqe* sqe) const;
};

void Operation::prepare(io_uring_sqe* sqe) const {
  const auto count = static_cast<unsigned>(segments.size());
  // One segment needs no vector to be copied into the kernel.
  const bool single = count == 1 && segments[0].iov_len <= INT_MAX;
  switch (kind) {
    case Kind::readv:
      if (single) {
        const auto size = static_cast<unsigned>(segments[0].iov_len);
        io_uring_prep_read(sqe, fd, segments[0].iov_base, size, offset);
      } else {
        io_uring_prep_readv(sqe, fd, segments.data(), count, offset);
      }
      sqe->rw_flags = flags;
      break;
    case Kind::writev:
      if (single) {
        const auto size = static_cast<unsigned>(segments[0].iov_len);
        io_uring_prep_write(sqe, fd, segments[0].iov_base, size, offset);
      } else {
        io_uring_prep_writev(sqe, fd, segments.data(), count, offset);
      }
      sqe->rw_flags = flags;
      break;
    case Kind::sync:
      io_uring_prep_fsync(sqe, fd, static_cast<unsigned>(flags));
      sqe->off = offset;
      sqe->len = static_cast<unsigned>(length);
      break;
    case Kind::allocate:
      io_uring_prep_fallocate(sqe, fd, flags, static_cast<off_t>(offset),
                              static_cast<off_t>(length));
      break;
  }
}

// First in, first out, linked through Operation::next.
class OperationQueue {
 public:
  bool empty() const { return head_ == nullptr; }
  void push(Operation& operation) {
    operation.next = nullptr;
    (head_ == nullptr ? head_ : tail_->next) = &operation;
    tail_ = &operation;
  }
  Operation& pop() {
    Operation& operation = *head_;
    head_ = operation.next;
    return operation;
  }

 private:
  Operation* head_ = nullptr;
  Operation* tail_ = nullptr;
};

}  // namespace

struct UringDevice::Impl {
  Impl(boost::asio::io_context& io, UniqueFd event, Counter& submit_counter)
      : context(io), event_fd(io, event.get()), submits(submit_counter) {
    event.release();  // event_fd owns it now.
  }
  ~Impl();

  Awaitable<int> perform(Operation& operation);
  Awaitable<Result<std::size_t>> transfer(Operation::Kind kind, int fd,
                                          std::span<const iovec> segments, std::uint64_t offset,
                                          int rwf_flags);
  void wait_for_event();
  void on_event();
  void fill();
  void drain();
  void submit();
  void schedule_submit();

  boost::asio::io_context& context;
  io_uring ring{};
  bool ring_exists = false;
  boost::asio::posix::stream_descriptor event_fd;
  std::uint64_t event_value = 0;
  Counter& submits;

  unsigned kernel_limit = 0;  // Completion queue entries: more in the kernel could overflow it.
  unsigned in_kernel = 0;
  std::size_t unfinished = 0;
  OperationQueue waiting;
  bool submit_scheduled = false;
  bool draining = false;
};

UringDevice::Impl::~Impl() {
  assert(unfinished == 0);
  if (ring_exists) io_uring_queue_exit(&ring);
}

Awaitable<int> UringDevice::Impl::perform(Operation& operation) {
  assert(context.get_executor().running_in_this_thread());
  auto initiate = [this, &operation](Handler handler) {
    operation.handler.emplace(std::move(handler));
    ++unfinished;
    waiting.push(operation);
    schedule_submit();
  };
  return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(int)>(
      initiate, boost::asio::use_awaitable);
}

// Completions are submitted for at the end of the drain that resumes the coroutines; otherwise a
// handler behind all that are ready now collects what they queue.
void UringDevice::Impl::schedule_submit() {
  if (submit_scheduled || draining) return;
  submit_scheduled = true;
  boost::asio::post(context, [this] {
    submit_scheduled = false;
    submit();
  });
}

void UringDevice::Impl::fill() {
  while (!waiting.empty() && in_kernel < kernel_limit) {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring);
    if (sqe == nullptr) return;
    Operation& operation = waiting.pop();
    operation.prepare(sqe);
    io_uring_sqe_set_data(sqe, &operation);
    ++in_kernel;
  }
}

void UringDevice::Impl::submit() {
  for (;;) {
    fill();
    if (io_uring_sq_ready(&ring) == 0) return;
    submits.add();
    const int submitted = io_uring_submit(&ring);
    if (submitted == -EINTR || submitted > 0) continue;
    // Out of memory or of room for completions for now: let the loop turn and try again.
    schedule_submit();
    return;
  }
}

void UringDevice::Impl::drain() {
  draining = true;
  io_uring_cqe* cqe = nullptr;
  while (io_uring_peek_cqe(&ring, &cqe) == 0) {
    auto& operation = *static_cast<Operation*>(io_uring_cqe_get_data(cqe));
    const int result = cqe->res;
    io_uring_cqe_seen(&ring, cqe);
    --in_kernel;
    const bool rw =
        operation.kind == Operation::Kind::readv || operation.kind == Operation::Kind::writev;
    const bool may_retry =
        result == -EINTR || (result == -EAGAIN && !(rw && (operation.flags & RWF_NOWAIT) != 0));
    if (may_retry && operation.retries++ < max_retries) {
      waiting.push(operation);
      continue;
    }
    --unfinished;
    Handler handler = std::move(*operation.handler);
    operation.handler.reset();
    std::move(handler)(result);
  }
  draining = false;
}

void UringDevice::Impl::on_event() {
  drain();
  submit();
  wait_for_event();
}

void UringDevice::Impl::wait_for_event() {
  event_fd.async_read_some(boost::asio::buffer(&event_value, sizeof event_value),
                           [this](const ErrorCode& error, std::size_t) {
                             if (error != boost::asio::error::operation_aborted) on_event();
                           });
}

UringDevice::UringDevice(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
UringDevice::~UringDevice() = default;

Result<std::unique_ptr<UringDevice>> UringDevice::create(boost::asio::io_context& context,
                                                         Counter& submits, unsigned entries) {
  UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return errno_code(errno);
  const int event_number = event.get();
  auto impl = std::make_unique<Impl>(context, std::move(event), submits);

  // Flags of Linux 6.0; older kernels refuse them and do without.
  io_uring_params params{};
  params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN;
  int error = io_uring_queue_init_params(entries, &impl->ring, &params);
  if (error == -EINVAL) {
    params = {};
    error = io_uring_queue_init_params(entries, &impl->ring, &params);
  }
  if (error < 0) return errno_code(-error);
  impl->ring_exists = true;
  impl->kernel_limit = params.cq_entries;
  error = io_uring_register_eventfd(&impl->ring, event_number);
  if (error < 0) return errno_code(-error);
  impl->wait_for_event();
  return std::unique_ptr<UringDevice>(new UringDevice(std::move(impl)));
}

std::size_t UringDevice::in_flight() const {
  return impl_->unfinished;
}

Awaitable<Result<std::size_t>> UringDevice::Impl::transfer(Operation::Kind kind, int fd,
                                                           std::span<const iovec> segments,
                                                           std::uint64_t offset, int rwf_flags) {
  // 2^64-1 would mean the file position.
  if (offset > max_offset || segments.size() > IOV_MAX) co_return errno_code(EINVAL);
  Operation operation{.kind = kind,
                      .fd = fd,
                      .flags = rwf_flags,
                      .offset = offset,
                      .segments = segments,
                      .handler = {}};
  const int result = co_await perform(operation);
  if (result < 0) co_return errno_code(-result);
  co_return static_cast<std::size_t>(result);
}

Awaitable<Result<std::size_t>> UringDevice::readv(int fd, std::span<const iovec> segments,
                                                  std::uint64_t offset, int rwf_flags) {
  return impl_->transfer(Operation::Kind::readv, fd, segments, offset, rwf_flags);
}

Awaitable<Result<std::size_t>> UringDevice::writev(int fd, std::span<const iovec> segments,
                                                   std::uint64_t offset, int rwf_flags) {
  return impl_->transfer(Operation::Kind::writev, fd, segments, offset, rwf_flags);
}

Awaitable<Result<>> UringDevice::sync(int fd, SyncKind kind, std::uint64_t offset,
                                      std::uint64_t length) {
  if (offset > max_offset) co_return errno_code(EINVAL);
  // The kernel syncs the pages of [off, off + len], and all of them if that sum is 0.
  const bool whole = length == 0 || length > std::numeric_limits<std::uint32_t>::max() ||
                     length > max_offset - offset;
  Operation operation{.kind = Operation::Kind::sync,
                      .fd = fd,
                      .flags = kind == SyncKind::data ? static_cast<int>(IORING_FSYNC_DATASYNC) : 0,
                      .offset = whole ? 0 : offset,
                      .length = whole ? 0 : std::max<std::uint64_t>(length - 1, 1),
                      .segments = {},
                      .handler = {}};
  const int result = co_await impl_->perform(operation);
  if (result < 0) co_return errno_code(-result);
  co_return Result<>();
}

Awaitable<Result<>> UringDevice::allocate(int fd, int mode, std::uint64_t offset,
                                          std::uint64_t length) {
  if (offset > max_offset || length > max_offset) co_return errno_code(EINVAL);
  Operation operation{.kind = Operation::Kind::allocate,
                      .fd = fd,
                      .flags = mode,
                      .offset = offset,
                      .length = length,
                      .segments = {},
                      .handler = {}};
  const int result = co_await impl_->perform(operation);
  if (result < 0) co_return errno_code(-result);
  co_return Result<>();
}

}  // namespace selvage::storage
