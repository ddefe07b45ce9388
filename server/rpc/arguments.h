// What handlers of every program do with the arguments of a call.
#pragma once

#include "server/rpc/program.h"
#include "xdr/types.h"

namespace selvage::server::rpc {

/// False if the arguments are malformed, or bytes follow them: garbage_args().
template <class Args>
bool decode_arguments(Call& call, Args& arguments) {
  return xdr::decode(call.arguments, arguments) && call.arguments.remaining() == 0;
}

inline Reply garbage_args() {
  Reply reply;
  reply.status = Reply::Status::garbage_args;
  return reply;
}

}  // namespace selvage::server::rpc
