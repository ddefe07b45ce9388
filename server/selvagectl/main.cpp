// selvagectl: asks a running selvaged, over its control socket.
#include "server/printable.h"
#include "server/selvagectl/connection.h"
#include "server/selvagectl/print.h"
#include "server/selvagectl/watch.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>

namespace {

using namespace selvage;
using ctl::Failure;

constexpr const char* footer =
    "Exit status: 0; 1 if the server refused or could not; 2 for a bad command line; 3 if no "
    "server\n"
    "answers.\n";

struct Wanted {
  std::string socket;
  control::Request request;
  bool top = false;
  bool watching = false;
  ctl::Watch watch;
};

void print(FILE* to, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
}

/// An argument as the protocol's UTF-8: the server knows names of other bytes as it shows them.
std::string sent(const std::string& argument) {
  return server::as_utf8(argument) == argument ? argument : server::printable(argument);
}

/// A command that is one request without arguments.
template <class Set>
CLI::App* simple(CLI::App& app, const std::string& name, const std::string& help, Set set) {
  auto* command = app.add_subcommand(name, help);
  command->callback(set);
  return command;
}

void add_watch(CLI::App& command, Wanted& wanted, double& seconds) {
  command.add_option("--count", wanted.watch.count, "End after so many times; default: never")
      ->type_name("N");
  command.add_option("--interval", seconds, "Seconds from one to the next; default 1")
      ->type_name("S")
      ->check(CLI::Range(0.05, 3600.0));
}

void add_commands(CLI::App& app, Wanted& wanted, double& seconds, std::string& text,
                  std::string& address) {
  auto& request = wanted.request;
  simple(app, "status", "How the server does, and what holds the memory",
         [&] { request.mutable_status(); });
  simple(app, "exports", "What is served, and how much", [&] { request.mutable_exports(); });
  simple(app, "clients", "Who uses it: addresses, versions, NFSv4 state",
         [&] { request.mutable_clients(); });

  auto* stats = app.add_subcommand("stats", "Counters, as Prometheus gets them; zeros left out");
  stats->add_option("--export", text, "Those of one export")->type_name("PATH");
  auto* client = stats->add_option("--client", address, "Those of clients, or of one")
                     ->type_name("ADDR")
                     ->expected(0, 1);
  stats->add_flag("--watch", wanted.watching, "Per second, again and again");
  add_watch(*stats, wanted, seconds);
  stats->callback([&, client] {
    request.mutable_stats()->set_export_(sent(text));
    request.mutable_stats()->set_clients(client->count() > 0);
    request.mutable_stats()->set_client_address(sent(address));
  });

  auto* edges = app.add_subcommand("edges", "Boundary pages in play, by file");
  edges->add_option("--export", text, "Those of one export")->type_name("PATH");
  edges->callback([&] { request.mutable_edges()->set_export_(sent(text)); });

  auto* top = app.add_subcommand("top", "Throughput, latency and clients, live");
  add_watch(*top, wanted, seconds);
  top->callback([&] { wanted.top = true; });

  auto* sync = app.add_subcommand(
      "sync", "Write out and fsync all that was acknowledged: for snapshots and backups");
  sync->add_option("export", text, "Of this export alone")->type_name("PATH");
  sync->callback([&] { request.mutable_sync()->set_export_(sent(text)); });

  simple(app, "reload", "Read the configuration again; what is wrong is refused whole",
         [&] { request.mutable_reload(); });
  simple(app, "drain", "Finish what is in progress, then end", [&] { request.mutable_drain(); });

  auto* evict = app.add_subcommand("evict", "Take an NFSv4 client's opens and locks away");
  evict->add_option("client", text, "Its id, as `clients` shows it")->type_name("ID")->required();
  evict->callback([&] { request.mutable_evict()->set_client(sent(text)); });

  auto* level = app.add_subcommand("log", "Log this level and above");
  level->add_option("level", text, "error, warning, notice or info")
      ->type_name("LEVEL")
      ->required()
      ->check(CLI::IsMember({"error", "warning", "notice", "info"}));
  level->callback([&] { request.mutable_log()->set_level(text); });

  auto* grace = app.add_subcommand("grace", "NFSv4's grace period")->require_subcommand(1);
  simple(*grace, "end", "End it without waiting for clients that have not come back",
         [&] { request.mutable_end_grace(); });
}

std::optional<Failure> run(const Wanted& wanted) {
  auto opened = ctl::Connection::open(ctl::socket_path(wanted.socket));
  if (auto* failure = std::get_if<Failure>(&opened)) return *failure;
  auto& connection = std::get<ctl::Connection>(opened);
  if (wanted.top) return ctl::top(connection, wanted.watch);
  if (wanted.watching) return ctl::watch_stats(connection, wanted.request, wanted.watch);
  const auto answer = connection.ask(wanted.request);
  if (const auto* failure = std::get_if<Failure>(&answer)) return *failure;
  const auto& reply = std::get<control::Reply>(answer);
  print(stdout, wanted.watch.json ? ctl::to_json(reply) : ctl::to_text(reply));
  return std::nullopt;
}

int run(int argc, char** argv) {
  Wanted wanted;
  double seconds = 1;
  std::string text;
  std::string address;
  CLI::App app("Asks a running selvaged, over its control socket.", "selvagectl");
  app.footer(footer);
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", "selvagectl " SELVAGE_VERSION);
  app.add_option("--socket", wanted.socket,
                 "The control socket; default: $SELVAGE_SOCKET, or /run/selvage/control.sock")
      ->type_name("PATH");
  app.add_flag("--json", wanted.watch.json, "JSON instead of text");
  add_commands(app, wanted, seconds, text, address);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    // The parser says no more than that a command is missing.
    const auto unknown = app.remaining();
    const bool no_command = app.get_subcommands().empty() && !unknown.empty();
    const std::string why =
        no_command ? "'" + server::printable(unknown.front()) + "' is not a command" : error.what();
    print(stderr, "selvagectl: " + why + "\nTry 'selvagectl --help'.\n");
    return ctl::exit_usage;
  }
  wanted.watch.interval = std::chrono::milliseconds(std::lround(seconds * 1000));
  const auto failure = run(wanted);
  if (!failure) return EXIT_SUCCESS;
  print(stderr, "selvagectl: " + failure->message + "\n");
  return failure->exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    print(stderr, std::string("selvagectl: ") + error.what() + "\n");
    return ctl::exit_failed;
  }
}
