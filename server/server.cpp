#include "server/server.h"

#include "server/control/commands.h"
#include "server/control/listener.h"
#include "server/exporter/exporter.h"
#include "server/log.h"
#include "server/memory_budget.h"
#include "server/metrics.h"
#include "server/server_impl.h"
#include "storage/handle_codec.h"
#include "storage/local/local_filesystem.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <utility>

namespace selvage::server {
namespace {

namespace ip = boost::asio::ip;

constexpr std::chrono::milliseconds drain_deadline{30'000};
/// For the files, where requests that hold them did not end.
constexpr std::chrono::milliseconds close_deadline{10'000};

std::size_t descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  return static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur, 1U << 20U));
}

std::uint64_t default_buffer_bytes() {
  constexpr auto most = std::uint64_t{1} << 30;
  const auto pages = ::sysconf(_SC_PHYS_PAGES);
  const auto page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return most;
  return std::min(most, static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page) / 4);
}

/// mkdir -p; the last directory for its owner alone. The modes are explicit: the umask is 0.
std::optional<ConfigError> make_state_dir(const std::string& path) {
  const std::filesystem::path whole(path);
  std::filesystem::path at;
  for (const auto& part : whole) {
    at /= part;
    const mode_t mode = at == whole ? 0700 : 0755;
    if (::mkdir(at.c_str(), mode) == 0 || errno == EEXIST || errno == EISDIR) continue;
    // A read-only or forbidden parent that exists is no reason to give up.
    struct stat status{};
    const int error = errno;
    if (::stat(at.c_str(), &status) == 0) continue;
    return ConfigError{"state directory " + at.string() + ": " + std::strerror(error)};
  }
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return ConfigError{"state directory " + path + ": Not a directory"};
  }
  return std::nullopt;
}

void limit_memory(rpc::Options& options, const MemoryBudget& budget) {
  options.max_in_flight = std::min(options.max_in_flight, budget.max_in_flight);
  options.max_large_records = std::min(options.max_large_records, budget.max_large_records);
  options.duplicates.max_bytes = std::min(options.duplicates.max_bytes, budget.duplicate_bytes);
  options.duplicates.max_entries =
      std::min(options.duplicates.max_entries, budget.duplicate_entries);
}

storage::Awaitable<> prepare_call(ClientDirectory& clients, GroupDirectory& groups,
                                  rpc::Call& call) {
  if (clients.unknown(call.client)) co_await clients.identify(call.client);
  if (call.auth_sys != nullptr && groups.unknown(call.auth_sys->uid)) {
    co_await groups.learn(call.auth_sys->uid);
  }
}

/// Rules with names, and groups looked up here, are judged by what is known before a call begins.
void prepare_calls(rpc::Options& options, ClientDirectory& clients, GroupDirectory& groups) {
  options.must_prepare = [&clients, &groups](const rpc::Call& call) {
    return clients.unknown(call.client) ||
           (call.auth_sys != nullptr && groups.unknown(call.auth_sys->uid));
  };
  options.prepare = [&clients, &groups](rpc::Call& call) {
    return prepare_call(clients, groups, call);
  };
}

storage::Awaitable<storage::Result<>> close_one(storage::FileSystem& filesystem,
                                                storage::Worker& worker) {
  co_return co_await filesystem.close(worker);
}

}  // namespace

