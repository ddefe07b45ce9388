#include "server/start_check.h"

#include "server/control/listener.h"
#include "server/endpoint.h"
#include "server/exports.h"
#include "server/memory_budget.h"
#include "storage/handle_codec.h"
#include "storage/local/object.h"
#include "storage/unique_fd.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

namespace selvage::server {
namespace {

namespace ip = boost::asio::ip;

ConfigError at(const Config& config, const char* key, const std::string& reason) {
  return {config.place(key) + ": " + reason};
}

std::optional<ConfigError> check_state_dir(const Config& config) {
  std::filesystem::path path(config.state_dir);
  struct stat status{};
  int error = 0;
  while ((error = ::stat(path.c_str(), &status) == 0 ? 0 : errno) == ENOENT &&
         path.has_relative_path()) {
    path = path.parent_path();
  }
  if (error == 0 && !S_ISDIR(status.st_mode)) error = ENOTDIR;
  // A directory of our own that is to be made, or files in one that is there.
  if (error == 0 && ::access(path.c_str(), W_OK | X_OK) != 0) error = errno;
  if (error != 0) {
    return at(config, "state_dir",
              "state directory " + path.string() + ": " + std::strerror(error));
  }
  const std::string key_path = config.state_dir + "/handle.key";
  if (::access(key_path.c_str(), F_OK) != 0) return std::nullopt;
  const auto key = storage::load_or_make_handle_key(key_path);
  if (!key) return at(config, "state_dir", key_path + ": " + key.error().message());
  return std::nullopt;
}

/// 0, or why nobody could listen there.
int probe(const ip::tcp::endpoint& endpoint) {
  const storage::UniqueFd socket(
      ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno;
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0) return 0;
  // Most likely by the server that is to be reloaded or restarted.
  return errno == EADDRINUSE ? 0 : errno;
}

std::optional<ConfigError> check_addresses(const Config& config) {
  for (auto one = config.listen.begin(); one != config.listen.end(); ++one) {
    if (std::find(config.listen.begin(), one, *one) != one) {
      return at(config, "listen", one->to_string() + ": given twice");
    }
    if (const int error = probe({*one, config.port}); error != 0) {
      return at(config, "listen", one->to_string() + ": " + std::strerror(error));
    }
  }
  if (config.listen.empty()) {
    if (const int error = probe({ip::address_v4::any(), config.port}); error != 0) {
      return at(config, "port", std::to_string(config.port) + ": " + std::strerror(error));
    }
  }
  return std::nullopt;
}

std::optional<ConfigError> check_metrics(const Config& config) {
  if (!config.metrics) return std::nullopt;
  const auto& wanted = *config.metrics;
  if (const int error = probe(wanted); error != 0) {
    return at(config, "metrics", to_text(wanted) + ": " + std::strerror(error));
  }
  const bool same_address =
      config.listen.empty() || wanted.address().is_unspecified() ||
      std::ranges::find(config.listen, wanted.address()) != config.listen.end();
  if (wanted.port() != 0 && wanted.port() == config.port && same_address) {
    return at(config, "metrics", to_text(wanted) + ": the port is that of NFS");
  }
  return std::nullopt;
}

/// Opens nothing for longer than it takes to see that it can be opened.
std::optional<ConfigError> check_exports(const Config& config) {
  std::optional<EdgeShares> shares;
  if (config.memory_limit) shares.emplace(memory_budget(*config.memory_limit).edge_bytes);
  const auto open =
      [&](const ExportConfig& one) -> storage::Result<std::shared_ptr<storage::FileSystem>> {
    const auto most = one.storage.max_edge_bytes;
    if (shares && !shares->take(export_id(one.path), most)) return storage::errno_code(ENOMEM);
    constexpr std::size_t paths = 16;
    const auto opened = storage::ObjectOpener::open(one.path, paths);
    if (!opened) return opened.error();
    return std::shared_ptr<storage::FileSystem>();
  };
  const auto made = ExportTable::make(config.exports, open);
  if (!made) return made.error();
  return std::nullopt;
}

}  // namespace

std::optional<ConfigError> check_start(const Config& config) {
  if (auto error = check_state_dir(config)) return error;
  if (auto error = check_addresses(config)) return error;
  if (auto error = check_metrics(config)) return error;
  if (config.control_socket != "none") {
    const control::Listener::Options control{config.control_socket, config.control_group};
    if (auto error = control::Listener::check_group(control)) {
      return at(config, "control_group", error->message);
    }
    if (!control.path.empty()) {
      if (auto error = control::Listener::check_path(control)) {
        return at(config, "control_socket", error->message);
      }
    }
  }
  return check_exports(config);
}

}  // namespace selvage::server
