#include "server/config.h"

#include "server/config.pb.h"
#include "server/endpoint.h"
#include "server/memory_budget.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>
#include <utility>

namespace selvage::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

ConfigError error_at(const std::string& place, const std::string& reason) {
  return {place + ": " + reason};
}

/// Names the place of a field (index -1 unless it is repeated): "FILE:LINE" or the option.
using Locate = std::function<std::string(const std::string& field, int index)>;

class Silent final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string&) override {}
};

/// The line, from zero, of the last token before a position.
int line_before(std::string_view text, int line, int column) {
  google::protobuf::io::ArrayInputStream input(text.data(), static_cast<int>(text.size()));
  Silent silent;
  google::protobuf::io::Tokenizer tokens(&input, &silent);
  tokens.set_comment_style(google::protobuf::io::Tokenizer::SH_COMMENT_STYLE);
  int found = line;
  while (tokens.Next()) {
    const auto& token = tokens.current();
    if (std::pair(token.line, token.column) >= std::pair(line, column)) break;
    found = token.line;
  }
  return found;
}

class TextErrors final : public google::protobuf::io::ErrorCollector {
 public:
  TextErrors(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {}
  void AddError(int line, int column, const std::string& message) override {
    // The parser looks at these values only after it has gone on to the next token.
    if (message.starts_with("Unknown enumeration value") ||
        message.starts_with("Invalid value for boolean")) {
      line = line_before(text_, line, column);
    }
    if (!errors_.empty()) errors_ += '\n';
    errors_ += name_;
    if (line >= 0) errors_ += ":" + std::to_string(line + 1);
    errors_ += ": " + message;
  }
  const std::string& errors() const { return errors_; }

 private:
  std::string_view text_;
  std::string name_;
  std::string errors_;
};

storage::IoMode io_mode(config::Export::IoMode mode) {
  switch (mode) {
    case config::Export::buffered:
      return storage::IoMode::buffered;
    case config::Export::dontcache:
      return storage::IoMode::dontcache;
    case config::Export::direct:
      break;
  }
  return storage::IoMode::direct;
}

storage::EdgeMode edge_mode(config::Edges::Mode mode) {
  switch (mode) {
    case config::Edges::buffered:
      return storage::EdgeMode::buffered;
    case config::Edges::dontcache:
      return storage::EdgeMode::dontcache;
    case config::Edges::pagecache:
      return storage::EdgeMode::pagecache;
    case config::Edges::auto_:
    case config::Edges::assemble:
      break;
  }
  return storage::EdgeMode::assemble;
}

storage::Stability stability(config::Export::Stability floor) {
  switch (floor) {
    case config::Export::data_sync:
      return storage::Stability::data_sync;
    case config::Export::file_sync:
      return storage::Stability::file_sync;
    case config::Export::unstable:
      break;
  }
  return storage::Stability::unstable;
}

Squash squash(config::Export::Squash from) {
  switch (from) {
    case config::Export::all:
      return Squash::all;
    case config::Export::none:
      return Squash::none;
    case config::Export::root:
      break;
  }
  return Squash::root;
}

/// What one level of the schema says of access, over what `to` has; T is Export or Rule.
template <class T>
std::optional<ConfigError> set_access(const T& from, AccessRule& to, const Locate& locate) {
  if (from.has_access()) to.read_only = from.access() == config::Export::ro;
  if (from.has_squash()) to.squash = squash(from.squash());
  if (from.has_anonuid()) to.anonuid = from.anonuid();
  if (from.has_anongid()) to.anongid = from.anongid();
  if (from.has_secure()) to.secure = from.secure();
  // (uid_t)-1 means "leave as it is" to the system calls.
  constexpr auto no_id = std::numeric_limits<std::uint32_t>::max();
  if (to.anonuid == no_id) return error_at(locate("anonuid", -1), "anonuid: not a user id");
  if (to.anongid == no_id) return error_at(locate("anongid", -1), "anongid: not a group id");
  return std::nullopt;
}

template <class T>
std::optional<ConfigError> add_clients(const T& from, AccessRule rule, const Locate& locate,
                                       std::vector<AccessRule>& to) {
  for (int i = 0; i < from.clients_size(); ++i) {
    auto client = ClientRule::parse(from.clients(i));
    if (!client) return error_at(locate("clients", i), "clients: " + client.error());
    rule.client = std::move(*client);
    to.push_back(rule);
  }
  return std::nullopt;
}

Parsed<std::vector<AccessRule>> access_rules(const config::Export& from, const Locate& locate) {
  std::vector<AccessRule> rules;
  AccessRule common;
  if (auto error = set_access(from, common, locate)) return *error;
  for (int i = 0; i < from.rule_size(); ++i) {
    const auto& one = from.rule(i);
    const Locate inside = [&](const std::string&, int) { return locate("rule", i); };
    if (one.clients_size() == 0) return error_at(locate("rule", i), "a rule needs clients");
    AccessRule rule = common;
    if (auto error = set_access(one, rule, inside)) return *error;
    if (auto error = add_clients(one, rule, inside, rules)) return *error;
  }
  if (auto error = add_clients(from, common, locate, rules)) return *error;
  if (rules.empty()) rules.push_back(common);
  sort_rules(rules);
  return rules;
}

Parsed<ExportConfig> to_export(const config::Export& from, const Locate& locate) {
  ExportConfig to;
  auto path = normal_path(from.path(), locate("path", -1));
  if (!path) return path.error();
  to.path = *path;
  auto rules = access_rules(from, locate);
  if (!rules) return rules.error();
  to.rules = std::move(*rules);
  to.says_who = from.clients_size() > 0 || from.rule_size() > 0 || from.has_access() ||
                from.has_squash() || from.has_anonuid() || from.has_anongid() || from.has_secure();

  auto& options = to.storage;
  // Modes move together unless set apart on purpose: direct WRITEs under buffered READs thrash.
  if (from.has_read()) options.read = options.write = io_mode(from.read());
  if (from.has_write()) options.write = io_mode(from.write());
  if (!from.has_read()) options.read = options.write;
  options.edges = edge_mode(from.edges());
  if (from.has_min_middle()) options.min_middle_pages = from.min_middle();
  if (options.min_middle_pages < 1 || options.min_middle_pages > 2048) {
    return error_at(locate("min_middle", -1), "min_middle: must be 1 to 2048 pages");
  }
  options.stable_floor = stability(from.stable_floor());
  if (from.has_sync()) options.sync = from.sync();
  if (from.has_exclusive()) options.exclusive = from.exclusive();
  to.utf8 = from.utf8();
  to.manage_gids = from.manage_gids();
  to.origin = locate("path", -1);
  return to;
}

/// The line of a field in the parsed text, from zero; that of `fallback` where it was not given.
int line_of(const TextFormat::ParseInfoTree* tree, const google::protobuf::Descriptor* type,
            const std::string& field, int index, int fallback) {
  const FieldDescriptor* descriptor = type->FindFieldByName(field);
  if (tree == nullptr || descriptor == nullptr) return fallback;
  const int line = tree->GetLocation(descriptor, index).line;
  return line < 0 ? fallback : line;
}

Parsed<Settings> to_settings(const config::Config& from, const TextFormat::ParseInfoTree& tree,
                             const std::string& name) {
  const auto* type = config::Config::descriptor();
  const auto at = [&](const std::string& field, int index) {
    return name + ":" + std::to_string(line_of(&tree, type, field, index, 0) + 1);
  };
  Settings to;
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor& field = *type->field(i);
    const auto* reflection = config::Config::GetReflection();
    const bool said = field.is_repeated() ? reflection->FieldSize(from, &field) > 0
                                          : reflection->HasField(from, &field);
    if (said) to.places[field.name()] = at(field.name(), field.is_repeated() ? 0 : -1);
  }
  for (int i = 0; i < from.listen_size(); ++i) {
    auto address = parse_listen_argument(from.listen(i));
    if (!address) return error_at(at("listen", i), "listen: " + address.error().message);
    to.listen.push_back(*address);
  }
  if (from.has_port()) {
    if (from.port() > 65535) return error_at(at("port", -1), "port: must be 0 to 65535");
    to.port = static_cast<std::uint16_t>(from.port());
  }
  if (from.has_state_dir()) {
    if (from.state_dir().empty() || from.state_dir().front() != '/') {
      return error_at(at("state_dir", -1), "state_dir: must be an absolute path");
    }
    to.state_dir = from.state_dir();
  }
  if (from.has_threads()) {
    if (from.threads() < 1 || from.threads() > 256) {
      return error_at(at("threads", -1), "threads: must be 1 to 256");
    }
    to.threads = from.threads();
  }
  if (from.has_lease_time()) {
    if (from.lease_time() < shortest_lease || from.lease_time() > longest_lease) {
      return error_at(at("lease_time", -1), "lease_time: must be 10 to 3600 seconds");
    }
    to.lease_time = from.lease_time();
  }
  if (from.has_grace_time()) {
    if (from.grace_time() < shortest_lease || from.grace_time() > longest_lease) {
      return error_at(at("grace_time", -1), "grace_time: must be 10 to 3600 seconds");
    }
    to.grace_time = from.grace_time();
  }
  if (from.has_nfs4_domain()) {
    if (!is_nfs4_domain(from.nfs4_domain())) {
      return error_at(at("nfs4_domain", -1), "nfs4_domain: must be a domain, as example.org");
    }
    to.nfs4_domain = from.nfs4_domain();
  }
  if (from.has_metrics()) {
    auto address = parse_endpoint(from.metrics());
    if (!address) return error_at(at("metrics", -1), "metrics: " + address.error().message);
    to.metrics = *address;
  }
  if (from.has_control_socket()) {
    if (!from.control_socket().starts_with('/') && from.control_socket() != "none") {
      return error_at(at("control_socket", -1), "control_socket: must be an absolute path or none");
    }
    to.control_socket = from.control_socket();
  }
  if (from.has_control_group()) to.control_group = from.control_group();
  if (from.has_rpcbind()) to.rpcbind = from.rpcbind();
  if (from.has_memory_limit()) {
    if (from.memory_limit() < smallest_memory_limit) {
      return error_at(at("memory_limit", -1), "memory_limit: must be 268435456 bytes or more");
    }
    to.memory_limit = from.memory_limit();
  }
  if (from.has_max_connections()) {
    if (from.max_connections() < fewest_connections) {
      return error_at(at("max_connections", -1), "max_connections: must be 16 or more");
    }
    to.max_connections = from.max_connections();
  }
  for (int i = 0; i < from.exports_size(); ++i) {
    if (from.exports(i).empty() || from.exports(i).front() != '/') {
      return error_at(at("exports", i), "exports: must be an absolute path");
    }
    to.exports_files.push_back(from.exports(i));
  }
  const auto* exports = type->FindFieldByName("export");
  for (int i = 0; i < from.export__size(); ++i) {
    const int export_line = line_of(&tree, type, "export", i, 0);
    const auto* nested = tree.GetTreeForNested(exports, i);
    const Locate locate = [&](const std::string& field, int index) {
      const int line = line_of(nested, config::Export::descriptor(), field, index, export_line);
      return name + ":" + std::to_string(line + 1);
    };
    auto one = to_export(from.export_(i), locate);
    if (!one) return one.error();
    to.exports.push_back(std::move(*one));
  }
  return to;
}

