// selvagectl's end of the control socket.
#pragma once

#include "server/control.pb.h"
#include "storage/unique_fd.h"

#include <string>
#include <variant>

namespace selvage::ctl {

inline constexpr int exit_failed = 1;       ///< The server said no, or could not.
inline constexpr int exit_usage = 2;        ///< A bad command line.
inline constexpr int exit_unreachable = 3;  ///< No server, or not for this user.

struct Failure {
  int exit_status;
  std::string message;
};

/// `given`, else $SELVAGE_SOCKET, else the first that is there of /run/selvage/control.sock and
/// control.sock in the usual state directory, else the former.
std::string socket_path(const std::string& given);

class Connection {
 public:
  static std::variant<Connection, Failure> open(const std::string& path);

  /// One exchange. An error of the server is a Failure too. Blocks.
  std::variant<control::Reply, Failure> ask(const control::Request& request);

 private:
  Connection(std::string path, storage::UniqueFd socket)
      : path_(std::move(path)), socket_(std::move(socket)) {}
  std::string path_;
  storage::UniqueFd socket_;
};

}  // namespace selvage::ctl
