#include "server/control/listener.h"

#include "server/control/frame.h"
#include "storage/unique_fd.h"

#include <grp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace selvage::server::control {
namespace {

using storage::UniqueFd;

constexpr std::size_t max_connections = 8;
constexpr timeval silence{60, 0};

ConfigError failure(const std::string& path, int error) {
  return ConfigError{"control socket " + path + ": " + std::strerror(error)};
}

ConfigError no_group(const std::string& name) {
  return ConfigError{"there is no group '" + name + "'"};
}

std::optional<gid_t> find_group(const std::string& name) {
  std::vector<char> memory(65536);
  group entry{};
  group* found = nullptr;
  if (::getgrnam_r(name.c_str(), &entry, memory.data(), memory.size(), &found) != 0) return {};
  if (found == nullptr) return std::nullopt;
  return entry.gr_gid;
}

/// Whether somebody serves it: then its place is not ours to take.
bool answers(const sockaddr_un& address) {
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
         errno == EAGAIN;
}

bool in_group(int socket, gid_t wanted) {
  std::vector<gid_t> groups(65536);
  auto size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) != 0) return false;
  groups.resize(size / sizeof(gid_t));
  return std::ranges::find(groups, wanted) != groups.end();
}

bool allowed(int socket, std::optional<gid_t> group) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  if (peer.uid == 0 || peer.uid == ::geteuid()) return true;
  return group && (peer.gid == *group || in_group(socket, *group));
}

}  // namespace

struct Listener::Impl {
  Impl(Options given, Handler with) : options(std::move(given)), handler(std::move(with)) {}
  ~Impl();

  std::optional<ConfigError> open();
  void accept_all();
  void admit(UniqueFd socket);
  void serve(int socket) const;

  struct Connection {
    UniqueFd socket;
    std::atomic<bool> ended{false};
    std::thread thread;
  };

  const Options options;
  const Handler handler;
  std::optional<gid_t> group;
  UniqueFd listening;
  UniqueFd wake;
  bool bound = false;
  std::thread acceptor;
  std::list<Connection> connections;  // The acceptor's; the destructor's after it has ended.
};

std::optional<ConfigError> Listener::Impl::open() {
  const std::string& path = options.path;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return failure(path, ENAMETOOLONG);
  path.copy(address.sun_path, path.size());
  if (!options.group.empty()) {
    group = find_group(options.group);
    if (!group) return no_group(options.group);
  }
  listening = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  wake = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!listening || !wake) return failure(path, errno);
  struct stat status{};
  if (::lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) return failure(path, EEXIST);
    if (answers(address)) return failure(path, EADDRINUSE);
    ::unlink(path.c_str());
  }
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(listening.get(), name, sizeof address) != 0) return failure(path, errno);
  bound = true;
  // Nobody can connect before listen(): the modes are right in time.
  if (group && ::chown(path.c_str(), static_cast<uid_t>(-1), *group) != 0) {
    return failure(path, errno);
  }
  if (::chmod(path.c_str(), group ? 0660 : 0600) != 0) return failure(path, errno);
  if (::listen(listening.get(), max_connections) != 0) return failure(path, errno);
  acceptor = std::thread([this] { accept_all(); });
  return std::nullopt;
}

Listener::Impl::~Impl() {
  if (acceptor.joinable()) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake.get(), &one, sizeof one);
    acceptor.join();
  }
  // Requests in progress finish; their replies still go out.
  for (auto& connection : connections) ::shutdown(connection.socket.get(), SHUT_RD);
  for (auto& connection : connections) connection.thread.join();
  if (bound) ::unlink(options.path.c_str());
}

void Listener::Impl::accept_all() {
  for (;;) {
    std::array<pollfd, 2> wanted{{{listening.get(), POLLIN, 0}, {wake.get(), POLLIN, 0}}};
    if (::poll(wanted.data(), wanted.size(), -1) < 0 && errno != EINTR) return;
    if (wanted[1].revents != 0) return;
    UniqueFd socket(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket) {
      admit(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
      // The one who waits stays in the queue.
      ::poll(&wanted[1], 1, 100);
    }
  }
}

void Listener::Impl::admit(UniqueFd socket) {
  for (auto at = connections.begin(); at != connections.end();) {
    if (!at->ended.load()) {
      ++at;
      continue;
    }
    at->thread.join();
    at = connections.erase(at);
  }
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof silence);
  if (!allowed(socket.get(), group)) {
    write_frame(socket.get(), error(Error::denied, "not for you").SerializeAsString());
    return;
  }
  if (connections.size() >= max_connections) {
    write_frame(socket.get(), error(Error::busy, "too many connections").SerializeAsString());
    return;
  }
  auto& connection = connections.emplace_back();
  connection.socket = std::move(socket);
  try {
    connection.thread = std::thread([this, &connection] {
      serve(connection.socket.get());
      ::shutdown(connection.socket.get(), SHUT_RDWR);
      connection.ended.store(true);
    });
  } catch (const std::exception&) {
    connections.pop_back();  // No thread to be had.
  }
}

void Listener::Impl::serve(int socket) const {
  while (const auto bytes = read_frame(socket, max_request_bytes)) {
    Reply reply;
    try {
      auto request = parse_request(*bytes);
      if (const auto* wrong = std::get_if<Reply>(&request)) {
        reply = *wrong;
      } else {
        reply = handler(std::get<Request>(request));
      }
    } catch (const std::exception& exception) {
      reply = error(Error::failed, exception.what());
    }
    std::string body = reply.SerializeAsString();
    if (body.size() > max_reply_bytes) {
      body = error(Error::failed, "the reply would be too long").SerializeAsString();
    }
    if (!write_frame(socket, body)) return;
  }
}

Listener::Listener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Listener::~Listener() = default;

std::optional<ConfigError> Listener::check_group(const Options& options) {
  if (options.group.empty() || find_group(options.group)) return std::nullopt;
  return no_group(options.group);
}

std::optional<ConfigError> Listener::check_path(const Options& options) {
  const std::string& path = options.path;
  if (path.size() >= sizeof(sockaddr_un::sun_path)) return failure(path, ENAMETOOLONG);
  struct stat status{};
  if (::lstat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode)) {
    return failure(path, EEXIST);
  }
  const std::string folder = path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
  if (::stat(folder.c_str(), &status) != 0) return failure(path, errno);
  if (!S_ISDIR(status.st_mode)) return failure(path, ENOTDIR);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return failure(path, errno);
  return std::nullopt;
}

Parsed<std::unique_ptr<Listener>> Listener::start(const Options& options, Handler handler) {
  auto impl = std::make_unique<Impl>(options, std::move(handler));
  if (auto error = impl->open()) return *error;
  return std::unique_ptr<Listener>(new Listener(std::move(impl)));
}

}  // namespace selvage::server::control
