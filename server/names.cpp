#include "server/names.h"

#include <cerrno>

namespace selvage::server {

storage::Result<> check_name(const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos || name.find('\0') != std::string::npos) {
    return storage::ErrorCode(storage::Errc::bad_name);
  }
  if (name.size() > max_name_bytes) return storage::errno_code(ENAMETOOLONG);
  return {};
}

storage::Result<> check_real_name(const std::string& name) {
  if (name == "." || name == "..") return storage::ErrorCode(storage::Errc::reserved_name);
  return check_name(name);
}

storage::Result<> check_new_name(const std::string& name) {
  if (name == "." || name == "..") return storage::errno_code(EEXIST);
  return check_name(name);
}

storage::Result<> check_symlink_target(const std::string& target) {
  if (target.empty() || target.find('\0') != std::string::npos) return storage::errno_code(EINVAL);
  if (target.size() > max_symlink_bytes) return storage::errno_code(ENAMETOOLONG);
  return {};
}

}  // namespace selvage::server
