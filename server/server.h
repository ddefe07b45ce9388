// The serving process as an object: runtime, exports, programs, RPC front end, orderly end.
#pragma once

#include "server/config.h"
#include "server/exports.h"
#include "server/rpc/options.h"
#include "storage/io_device.h"
#include "storage/result.h"

#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace selvage::server {

/// What a process does once before it serves, on its first thread: umask 0 (clients give whole
/// modes), RLIMIT_NOFILE raised to the hard limit, SIGPIPE ignored.
void prepare_process();

/// Seams for tests; a deployed server uses the defaults.
struct ServerHooks {
  /// storage::Runtime::Options::wrap_device.
  std::function<std::unique_ptr<storage::IoDevice>(std::unique_ptr<storage::IoDevice>)> wrap_device;
  bool use_io_uring = true;
  std::uint64_t buffer_bytes = 0;  ///< 0: up to 1 GiB, at most a quarter of the memory.
  rpc::Options rpc;
  /// For the control socket: see control::Commands::Hooks.
  std::function<void()> drain;
  /// Reads the configuration anew, for reload(). Empty: there is nothing to reload.
  std::function<Parsed<Config>()> load;
  /// Listening TCP sockets, which become the server's: then it makes none of its own.
  std::vector<int> sockets;
  /// How often the workers must all answer, and what is called when they do. 0: never.
  std::chrono::microseconds watchdog_interval{0};
  std::function<void()> feed_watchdog;
  Resolver resolver = Resolver::system();
  /// How long a reload waits for requests on removed exports, and as long for files to be closed.
  std::chrono::milliseconds reload_deadline{10'000};
  GroupDirectory::LookUp groups;  ///< Empty: this machine's.
};

/// Serves from start() to stop(). All calls from one thread that is not a worker's, but for
/// reload(), which may be called from any such thread.
class Server {
 public:
  /// Makes the state directory if it is missing (0700), opens every export, listens, and serves.
  /// The error names the export, the address or the file at fault.
  /// @throws std::system_error if threads cannot be had.
  static Parsed<std::unique_ptr<Server>> start(const Config& config, ServerHooks hooks = {});

  /// stop(), if not called before.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// The port of the first address.
  std::uint16_t port() const;
  std::vector<boost::asio::ip::tcp::endpoint> endpoints() const;
  /// Where metrics are served, with the port chosen; nullopt: nowhere.
  std::optional<boost::asio::ip::tcp::endpoint> metrics() const;
  /// The control socket's path; empty: there is none.
  const std::string& control_socket() const;
  std::shared_ptr<const ExportTable> exports() const;
  bool io_uring_active() const;
  /// "Serving N export(s) on port P".
  std::string status() const;

  /// Serves as the configuration that ServerHooks::load gives: exports are added, changed and
  /// removed, while requests go on; a changed rule holds for the next request. Of a removed export
  /// requests in progress end, then its NFSv4 state goes and its files are written out and closed;
  /// its handles are stale. Of one that is to read and write otherwise the next requests do so, as
  /// far as the files in use allow (LocalFileSystem::set_modes), and the others are closed. The
  /// text if it is refused, and then nothing has changed; what takes a restart (addresses, threads,
  /// memory_limit) is refused too. Blocks for as long as name service, files and requests on
  /// removed exports take, each bounded by 10 s.
  std::optional<std::string> reload();

  /// All counters as one table; ends with a newline. Also after stop().
  std::string counters() const;

  /// Lets requests in progress finish, syncs and closes every file, ends all threads. False if
  /// something was not ended or not made durable; each failure has been logged.
  bool stop();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// One export in words, for the log: path, clients, modes, and what its `sync=no` gives up.
std::string describe(const Export& one);

}  // namespace selvage::server
