// Exports in words, for the log.
#include "server/server.h"

#include <string>
#include <string_view>

namespace selvage::server {
namespace {

std::string_view name(Squash squash) {
  switch (squash) {
    case Squash::all:
      return "all";
    case Squash::none:
      return "none";
    case Squash::root:
      break;
  }
  return "root";
}

std::string describe(const AccessRule& rule) {
  std::string text = rule.client.text();
  text += rule.read_only ? "(ro" : "(rw";
  text += ",squash=" + std::string(name(rule.squash));
  if (rule.secure) text += ",secure";
  return text + ")";
}

}  // namespace

std::string describe(const Export& one) {
  constexpr std::size_t most_rules = 16;
  const auto& config = one.config;
  const auto& options = config.storage;
  std::string text = one.name + ":";
  for (std::size_t i = 0; i < config.rules.size() && i < most_rules; ++i) {
    text += " " + describe(config.rules[i]);
  }
  if (config.rules.size() > most_rules) {
    text += " and " + std::to_string(config.rules.size() - most_rules) + " more";
  }
  text += " read=" + std::string(to_string(options.read));
  text += " write=" + std::string(to_string(options.write));
  if (options.write == storage::IoMode::direct) {
    text += " edges=" + std::string(to_string(options.edges));
  }
  if (config.manage_gids) text += " manage_gids=yes";
  if (!options.sync) text += " sync=no: a crash may lose acknowledged names and attributes";
  return text;
}

}  // namespace selvage::server
