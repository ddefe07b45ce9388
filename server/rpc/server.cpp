#include "server/rpc/server.h"

#include "server/rpc/connection.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

namespace selvage::server::rpc {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::milliseconds;
using storage::Awaitable;
using storage::ErrorCode;

namespace {

constexpr unsigned port_attempts = 16;
constexpr milliseconds accept_pause{100};
constexpr std::size_t eviction_share = 64;
constexpr unsigned eviction_turns = 50;
constexpr milliseconds eviction_pause{2};
/// How long drain() waits, after its deadline, for what it has cut to come back.
constexpr milliseconds cut_grace{2'000};

milliseconds sweep_interval(const Options& options) {
  const milliseconds shortest =
      std::min({options.record_deadline, options.write_deadline, options.contended_deadline,
                options.idle_deadline, options.linger});
  return std::clamp(shortest / 4, milliseconds(5), milliseconds(1'000));
}

/// Looks after the deadlines of one worker's connections. Ends when the server is going down and
/// the worker has none left.
Awaitable<> sweep(storage::Worker& worker, std::shared_ptr<Core> core) {
  asio::steady_timer timer(worker.context);
  const auto& connections = core->connections[worker.index];
  const milliseconds interval = sweep_interval(core->options);
  while (!core->draining.load() || !connections.empty()) {
    timer.expires_after(interval);
    co_await timer.async_wait(asio::use_awaitable);
    const auto now = std::chrono::steady_clock::now();
    const bool contended = core->contended(worker.buffers);
    for (Connection* connection : connections) connection->sweep(now, contended);
  }
}

Awaitable<> run_connection(std::shared_ptr<Connection> connection) {
  try {
    co_await connection->run();
  } catch (...) {
    // Out of memory: this connection ends, the others go on.
    connection->close(CloseReason::socket_error);
  }
}

/// On the connection's worker.
void begin_connection(tcp::socket socket, Peer peer, storage::Worker& worker,
                      std::shared_ptr<Core> core) {
  ErrorCode ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const bool draining = core->draining.load();
  const auto connection = std::make_shared<Connection>(Socket(std::move(socket)), std::move(peer),
                                                       worker, std::move(core));
  if (draining) {
    connection->close(CloseReason::drained);
    return;
  }
  asio::co_spawn(worker.context, run_connection(connection), asio::detached);
}

Peer peer_of(const tcp::endpoint& endpoint) {
  Peer peer{endpoint.address(), endpoint.port()};
  if (peer.address.is_v6() && peer.address.to_v6().is_v4_mapped()) {
    peer.address = asio::ip::make_address_v4(asio::ip::v4_mapped, peer.address.to_v6());
  }
  return peer;
}

struct Idle {
  Connection::Time since;
  std::uint64_t connection;
};

/// On the worker's thread.
Awaitable<std::vector<Idle>> idle_connections(std::shared_ptr<Core> core, unsigned index) {
  std::vector<Idle> idle;
  for (const Connection* connection : core->connections[index]) {
    if (const auto since = connection->idle_since()) idle.push_back({*since, connection->number()});
  }
  co_return idle;
}

/// On the worker's thread: closes those that are still idle.
Awaitable<> close_idle(std::shared_ptr<Core> core, unsigned index,
                       std::shared_ptr<const std::unordered_set<std::uint64_t>> which) {
  for (Connection* connection : core->connections[index]) {
    if (which->contains(connection->number()) && connection->idle_since()) {
      connection->close(CloseReason::idle);
    }
  }
  co_return;
}

/// Over the bound of connections: those idle for longest go, a sixty-fourth of all at once, so that
/// the search for them is not made for each. True if there is room for one now.
Awaitable<bool> make_room(storage::Runtime& runtime, std::shared_ptr<Core> core) {
  std::vector<Idle> idle;
  for (unsigned index = 0; index < runtime.size(); ++index) {
    auto search = idle_connections(core, index);
    const std::vector<Idle> found = co_await asio::co_spawn(runtime.worker(index).context,
                                                            std::move(search), asio::use_awaitable);
    idle.insert(idle.end(), found.begin(), found.end());
  }
  const std::size_t count = std::min(
      idle.size(), std::max<std::size_t>(core->max_connections.load() / eviction_share, 1));
  std::ranges::partial_sort(idle, idle.begin() + static_cast<std::ptrdiff_t>(count), {},
                            &Idle::since);
  auto chosen = std::make_shared<std::unordered_set<std::uint64_t>>();
  for (std::size_t i = 0; i < count; ++i) chosen->insert(idle[i].connection);
  const std::shared_ptr<const std::unordered_set<std::uint64_t>> which = std::move(chosen);
  for (unsigned index = 0; index < runtime.size() && count != 0; ++index) {
    auto close = close_idle(core, index, which);
    co_await asio::co_spawn(runtime.worker(index).context, std::move(close), asio::use_awaitable);
  }
  // Their coroutines end in a turn of their own.
  asio::steady_timer pause(co_await asio::this_coro::executor);
  for (unsigned turn = 0; turn < eviction_turns; ++turn) {
    if (core->enter()) co_return true;
    if (count == 0) break;
    pause.expires_after(eviction_pause);
    ErrorCode ignored;
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  co_return false;
}

Awaitable<> accept(std::shared_ptr<tcp::acceptor> acceptor, storage::Runtime& runtime,
                   std::shared_ptr<Core> core) {
  asio::steady_timer pause(acceptor->get_executor());
  while (!core->draining.load()) {
    const unsigned index = core->next_worker.fetch_add(1, std::memory_order_relaxed);
    storage::Worker& worker = runtime.worker(index % runtime.size());
    tcp::socket socket(worker.context);
    tcp::endpoint endpoint;
    ErrorCode error;
    co_await acceptor->async_accept(socket, endpoint,
                                    asio::redirect_error(asio::use_awaitable, error));
    if (core->draining.load()) break;
    if (error) {
      core->counters.accept_errors.add();
      // Out of descriptors or memory: the queue of the kernel holds the clients until there are.
      if (error != asio::error::connection_aborted) {
        pause.expires_after(accept_pause);
        co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
      }
      continue;
    }
    bool entered = core->enter();
    try {
      if (!entered) entered = co_await make_room(runtime, core);
    } catch (...) {
      // Out of memory: this client is refused, the next ones are not.
      core->counters.accept_errors.add();
    }
    if (!entered) {
      core->counters.connections_refused.add();
      continue;
    }
    core->counters.connections_accepted.add();
    auto begin = [socket = std::move(socket), peer = peer_of(endpoint), &worker, core]() mutable {
      begin_connection(std::move(socket), std::move(peer), worker, std::move(core));
    };
    asio::post(worker.context, std::move(begin));
  }
}

}  // namespace

Server::Server(storage::Runtime& runtime, std::span<const Program> programs, const Options& options)
    : runtime_(runtime), core_(std::make_shared<Core>(programs, options, runtime.size())) {}

Server::~Server() {
  drain(milliseconds(0));
}

storage::Result<std::shared_ptr<Server::Acceptor>> Server::bind(const asio::ip::address& address,
                                                                std::uint16_t port) {
  const tcp::endpoint endpoint(address, port);
  auto acceptor = std::make_shared<Acceptor>(runtime_.worker(0).context);
  ErrorCode error;
  acceptor->open(endpoint.protocol(), error);
  if (error) return error;
  acceptor->set_option(asio::socket_base::reuse_address(true), error);
  if (!error && address.is_v6()) acceptor->set_option(asio::ip::v6_only(true), error);
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
  if (error) return error;
  return acceptor;
}

storage::Result<> Server::try_listen(std::span<const asio::ip::address> addresses,
                                     std::uint16_t port) {
  std::vector<std::shared_ptr<Acceptor>> acceptors;
  for (const asio::ip::address& address : addresses) {
    storage::Result<std::shared_ptr<Acceptor>> acceptor = bind(address, port);
    if (!acceptor) return acceptor.error();
    port = (*acceptor)->local_endpoint().port();
    acceptors.push_back(std::move(*acceptor));
  }
  acceptors_.insert(acceptors_.end(), acceptors.begin(), acceptors.end());
  return {};
}

storage::Result<> Server::listen(std::span<const asio::ip::address> addresses, std::uint16_t port) {
  storage::Result<> result = try_listen(addresses, port);
  // A port that is free on the first address may be taken on another.
  for (unsigned attempt = 1; attempt < port_attempts && port == 0 && result.has_error() &&
                             result.error() == storage::errno_code(EADDRINUSE);
       ++attempt) {
    result = try_listen(addresses, port);
  }
  return result;
}

storage::Result<> Server::adopt(storage::UniqueFd socket) {
  sockaddr_storage name{};
  socklen_t name_size = sizeof name;
  int listening = 0;
  socklen_t listening_size = sizeof listening;
  int type = 0;
  socklen_t type_size = sizeof type;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &name_size) != 0 ||
      ::getsockopt(socket.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &listening_size) != 0 ||
      ::getsockopt(socket.get(), SOL_SOCKET, SO_TYPE, &type, &type_size) != 0 || listening == 0 ||
      type != SOCK_STREAM || (name.ss_family != AF_INET && name.ss_family != AF_INET6)) {
    return storage::errno_code(EINVAL);
  }
  auto acceptor = std::make_shared<Acceptor>(runtime_.worker(0).context);
  ErrorCode error;
  acceptor->assign(name.ss_family == AF_INET ? tcp::v4() : tcp::v6(), socket.get(), error);
  if (error) return error;
  socket.release();
  acceptors_.push_back(std::move(acceptor));
  return {};
}

std::vector<tcp::endpoint> Server::endpoints() const {
  std::vector<tcp::endpoint> endpoints;
  for (const auto& acceptor : acceptors_) endpoints.push_back(acceptor->local_endpoint());
  return endpoints;
}

std::uint16_t Server::port() const {
  return acceptors_.empty() ? std::uint16_t{0} : acceptors_.front()->local_endpoint().port();
}

Server::Gauges Server::gauges() const {
  Gauges gauges;
  gauges.connections_limit = core_->max_connections.load();
  gauges.in_flight = core_->requests.in_use();
  gauges.in_flight_limit = core_->options.max_in_flight;
  gauges.duplicates = core_->duplicates.gauges();
  return gauges;
}

void Server::start() {
  if (started_) return;
  started_ = true;
  for (unsigned index = 0; index < runtime_.size(); ++index) {
    storage::Worker& worker = runtime_.worker(index);
    asio::co_spawn(worker.context, sweep(worker, core_), asio::detached);
  }
  for (const auto& acceptor : acceptors_) {
    asio::co_spawn(acceptor->get_executor(), accept(acceptor, runtime_, core_), asio::detached);
  }
}

bool Server::wait_until_closed(milliseconds deadline) {
  std::unique_lock lock(core_->mutex);
  return core_->none_open.wait_for(lock, deadline, [this] { return core_->open == 0; });
}

bool Server::drain(milliseconds deadline) {
  if (drained_) return wait_until_closed(milliseconds(0));
  drained_ = true;
  core_->draining.store(true);
  if (started_) {
    // The acceptors belong to worker 0; the port is free when this returns.
    std::promise<void> closed;
    auto close = [this, &closed] {
      ErrorCode ignored;
      for (const auto& acceptor : acceptors_) acceptor->close(ignored);
      closed.set_value();
    };
    asio::post(runtime_.worker(0).context, close);
    closed.get_future().wait();
    for (unsigned index = 0; index < runtime_.size(); ++index) {
      auto drain_all = [core = core_, index] {
        for (Connection* connection : core->connections[index]) connection->drain();
      };
      asio::post(runtime_.worker(index).context, drain_all);
    }
  }
  acceptors_.clear();
  const bool in_time = wait_until_closed(deadline);
  core_->requests.stop();
  core_->large_records.stop();
  core_->duplicates.stop();
  if (in_time) return true;
  for (unsigned index = 0; index < runtime_.size(); ++index) {
    auto cut_all = [core = core_, index] {
      for (Connection* connection : core->connections[index]) {
        connection->close(CloseReason::drained);
      }
    };
    asio::post(runtime_.worker(index).context, cut_all);
  }
  return wait_until_closed(cut_grace);
}

}  // namespace selvage::server::rpc
