// One client's connection: reads calls, runs them concurrently, writes replies as they come.
#pragma once

#include "server/rpc/core.h"
#include "server/rpc/dispatcher.h"
#include "server/rpc/gate.h"
#include "server/rpc/record_reader.h"
#include "storage/worker.h"
#include "xdr/rpc.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/circular_buffer.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

namespace selvage::server::rpc {

/// Lives on one worker; every member is called on its thread. Kept alive by its coroutines. A call
/// in flight holds its permits until its reply has been handed to the kernel.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Connection(Socket socket, Peer peer, storage::Worker& worker, std::shared_ptr<Core> core);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Reads until the connection ends, for whatever reason; returns when all calls have ended.
  storage::Awaitable<> run();

  /// Closes it if a deadline has passed. Called from time to time; `contended` if others wait for
  /// what slow clients may hold.
  void sweep(Time now, bool contended);

  /// Since when nothing has been asked or answered, and no record has begun; nullopt: it is in use.
  std::optional<Time> idle_since() const;
  std::uint64_t number() const { return peer_.connection; }

  /// No new calls; those in progress finish, then the connection is closed.
  void drain();

  /// At once: replies are discarded. Calls in progress go on.
  void close(CloseReason reason);

 private:
  /// What a call holds while it is in flight.
  struct Permits {
    Gate::Permit connection;
    Gate::Permit global;  ///< Not for NULL.
  };
  struct Queued {
    std::array<std::byte, xdr::record_mark_bytes> mark;
    Outgoing reply;
    Permits permits;
  };

  void count_request();
  storage::Awaitable<ReadStatus> read_call(Record& record, Permits& permits);
  storage::Awaitable<bool> admit(Permits& permits, bool null_call);
  /// Static: parameters die in reverse order, so that the permits go before what they belong to.
  static storage::Awaitable<> serve(std::shared_ptr<Connection> self, Record record,
                                    Permits permits);
  storage::Awaitable<> write_replies();
  storage::Awaitable<> linger();
  void enqueue(Outgoing reply, Permits permits);
  std::size_t gather(std::span<boost::asio::const_buffer> buffers) const;
  void taken(std::size_t count);
  bool stalls(Time now);
  bool peer_gone();
  void end_call();

  const std::shared_ptr<Core> core_;
  storage::Worker& worker_;
  Peer peer_;
  const std::shared_ptr<ClientCounters> client_;
  Socket socket_;
  Gate in_flight_;
  Gate null_calls_;
  RecordReader reader_;

  bool closed_ = false;
  bool draining_ = false;
  bool reading_ = false;
  bool writing_ = false;
  bool waited_ = false;                   ///< The call just read had to wait for the server.
  std::size_t calls_ = 0;                 ///< Coroutines of serve().
  boost::asio::steady_timer ended_;       ///< Cancelled when calls_ has become 0.
  boost::circular_buffer<Queued> queue_;  ///< Grows to what is in flight, and stays so.
  std::size_t sent_ = 0;                  ///< Bytes of queue_.front() that have been sent.
  std::size_t sent_since_progress_ = 0;
  Time write_progress_;
  std::uint64_t received_at_progress_ = 0;
  std::uint64_t received_counted_ = 0;  ///< In the client's counters.
  Time read_progress_;
  bool stalled_ = false;  ///< At the last sweep.
  Time last_activity_;
  std::optional<Time> linger_until_;
};

}  // namespace selvage::server::rpc
