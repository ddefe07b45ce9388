// What the control socket's commands do.
#pragma once

#include "server/config.h"
#include "server/control/request.h"
#include "server/exporter/collector.h"
#include "server/nfs4/part.h"

#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace selvage::server::control {

/// Called on connections' threads, several at once; a command may block. Everything given outlives
/// it.
class Commands {
 public:
  struct Hooks {
    /// Begins to end the process, as SIGTERM does, and returns. Empty: it cannot.
    std::function<void()> drain;
    /// Reads the configuration again, as SIGHUP does; nothing, or why it was refused.
    std::function<std::optional<ConfigError>()> reload;
  };
  Commands(const Insight& insight, nfs4::Part& nfs4,
           std::vector<boost::asio::ip::tcp::endpoint> listening,
           std::optional<boost::asio::ip::tcp::endpoint> metrics, Hooks hooks);

  Reply run(const Request& request);

 private:
  Reply status() const;
  Reply exports() const;
  Reply clients() const;
  Reply stats(const selvage::control::StatsRequest& request) const;
  Reply client_stats(const std::string& address) const;
  Reply edges(const selvage::control::EdgesRequest& request) const;
  Reply sync(const std::string& path);
  Reply reload();
  Reply drain();
  Reply evict(const std::string& client);
  Reply end_grace();

  const Insight insight_;
  nfs4::Part& nfs4_;
  const std::vector<boost::asio::ip::tcp::endpoint> listening_;
  const std::optional<boost::asio::ip::tcp::endpoint> metrics_;
  const Hooks hooks_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace selvage::server::control
