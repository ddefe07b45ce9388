// The control socket: who may speak, and how many at once.
#pragma once

#include "server/config.h"
#include "server/control/request.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace selvage::server::control {

/// Serves from start() to destruction, on threads of its own: one that accepts and one for each of
/// at most 8 connections; more are told that it is busy. A connection that says nothing for a
/// minute is closed.
///
/// Root, the server's own user and the members of the group may connect, by SO_PEERCRED and
/// SO_PEERGROUPS (unix(7), socket(7)); the socket's mode says the same.
class Listener {
 public:
  struct Options {
    std::string path;
    std::string group;  ///< Empty: none.
  };
  /// Carries out a request; called on connections' threads, several at once. May block.
  using Handler = std::function<Reply(const Request&)>;

  /// Why start() would refuse the group, or the path, whoever serves there now. Makes nothing.
  static std::optional<ConfigError> check_group(const Options& options);
  static std::optional<ConfigError> check_path(const Options& options);

  /// Takes the place of a socket that nobody listens on. The error names path or group. The
  /// handler outlives this.
  static Parsed<std::unique_ptr<Listener>> start(const Options& options, Handler handler);
  /// Waits for the requests in progress.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  struct Impl;
  explicit Listener(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace selvage::server::control
