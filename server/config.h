// What selvaged is told to do: configuration file and command line, checked and combined.
#pragma once

#include "server/client_rule.h"
#include "storage/local/export_options.h"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/result.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace selvage::server {

/// Why a setting was refused: one or more lines, each "FILE:LINE: reason" or "OPTION: reason".
struct ConfigError {
  std::string message;
};

template <class T>
using Parsed = boost::system::result<T, ConfigError>;

enum class Squash : std::uint8_t {
  root,  ///< uid 0 and gid 0, supplementary ones included, become the anonymous ones.
  all,
  none,
};

/// What the clients that a rule names may do.
struct AccessRule {
  ClientRule client;
  bool read_only = false;
  Squash squash = Squash::root;
  std::uint32_t anonuid = 65534;
  std::uint32_t anongid = 65534;
  bool secure = false;  ///< Only from a source port below 1024.
  friend bool operator==(const AccessRule&, const AccessRule&) = default;
};

/// One export as configured; every default is filled in.
struct ExportConfig {
  std::string path;  ///< Absolute, without empty or "." parts and trailing slashes.
  /// The first that matches a client decides: sorted by ClientRule::Kind, then as written.
  std::vector<AccessRule> rules{AccessRule()};
  bool says_who = false;           ///< `rules` were given, they are not the default.
  bool manage_gids = false;        ///< Supplementary groups are looked up here.
  bool utf8 = false;               ///< NFSv4 names must be UTF-8.
  storage::ExportOptions storage;  ///< `edges=auto` is resolved.
  std::string origin;              ///< Where it was said: "FILE:LINE" or "--export ARGUMENT".
};

/// What one source (the file or the command line) says; what it leaves open is absent.
struct Settings {
  /// Where each key was said, by the name it has in the file: "FILE:LINE" or "--option".
  std::map<std::string, std::string, std::less<>> places;
  std::vector<boost::asio::ip::address> listen;
  std::optional<std::uint16_t> port;
  std::optional<std::string> state_dir;
  std::optional<unsigned> threads;
  std::optional<std::uint32_t> lease_time;  ///< Seconds.
  std::optional<std::uint32_t> grace_time;
  std::optional<std::string> nfs4_domain;
  std::optional<boost::asio::ip::tcp::endpoint> metrics;
  std::optional<std::string> control_socket;
  std::optional<std::string> control_group;
  std::vector<ExportConfig> exports;
  std::vector<std::string> exports_files;  ///< In the format of exports(5).
  std::optional<bool> rpcbind;
  std::optional<std::uint64_t> memory_limit;  ///< Bytes.
  std::optional<std::uint32_t> max_connections;
};

/// Everything the server needs to know.
struct Config {
  std::vector<boost::asio::ip::address> listen;  ///< Empty: every address.
  std::uint16_t port = 2049;                     ///< 0: a free one.
  std::string state_dir;
  unsigned threads = 1;
  std::uint32_t lease_time = 90;  ///< Seconds.
  std::uint32_t grace_time = 90;
  std::string nfs4_domain;                                ///< Empty: owners and groups are numbers.
  std::optional<boost::asio::ip::tcp::endpoint> metrics;  ///< Where to serve them.
  std::string control_socket;                             ///< Path; "none"; empty: the default.
  std::string control_group;                              ///< Empty: root alone.
  std::vector<ExportConfig> exports;
  bool rpcbind = false;                       ///< Register there.
  std::optional<std::uint64_t> memory_limit;  ///< Bytes.
  std::optional<std::uint32_t> max_connections;
  std::map<std::string, std::string, std::less<>> places;  ///< As in Settings.
  /// Where a key was said; the key itself where it has its default.
  std::string place(std::string_view key) const;
  std::vector<std::string> notices;  ///< What was read otherwise than it may have been meant.
};

inline constexpr std::uint32_t shortest_lease = 10;  ///< Seconds; of the grace period too.
inline constexpr std::uint32_t longest_lease = 3600;
/// A domain for owners and groups (RFC 7530, 5.9): letters, digits, '.', '-', '_'.
bool is_nfs4_domain(std::string_view text);

inline constexpr std::uint32_t fewest_connections = 16;
inline constexpr std::size_t max_config_bytes = std::size_t{1} << 20;
inline constexpr std::size_t max_path_bytes = 1024;  ///< MNTPATHLEN, RFC 1813 section 5.1.2.

/// Protobuf text format of server/config.proto. `name` stands for the file in messages.
Parsed<Settings> parse_config_text(std::string_view text, const std::string& name);

/// The same from a file of at most max_config_bytes.
Parsed<Settings> read_config_file(const std::string& path);

/// One `--export PATH[:key=value,...]`. PATH ends at the last ':' that a `key=` follows; a
/// backslash takes the next character literally. Several clients are separated by '+'.
Parsed<ExportConfig> parse_export_argument(std::string_view argument);

/// One `--listen ADDR`: an IPv4 or IPv6 address, the latter also in brackets.
Parsed<boost::asio::ip::address> parse_listen_argument(std::string_view argument);

/// Absolute, without empty parts, "." and trailing slashes. `place` begins the error.
Parsed<std::string> normal_path(const std::string& path, const std::string& place);

/// Puts the rules in the order in which they decide.
void sort_rules(std::vector<AccessRule>& rules);

/// The command line adds exports to those of the file and overrides the rest. Reads the files in
/// the format of exports(5) that they name: of a path that is exported there the file gives only
/// the settings, and where there are such files an export of the file that does not say for whom
/// is nothing but settings. Fills in defaults and checks what needs the machine: each export is an
/// existing directory, none is named twice, there is at least one.
Parsed<Config> combine(Settings file, Settings command_line);

/// What a start or a reload goes by: the configuration file, if there is one, and the command line.
Parsed<Config> load_config(const std::optional<std::string>& file, Settings command_line);

/// $STATE_DIRECTORY, else /var/lib/selvage for root, else $XDG_STATE_HOME/selvage or
/// ~/.local/state/selvage; empty if there is no such place.
std::string default_state_dir();

}  // namespace selvage::server
