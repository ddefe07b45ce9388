// A server in the test's own process, on a free port of 127.0.0.1.
#pragma once

#include "server/server.h"
#include "tests/support/temp_dir.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace selvage::tests {

/// Serves from construction to destruction. Without exports given it serves directory() to all,
/// unsquashed. State and scratch directory are gone afterwards.
///
///     FaultScript faults;
///     server::ServerHooks hooks;
///     hooks.wrap_device = faults.wrapper();
///     TestServer server({}, hooks);
class TestServer {
 public:
  /// `exports` as for `--export`. Faults and other hooks must outlive this.
  /// @throws std::runtime_error with the server's own reason.
  explicit TestServer(std::vector<std::string> exports = {}, server::ServerHooks hooks = {},
                      unsigned threads = 2);
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  std::uint16_t port() const { return server_->port(); }
  /// A scratch directory, mode 0777, exported unless other exports were given.
  const std::string& directory() const { return directory_; }
  const std::string& state_dir() const { return state_.path(); }
  server::Server& server() { return *server_; }

  /// The value of the counter `name` of the first export, or of the front end.
  /// @throws std::runtime_error if there is none.
  std::uint64_t counter(const std::string& name) const;

  /// As SIGTERM does; false if that was not in order. Once.
  bool stop();

  /// As SIGHUP does, with these exports of the command line and this configuration file; the reason
  /// if that was refused.
  std::optional<std::string> reload(std::vector<std::string> exports, server::Settings file = {});

  /// Stops it, unless stopped, and starts another with the same exports, state and hooks, on the
  /// same port.
  void restart();

 private:
  server::Parsed<server::Config> config(std::uint16_t port) const;
  void start(std::uint16_t port);

  storage::TempDir state_;
  storage::TempDir scratch_;
  std::string directory_;
  std::vector<std::string> exports_;
  server::Settings file_;
  server::ServerHooks hooks_;
  unsigned threads_;
  std::unique_ptr<server::Server> server_;
};

}  // namespace selvage::tests