bool is_key_char(char c) {
  return (c >= 'a' && c <= 'z') || c == '_';
}

/// Where the keys of an --export argument begin: at the last unescaped ':' that `key=` follows.
std::size_t path_end(std::string_view argument) {
  auto end = std::string_view::npos;
  for (std::size_t i = 0; i < argument.size(); ++i) {
    if (argument[i] == '\\') {
      ++i;
      continue;
    }
    if (argument[i] != ':') continue;
    auto next = i + 1;
    while (next < argument.size() && is_key_char(argument[next])) ++next;
    if (next > i + 1 && next < argument.size() && argument[next] == '=') end = i;
  }
  return end;
}

std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    plain += text[i];
  }
  return plain;
}

std::string names_of(const google::protobuf::EnumDescriptor& type) {
  std::string names;
  for (int i = 0; i < type.value_count(); ++i) {
    if (i > 0) names += ", ";
    names += type.value(i)->name();
  }
  return names;
}

/// Sets one field of the schema from `value`; the reason if it cannot.
std::optional<std::string> set_field(config::Export& to, const FieldDescriptor& field,
                                     const std::string& value) {
  const auto* reflection = config::Export::GetReflection();
  if (!field.is_repeated() && reflection->HasField(to, &field)) return "given twice";
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto* chosen = field.enum_type()->FindValueByName(value);
      if (chosen == nullptr) return "must be one of " + names_of(*field.enum_type());
      reflection->SetEnum(&to, &field, chosen);
      return std::nullopt;
    }
    case FieldDescriptor::CPPTYPE_UINT32: {
      std::uint32_t number = 0;
      const auto* last = value.data() + value.size();
      const auto [end, code] = std::from_chars(value.data(), last, number);
      if (code != std::errc() || end != last) return "must be a number up to 4294967295";
      reflection->SetUInt32(&to, &field, number);
      return std::nullopt;
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      if (value != "yes" && value != "no") return "must be yes or no";
      reflection->SetBool(&to, &field, value == "yes");
      return std::nullopt;
    default:
      break;
  }
  std::istringstream parts(value);
  for (std::string part; std::getline(parts, part, '+');) {
    reflection->AddString(&to, &field, part);
  }
  if (value.empty() || value.back() == '+') return "an address is missing";
  return std::nullopt;
}

}  // namespace

