// RPC call and reply headers, and the AUTH_SYS credential within.
#include "xdr/rpc.h"

#include "wire.h"

namespace {

using namespace selvage::xdr;

void call(std::span<const std::byte> input) {
  Source source(input);
  CallHeader header;
  const CallStatus status = decode_call(source, header);
  if (status == CallStatus::rpc_mismatch) fuzz::require(header.rpcvers != RPC_VERSION);
  if (status != CallStatus::ok) return;
  Sink sink;
  encode_call(sink, header);
  fuzz::require(sink.size() == source.position());
  fuzz::require(std::ranges::equal(sink.joined(), input.first(sink.size())));
  AuthSys auth;
  if (!decode_auth_sys(header.cred.body, auth)) return;
  fuzz::require(auth.machinename.value.size() <= 255 && auth.gids.items.size() <= 16);
  fuzz::require(encoded_size(auth) == header.cred.body.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  call(input);
  fuzz::decode_and_encode<AuthSys>(input);
  Source source(input);
  ReplyHeader reply;
  if (decode_reply(source, reply)) fuzz::require(source.position() <= size);
  return 0;
}
