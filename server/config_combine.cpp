// Configuration file, command line and exports(5) files as one.
#include "server/config.h"
#include "server/exports_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

namespace selvage::server {
namespace {

ConfigError refused_at(const std::string& place, const std::string& reason) {
  return {place + ": " + reason};
}

std::optional<ConfigError> check_export_path(const ExportConfig& one) {
  struct stat status{};
  if (::stat(one.path.c_str(), &status) != 0) {
    std::string reason = one.path + ": " + std::strerror(errno);
    if (one.path.find(':') != std::string::npos) reason += " (keys are written :key=value)";
    return refused_at(one.origin, reason);
  }
  if (!S_ISDIR(status.st_mode)) return refused_at(one.origin, one.path + ": Not a directory");
  return std::nullopt;
}

ExportConfig* with_path(std::vector<ExportConfig>& exports, const std::string& path) {
  const auto found = std::ranges::find(exports, path, &ExportConfig::path);
  return found == exports.end() ? nullptr : &*found;
}

/// exports(5) says who, our own file how.
std::optional<ConfigError> add_listed(std::vector<ExportConfig> listed,
                                      std::vector<ExportConfig>& exports) {
  for (ExportConfig& one : listed) {
    ExportConfig* own = with_path(exports, one.path);
    if (own == nullptr) {
      exports.push_back(std::move(one));
      continue;
    }
    if (own->says_who) {
      return refused_at(own->origin, one.path + ": " + one.origin + " says for whom already");
    }
    own->rules = std::move(one.rules);
    own->says_who = true;
  }
  return std::nullopt;
}

Parsed<std::vector<ExportConfig>> all_exports(Settings file, Settings command_line,
                                              std::vector<std::string>& notices) {
  auto files = std::move(file.exports_files);
  files.insert(files.end(), command_line.exports_files.begin(), command_line.exports_files.end());
  std::vector<ExportConfig> exports = std::move(file.exports);
  const std::size_t of_file = exports.size();
  std::move(command_line.exports.begin(), command_line.exports.end(), std::back_inserter(exports));
  for (auto one = exports.begin(); one != exports.end(); ++one) {
    const auto first = std::find_if(
        exports.begin(), one, [&](const ExportConfig& other) { return other.path == one->path; });
    if (first != one) {
      return refused_at(one->origin, one->path + ": exported already (" + first->origin + ")");
    }
  }
  if (!files.empty()) {
    // What is named here for its settings alone must not become open to everybody.
    for (std::size_t i = 0; i < of_file; ++i) {
      if (!exports[i].says_who) exports[i].rules.clear();
    }
    auto listed = read_exports_files(files);
    if (!listed) return listed.error();
    notices = std::move(listed->notices);
    if (auto error = add_listed(std::move(listed->exports), exports)) return *error;
    std::erase_if(exports, [&](const ExportConfig& one) {
      if (!one.rules.empty()) return false;
      notices.push_back(one.origin + ": " + one.path +
                        ": settings only, no exports file exports it: not served");
      return true;
    });
  }
  if (exports.empty()) {
    return files.empty() ? refused_at("--export", "nothing to serve: give an export")
                         : refused_at(files.front(), "nothing to serve: it has no exports");
  }
  for (const ExportConfig& one : exports) {
    if (auto error = check_export_path(one)) return *error;
  }
  return exports;
}

}  // namespace

Parsed<Config> combine(Settings file, Settings command_line) {
  Config config;
  config.places = std::move(file.places);
  for (auto& [key, place] : command_line.places) config.places[key] = std::move(place);
  config.listen = command_line.listen.empty() ? file.listen : command_line.listen;
  if (file.port) config.port = *file.port;
  if (command_line.port) config.port = *command_line.port;
  if (file.state_dir) config.state_dir = *file.state_dir;
  if (command_line.state_dir) config.state_dir = *command_line.state_dir;
  if (config.state_dir.empty()) config.state_dir = default_state_dir();
  if (config.state_dir.empty()) {
    return refused_at("--state-dir", "needed, as neither $STATE_DIRECTORY nor $HOME is set");
  }
  config.threads = std::clamp(std::thread::hardware_concurrency(), 1U, 16U);
  if (file.threads) config.threads = *file.threads;
  if (command_line.threads) config.threads = *command_line.threads;
  if (file.lease_time) config.lease_time = *file.lease_time;
  if (command_line.lease_time) config.lease_time = *command_line.lease_time;
  config.grace_time = config.lease_time;
  if (file.grace_time) config.grace_time = *file.grace_time;
  if (command_line.grace_time) config.grace_time = *command_line.grace_time;
  if (file.nfs4_domain) config.nfs4_domain = *file.nfs4_domain;
  if (command_line.nfs4_domain) config.nfs4_domain = *command_line.nfs4_domain;

  if (file.control_socket) config.control_socket = *file.control_socket;
  if (command_line.control_socket) config.control_socket = *command_line.control_socket;
  if (file.control_group) config.control_group = *file.control_group;
  config.metrics = command_line.metrics ? command_line.metrics : file.metrics;
  config.rpcbind = command_line.rpcbind.value_or(file.rpcbind.value_or(false));
  config.memory_limit = command_line.memory_limit ? command_line.memory_limit : file.memory_limit;
  config.max_connections =
      command_line.max_connections ? command_line.max_connections : file.max_connections;
  auto exports = all_exports(std::move(file), std::move(command_line), config.notices);
  if (!exports) return exports.error();
  config.exports = std::move(*exports);
  return config;
}

Parsed<Config> load_config(const std::optional<std::string>& file, Settings command_line) {
  Settings settings;
  if (file) {
    auto read = read_config_file(*file);
    if (!read) return read.error();
    settings = std::move(*read);
  }
  return combine(std::move(settings), std::move(command_line));
}

std::string Config::place(std::string_view key) const {
  const auto found = places.find(key);
  return found == places.end() ? std::string(key) : found->second;
}

std::string default_state_dir() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  // systemd gives several directories separated by colons; the unit asks for one.
  if (const auto given = variable("STATE_DIRECTORY"); !given.empty()) {
    return given.substr(0, given.find(':'));
  }
  if (::geteuid() == 0) return "/var/lib/selvage";
  if (const auto state = variable("XDG_STATE_HOME"); !state.empty()) return state + "/selvage";
  if (const auto home = variable("HOME"); !home.empty()) return home + "/.local/state/selvage";
  return {};
}

}  // namespace selvage::server
