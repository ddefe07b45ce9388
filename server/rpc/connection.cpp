#include "server/rpc/connection.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <poll.h>

#include <algorithm>
#include <span>
#include <utility>

namespace selvage::server::rpc {

namespace asio = boost::asio;
using storage::Awaitable;

namespace {

constexpr std::size_t max_unsent_nulls = 16;
constexpr std::size_t buffers_per_write = 64;  ///< What Asio passes to one sendmsg.
constexpr std::size_t segments_per_reply = 6;
constexpr std::size_t progress_bytes = std::size_t{64} << 10;

Connection::Time now() {
  return std::chrono::steady_clock::now();
}

CloseReason reason_of(ReadStatus status) {
  switch (status) {
    case ReadStatus::peer_closed:
      return CloseReason::peer_closed;
    case ReadStatus::peer_cut:
      return CloseReason::peer_cut;
    case ReadStatus::garbage:
      return CloseReason::garbage;
    case ReadStatus::oversize:
      return CloseReason::oversize;
    case ReadStatus::stopping:
      return CloseReason::drained;
    case ReadStatus::ok:
    case ReadStatus::socket_error:
      break;
  }
  return CloseReason::socket_error;
}

}  // namespace

Connection::Connection(Socket socket, Peer peer, storage::Worker& worker,
                       std::shared_ptr<Core> core)
    : core_(std::move(core)),
      worker_(worker),
      peer_(std::move(peer)),
      client_(core_->clients.enter(peer_.address)),
      socket_(std::move(socket)),
      in_flight_(core_->options.max_in_flight_per_connection),
      null_calls_(max_unsent_nulls),
      reader_(socket_, core_->options.limits, core_->programs, worker.buffers, core_->large_records,
              core_->counters),
      ended_(socket_.get_executor(), Time::max()),
      write_progress_(now()),
      read_progress_(write_progress_),
      last_activity_(now()) {
  peer_.client = client_.get();
  peer_.connection = core_->next_connection.fetch_add(1, std::memory_order_relaxed);
  core_->connections[worker_.index].insert(this);
}

Connection::~Connection() {
  if (core_->options.connection_closed) core_->options.connection_closed(peer_.connection);
  core_->connections[worker_.index].erase(this);
  core_->clients.leave(peer_.address, client_);
  core_->leave();
}

Awaitable<> Connection::run() {
  ReadStatus status = ReadStatus::ok;
  while (!closed_ && !draining_) {
    Record record;
    Permits permits;
    status = co_await read_call(record, permits);
    if (status != ReadStatus::ok || closed_ || draining_) break;
    last_activity_ = now();
    count_request();
    if (waited_ && peer_gone()) {
      // A late first copy must not undo what its retry on another connection did.
      core_->counters.requests_dropped.add();
      status = ReadStatus::peer_closed;
      break;
    }
    ++calls_;
    asio::co_spawn(socket_.get_executor(),
                   serve(shared_from_this(), std::move(record), std::move(permits)),
                   asio::detached);
  }
  const bool orderly = draining_ || status == ReadStatus::peer_closed;
  if (!orderly) close(reason_of(status));
  while (calls_ > 0) {
    storage::ErrorCode ignored;
    co_await ended_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  if (draining_ && !closed_) co_await linger();
  close(draining_ ? CloseReason::drained : reason_of(status));
}

void Connection::count_request() {
  ClientCounters& client = *client_;
  client.requests.add();
  const std::uint64_t received = reader_.received();
  client.bytes_received.add(received - std::exchange(received_counted_, received));
  client.last_request.store(last_activity_, std::memory_order_relaxed);
}

/// Reads one call, with the right to run it. A steered payload takes its memory only with that
/// right: what waits for the right must not hold what those who have it may be waiting for.
Awaitable<ReadStatus> Connection::read_call(Record& record, Permits& permits) {
  waited_ = false;
  Opening opening;
  reading_ = true;
  ReadStatus status = co_await reader_.open(opening);
  reading_ = false;
  if (status != ReadStatus::ok) co_return status;
  const bool steered = reader_.steers();
  if (steered) {
    reader_.clock().pause(now());
    const bool admitted = co_await admit(permits, false);
    reader_.clock().resume(now());
    if (!admitted) co_return ReadStatus::stopping;
  }
  if (closed_ || draining_) co_return ReadStatus::stopping;
  reading_ = true;
  status = co_await reader_.receive(record);
  reading_ = false;
  waited_ = waited_ || reader_.waited();
  if (status != ReadStatus::ok || steered) co_return status;

  opening = core_->programs.inspect(record.head.bytes());
  if (opening.status == xdr::CallStatus::truncated ||
      opening.status == xdr::CallStatus::not_a_call) {
    co_return ReadStatus::garbage;
  }
  const bool admitted = co_await admit(permits, opening.null_call);
  co_return admitted ? ReadStatus::ok : ReadStatus::stopping;
}

/// Waits until one more call may be in flight: meanwhile the socket is not read. False when the
/// server stops.
Awaitable<bool> Connection::admit(Permits& permits, bool null_call) {
  Gate& own = null_call ? null_calls_ : in_flight_;
  permits.connection = own.try_acquire();
  if (!permits.connection) {
    waited_ = true;
    core_->counters.receive_waits.add();
    permits.connection = co_await own.acquire();
  }
  if (!permits.connection) co_return false;
  if (null_call) co_return true;
  permits.global = core_->requests.try_acquire();
  if (!permits.global) {
    waited_ = true;
    core_->counters.receive_waits.add();
    permits.global = co_await core_->requests.acquire();
  }
  co_return static_cast<bool>(permits.global);
}

/// The client has closed or reset the connection, though unread bytes may still be there.
bool Connection::peer_gone() {
  if (closed_) return true;
  pollfd poll_fd{socket_.native_handle(), POLLRDHUP, 0};
  return ::poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

Awaitable<> Connection::serve(std::shared_ptr<Connection> self, Record record, Permits permits) {
  bool failed = false;
  try {
    std::optional<Outgoing> reply =
        co_await self->core_->dispatcher.serve(self->worker_, self->peer_, std::move(record));
    if (reply && !self->closed_) {
      self->enqueue(std::move(*reply), std::move(permits));
      if (!self->writing_) co_await self->write_replies();
    }
  } catch (...) {
    failed = true;
  }
  // Out of memory, most likely: without a reply the client would wait for ever.
  if (failed) self->close(CloseReason::socket_error);
  self->end_call();
}

void Connection::end_call() {
  last_activity_ = now();
  if (--calls_ == 0) ended_.cancel();
}

void Connection::enqueue(Outgoing reply, Permits permits) {
  const xdr::RecordMark mark{static_cast<std::uint32_t>(reply.size()), true};
  if (queue_.full()) queue_.set_capacity(std::max<std::size_t>(2 * queue_.capacity(), 1));
  queue_.push_back(Queued{xdr::encode_record_mark(mark), std::move(reply), std::move(permits)});
}

/// Fills `buffers` with the unsent bytes at the front of the queue; returns how many are used.
std::size_t Connection::gather(std::span<asio::const_buffer> buffers) const {
  std::size_t used = 0;
  std::size_t skip = sent_;
  for (const Queued& queued : queue_) {
    if (used + segments_per_reply > buffers.size()) break;
    const Outgoing& reply = queued.reply;
    const std::array<std::span<const std::byte>, segments_per_reply> segments{
        std::span<const std::byte>(queued.mark),
        reply.kept ? std::span<const std::byte>(*reply.kept) : std::span<const std::byte>(),
        reply.kept ? std::span<const std::byte>() : reply.header.head(),
        reply.kept ? std::span<const std::byte>() : reply.results.head(),
        reply.kept ? std::span<const std::byte>() : reply.results.payload(),
        reply.kept ? std::span<const std::byte>() : reply.results.tail()};
    for (std::span<const std::byte> segment : segments) {
      const std::size_t skipped = std::min(skip, segment.size());
      skip -= skipped;
      segment = segment.subspan(skipped);
      if (!segment.empty()) buffers[used++] = asio::buffer(segment.data(), segment.size());
    }
  }
  return used;
}

/// The kernel has taken `count` more bytes of the queue.
void Connection::taken(std::size_t count) {
  client_->bytes_sent.add(count);
  sent_since_progress_ += count;
  if (sent_since_progress_ >= progress_bytes) {
    sent_since_progress_ = 0;
    write_progress_ = now();
  }
  sent_ += count;
  while (!queue_.empty()) {
    const std::size_t size = queue_.front().mark.size() + queue_.front().reply.size();
    if (sent_ < size) break;
    sent_ -= size;
    queue_.pop_front();
    core_->counters.replies.add();
  }
}

/// Run by the call that finds nobody writing; the others leave their replies to it.
Awaitable<> Connection::write_replies() {
  writing_ = true;
  write_progress_ = now();
  sent_since_progress_ = 0;
  // Lets the calls that are ready in this turn of the loop join one system call.
  if (calls_ > 1) co_await asio::post(socket_.get_executor(), asio::use_awaitable);
  std::array<asio::const_buffer, buffers_per_write> buffers;
  while (!queue_.empty() && !closed_) {
    const std::span<const asio::const_buffer> used(buffers.data(), gather(buffers));
    storage::ErrorCode error;
    std::size_t count = socket_.write_some(used, error);
    if (error == asio::error::would_block) {
      count =
          co_await socket_.async_write_some(used, asio::redirect_error(asio::use_awaitable, error));
    }
    // drain() cancels the read, and a write with it.
    if (error == asio::error::operation_aborted && !closed_) continue;
    if (error) {
      close(CloseReason::socket_error);
      break;
    }
    core_->counters.reply_writes.add();
    taken(count);
  }
  queue_.clear();
  sent_ = 0;
  writing_ = false;
}

/// Closes so that the last replies arrive: bytes that nobody reads would turn the close into a
/// reset, which discards what is still on its way.
Awaitable<> Connection::linger() {
  storage::ErrorCode error;
  socket_.shutdown(Socket::shutdown_send, error);
  linger_until_ = now() + core_->options.linger;
  std::array<std::byte, 4096> discarded;
  while (!error && !closed_) {
    co_await socket_.async_read_some(asio::buffer(discarded),
                                     asio::redirect_error(asio::use_awaitable, error));
  }
}

/// For a while neither 64 KiB of the record that it has begun has come, nor has it taken 64 KiB of
/// its replies.
bool Connection::stalls(Time time) {
  const auto deadline = core_->options.contended_deadline;
  const std::optional<Time> record_began = reader_.clock().running_since();
  if (!record_began || reader_.received() - received_at_progress_ >= progress_bytes) {
    received_at_progress_ = reader_.received();
    read_progress_ = time;
  }
  if (record_began && time - std::max(*record_began, read_progress_) >= deadline) return true;
  return writing_ && time - write_progress_ >= deadline;
}

void Connection::sweep(Time time, bool contended) {
  if (closed_) return;
  const Options& options = core_->options;
  const std::optional<Time> record_began = reader_.clock().running_since();
  const bool stalls_now = stalls(time);
  // Seen twice: a worker that has been kept from its work finds in between what the client has
  // sent.
  const bool stalled = std::exchange(stalled_, stalls_now) && stalls_now;
  if (linger_until_) {
    if (time >= *linger_until_) close(CloseReason::drained);
  } else if (record_began && time - *record_began >= options.record_deadline) {
    close(CloseReason::record_deadline);
  } else if (writing_ && time - write_progress_ >= options.write_deadline) {
    close(CloseReason::write_deadline);
  } else if (stalled && (contended || draining_)) {
    close(CloseReason::contended);
  } else if (draining_) {
    // Whatever the reader waits for now, no call will come of it.
    if (reading_) socket_.cancel();
  } else if (calls_ == 0 && !record_began && time - last_activity_ >= options.idle_deadline) {
    close(CloseReason::idle);
  }
}

std::optional<Connection::Time> Connection::idle_since() const {
  const bool in_use = closed_ || draining_ || calls_ != 0 || !queue_.empty();
  if (in_use || reader_.clock().running_since()) return std::nullopt;
  return last_activity_;
}

void Connection::drain() {
  if (draining_ || closed_) return;
  draining_ = true;
  if (reading_) socket_.cancel();
}

void Connection::close(CloseReason reason) {
  if (closed_) return;
  closed_ = true;
  core_->counters.connections_closed[static_cast<std::size_t>(reason)].add();
  storage::ErrorCode ignored;
  socket_.close(ignored);
}

}  // namespace selvage::server::rpc
