// Small whole-file helpers of tests, on the server's side.
#pragma once

#include <string>

namespace selvage::tests {

/// Makes or replaces a file; returns its path. @throws std::system_error
std::string write_file(const std::string& path, const std::string& content);

/// @throws std::system_error
std::string read_file(const std::string& path);

}  // namespace selvage::tests
