#include "server/server.h"

#include "server/control/commands.h"
#include "server/control/listener.h"
#include "server/exporter/exporter.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/mount3/program.h"
#include "server/nfs3/program.h"
#include "server/nfs4/part.h"
#include "server/rpc/server.h"
#include "storage/handle_codec.h"
#include "storage/local/local_filesystem.h"
#include "storage/worker.h"

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
#include <future>
#include <optional>
#include <utility>

namespace selvage::server {
namespace {

namespace ip = boost::asio::ip;

constexpr std::chrono::milliseconds drain_deadline{30'000};
/// For the files, where requests that hold them did not end.
constexpr std::chrono::seconds close_deadline{10};

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

storage::Awaitable<storage::Result<>> close_one(storage::FileSystem& filesystem,
                                                storage::Worker& worker) {
  co_return co_await filesystem.close(worker);
}

std::string_view name(Squash squash) {
  switch (squash) {
    case Squash::all:
      return "all";
    case Squash::none:
      return "none";
    case Squash::root:
      break;
  }
  return "root";
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

struct Server::Impl {
  explicit Impl(storage::Runtime::Options options) : runtime(std::move(options)) {}

  Parsed<std::shared_ptr<const ExportTable>> open_exports(const Config& config);
  std::optional<ConfigError> listen(const Config& config);
  std::optional<ConfigError> open_control(const Config& config, std::function<void()> drain);
  bool close_files(bool drained);

  // Destroyed last to first: the front end, the programs' services, the exports, the threads.
  storage::Runtime runtime;
  CurrentExports exports;
  std::optional<nfs3::Service> nfs3;
  std::optional<mount3::Service> mount3;
  std::unique_ptr<nfs4::Part> nfs4;
  std::optional<rpc::Server> rpc;
  std::unique_ptr<Exporter> exporter;
  std::optional<control::Commands> commands;
  std::unique_ptr<control::Listener> control;
  std::string control_socket;
  std::optional<ip::tcp::endpoint> metrics;
  bool stopped = false;
};

Parsed<std::shared_ptr<const ExportTable>> Server::Impl::open_exports(const Config& config) {
  // Half of the descriptors are for files; an open file has up to three.
  const auto files = descriptor_limit() / 6 / std::max<std::size_t>(config.exports.size(), 1);
  const auto open =
      [&](const ExportConfig& one) -> storage::Result<std::unique_ptr<storage::FileSystem>> {
    auto options = one.storage;
    options.max_open_files = std::clamp<std::size_t>(files, 16, options.max_open_files);
    options.notice = [path = one.path](const std::string& message) {
      log::warning(path + ": " + message);
    };
    auto opened = storage::LocalFileSystem::open(one.path, std::move(options), runtime);
    if (!opened) return opened.error();
    return std::unique_ptr<storage::FileSystem>(std::move(*opened));
  };
  return ExportTable::make(config.exports, open);
}

std::optional<ConfigError> Server::Impl::listen(const Config& config) {
  auto addresses = config.listen;
  if (addresses.empty()) addresses = {ip::address_v4::any(), ip::address_v6::any()};
  auto listening = rpc->listen(addresses, config.port);
  const auto lacks_ipv6 = [](const storage::ErrorCode& error) {
    return error == boost::system::errc::address_family_not_supported ||
           error == boost::system::errc::address_not_available;
  };
  if (!listening && config.listen.empty() && lacks_ipv6(listening.error())) {
    addresses = {ip::address_v4::any()};
    listening = rpc->listen(addresses, config.port);
  }
  if (listening) return std::nullopt;
  std::string where;
  for (const auto& address : addresses) {
    if (!where.empty()) where += ", ";
    where += address.to_string();
  }
  return ConfigError{"cannot listen on port " + std::to_string(config.port) + " of " + where +
                     ": " + listening.error().message()};
}

std::optional<ConfigError> Server::Impl::open_control(const Config& config,
                                                      std::function<void()> drain) {
  if (config.control_socket == "none") return std::nullopt;
  control::Listener::Options options{config.control_socket, config.control_group};
  if (options.path.empty()) {
    const char* runtime_dir = std::getenv("RUNTIME_DIRECTORY");
    const bool given = runtime_dir != nullptr && *runtime_dir != 0;
    options.path = (given ? std::string(runtime_dir) : config.state_dir) + "/control.sock";
  }
  const Insight insight{exports, *rpc, runtime, nfs4->service()};
  commands.emplace(insight, *nfs4, rpc->endpoints(), metrics,
                   control::Commands::Hooks{std::move(drain), {}});
  const auto run = [this](const control::Request& request) { return commands->run(request); };
  auto started = control::Listener::start(options, run);
  if (started) {
    control = std::move(*started);
    control_socket = options.path;
    return std::nullopt;
  }
  if (!config.control_socket.empty()) return started.error();
  // Not asked for: the server is of use without it.
  log::warning(started.error().message + ": selvagectl will not reach this server");
  return std::nullopt;
}

bool Server::Impl::close_files(bool drained) {
  bool good = true;
  auto& worker = runtime.worker(0);
  const auto table = exports.get();
  for (const auto& one : table->all()) {
    auto closed = boost::asio::co_spawn(worker.context, close_one(*one->filesystem, worker),
                                        boost::asio::use_future);
    if (!drained && closed.wait_for(close_deadline) != std::future_status::ready) {
      log::error(one->config.path + ": files could not be closed in time");
      good = false;
      continue;
    }
    try {
      const auto result = closed.get();
      if (result) continue;
      log::error(one->config.path + ": data was not made durable: " + result.error().message());
    } catch (const std::exception& error) {
      log::error(one->config.path + ": files could not be closed: " + error.what());
    }
    good = false;
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
  auto impl = std::make_unique<Impl>(std::move(runtime));

  auto exports = impl->open_exports(config);
  if (!exports) return exports.error();
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
  hooks.rpc.max_connections =
      std::min(hooks.rpc.max_connections, std::max<std::size_t>(descriptor_limit() / 4, 16));
  impl->rpc.emplace(impl->runtime, programs, hooks.rpc);
  if (auto error = impl->listen(config)) return *error;
  if (config.metrics) {
    const Insight insight{impl->exports, *impl->rpc, impl->runtime, impl->nfs4->service()};
    auto exporter = Exporter::start(*config.metrics, insight);
    if (!exporter) return exporter.error();
    impl->exporter = std::move(*exporter);
    impl->metrics = ip::tcp::endpoint(config.metrics->address(), impl->exporter->port());
  }
  if (auto error = impl->open_control(config, std::move(hooks.drain))) return *error;
  impl->rpc->start();
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
  if (std::exchange(impl_->stopped, true)) return true;
  impl_->control.reset();
  const bool drained = impl_->rpc->drain(drain_deadline);
  if (!drained) log::error("requests were still in progress when their time was up");
  impl_->exporter.reset();
  impl_->nfs4->stop();
  const bool closed = impl_->close_files(drained);
  impl_->runtime.stop();
  return drained && closed;
}

std::string describe(const Export& one) {
  const auto& options = one.config.storage;
  std::string text = one.config.path;
  text += options.read_only ? ": access=ro" : ": access=rw";
  text += " clients=";
  for (std::size_t i = 0; i < one.config.clients.size(); ++i) {
    if (i > 0) text += '+';
    text += one.config.clients[i].text();
  }
  text += " squash=" + std::string(name(one.config.squash));
  text += " read=" + std::string(to_string(options.read));
  text += " write=" + std::string(to_string(options.write));
  if (options.write == storage::IoMode::direct)
    text += " edges=" + std::string(to_string(options.edges));
  if (!options.sync) text += " sync=no: a crash may lose acknowledged names and attributes";
  return text;
}

}  // namespace selvage::server
