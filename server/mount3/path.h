// The paths that clients mount.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace selvage::server::mount3 {

/// Absolute, without empty parts, "." and ".." and trailing slashes. ".." is resolved in the text
/// alone, and at the top stays there, so that nothing outside the root can be named. nullopt for a
/// path that is not absolute or holds a NUL byte.
std::optional<std::string> normalised(std::string_view path);

/// The names between the slashes.
std::vector<std::string> names_of(std::string_view path);

}  // namespace selvage::server::mount3