void prepare_process() {
  ::umask(0);
  // What a burst of requests gave back is kept for the next one, instead of being returned to the
  // kernel and faulted in again.
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  std::signal(SIGPIPE, SIG_IGN);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

Parsed<std::shared_ptr<const ExportTable>> Server::Impl::open_exports(const Config& wanted,
                                                                      const ExportTable* before) {
  // Half of the descriptors are for files; an open file has up to three.
  const auto files = descriptor_limit() / 6 / std::max<std::size_t>(wanted.exports.size(), 1);
  std::vector<std::uint32_t> shares;
  const auto open =
      [&](const ExportConfig& one) -> storage::Result<std::shared_ptr<storage::FileSystem>> {
    const Export* same = before == nullptr ? nullptr : before->by_id(export_id(one.path));
    if (same != nullptr) return same->filesystem;
    const auto still_open = std::ranges::find(removed, export_id(one.path), &Removed::id);
    if (still_open != removed.end()) return still_open->filesystem;
    auto options = one.storage;
    options.max_open_files = std::clamp<std::size_t>(files, 16, options.max_open_files);
    options.max_paths = std::clamp<std::size_t>(files, 64, options.max_paths);
    if (edge_shares) {
      const auto share = edge_shares->take(export_id(one.path), options.max_edge_bytes);
      if (!share) return storage::errno_code(ENOMEM);
      options.max_edge_bytes = *share;
      shares.push_back(export_id(one.path));
    }
    options.notice = [path = one.path](const std::string& message) {
      log::warning(path + ": " + message);
    };
    auto opened = storage::LocalFileSystem::open(one.path, std::move(options), runtime);
    if (!opened) return opened.error();
    return std::shared_ptr<storage::FileSystem>(std::move(*opened));
  };
  auto made = ExportTable::make(wanted.exports, open, {&*clients, &*groups});
  if (!made && edge_shares) {
    std::ranges::for_each(shares, [this](std::uint32_t id) { edge_shares->give_back(id); });
  }
  return made;
}

/// What either table's rules ask for: requests in progress still go by the one before.
void Server::Impl::set_directories(const ExportTable& table, const ExportTable* before) {
  std::vector<ClientRule> rules;
  bool groups_wanted = false;
  for (const ExportTable* one : {&table, before}) {
    if (one == nullptr) continue;
    for (const auto& served : one->all()) {
      groups_wanted = groups_wanted || served->config.manage_gids;
      for (const AccessRule& rule : served->config.rules) rules.push_back(rule.client);
    }
  }
  clients->set_rules(rules);
  groups->use(groups_wanted);
}

std::optional<ConfigError> Server::Impl::listen(const Config& wanted) {
  auto addresses = wanted.listen;
  if (addresses.empty()) addresses = {ip::address_v4::any(), ip::address_v6::any()};
  auto listening = rpc->listen(addresses, wanted.port);
  const auto lacks_ipv6 = [](const storage::ErrorCode& error) {
    return error == boost::system::errc::address_family_not_supported ||
           error == boost::system::errc::address_not_available;
  };
  if (!listening && wanted.listen.empty() && lacks_ipv6(listening.error())) {
    addresses = {ip::address_v4::any()};
    listening = rpc->listen(addresses, wanted.port);
  }
  if (listening) return std::nullopt;
  std::string where;
  for (const auto& address : addresses) {
    if (!where.empty()) where += ", ";
    where += address.to_string();
  }
  return ConfigError{"cannot listen on port " + std::to_string(wanted.port) + " of " + where +
                     ": " + listening.error().message()};
}

std::optional<ConfigError> Server::Impl::open_control(const Config& wanted,
                                                      control::Commands::Hooks hooks) {
  if (wanted.control_socket == "none") return std::nullopt;
  control::Listener::Options options{wanted.control_socket, wanted.control_group};
  if (options.path.empty()) {
    const char* runtime_dir = std::getenv("RUNTIME_DIRECTORY");
    const bool given = runtime_dir != nullptr && *runtime_dir != 0;
    options.path = (given ? std::string(runtime_dir) : wanted.state_dir) + "/control.sock";
  }
  if (auto error = control::Listener::check_group(options)) {
    return ConfigError{wanted.place("control_group") + ": " + error->message};
  }
  const Insight insight{exports, *rpc, runtime, nfs4->service()};
  commands.emplace(insight, *nfs4, rpc->endpoints(), metrics, std::move(hooks));
  const auto run = [this](const control::Request& request) { return commands->run(request); };
  auto started = control::Listener::start(options, run);
  if (started) {
    control = std::move(*started);
    control_socket = options.path;
    return std::nullopt;
  }
  if (!wanted.control_socket.empty()) {
    return ConfigError{wanted.place("control_socket") + ": " + started.error().message};
  }
  // Not asked for: the server is of use without it.
  log::warning(started.error().message + ": selvagectl will not reach this server");
  return std::nullopt;
}

std::optional<ConfigError> Server::Impl::adopt(const std::vector<int>& sockets) {
  for (const int socket : sockets) {
    const auto adopted = rpc->adopt(storage::UniqueFd(socket));
    if (!adopted) {
      return ConfigError{"socket " + std::to_string(socket) +
                         " of the service manager is no listening TCP socket"};
    }
  }
  return std::nullopt;
}

std::string Server::Impl::status() const {
  return "Serving " + std::to_string(exports.get()->all().size()) + " export(s) on port " +
         std::to_string(rpc->port());
}

std::size_t Server::Impl::connection_bound(const Config& wanted) const {
  std::size_t most = wanted.max_connections.value_or(most_connections);
  if (wanted.memory_limit)
    most = std::min(most, memory_budget(*wanted.memory_limit).max_connections);
  return std::min(most, std::max<std::size_t>(descriptor_limit() / 4, 16));
}

Server::Impl::Closing Server::Impl::start_closing(storage::FileSystem& filesystem) {
  auto& worker = runtime.worker(0);
  return boost::asio::co_spawn(worker.context, close_one(filesystem, worker),
                               boost::asio::use_future);
}

Server::Impl::Closed Server::Impl::finish_closing(
    Closing& closing, const std::string& path, std::optional<std::chrono::milliseconds> deadline) {
  if (deadline && closing.wait_for(*deadline) != std::future_status::ready) {
    log::error(path + ": files could not be closed in time");
    return Closed::not_yet;
  }
  try {
    const auto result = closing.get();
    if (result) return Closed::well;
    log::error(path + ": data was not made durable: " + result.error().message());
  } catch (const std::exception& error) {
    log::error(path + ": files could not be closed: " + error.what());
  }
  return Closed::with_an_error;
}

bool Server::Impl::close_files(bool drained) {
  // It refers to files that are closed below.
  finish_reopening(drained ? std::chrono::milliseconds::max() : close_deadline);
  const auto deadline = drained ? std::nullopt : std::optional(close_deadline);
  bool good = true;
  const auto table = exports.get();
  for (const auto& one : table->all()) {
    auto closing = start_closing(*one->filesystem);
    good = finish_closing(closing, one->config.path, deadline) == Closed::well && good;
  }
  for (Removed& one : removed) {
    if (!one.closing.valid()) one.closing = start_closing(*one.filesystem);
    good = finish_closing(one.closing, one.config.path, deadline) == Closed::well && good;
  }
  return good;
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  stop();
}

Parsed<std::unique_ptr<Server>> Server::start(const Config& config, ServerHooks hooks) {
  if (auto error = make_state_dir(config.state_dir)) return *error;
  const auto key_path = config.state_dir + "/handle.key";
  const auto key = storage::load_or_make_handle_key(key_path);
  if (!key) return ConfigError{key_path + ": " + key.error().message()};

  storage::Runtime::Options runtime;
  runtime.workers = config.threads;
  runtime.use_io_uring = hooks.use_io_uring;
  runtime.wrap_device = std::move(hooks.wrap_device);
  runtime.buffer_bytes = hooks.buffer_bytes != 0 ? hooks.buffer_bytes : default_buffer_bytes();
  std::optional<MemoryBudget> budget;
  if (config.memory_limit) budget = memory_budget(*config.memory_limit);
  if (budget) runtime.buffer_bytes = std::min(runtime.buffer_bytes, budget->buffer_bytes);
  auto impl = std::make_unique<Impl>(std::move(runtime));
  impl->clients.emplace(std::move(hooks.resolver));
  impl->groups.emplace(std::move(hooks.groups));
  impl->load = std::move(hooks.load);
  impl->reload_deadline = hooks.reload_deadline;
  impl->config = config;
  if (budget) impl->edge_shares.emplace(budget->edge_bytes);

  auto exports = impl->open_exports(config, nullptr);
  if (!exports) return exports.error();
  impl->set_directories(**exports, nullptr);
  impl->exports.replace(*exports);
  const storage::HandleCodec handles(*key);
  impl->nfs3.emplace(impl->exports, handles);
  impl->mount3.emplace(impl->exports, handles);
  auto nfs4 = nfs4::Part::make(config, *exports, handles, impl->runtime);
  if (!nfs4) return nfs4.error();
  impl->nfs4 = std::move(*nfs4);
  const std::array programs{nfs3::program(*impl->nfs3), impl->nfs4->program(),
                            mount3::program_v3(*impl->mount3), mount3::program_v1(*impl->mount3)};
  hooks.rpc.connection_closed = impl->nfs4->connection_closed();
  if (budget) limit_memory(hooks.rpc, *budget);
  impl->most_connections = hooks.rpc.max_connections;
  hooks.rpc.max_connections = impl->connection_bound(config);
  prepare_calls(hooks.rpc, *impl->clients, *impl->groups);
  impl->rpc.emplace(impl->runtime, programs, hooks.rpc);
  if (auto error = hooks.sockets.empty() ? impl->listen(config) : impl->adopt(hooks.sockets)) {
    return *error;
  }
  if (config.metrics) {
    const Insight insight{impl->exports, *impl->rpc, impl->runtime, impl->nfs4->service()};
    auto exporter = Exporter::start(*config.metrics, insight);
    if (!exporter) return ConfigError{config.place("metrics") + ": " + exporter.error().message};
    impl->exporter = std::move(*exporter);
    impl->metrics = ip::tcp::endpoint(config.metrics->address(), impl->exporter->port());
  }
  control::Commands::Hooks control;
  control.drain = std::move(hooks.drain);
  control.reload = [server = impl.get()]() -> std::optional<ConfigError> {
    auto refused = server->reload();
    if (!refused) return std::nullopt;
    return ConfigError{std::move(*refused)};
  };
  if (auto error = impl->open_control(config, std::move(control))) return *error;
  impl->rpc->start();
  if (hooks.watchdog_interval.count() > 0) {
    impl->watchdog.emplace(impl->runtime, std::move(hooks.feed_watchdog));
    impl->watchdog->start(hooks.watchdog_interval);
  }
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::uint16_t Server::port() const {
  return impl_->rpc->port();
}

std::vector<ip::tcp::endpoint> Server::endpoints() const {
  return impl_->rpc->endpoints();
}

std::optional<ip::tcp::endpoint> Server::metrics() const {
  return impl_->metrics;
}

const std::string& Server::control_socket() const {
  return impl_->control_socket;
}

std::string Server::status() const {
  return impl_->status();
}

std::shared_ptr<const ExportTable> Server::exports() const {
  return impl_->exports.get();
}

bool Server::io_uring_active() const {
  return impl_->runtime.io_uring_active();
}

std::string Server::counters() const {
  return counters_table(*impl_->exports.get(), *impl_->rpc, impl_->runtime, impl_->nfs4->service());
}

bool Server::stop() {
  // It may be in the middle of a reload.
  impl_->control.reset();
  const std::lock_guard lock(impl_->reloading);
  if (std::exchange(impl_->stopped, true)) return true;
  const bool drained = impl_->rpc->drain(drain_deadline);
  if (!drained) log::error("requests were still in progress when their time was up");
  impl_->exporter.reset();
  impl_->nfs4->stop();
  const bool closed = impl_->close_files(drained);
  if (impl_->watchdog) impl_->watchdog->stop();
  impl_->runtime.stop();
  return drained && closed;
}

}  // namespace selvage::server
