#include "server/exporter/exporter.h"

#include "server/endpoint.h"

#include <prometheus/exposer.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace selvage::server {

namespace ip = boost::asio::ip;

struct Exporter::Impl {
  Impl(std::vector<std::string> options, const Insight& insight)
      : collector(std::make_shared<Collector>(insight)), exposer(std::move(options)) {
    exposer.RegisterCollectable(collector);
  }

  std::shared_ptr<Collector> collector;
  prometheus::Exposer exposer;
};

Exporter::Exporter(std::unique_ptr<Impl> impl, ip::address address)
    : impl_(std::move(impl)), address_(std::move(address)) {}

Exporter::~Exporter() {
  // The web server looks every two seconds whether it is to end, unless somebody comes.
  const ip::tcp::endpoint listening(address_, port());
  std::atomic<bool> ended{false};
  const auto knock = [&] {
    while (!ended.load()) {
      boost::asio::io_context context;
      ip::tcp::socket socket(context);
      boost::system::error_code ignored;
      socket.connect(listening, ignored);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  };
  std::thread visitor;
  try {
    visitor = std::thread(knock);
  } catch (const std::exception&) {
    // No thread to be had: then it takes those two seconds.
  }
  impl_.reset();
  ended.store(true);
  if (visitor.joinable()) visitor.join();
}

Parsed<std::unique_ptr<Exporter>> Exporter::start(const boost::asio::ip::tcp::endpoint& address,
                                                  const Insight& insight) {
  const std::string where = to_text(address);
  // Everything else of the web server is off: no files, no scripts. Those who ask by halves, or do
  // not read, hold a thread until the timeout: enough threads that a scrape does not wait for long.
  std::vector<std::string> options{"listening_ports",    where,  "num_threads",       "8",
                                   "request_timeout_ms", "2000", "enable_keep_alive", "no"};
  try {
    auto impl = std::make_unique<Impl>(std::move(options), insight);
    return std::unique_ptr<Exporter>(new Exporter(std::move(impl), address.address()));
  } catch (const std::exception&) {
    // The web server does not say why.
    return ConfigError{"cannot serve metrics on " + where +
                       ": the address is not to be had, or the port is taken"};
  }
}

std::uint16_t Exporter::port() const {
  const auto ports = impl_->exposer.GetListeningPorts();
  return ports.empty() ? std::uint16_t{0} : static_cast<std::uint16_t>(ports.front());
}

}  // namespace selvage::server