Parsed<std::string> normal_path(const std::string& path, const std::string& place) {
  if (path.empty()) return error_at(place, "an export needs a path");
  if (path.find('\0') != std::string::npos) return error_at(place, "the path holds a NUL byte");
  if (path.front() != '/') return error_at(place, "'" + path + "' is not an absolute path");
  std::string normal;
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '/');) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return error_at(place, "'" + path + "' has a '..' in it");
    normal += '/' + part;
  }
  if (normal.size() > max_path_bytes) {
    return error_at(place, "the path is longer than " + std::to_string(max_path_bytes) + " bytes");
  }
  if (normal.empty()) normal = "/";
  return Parsed<std::string>(boost::system::in_place_value, normal);
}

void sort_rules(std::vector<AccessRule>& rules) {
  using Kind = ClientRule::Kind;
  std::vector<AccessRule> sorted;
  sorted.reserve(rules.size());
  for (const Kind kind :
       {Kind::host, Kind::network, Kind::wildcard, Kind::netgroup, Kind::everybody}) {
    for (const AccessRule& rule : rules) {
      if (rule.client.kind() == kind) sorted.push_back(rule);
    }
  }
  rules = std::move(sorted);
}

Parsed<Settings> parse_config_text(std::string_view text, const std::string& name) {
  if (text.size() > max_config_bytes) return error_at(name, "the file is larger than 1 MiB");
  TextErrors collector(text, name);
  TextFormat::ParseInfoTree tree;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.WriteLocationsTo(&tree);
  parser.SetRecursionLimit(8);
  google::protobuf::io::ArrayInputStream input(text.data(), static_cast<int>(text.size()));
  config::Config message;
  const bool parsed = parser.Parse(&input, &message);
  if (!parsed || !collector.errors().empty()) {
    if (collector.errors().empty()) return error_at(name, "not in protobuf text format");
    return ConfigError{collector.errors()};
  }
  return to_settings(message, tree, name);
}

