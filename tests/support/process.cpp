#include "tests/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

extern char** environ;

namespace selvage::tests {

Process::Process(const std::vector<std::string>& arguments) {
  std::array<int, 2> pipe_fds{};
  if (::pipe2(pipe_fds.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::system_category(), "pipe2");
  }
  output_fd_ = pipe_fds[0];
  std::vector<std::string> owned{SELVAGED_PATH};
  owned.insert(owned.end(), arguments.begin(), arguments.end());
  std::vector<char*> raw;
  for (auto& each : owned) raw.push_back(each.data());
  raw.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDERR_FILENO);
  const int error =
      ::posix_spawn(&pid_, owned.front().c_str(), &actions, nullptr, raw.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_fds[1]);
  if (error != 0) {
    ::close(output_fd_);
    throw std::system_error(error, std::system_category(), SELVAGED_PATH);
  }
}

Process::~Process() {
  if (!status_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(output_fd_);
}

void Process::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

bool Process::read_some(std::chrono::milliseconds timeout) {
  pollfd ready{};
  ready.fd = output_fd_;
  ready.events = POLLIN;
  if (closed_ || ::poll(&ready, 1, static_cast<int>(timeout.count())) <= 0) return false;
  std::array<char, 4096> part{};
  const auto got = ::read(output_fd_, part.data(), part.size());
  if (got <= 0) {
    closed_ = true;
    return false;
  }
  output_.append(part.data(), static_cast<std::size_t>(got));
  return true;
}

bool Process::wait_for(const std::string& text, std::chrono::seconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (output_.find(text) == std::string::npos) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left.count() <= 0) return false;
    if (!read_some(std::chrono::ceil<std::chrono::milliseconds>(left))) return false;
  }
  return true;
}

int Process::wait() {
  // An end in order is bounded by the server's own deadlines.
  for (int quiet = 0; !closed_ && quiet < 120;) {
    quiet = read_some(std::chrono::milliseconds(1000)) ? 0 : quiet + 1;
  }
  if (!closed_) signal(SIGKILL);
  if (!status_) {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return *status_;
}

std::uint16_t Process::port() {
  if (!wait_for("ready on ")) return 0;
  const auto line = output_.find("ready on ");
  while (output_.find('\n', line) == std::string::npos) {
    if (!read_some(std::chrono::milliseconds(10000))) return 0;
  }
  const auto end = output_.find_first_of(",\n", line);
  const auto colon = output_.rfind(':', end);
  return static_cast<std::uint16_t>(std::stoul(output_.substr(colon + 1, end - colon - 1)));
}

}  // namespace selvage::tests
