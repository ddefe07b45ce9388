#include "server/options.h"

#include "server/endpoint.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

namespace selvage::server {
namespace {

constexpr const char* description =
    "selvaged serves directories over NFSv3 and NFSv4, all programs on one TCP port:\n"
    "  mount -t nfs -o port=P HOST:PATH /mnt\n"
    "  mount -t nfs -o vers=3,proto=tcp,port=P,mountport=P,nolock HOST:PATH /mnt\n";

constexpr const char* export_help =
    "Export keys (PATH:key=value,...; the same as in the configuration file):\n"
    "  access=rw|ro             default rw\n"
    "  clients=WHO[+WHO]...     address, network in CIDR notation, host name, name with "
    "wildcards,\n"
    "                           @netgroup, or *; default *\n"
    "  squash=root|all|none     whom to make anonymous; default root\n"
    "  anonuid=N anongid=N      the anonymous user and group; default 65534\n"
    "  secure=yes|no            yes: only from ports below 1024; default no\n"
    "  manage_gids=yes|no       yes: supplementary groups are looked up here; default no\n"
    "  write=direct|buffered|dontcache\n"
    "  read=direct|buffered|dontcache\n"
    "                           default direct; where one is given the other follows it\n"
    "  edges=auto|assemble|pagecache|buffered|dontcache\n"
    "                           the ends of a misaligned direct WRITE; default auto (assemble)\n"
    "  exclusive=yes|no         yes: nothing else touches these files, though the file system has\n"
    "                           no leases to prove it; default no\n"
    "  min_middle=PAGES         shorter middles are not split off; default 1\n"
    "  stable_floor=unstable|data_sync|file_sync\n"
    "                           every WRITE is made at least this stable; default unstable\n"
    "  utf8=yes|no              yes: NFSv4 names that are not UTF-8 are refused; default no\n"
    "  sync=yes|no              no: a crash may lose names and attributes that were acknowledged\n"
    "PATH ends at the last ':' that a key= follows; a backslash takes the next character as it is\n"
    "('/srv/a\\:b=c' is the directory 'a:b=c'). Mount the export by its PATH.\n"
    "\n"
    "SIGTERM and SIGINT finish what is in progress and exit 0; SIGUSR1 prints the counters,\n"
    "SIGHUP reads the configuration and the exports again.\n"
    "Exit status: 0, 1 for a bad configuration or a failure, 2 for a bad command line.\n";

}  // namespace

Parsed<Options> parse_options(std::span<const char* const> arguments) {
  Options options;
  std::string config_file;
  std::string state_dir;
  std::vector<std::string> listen;
  std::vector<std::string> exports;
  std::vector<std::string> exports_files;
  std::uint16_t port = 0;
  unsigned threads = 0;
  std::uint32_t lease_time = 0;
  std::uint32_t grace_time = 0;
  std::string nfs4_domain;
  std::string metrics;
  std::string control_socket;
  bool check = false;
  bool rpcbind = false;
  bool version = false;

  CLI::App app(description, "selvaged");
  app.footer(export_help);
  app.add_option("--config", config_file, "Configuration file")->type_name("FILE");
  app.add_option("--listen", listen, "Address to listen on; several times. Default: all")
      ->type_name("ADDR")
      ->allow_extra_args(false);
  auto* port_option = app.add_option("--port", port, "TCP port, 0 for a free one; default 2049")
                          ->type_name("P")
                          ->check(CLI::Range(0, 65535));
  app.add_option("--state-dir", state_dir, "Where to keep what must survive a restart")
      ->type_name("DIR");
  app.add_option("--export", exports, "Directory to serve; several times")
      ->type_name("PATH[:key=value,...]")
      ->allow_extra_args(false);
  app.add_option("--exports", exports_files,
                 "File in the format of exports(5), and the *.exports of FILE.d; several times")
      ->type_name("FILE")
      ->allow_extra_args(false);
  auto* lease_option =
      app.add_option("--lease-time", lease_time, "NFSv4 lease in seconds; default 90")
          ->type_name("S")
          ->check(CLI::Range(shortest_lease, longest_lease));
  auto* grace_option = app.add_option("--grace-time", grace_time,
                                      "NFSv4 grace period in seconds; default: the lease")
                           ->type_name("S")
                           ->check(CLI::Range(shortest_lease, longest_lease));
  app.add_option("--nfs4-domain", nfs4_domain,
                 "NFSv4 owners and groups are names of this domain; default: numbers")
      ->type_name("DOMAIN");
  auto* threads_option = app.add_option("--threads", threads, "Worker threads; default: CPUs")
                             ->type_name("N")
                             ->check(CLI::Range(1, 256));
  app.add_option("--metrics", metrics, "Where Prometheus gets metrics; default: nowhere")
      ->type_name("ADDR:PORT");
  app.add_option("--control-socket", control_socket, "Socket for selvagectl, or none")
      ->type_name("PATH");
  app.add_flag("--rpcbind", rpcbind, "Register the programs with rpcbind");
  app.add_flag("--check", check, "Check the configuration, say OK or what is wrong, and exit");
  app.add_flag("--version", version, "Print the version and exit");

  try {
    // CLI11 takes them last to first.
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    options.action = Options::Action::help;
    options.text = app.help();
    return options;
  } catch (const CLI::ParseError& error) {
    return ConfigError{error.what()};
  }
  if (version) {
    options.action = Options::Action::version;
    options.text = "selvaged " SELVAGE_VERSION "\n";
    return options;
  }
  if (check) options.action = Options::Action::check;
  if (!config_file.empty()) options.config_file = config_file;

  auto& settings = options.settings;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    std::string key = option->get_lnames().front();
    std::ranges::replace(key, '-', '_');
    settings.places[key] = "--" + option->get_lnames().front();
  }
  for (const auto& argument : listen) {
    auto address = parse_listen_argument(argument);
    if (!address) return ConfigError{"--listen: " + address.error().message};
    settings.listen.push_back(*address);
  }
  if (port_option->count() > 0) settings.port = port;
  if (threads_option->count() > 0) settings.threads = threads;
  if (rpcbind) settings.rpcbind = true;
  if (lease_option->count() > 0) settings.lease_time = lease_time;
  if (grace_option->count() > 0) settings.grace_time = grace_time;
  if (!nfs4_domain.empty()) {
    if (!is_nfs4_domain(nfs4_domain)) return ConfigError{"--nfs4-domain: not a domain"};
    settings.nfs4_domain = nfs4_domain;
  }
  if (!metrics.empty()) {
    auto address = parse_endpoint(metrics);
    if (!address) return ConfigError{"--metrics: " + address.error().message};
    settings.metrics = *address;
  }
  if (control_socket == "none") {
    settings.control_socket = control_socket;
  } else if (!control_socket.empty()) {
    settings.control_socket = std::filesystem::absolute(control_socket).string();
  }
  if (!state_dir.empty()) settings.state_dir = std::filesystem::absolute(state_dir).string();
  for (const auto& file : exports_files) {
    settings.exports_files.push_back(std::filesystem::absolute(file).string());
  }
  for (const auto& argument : exports) {
    auto one = parse_export_argument(argument);
    if (!one) return one.error();
    settings.exports.push_back(std::move(*one));
  }
  return options;
}

}  // namespace selvage::server