Parsed<Settings> read_config_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return error_at(path, std::strerror(errno));
  std::string text(max_config_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.gcount() == 0 && !file.eof())) return error_at(path, "cannot be read");
  text.resize(static_cast<std::size_t>(file.gcount()));
  return parse_config_text(text, path);
}

Parsed<ExportConfig> parse_export_argument(std::string_view argument) {
  const std::string place = "--export " + std::string(argument);
  const auto end = path_end(argument);
  config::Export message;
  message.set_path(unescaped(argument.substr(0, end)));
  if (end != std::string_view::npos) {
    std::istringstream pairs{std::string(argument.substr(end + 1))};
    for (std::string pair; std::getline(pairs, pair, ',');) {
      const auto equals = pair.find('=');
      if (equals == std::string::npos) return error_at(place, "'" + pair + "' is not key=value");
      const auto key = pair.substr(0, equals);
      const auto* field = config::Export::descriptor()->FindFieldByName(key);
      const bool nested = field != nullptr && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      if (field == nullptr || nested || key == "path")
        return error_at(place, "unknown key '" + key + "'");
      if (auto reason = set_field(message, *field, pair.substr(equals + 1))) {
        return error_at(place, key + ": " + *reason);
      }
    }
    if (argument.back() == ',') return error_at(place, "'' is not key=value");
  }
  return to_export(message, [&](const std::string&, int) { return place; });
}

Parsed<boost::asio::ip::address> parse_listen_argument(std::string_view argument) {
  std::string text(argument);
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
  }
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(text, error);
  if (error) return ConfigError{"'" + std::string(argument) + "' is not an IPv4 or IPv6 address"};
  return address;
}

bool is_nfs4_domain(std::string_view text) {
  constexpr std::string_view allowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  return !text.empty() && text.size() <= 255 &&
         text.find_first_not_of(allowed) == std::string_view::npos;
}

}  // namespace selvage::server
