#include "server/exports_file.h"

#include "server/exports_options.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <unordered_map>
#include <utility>

namespace selvage::server {
namespace {

constexpr std::size_t max_token = 4096;

bool is_space(int c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\v' || c == '\f' || c == '\r';
}

/// The file as tokens. A backslash before the end of a line joins the next one with a blank; '#'
/// begins a comment where a token would begin; quotes keep blanks; \ooo is a byte.
class Tokens {
 public:
  Tokens(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {}

  struct Token {
    std::string text;
    bool there = false;
  };

  /// The next one on any line: where an entry begins.
  Parsed<Token> first_of_entry() {
    skip(" \t\n");
    return next();
  }
  /// The next one of the same line.
  Parsed<Token> next_of_entry() {
    skip(" \t");
    return next();
  }
  /// "FILE:LINE" of the token given last.
  std::string place() const { return name_ + ":" + std::to_string(token_line_); }

 private:
  static constexpr int end = -1;

  int get() {
    if (at_ >= text_.size()) return end;
    const char c = text_[at_++];
    if (c == '\\' && at_ < text_.size() && text_[at_] == '\n') {
      ++at_;
      ++line_;
      while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
      return ' ';
    }
    if (c == '\n') ++line_;
    return static_cast<unsigned char>(c);
  }

  void skip(std::string_view which) {
    for (;;) {
      const std::size_t at = at_;
      const unsigned line = line_;
      const int c = get();
      if (c == end) return;
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        continue;
      }
      if (which.find(static_cast<char>(c)) == std::string_view::npos) {
        at_ = at;
        line_ = line;
        return;
      }
    }
  }

  Parsed<Token> next() {
    token_line_ = line_;
    Token token;
    bool quoted = false;
    for (;;) {
      const std::size_t at = at_;
      const unsigned line = line_;
      const int c = get();
      if (c == '\n' && !quoted) {
        // The entry ends here; its end is still to be read.
        at_ = at;
        line_ = line;
      }
      if (c == end || (is_space(c) && !quoted)) break;
      if (c == '\0') return ConfigError{place() + ": a NUL byte"};
      if (c == '"') {
        quoted = !quoted;
        continue;
      }
      token.text += static_cast<char>(c);
      token.there = true;
      if (token.text.size() > max_token) return ConfigError{place() + ": a word is too long"};
      decode_octal(token.text);
    }
    if (quoted) return ConfigError{place() + ": a quote is not closed"};
    return token;
  }

  /// The last four characters, where they are \ooo.
  static void decode_octal(std::string& text) {
    if (text.size() < 4 || text[text.size() - 4] != '\\') return;
    unsigned value = 0;
    for (std::size_t i = text.size() - 3; i < text.size(); ++i) {
      if (text[i] < '0' || text[i] > '7') return;
      value = value * 8 + static_cast<unsigned>(text[i] - '0');
    }
    if (value == 0 || value > 255) return;
    text.resize(text.size() - 4);
    text += static_cast<char>(value);
  }

  std::string_view text_;
  std::string name_;
  std::size_t at_ = 0;
  unsigned line_ = 1;
  unsigned token_line_ = 1;
};

/// Something is mounted on the directory.
bool is_mountpoint(const std::string& path) {
  struct stat here{};
  struct stat above{};
  if (::stat(path.c_str(), &here) != 0 || ::stat((path + "/..").c_str(), &above) != 0) return false;
  return here.st_dev != above.st_dev || here.st_ino == above.st_ino;
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& name, ListedExports& to)
      : tokens_(text, name), to_(to) {
    for (std::size_t i = 0; i < to_.exports.size(); ++i) {
      by_path_.emplace(to_.exports[i].path, i);
      entries_ += to_.exports[i].rules.size();
    }
  }

  std::optional<ConfigError> read() {
    for (;;) {
      auto path = tokens_.first_of_entry();
      if (!path) return path.error();
      if (!path->there) {
        if (at_end()) return std::nullopt;
        return failed("an empty path");
      }
      if (auto error = entry(path->text)) return error;
    }
  }

 private:
  bool at_end() {
    const auto more = tokens_.next_of_entry();
    return more.has_value() && !more->there;
  }

  ConfigError failed(const std::string& reason) const { return {tokens_.place() + ": " + reason}; }
  void notice(const std::string& text) {
    if (to_.notices.size() < max_exports) to_.notices.push_back(tokens_.place() + ": " + text);
  }

  /// One line: a path and its clients.
  std::optional<ConfigError> entry(const std::string& given) {
    const std::string origin = tokens_.place();
    const auto path = normal_path(given, origin);
    if (!path) return path.error();
    ExportsOptions defaults;
    bool has_defaults = false;
    bool has_clients = false;
    for (;;) {
      auto token = tokens_.next_of_entry();
      if (!token) return token.error();
      if (token->there && token->text.starts_with('-')) {
        // They hold for the clients that follow.
        const auto reason = apply(std::string_view(token->text).substr(1), *path, defaults);
        if (reason) return failed(*reason);
        has_defaults = true;
        continue;
      }
      if (!token->there) {
        if (has_clients) return std::nullopt;
        notice(*path + ": no client given: exported to everybody");
        return add(*path, "", defaults, origin);
      }
      has_clients = true;
      if (auto error = client(*path, token->text, defaults, has_defaults, origin)) return error;
    }
  }

