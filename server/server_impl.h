// What a Server is made of. Private to server/server*.cpp.
#pragma once

#include "server/client_directory.h"
#include "server/control/commands.h"
#include "server/control/listener.h"
#include "server/exporter/exporter.h"
#include "server/exports.h"
#include "server/group_directory.h"
#include "server/memory_budget.h"
#include "server/mount3/program.h"
#include "server/nfs3/program.h"
#include "server/nfs4/part.h"
#include "server/rpc/server.h"
#include "server/server.h"
#include "server/watchdog.h"
#include "storage/filesystem.h"
#include "storage/worker.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace selvage::server {

struct Server::Impl {
  explicit Impl(storage::Runtime::Options options) : runtime(std::move(options)) {}

  using Closing = std::future<storage::Result<>>;
  enum class Closed : std::uint8_t { well, with_an_error, not_yet };

  /// An export that is served no more, until the last request on it has ended.
  struct Removed {
    std::uint32_t id;
    ExportConfig config;
    /// Requests that know the export keep it through their tables.
    std::shared_ptr<storage::FileSystem> filesystem;
    /// Valid once it is being closed: the file system is in use until then, and served no more.
    Closing closing{};
  };

  /// An export whose files are being opened anew, after a change of its modes.
  struct Reopening {
    std::string name;
    std::shared_ptr<storage::FileSystem> filesystem;
    std::future<void> done;
  };

  /// Exports that `before` has, and those removed that are not closed yet, keep their file systems.
  Parsed<std::shared_ptr<const ExportTable>> open_exports(const Config& wanted,
                                                          const ExportTable* before);
  std::optional<ConfigError> listen(const Config& wanted);
  std::optional<ConfigError> adopt(const std::vector<int>& sockets);
  std::string status() const;
  void set_directories(const ExportTable& table, const ExportTable* before);
  std::optional<ConfigError> open_control(const Config& wanted, control::Commands::Hooks hooks);
  /// See Server::reload().
  std::optional<std::string> reload();
  std::optional<std::string> replace_exports();
  /// Limits and times of a configuration that is not refused.
  void take_over(const Config& wanted);
  std::size_t connection_bound(const Config& wanted) const;
  void change_modes(const ExportConfig& config, std::shared_ptr<storage::FileSystem> filesystem);
  /// What to say of files that are not closed yet; nothing otherwise.
  std::optional<std::string> finish_reopening(std::chrono::milliseconds deadline);
  void collect_closed();
  /// What to say of exports whose data may be lost, or that are not closed yet; nothing otherwise.
  std::optional<std::string> close_removed(std::chrono::milliseconds deadline);
  Closing start_closing(storage::FileSystem& filesystem);
  /// Says in the log what goes wrong. Without a deadline it waits until it is closed.
  Closed finish_closing(Closing& closing, const std::string& path,
                        std::optional<std::chrono::milliseconds> deadline);
  bool close_files(bool drained);

  // Destroyed last to first: the front end, the programs' services, the exports, the threads.
  storage::Runtime runtime;
  std::optional<ClientDirectory> clients;
  std::optional<GroupDirectory> groups;
  CurrentExports exports;
  std::optional<nfs3::Service> nfs3;
  std::optional<mount3::Service> mount3;
  std::unique_ptr<nfs4::Part> nfs4;
  std::optional<rpc::Server> rpc;
  std::unique_ptr<Exporter> exporter;
  std::optional<control::Commands> commands;
  std::optional<Watchdog> watchdog;
  std::string control_socket;
  std::optional<boost::asio::ip::tcp::endpoint> metrics;
  bool stopped = false;

  std::mutex reloading;  // Of what follows.
  std::chrono::milliseconds reload_deadline{0};
  std::function<Parsed<Config>()> load;
  Config config;
  std::vector<Removed> removed;
  std::vector<Reopening> reopening;
  std::size_t most_connections = 0;       ///< Without max_connections in the configuration.
  std::optional<EdgeShares> edge_shares;  ///< With memory_limit.

  std::unique_ptr<control::Listener> control;  ///< Its commands reload: gone before what they need.
};

}  // namespace selvage::server
