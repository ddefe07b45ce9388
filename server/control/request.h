// Requests and replies of the control socket as values.
#pragma once

#include "server/control.pb.h"

#include <string>
#include <string_view>
#include <variant>

namespace selvage::server::control {

using Request = selvage::control::Request;
using Reply = selvage::control::Reply;
using Error = selvage::control::Error;

/// What is not UTF-8 in the message is escaped.
Reply error(Error::Code code, std::string_view message);
Reply done(std::string_view message);

/// A Request with exactly one command, without unknown fields, with texts of at most 4096 bytes; or
/// the Reply that says what is wrong with it.
std::variant<Request, Reply> parse_request(const std::string& bytes);

}  // namespace selvage::server::control
