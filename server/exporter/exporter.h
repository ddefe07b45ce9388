// The HTTP endpoint that Prometheus scrapes: GET /metrics.
#pragma once

#include "server/config.h"
#include "server/exporter/collector.h"

#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <memory>

namespace selvage::server {

/// Serves from start() to destruction, on two threads of its own; a request may take 5 s. Whoever
/// reaches the address may read all of it: there is no authentication. The library adds three
/// families of its own, `exposer_...`.
class Exporter {
 public:
  /// Port 0: a free one. Everything in `insight` outlives this. Not on a worker. The error names
  /// the address.
  static Parsed<std::unique_ptr<Exporter>> start(const boost::asio::ip::tcp::endpoint& address,
                                                 const Insight& insight);
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  std::uint16_t port() const;

 private:
  struct Impl;
  Exporter(std::unique_ptr<Impl> impl, boost::asio::ip::address address);
  std::unique_ptr<Impl> impl_;
  boost::asio::ip::address address_;
};

}  // namespace selvage::server
