// The command line of selvaged.
#pragma once

#include "server/config.h"

#include <optional>
#include <span>
#include <string>

namespace selvage::server {

struct Options {
  enum class Action : std::uint8_t {
    serve,
    check,    ///< Only say whether the configuration is right.
    version,  ///< Print `text`.
    help,     ///< Print `text`.
  };
  Action action = Action::serve;
  std::optional<std::string> config_file;
  Settings settings;
  std::string text;
};

/// `arguments` without the program's name. The error says what is wrong in one line.
Parsed<Options> parse_options(std::span<const char* const> arguments);

}  // namespace selvage::server
