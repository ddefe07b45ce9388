// Names of any bytes as text that people, terminals, JSON, protobuf and Prometheus take.
#pragma once

#include <string>
#include <string_view>

namespace selvage::server {

/// Paths and names that others chose: bytes that are no UTF-8 (all of them above 0x7f, if any is
/// not), control characters and backslashes become \xNN. Two names never become the same text.
std::string printable(std::string_view name);

/// The same for a whole message: what is UTF-8 stays as it is, newlines and backslashes too.
std::string as_utf8(std::string_view message);

}  // namespace selvage::server
