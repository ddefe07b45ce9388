// The RPC server: listening sockets, connections spread over the workers, orderly end.
#pragma once

#include "server/rpc/core.h"
#include "server/rpc/counters.h"
#include "server/rpc/options.h"
#include "server/rpc/program.h"
#include "storage/result.h"
#include "storage/unique_fd.h"
#include "storage/worker.h"

#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace selvage::server::rpc {

/// TCP only; all programs on every address and one port. Called from one thread that is not a
/// worker's. The runtime and the programs' services outlive it; stop the runtime before the
/// services go if drain() returned false.
class Server {
 public:
  Server(storage::Runtime& runtime, std::span<const Program> programs, const Options& options);
  /// drain() without a deadline to wait for, if not called before.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Listens on all addresses at one port; port 0: a free one. IPv6 addresses take IPv6 alone. On
  /// an error (of socket(2), bind(2), listen(2)) none is listened on. Before start(), any number of
  /// times.
  storage::Result<> listen(std::span<const boost::asio::ip::address> addresses, std::uint16_t port);

  /// Takes over a listening TCP socket (sd_listen_fds(3)). EINVAL for anything else.
  storage::Result<> adopt(storage::UniqueFd socket);

  /// What is listened on, with the ports chosen.
  std::vector<boost::asio::ip::tcp::endpoint> endpoints() const;
  /// The port of the first of them; 0 without any.
  std::uint16_t port() const;

  /// Begins to accept.
  void start();

  /// Stops accepting and reading, lets calls in progress finish and their replies go out, and
  /// closes. After `deadline` connections are cut and waiting calls sent away. True if everything
  /// had ended by then; otherwise some handlers still run.
  bool drain(std::chrono::milliseconds deadline);

  /// For connections to come; those that are open stay. Any thread.
  void set_max_connections(std::size_t most) { core_->max_connections.store(most); }

  const Counters& counters() const { return core_->counters; }
  /// What is held now, and the bounds. Any thread.
  struct Gauges {
    std::size_t connections_limit = 0;
    std::size_t in_flight = 0;
    std::size_t in_flight_limit = 0;
    DuplicateRequestCache::Gauges duplicates;
  };
  Gauges gauges() const;
  const ClientTable& clients() const { return core_->clients; }
  const ProgramTable& programs() const { return core_->programs; }

 private:
  using Acceptor = boost::asio::ip::tcp::acceptor;
  storage::Result<std::shared_ptr<Acceptor>> bind(const boost::asio::ip::address& address,
                                                  std::uint16_t port);
  storage::Result<> try_listen(std::span<const boost::asio::ip::address> addresses,
                               std::uint16_t port);
  bool wait_until_closed(std::chrono::milliseconds deadline);

  storage::Runtime& runtime_;
  const std::shared_ptr<Core> core_;
  std::vector<std::shared_ptr<Acceptor>> acceptors_;
  bool started_ = false;
  bool drained_ = false;
};

}  // namespace selvage::server::rpc
