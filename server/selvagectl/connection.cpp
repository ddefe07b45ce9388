#include "server/selvagectl/connection.h"

#include "server/config.h"
#include "server/control/frame.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace selvage::ctl {
namespace {

constexpr const char* runtime_socket = "/run/selvage/control.sock";

Failure cannot_connect(const std::string& path, int error) {
  std::string why = path + ": ";
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      why += "no such socket: no server runs here, or it has another one (--socket PATH)";
      break;
    case ECONNREFUSED:
      why += "nobody answers: the server is not running";
      break;
    case EACCES:
    case EPERM:
      why += "permission denied: be root, or in the server's control_group";
      break;
    default:
      why += std::strerror(error);
      break;
  }
  return {exit_unreachable, why};
}

}  // namespace

std::string socket_path(const std::string& given) {
  if (!given.empty()) return given;
  const char* from_environment = std::getenv("SELVAGE_SOCKET");
  if (from_environment != nullptr && *from_environment != 0) return from_environment;
  if (::access(runtime_socket, F_OK) == 0) return runtime_socket;
  const std::string state = server::default_state_dir() + "/control.sock";
  return ::access(state.c_str(), F_OK) == 0 ? state : runtime_socket;
}

std::variant<Connection, Failure> Connection::open(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return cannot_connect(path, ENAMETOOLONG);
  path.copy(address.sun_path, path.size());
  storage::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  if (!socket || ::connect(socket.get(), name, sizeof address) != 0) {
    return cannot_connect(path, errno);
  }
  return Connection(path, std::move(socket));
}

std::variant<control::Reply, Failure> Connection::ask(const control::Request& request) {
  // A refusal may be waiting already, on a socket that takes no more.
  server::control::write_frame(socket_.get(), request.SerializeAsString());
  const auto bytes = server::control::read_frame(socket_.get(), server::control::max_reply_bytes);
  control::Reply reply;
  if (!bytes) return Failure{exit_unreachable, path_ + ": the server closed the connection"};
  if (!reply.ParseFromString(*bytes)) return Failure{exit_failed, path_ + ": not a reply"};
  if (!reply.has_error()) return reply;
  const auto code = reply.error().code();
  const bool kept_out = code == control::Error::denied || code == control::Error::busy;
  return Failure{kept_out ? exit_unreachable : exit_failed, reply.error().message()};
}

}  // namespace selvage::ctl
