// selvaged as a process of its own.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace selvage::tests {

/// One run of the built selvaged. Its standard output and error are collected together. Killed and
/// reaped on destruction.
class Process {
 public:
  /// @throws std::system_error
  explicit Process(const std::vector<std::string>& arguments);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const;

  /// Reads on until `text` has been written (true), or the process has closed its output or the
  /// time is up (false).
  bool wait_for(const std::string& text, std::chrono::seconds timeout = std::chrono::seconds(60));

  /// Reads all output; the exit status, or 128 + the signal that ended it.
  int wait();

  const std::string& output() const { return output_; }

  /// The port in "ready on ADDRESS:PORT", for which it waits; 0 if it never came.
  std::uint16_t port();

 private:
  bool read_some(std::chrono::milliseconds timeout);
  pid_t pid_ = -1;
  int output_fd_ = -1;
  bool closed_ = false;
  std::optional<int> status_;
  std::string output_;
};

}  // namespace selvage::tests
