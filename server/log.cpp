#include "server/log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace selvage::server::log {
namespace {

/// systemd.exec(5), $JOURNAL_STREAM: device and inode of the journal's socket.
bool standard_error_is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat status{};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &status) != 0) return false;
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino) == stream;
}

std::string_view name(Level level) {
  switch (level) {
    case Level::error:
      return "error: ";
    case Level::warning:
      return "warning: ";
    case Level::notice:
    case Level::info:
      break;
  }
  return "";
}

std::atomic<Level> threshold{Level::info};

}  // namespace

void set_threshold(Level level) {
  threshold.store(level, std::memory_order_relaxed);
}

std::optional<Level> parse_level(std::string_view name) {
  if (name == "error") return Level::error;
  if (name == "warning") return Level::warning;
  if (name == "notice") return Level::notice;
  if (name == "info") return Level::info;
  return std::nullopt;
}

void write(Level level, std::string_view text) {
  if (level > threshold.load(std::memory_order_relaxed)) return;
  static const bool journal = standard_error_is_journal();
  std::string line;
  if (journal) {
    line += '<' + std::to_string(static_cast<unsigned>(level)) + '>';
  } else {
    line += "selvaged: ";
    line += name(level);
  }
  for (const char c : text) line += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  line += '\n';
  // There is nowhere to report that standard error is gone.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace selvage::server::log
