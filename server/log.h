// The process log: standard error, one line per event, nothing per request.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace selvage::server::log {

/// Values of syslog(3).
enum class Level : std::uint8_t { error = 3, warning = 4, notice = 5, info = 6 };

/// One line, written with one write(2). Under journald ($JOURNAL_STREAM names standard error) it
/// starts with "<level>". Control characters in the text are replaced: parts of it may come from
/// clients. Any thread.
void write(Level level, std::string_view text);

/// What is below is not written. At first: info. Any thread.
void set_threshold(Level level);
std::optional<Level> parse_level(std::string_view name);

inline void error(std::string_view text) {
  write(Level::error, text);
}
inline void warning(std::string_view text) {
  write(Level::warning, text);
}
inline void notice(std::string_view text) {
  write(Level::notice, text);
}
inline void info(std::string_view text) {
  write(Level::info, text);
}

}  // namespace selvage::server::log
