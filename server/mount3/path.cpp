#include "server/mount3/path.h"

namespace selvage::server::mount3 {

std::vector<std::string> names_of(std::string_view path) {
  std::vector<std::string> names;
  while (!path.empty()) {
    const auto slash = path.find('/');
    if (slash != 0) names.emplace_back(path.substr(0, slash));
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return names;
}

std::optional<std::string> normalised(std::string_view path) {
  if (!path.starts_with('/') || path.find('\0') != std::string_view::npos) return std::nullopt;
  std::vector<std::string> kept;
  for (auto& name : names_of(path)) {
    if (name == ".") continue;
    if (name == "..") {
      if (!kept.empty()) kept.pop_back();
    } else {
      kept.push_back(std::move(name));
    }
  }
  std::string result;
  for (const auto& name : kept) result += '/' + name;
  if (result.empty()) result = "/";
  return result;
}

}  // namespace selvage::server::mount3
