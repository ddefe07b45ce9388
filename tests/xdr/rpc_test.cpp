// RPC headers against libtirpc's own, and what a bad header is taken for (RFC 5531, 9).
#include "xdr/rpc.h"

#include "reference.h"

#include "reference/rpc.h"

#include <rpc/rpc_msg.h>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace selvage::xdr {

void convert(const AuthSys& from, ::ref_authsys_parms& to) {
  convert(from.stamp, to.stamp);
  convert(from.machinename, to.machinename);
  convert(from.uid, to.uid);
  convert(from.gid, to.gid);
  convert(from.gids, to.gids);
}

namespace test {
namespace {

TEST(RpcAgainstRpcgen, AuthSys) {
  check_against_reference<AuthSys, ::ref_authsys_parms>(&xdr_ref_authsys_parms, 1);
}

Bytes random_bytes(Generator& generator, std::size_t size) {
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(generator.below(256));
  return bytes;
}

opaque_auth reference_auth(const OpaqueAuth& from) {
  opaque_auth to{};
  to.oa_flavor = static_cast<enum_t>(from.flavor);
  to.oa_base = static_cast<char*>(const_cast<void*>(static_cast<const void*>(from.body.data())));
  to.oa_length = static_cast<u_int>(from.body.size());
  return to;
}

TEST(RpcAgainstLibtirpc, Call) {
  Generator generator(2);
  for (int round = 0; round < 200; ++round) {
    const Bytes cred = random_bytes(generator, generator.below(401));
    const Bytes verf = random_bytes(generator, round == 0 ? 400 : generator.below(401));
    CallHeader call;
    for (auto* field : {&call.xid, &call.prog, &call.vers, &call.proc}) generator.fill(*field);
    call.cred = {.flavor = static_cast<auth_flavor>(generator.below(9)), .body = cred};
    call.verf = {.flavor = auth_flavor::sys, .body = verf};
    Sink sink;
    encode_call(sink, call);
    const Bytes bytes = sink.joined();

    struct rpc_msg reference{};
    reference.rm_xid = call.xid;
    reference.rm_direction = CALL;
    reference.rm_call.cb_rpcvers = 2;
    reference.rm_call.cb_prog = call.prog;
    reference.rm_call.cb_vers = call.vers;
    reference.rm_call.cb_proc = call.proc;
    reference.rm_call.cb_cred = reference_auth(call.cred);
    reference.rm_call.cb_verf = reference_auth(call.verf);
    ASSERT_EQ(bytes, reference_encoded(reference, &xdr_callmsg));

    Source source(bytes);
    CallHeader again;
    ASSERT_EQ(decode_call(source, again), CallStatus::ok);
    EXPECT_EQ(source.remaining(), 0U);
    EXPECT_EQ(again.xid, call.xid);
    EXPECT_EQ(again.prog, call.prog);
    EXPECT_EQ(again.vers, call.vers);
    EXPECT_EQ(again.proc, call.proc);
    EXPECT_EQ(again.cred.flavor, call.cred.flavor);
    EXPECT_EQ(Bytes(again.cred.body.begin(), again.cred.body.end()), cred);
    EXPECT_EQ(again.verf.flavor, call.verf.flavor);
    EXPECT_EQ(Bytes(again.verf.body.begin(), again.verf.body.end()), verf);
  }
}

TEST(Rpc, CallTruncatedAnywhere) {
  const Bytes body(7, std::byte{1});
  CallHeader call;
  call.cred = {.flavor = auth_flavor::sys, .body = body};
  call.verf = {.flavor = auth_flavor::none, .body = body};
  Sink sink;
  encode_call(sink, call);
  const Bytes bytes = sink.joined();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const Bytes prefix(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    Source source(prefix);
    CallHeader header;
    EXPECT_EQ(decode_call(source, header), CallStatus::truncated) << length;
  }
}

CallStatus status_of(const std::vector<std::uint32_t>& words, std::size_t more = 0) {
  Sink sink;
  for (const std::uint32_t word : words) sink.put(word);
  sink.put_opaque(Bytes(more));
  const Bytes bytes = sink.joined();
  Source source(bytes);
  CallHeader header;
  const CallStatus status = decode_call(source, header);
  if (words.size() > 1) {
    EXPECT_EQ(header.xid, words[0]);
  }
  if (words.size() > 2 && status != CallStatus::not_a_call) {
    EXPECT_EQ(header.rpcvers, words[2]);
  }
  return status;
}

TEST(Rpc, BadHeadersAreToldApart) {
  EXPECT_EQ(status_of({7, 0, 2, 1, 1, 0, 0, 0, 0, 0}), CallStatus::ok);
  EXPECT_EQ(status_of({7, 1, 2, 1, 1, 0, 0, 0, 0, 0}), CallStatus::not_a_call);
  EXPECT_EQ(status_of({7, 2}), CallStatus::not_a_call);
  EXPECT_EQ(status_of({7, 0, 1}), CallStatus::rpc_mismatch);
  EXPECT_EQ(status_of({7, 0, 3, 1, 1, 0, 0, 0, 0, 0}), CallStatus::rpc_mismatch);
  EXPECT_EQ(status_of({7, 0, 2, 1, 1, 0, 1, 400}, 400 + 8), CallStatus::ok);
  EXPECT_EQ(status_of({7, 0, 2, 1, 1, 0, 1, 401}, 404 + 8), CallStatus::bad_cred);
  EXPECT_EQ(status_of({7, 0, 2, 1, 1, 0, 1, 0xffffffff}), CallStatus::bad_cred);
  EXPECT_EQ(status_of({7, 0, 2, 1, 1, 0, 1, 1, 1, 0, 0}), CallStatus::bad_cred);  // Padding.
  EXPECT_EQ(status_of({7, 0, 2, 1, 1, 0, 0, 0, 0, 401}, 404), CallStatus::bad_verf);
  EXPECT_EQ(status_of({7, 0, 2, 1, 1, 0, 0, 0, 0, 1, 1}), CallStatus::bad_verf);
  EXPECT_EQ(status_of({7, 0, 2, 1, 1, 0, 1, 400}, 100), CallStatus::truncated);
}

TEST(Rpc, OverlongCredentialIsNotEncoded) {
  const Bytes body(401);
  CallHeader call;
  call.cred.body = body;
  Sink sink;
  EXPECT_THROW(encode_call(sink, call), std::length_error);
}

/// A reply as libtirpc decodes it, without results.
struct rpc_msg reference_decoded(const Sink& sink, std::array<char, 400>& verf) {
  const Bytes bytes = sink.joined();
  struct rpc_msg reply{};
  reply.acpted_rply.ar_verf.oa_base = verf.data();
  reply.acpted_rply.ar_results.where = nullptr;
  reply.acpted_rply.ar_results.proc =
      reinterpret_cast<xdrproc_t>(reinterpret_cast<void*>(&xdr_void));
  XDR xdr;
  xdrmem_create(&xdr, reinterpret_cast<char*>(const_cast<std::byte*>(bytes.data())),
                static_cast<u_int>(bytes.size()), XDR_DECODE);
  EXPECT_TRUE(xdr_replymsg(&xdr, &reply));
  EXPECT_EQ(xdr_getpos(&xdr), bytes.size());
  return reply;
}

ReplyHeader decoded(const Sink& sink) {
  const Bytes bytes = sink.joined();
  Source source(bytes);
  ReplyHeader header;
  EXPECT_TRUE(decode_reply(source, header));
  EXPECT_EQ(source.remaining(), 0U);
  header.verf.body = {};
  return header;
}

TEST(RpcAgainstLibtirpc, AcceptedReplies) {
  std::array<char, 400> verf{};
  for (const accept_stat stat :
       {accept_stat::success, accept_stat::prog_unavail, accept_stat::proc_unavail,
        accept_stat::garbage_args, accept_stat::system_err}) {
    Sink sink;
    encode_accepted(sink, 0xdeadbeef, stat);
    EXPECT_EQ(sink.size(), accepted_reply_bytes);
    const struct rpc_msg reply = reference_decoded(sink, verf);
    EXPECT_EQ(reply.rm_xid, 0xdeadbeef);
    EXPECT_EQ(reply.rm_direction, REPLY);
    EXPECT_EQ(reply.rm_reply.rp_stat, MSG_ACCEPTED);
    EXPECT_EQ(reply.acpted_rply.ar_verf.oa_flavor, 0);
    EXPECT_EQ(reply.acpted_rply.ar_verf.oa_length, 0U);
    EXPECT_EQ(static_cast<std::uint32_t>(reply.acpted_rply.ar_stat),
              static_cast<std::uint32_t>(stat));
    EXPECT_EQ(decoded(sink).xid, 0xdeadbeef);
    EXPECT_EQ(decoded(sink).accepted, stat);
  }
}

TEST(RpcAgainstLibtirpc, ProgMismatch) {
  std::array<char, 400> verf{};
  Sink sink;
  encode_prog_mismatch(sink, 5, 1, 3);
  const struct rpc_msg reply = reference_decoded(sink, verf);
  EXPECT_EQ(reply.acpted_rply.ar_stat, PROG_MISMATCH);
  EXPECT_EQ(reply.acpted_rply.ar_vers.low, 1U);
  EXPECT_EQ(reply.acpted_rply.ar_vers.high, 3U);
  EXPECT_EQ(decoded(sink).low, 1U);
  EXPECT_EQ(decoded(sink).high, 3U);
}

TEST(RpcAgainstLibtirpc, RpcMismatch) {
  std::array<char, 400> verf{};
  Sink sink;
  encode_rpc_mismatch(sink, 6);
  const struct rpc_msg reply = reference_decoded(sink, verf);
  EXPECT_EQ(reply.rm_xid, 6U);
  EXPECT_EQ(reply.rm_reply.rp_stat, MSG_DENIED);
  EXPECT_EQ(reply.rjcted_rply.rj_stat, RPC_MISMATCH);
  EXPECT_EQ(reply.rjcted_rply.rj_vers.low, 2U);
  EXPECT_EQ(reply.rjcted_rply.rj_vers.high, 2U);
  EXPECT_EQ(decoded(sink).rejected, reject_stat::rpc_mismatch);
  EXPECT_EQ(decoded(sink).high, 2U);
}

TEST(RpcAgainstLibtirpc, AuthError) {
  std::array<char, 400> verf{};
  for (const auth_stat stat : {auth_stat::badcred, auth_stat::rejectedcred, auth_stat::badverf,
                               auth_stat::rejectedverf, auth_stat::tooweak}) {
    Sink sink;
    encode_auth_error(sink, 6, stat);
    const struct rpc_msg reply = reference_decoded(sink, verf);
    EXPECT_EQ(reply.rm_reply.rp_stat, MSG_DENIED);
    EXPECT_EQ(reply.rjcted_rply.rj_stat, AUTH_ERROR);
    EXPECT_EQ(static_cast<std::uint32_t>(reply.rjcted_rply.rj_why),
              static_cast<std::uint32_t>(stat));
    EXPECT_EQ(decoded(sink).stat, reply_stat::denied);
    EXPECT_EQ(decoded(sink).auth, stat);
  }
}

TEST(Rpc, BadRepliesAreRefused) {
  const std::vector<std::vector<std::uint32_t>> bad{
      {1, 0, 0, 0, 0, 0},  // A call.
      {1, 1, 2, 0, 0, 0},  // reply_stat
      {1, 1, 0, 0, 0, 6},  // accept_stat
      {1, 1, 1, 2, 0, 0},  // reject_stat
      {1, 1, 0, 0, 0},    {1, 1, 0, 0, 0, 2, 1}, {1, 1, 1, 0, 2}, {1, 1, 1, 1},
  };
  for (const auto& values : bad) {
    Sink sink;
    for (const std::uint32_t value : values) sink.put(value);
    const Bytes bytes = sink.joined();
    Source source(bytes);
    ReplyHeader header;
    EXPECT_FALSE(decode_reply(source, header)) << testing::PrintToString(values);
  }
}

TEST(Rpc, RecordMark) {
  const auto mark = encode_record_mark({.length = 0x010203, .last = true});
  EXPECT_EQ(mark, (std::array{std::byte{0x80}, std::byte{1}, std::byte{2}, std::byte{3}}));
  const auto more = encode_record_mark({.length = 0x7fffffff, .last = false});
  EXPECT_EQ(more, (std::array{std::byte{0x7f}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}}));
  EXPECT_EQ(decode_record_mark(mark).length, 0x010203U);
  EXPECT_TRUE(decode_record_mark(mark).last);
  EXPECT_EQ(decode_record_mark(more).length, 0x7fffffffU);
  EXPECT_FALSE(decode_record_mark(more).last);
}

}  // namespace
}  // namespace test
}  // namespace selvage::xdr
