// What comes over the control socket: any bytes are a request with one command, or refused.
#include "server/control/request.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <variant>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace selvage::server;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto parsed = control::parse_request(bytes);
  if (const auto* refused = std::get_if<control::Reply>(&parsed)) {
    if (!refused->has_error() || refused->error().message().empty()) std::abort();
    return 0;
  }
  const auto& request = std::get<control::Request>(parsed);
  if (request.command_case() == control::Request::COMMAND_NOT_SET) std::abort();
  // What was understood is what is sent on.
  const auto again = control::parse_request(request.SerializeAsString());
  if (!std::holds_alternative<control::Request>(again)) std::abort();
  return 0;
}
