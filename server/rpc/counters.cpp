#include "server/rpc/counters.h"

namespace selvage::server::rpc {

std::string_view to_string(CloseReason reason) {
  switch (reason) {
    case CloseReason::peer_closed:
      return "peer_closed";
    case CloseReason::peer_cut:
      return "peer_cut";
    case CloseReason::socket_error:
      return "socket_error";
    case CloseReason::garbage:
      return "garbage";
    case CloseReason::oversize:
      return "oversize";
    case CloseReason::record_deadline:
      return "record_deadline";
    case CloseReason::write_deadline:
      return "write_deadline";
    case CloseReason::contended:
      return "contended";
    case CloseReason::idle:
      return "idle";
    case CloseReason::drained:
      return "drained";
  }
  return "unknown";
}

}  // namespace selvage::server::rpc