  std::optional<ConfigError> client(const std::string& path, std::string_view token,
                                    ExportsOptions options, bool has_defaults,
                                    const std::string& origin) {
    const auto open = token.find('(');
    const auto name = token.substr(0, open);
    if (open == std::string_view::npos) {
      if (token.find(')') != std::string_view::npos) return failed("a ')' without a '('");
      if (!has_defaults) notice(path + " " + std::string(name) + ": no options given: read-only");
      return add(path, name, options, origin);
    }
    const auto close = token.find(')', open);
    if (close == std::string_view::npos || close + 1 != token.size()) {
      return failed(
          "the option list is not closed, or something follows it (blanks in it need "
          "quotes)");
    }
    if (name.empty()) {
      notice(path + " " + std::string(token) +
             ": no client before the options: they hold for everybody");
    }
    const auto reason = apply(token.substr(open + 1, close - open - 1), path, options);
    if (reason) return failed(*reason);
    return add(path, name, options, origin);
  }

  std::optional<std::string> apply(std::string_view list, const std::string& path,
                                   ExportsOptions& options) {
    return apply_exports_options(list, options,
                                 [&](const std::string& text) { notice(path + ": " + text); });
  }

  std::optional<ConfigError> add(const std::string& path, std::string_view name,
                                 const ExportsOptions& options, const std::string& origin) {
    if (name.starts_with("gss/")) return failed(std::string(name) + ": only sec=sys is supported");
    auto rule = ClientRule::parse_exports(name);
    if (!rule) return failed(rule.error());
    if (options.mountpoint) {
      const std::string& mount = options.mountpoint_path.empty() ? path : options.mountpoint_path;
      if (!is_mountpoint(mount)) {
        notice(path + ": nothing is mounted on " + mount + ": not exported");
        return std::nullopt;
      }
    }
    if (++entries_ > max_exports) return failed("more than 10000 entries");
    AccessRule access = options.rule();
    access.client = std::move(*rule);
    const auto [place, added] = by_path_.emplace(path, to_.exports.size());
    if (added) {
      ExportConfig config;
      config.path = path;
      config.rules.clear();
      config.says_who = true;
      config.storage.edges = storage::EdgeMode::assemble;
      config.origin = origin;
      to_.exports.push_back(std::move(config));
    }
    auto& rules = to_.exports[place->second].rules;
    // A look at each would be quadratic over what a file may hold, were the file not bounded.
    if (std::ranges::find(rules, access.client, &AccessRule::client) != rules.end()) {
      notice(path + " " + access.client.text() + ": named before: the first entry counts");
      return std::nullopt;
    }
    rules.push_back(std::move(access));
    return std::nullopt;
  }

  Tokens tokens_;
  ListedExports& to_;
  std::unordered_map<std::string, std::size_t> by_path_;
  std::size_t entries_ = 0;
};

std::optional<ConfigError> read_one(const std::string& path, ListedExports& to) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return ConfigError{path + ": " + std::strerror(errno)};
  // A pipe would hold up who reads it.
  if (!S_ISREG(status.st_mode)) return ConfigError{path + ": is no regular file"};
  std::ifstream file(path, std::ios::binary);
  if (!file) return ConfigError{path + ": " + std::strerror(errno)};
  std::string text(max_config_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.gcount() == 0 && !file.eof())) {
    return ConfigError{path + ": cannot be read"};
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  return parse_exports_text(text, path, to);
}

/// Full paths.
Parsed<std::vector<std::string>> files_below(const std::string& folder) {
  constexpr std::string_view suffix = ".exports";
  std::vector<std::string> files;
  dirent** entries = nullptr;
  const int count = ::scandir(folder.c_str(), &entries, nullptr, ::versionsort);
  if (count < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return files;
    return ConfigError{folder + ": " + std::strerror(errno)};
  }
  const std::unique_ptr<dirent*, decltype(&std::free)> owner(entries, std::free);
  for (int i = 0; i < count; ++i) {
    const std::unique_ptr<dirent, decltype(&std::free)> entry(entries[i], std::free);
    const std::string_view name(entry->d_name);
    if (name.size() <= suffix.size() || name.front() == '.' || !name.ends_with(suffix)) continue;
    const std::string file = folder + "/" + std::string(name);
    struct stat status{};
    if (::stat(file.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) continue;
    files.push_back(file);
  }
  return files;
}

}  // namespace

std::optional<ConfigError> parse_exports_text(std::string_view text, const std::string& name,
                                              ListedExports& to) {
  if (text.size() > max_config_bytes) return ConfigError{name + ": the file is larger than 1 MiB"};
  Reader reader(text, name, to);
  return reader.read();
}

Parsed<ListedExports> read_exports_files(std::span<const std::string> files) {
  ListedExports listed;
  for (const std::string& file : files) {
    if (auto error = read_one(file, listed)) return *error;
    const auto more = files_below(file + ".d");
    if (!more) return more.error();
    for (const std::string& one : *more) {
      if (auto error = read_one(one, listed)) return *error;
    }
  }
  for (ExportConfig& one : listed.exports) sort_rules(one.rules);
  return listed;
}

}  // namespace selvage::server
