// What a start would refuse of a configuration, found out without serving.
#pragma once

#include "server/config.h"

#include <optional>

namespace selvage::server {

/// Beyond combine(): state directory and key, addresses, control socket and group, memory for the
/// exports, and that each can be served. Makes and changes nothing; what a running server has (its
/// ports, its control socket, its records) counts as free. The error begins with the place of the
/// setting. Blocks for the name service.
std::optional<ConfigError> check_start(const Config& config);

}  // namespace selvage::server
