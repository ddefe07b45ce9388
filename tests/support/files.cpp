#include "tests/support/files.h"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

namespace selvage::tests {

std::string write_file(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary);
  out << content;
  if (!out.flush()) throw std::system_error(errno, std::generic_category(), path);
  return path;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::system_error(errno, std::generic_category(), path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace selvage::tests
