#include "server/rpcbind.h"

#include "xdr/mount3.h"
#include "xdr/nfs3.h"

#include <netconfig.h>
#include <rpc/rpc.h>
#include <rpc/rpcb_clnt.h>

#include <array>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace selvage::server {
namespace {

using boost::asio::ip::tcp;

constexpr std::array registered{std::pair{xdr::MOUNT_PROGRAM, 1U},
                                std::pair{xdr::MOUNT_PROGRAM, 3U}, std::pair{xdr::NFS_PROGRAM, 3U},
                                std::pair{xdr::NFS_PROGRAM, 4U}};

struct FreeNetconfig {
  void operator()(netconfig* entry) const { ::freenetconfigent(entry); }
};
using Transport = std::unique_ptr<netconfig, FreeNetconfig>;

/// All versions, of one transport or (null) of all.
void forget_all(const netconfig* transport) {
  for (const auto& [program, version] : registered) ::rpcb_unset(program, version, transport);
}

std::optional<std::string> set_all(const std::vector<tcp::endpoint>& endpoints) {
  constexpr const char* refused = "rpcbind does not register the programs: is it running?";
  forget_all(nullptr);
  for (tcp::endpoint endpoint : endpoints) {
    const bool v4 = endpoint.address().is_v4();
    const Transport transport(::getnetconfigent(v4 ? "tcp" : "tcp6"));
    if (!transport) return "/etc/netconfig does not know tcp";
    netbuf address{};
    address.buf = endpoint.data();
    address.len = address.maxlen = static_cast<unsigned>(endpoint.size());
    for (const auto& [program, version] : registered) {
      if (::rpcb_set(program, version, transport.get(), &address) == 0) return refused;
    }
  }
  return std::nullopt;
}

/// libtirpc waits for rpcbind as long as it likes: the thread is left to it.
std::optional<std::string> bounded(std::function<std::optional<std::string>()> call,
                                   std::chrono::milliseconds deadline) {
  auto task = std::make_shared<std::packaged_task<std::optional<std::string>()>>(std::move(call));
  auto result = task->get_future();
  std::thread([task] { (*task)(); }).detach();
  if (result.wait_for(deadline) != std::future_status::ready) {
    return "rpcbind does not answer within " + std::to_string(deadline.count() / 1000) + " s";
  }
  return result.get();
}

}  // namespace

std::optional<std::string> register_with_rpcbind(const std::vector<tcp::endpoint>& endpoints,
                                                 std::chrono::milliseconds deadline) {
  return bounded([endpoints] { return set_all(endpoints); }, deadline);
}

std::optional<std::string> unregister_from_rpcbind(std::chrono::milliseconds deadline) {
  const auto forget = []() -> std::optional<std::string> {
    forget_all(nullptr);
    return std::nullopt;
  };
  return bounded(forget, deadline);
}

}  // namespace selvage::server
