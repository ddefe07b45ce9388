// selvaged: reads what it is told, serves until SIGTERM or SIGINT, and ends in order.
#include "server/config.h"
#include "server/endpoint.h"
#include "server/log.h"
#include "server/options.h"
#include "server/rpcbind.h"
#include "server/server.h"
#include "server/service_manager.h"
#include "server/start_check.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <utility>

namespace {

using namespace selvage::server;

constexpr int exit_failure = 1;
constexpr int exit_usage = 2;

void print(FILE* to, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
}

/// What quotes a file says nothing to the terminal.
void complain(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n') || byte == 0x7f) c = '?';
  }
  print(stderr, text + "\n");
}

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&set, signal);
  return set;
}

void announce(const Server& server, const Config& config) {
  for (const std::string& notice : config.notices) log::info(notice);
  if (!may_switch_identity()) {
    log::warning("not privileged: every client acts as uid " + std::to_string(::geteuid()));
  }
  if (!server.io_uring_active()) {
    log::warning("io_uring is not to be had here: data goes through threads");
  }
  const auto exports = server.exports();
  for (const auto& one : exports->all()) {
    const auto text = "export " + describe(*one);
    if (one->config.storage.sync) {
      log::info(text);
    } else {
      log::warning(text);
    }
  }
  if (const auto metrics = server.metrics()) {
    log::info("metrics on http://" + to_text(*metrics) + "/metrics");
  }
  if (!server.control_socket().empty()) log::info("control socket " + server.control_socket());
  std::string where;
  for (const auto& endpoint : server.endpoints()) {
    where += (where.empty() ? " " : ", ") + to_text(endpoint);
  }
  log::notice("version " SELVAGE_VERSION " ready on" + where);
  service_manager::ready(server.status());
}

void reload(Server& server) {
  if (const auto amiss = server.reload()) {
    log::error("reload " + *amiss);
  } else {
    log::notice("reloaded");
  }
}

/// Until SIGTERM or SIGINT.
void serve(Server& server, const sigset_t& signals) {
  for (;;) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    switch (signal) {
      case SIGUSR1:
        print(stderr, server.counters());
        break;
      case SIGHUP:
        reload(server);
        break;
      default:
        return;
    }
  }
}

int run(const Config& config, std::function<Parsed<Config>()> load) {
  // Blocked before any thread exists: all threads inherit it, and the first one waits for them.
  const auto signals = handled_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  prepare_process();
  ServerHooks hooks;
  hooks.drain = [] { ::kill(::getpid(), SIGTERM); };
  hooks.load = std::move(load);
  hooks.sockets = service_manager::take_sockets();
  hooks.watchdog_interval = service_manager::watchdog_interval();
  hooks.feed_watchdog = service_manager::feed_watchdog;
  auto started = Server::start(config, std::move(hooks));
  if (!started) {
    log::error(started.error().message);
    return exit_failure;
  }
  auto& server = **started;
  if (config.rpcbind) {
    if (const auto failed = register_with_rpcbind(server.endpoints())) {
      log::warning(*failed + ": clients of NFSv3 need the options port= and mountport=");
    }
  }
  announce(server, config);
  serve(server, signals);
  log::notice("stopping");
  service_manager::stopping("Finishing what is in progress");
  if (config.rpcbind) unregister_from_rpcbind();
  const bool clean = server.stop();
  print(stderr, server.counters());
  if (!clean) {
    log::error("not everything could be ended in order");
    // Requests that did not end still refer to what destructors would take down.
    std::quick_exit(exit_failure);
  }
  log::notice("stopped");
  return EXIT_SUCCESS;
}

int run(std::span<const char* const> arguments) {
  const auto options = parse_options(arguments);
  if (!options) {
    print(stderr, "selvaged: " + options.error().message + "\nTry 'selvaged --help'.\n");
    return exit_usage;
  }
  using Action = Options::Action;
  if (options->action == Action::help || options->action == Action::version) {
    print(stdout, options->text);
    return EXIT_SUCCESS;
  }
  const auto load = [&options] { return load_config(options->config_file, options->settings); };
  const auto config = load();
  const bool check = options->action == Action::check;
  if (!config) {
    complain(config.error().message);
    const bool command_line = config.error().message.starts_with("--");
    return command_line && !check ? exit_usage : exit_failure;
  }
  if (check) {
    if (const auto refused = check_start(*config)) {
      complain(refused->message);
      return exit_failure;
    }
    for (const std::string& notice : config->notices) complain(notice);
    print(stdout, "OK\n");
    return EXIT_SUCCESS;
  }
  return run(*config, load);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::span<const char* const> all(argv, static_cast<std::size_t>(argc));
    return run(all.subspan(all.empty() ? 0 : 1));
  } catch (const std::exception& error) {
    log::error(error.what());
    return exit_failure;
  }
}
