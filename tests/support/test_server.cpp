#include "tests/support/test_server.h"

#include "server/config.h"

#include <sys/stat.h>

#include <sstream>
#include <stdexcept>
#include <utility>

/// LeakSanitizer's: libnfs 4.0 loses 24 bytes with each mount.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libnfs.so";
}

namespace selvage::tests {

TestServer::TestServer(std::vector<std::string> exports, server::ServerHooks hooks,
                       unsigned threads)
    : directory_(scratch_ / "export"),
      exports_(std::move(exports)),
      hooks_(std::move(hooks)),
      threads_(threads) {
  server::prepare_process();
  // Clients of any identity must get through to what is exported.
  if (::chmod(scratch_.path().c_str(), 0755) != 0 || ::mkdir(directory_.c_str(), 0777) != 0) {
    throw std::runtime_error("cannot make " + directory_);
  }
  if (exports_.empty()) exports_.push_back(directory_ + ":squash=none");
  if (hooks_.buffer_bytes == 0) hooks_.buffer_bytes = std::uint64_t{128} << 20;
  start(0);
}

TestServer::~TestServer() = default;

server::Parsed<server::Config> TestServer::config(std::uint16_t port) const {
  server::Settings settings;
  settings.listen.push_back(boost::asio::ip::make_address("127.0.0.1"));
  settings.port = port;
  settings.state_dir = state_.path();
  settings.threads = threads_;
  for (const auto& argument : exports_) {
    auto one = server::parse_export_argument(argument);
    if (!one) return one.error();
    settings.exports.push_back(std::move(*one));
  }
  return server::combine(file_, std::move(settings));
}

void TestServer::start(std::uint16_t port) {
  auto first = config(port);
  if (!first) throw std::runtime_error(first.error().message);
  hooks_.load = [this, port] { return config(port); };
  auto started = server::Server::start(*first, hooks_);
  if (!started) throw std::runtime_error(started.error().message);
  server_ = std::move(*started);
}

std::optional<std::string> TestServer::reload(std::vector<std::string> exports,
                                              server::Settings file) {
  exports_ = std::move(exports);
  file_ = std::move(file);
  return server_->reload();
}

bool TestServer::stop() {
  return server_->stop();
}

void TestServer::restart() {
  const auto same_port = port();
  server_->stop();
  server_.reset();
  start(same_port);
}

std::uint64_t TestServer::counter(const std::string& name) const {
  std::istringstream table(server_->counters());
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string first;
    std::uint64_t value = 0;
    if (words >> first && first == name && words >> value) return value;
  }
  throw std::runtime_error("no counter " + name);
}

}  // namespace selvage::tests
