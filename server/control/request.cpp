#include "server/control/request.h"

#include "server/printable.h"

#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>

namespace selvage::server::control {
namespace {

constexpr std::size_t max_text = 4096;

/// The command's own fields.
const google::protobuf::Message* command_of(const Request& request) {
  const auto* type = Request::descriptor()->FindOneofByName("command");
  const auto* field = request.GetReflection()->GetOneofFieldDescriptor(request, type);
  return field == nullptr ? nullptr : &request.GetReflection()->GetMessage(request, field);
}

bool has_unknown(const google::protobuf::Message& message) {
  return !message.GetReflection()->GetUnknownFields(message).empty();
}

bool texts_too_long(const Request& request) {
  const std::initializer_list<const std::string*> texts{
      &request.stats().export_(), &request.stats().client_address(), &request.edges().export_(),
      &request.sync().export_(),  &request.evict().client(),         &request.log().level()};
  return std::ranges::any_of(texts, [](const auto* text) { return text->size() > max_text; });
}

}  // namespace

Reply error(Error::Code code, std::string_view message) {
  Reply reply;
  reply.mutable_error()->set_code(code);
  // It may name paths, which are any bytes.
  reply.mutable_error()->set_message(as_utf8(message));
  return reply;
}

Reply done(std::string_view message) {
  Reply reply;
  reply.mutable_done()->set_message(as_utf8(message));
  return reply;
}

std::variant<Request, Reply> parse_request(const std::string& bytes) {
  Request request;
  if (!request.ParseFromString(bytes)) return error(Error::bad_request, "not a request");
  const auto* command = command_of(request);
  if (command == nullptr || has_unknown(request) || has_unknown(*command)) {
    return error(Error::bad_request, "a command that this server does not know");
  }
  if (texts_too_long(request)) return error(Error::bad_request, "a text is too long");
  return request;
}

}  // namespace selvage::server::control
