#include "server/rpc/server.h"

#include "tests/support/rpc_test_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <set>
#include <thread>

namespace selvage::testing {
namespace {

using server::rpc::CloseReason;
using server::rpc::Options;
using std::chrono::milliseconds;
using ::testing::ElementsAre;

constexpr std::uint32_t reply = 1;
constexpr std::uint32_t accepted = 0;
constexpr std::uint32_t denied = 1;

std::vector<std::uint32_t> ask(RpcClient& client, const Message& message) {
  const std::optional<Bytes> answer = client.ask(message);
  return answer ? words(*answer) : std::vector<std::uint32_t>();
}

Message call_with(std::uint32_t xid, std::uint32_t procedure, std::uint32_t flavor,
                  std::span<const std::byte> body) {
  Message message;
  message.u32(xid).u32(0).u32(2).u32(test_program).u32(2).u32(procedure);
  return message.u32(flavor).opaque(body).u32(0).u32(0);
}

Message hold_call(std::uint32_t xid, std::uint32_t tag) {
  return call(xid, test_program, 2, proc_hold).u32(tag);
}

TEST(RpcServer, AnswersAsRfc5531Says) {
  TestServer server;
  RpcClient client = server.connect();
  // NULL, of both versions.
  EXPECT_THAT(ask(client, call(1, test_program, 2, 0)), ElementsAre(1, reply, accepted, 0, 0, 0));
  EXPECT_THAT(ask(client, call(2, test_program, 4, 0)), ElementsAre(2, reply, accepted, 0, 0, 0));
  // Results follow the accept status.
  EXPECT_THAT(ask(client, call(3, test_program, 2, proc_echo).u32(0xabcd).u32(5)),
              ElementsAre(3, reply, accepted, 0, 0, 0, 0xabcd, 5));
  // PROG_UNAVAIL, PROG_MISMATCH {2, 4}, PROC_UNAVAIL (beyond the table, and in it).
  EXPECT_THAT(ask(client, call(4, 77, 2, 1)), ElementsAre(4, reply, accepted, 0, 0, 1));
  EXPECT_THAT(ask(client, call(5, test_program, 3, 1)),
              ElementsAre(5, reply, accepted, 0, 0, 2, 2, 4));
  EXPECT_THAT(ask(client, call(6, test_program, 3, 0)),
              ElementsAre(6, reply, accepted, 0, 0, 2, 2, 4));
  EXPECT_THAT(ask(client, call(7, test_program, 2, 1000)),
              ElementsAre(7, reply, accepted, 0, 0, 3));
  EXPECT_THAT(ask(client, call(8, test_program, 2, proc_missing)),
              ElementsAre(8, reply, accepted, 0, 0, 3));
  // GARBAGE_ARGS, SYSTEM_ERR for an exception; the connection goes on.
  EXPECT_THAT(ask(client, call(9, test_program, 2, proc_garbage)),
              ElementsAre(9, reply, accepted, 0, 0, 4));
  EXPECT_THAT(ask(client, call(10, test_program, 2, proc_throw)),
              ElementsAre(10, reply, accepted, 0, 0, 5));
  EXPECT_EQ(server.counters().handler_exceptions.get(), 1U);
  // AUTH_TOOWEAK, by a handler.
  EXPECT_THAT(ask(client, call(11, test_program, 2, proc_weak)),
              ElementsAre(11, reply, denied, 1, 5));
  // RPC_MISMATCH {2, 2}.
  Message version3;
  version3.u32(12).u32(0).u32(3).u32(test_program).u32(2).u32(0).u32(0).u32(0).u32(0).u32(0);
  EXPECT_THAT(ask(client, version3), ElementsAre(12, reply, denied, 0, 2, 2));
}

TEST(RpcServer, Credentials) {
  TestServer server;
  RpcClient client = server.connect();
  const std::vector<std::uint32_t> groups{10, 20, 30};
  EXPECT_THAT(ask(client, call_sys(1, test_program, 2, proc_who, 1001, 1002, groups)),
              ElementsAre(1, reply, accepted, 0, 0, 0, 1, 1001, 1002, 3));
  EXPECT_THAT(ask(client, call(2, test_program, 2, proc_who)),
              ElementsAre(2, reply, accepted, 0, 0, 0, 0, 0, 0, 0));
  // AUTH_SYS cut short, and with 17 groups: AUTH_BADCRED.
  const Bytes few(8);
  EXPECT_THAT(ask(client, call_with(3, proc_who, 1, few)), ElementsAre(3, reply, denied, 1, 1));
  const std::vector<std::uint32_t> many(17, 5);
  EXPECT_THAT(ask(client, call_sys(4, test_program, 2, proc_who, 1, 1, many)),
              ElementsAre(4, reply, denied, 1, 1));
  // Over 400 bytes: AUTH_BADCRED.
  const Bytes long_body(404);
  EXPECT_THAT(ask(client, call_with(5, proc_who, 0, long_body)),
              ElementsAre(5, reply, denied, 1, 1));
  // AUTH_SHORT, RPCSEC_GSS: AUTH_REJECTEDCRED.
  EXPECT_THAT(ask(client, call_with(6, proc_who, 2, few)), ElementsAre(6, reply, denied, 1, 2));
  EXPECT_THAT(ask(client, call_with(7, proc_who, 6, few)), ElementsAre(7, reply, denied, 1, 2));
  // NULL is answered whatever the credential.
  EXPECT_THAT(ask(client, call_with(8, 0, 1, few)), ElementsAre(8, reply, accepted, 0, 0, 0));
  EXPECT_THAT(ask(client, call_with(9, 0, 6, few)), ElementsAre(9, reply, accepted, 0, 0, 0));
}

TEST(RpcServer, SeveralCallsInOneSegment) {
  TestServer server;
  RpcClient client = server.connect();
  Bytes stream;
  for (std::uint32_t xid = 0; xid < 100; ++xid) {
    const Bytes record = framed(call(xid, test_program, 2, proc_echo).u32(xid * 3).bytes());
    stream.insert(stream.end(), record.begin(), record.end());
  }
  ASSERT_TRUE(client.send(stream));
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 100; ++i) {
    const std::optional<Bytes> answer = client.receive();
    ASSERT_TRUE(answer);
    const auto got = words(*answer);
    ASSERT_EQ(got.size(), 7U);
    EXPECT_EQ(got[6], got[0] * 3);
    seen.insert(got[0]);
  }
  EXPECT_EQ(seen.size(), 100U);
}

TEST(RpcServer, RepliesInAnyOrder) {
  TestServer server;
  RpcClient client = server.connect();
  ASSERT_TRUE(client.send_record(hold_call(1, 1)));
  ASSERT_TRUE(client.send_record(hold_call(2, 2)));
  ASSERT_TRUE(server.service.wait_held(1, 1));
  ASSERT_TRUE(server.service.wait_held(2, 1));
  server.service.release(2);
  EXPECT_EQ(words(*client.receive())[0], 2U);
  server.service.release(1);
  EXPECT_EQ(words(*client.receive())[0], 1U);
}

TEST(RpcServer, ConnectionStopsReadingAtItsBound) {
  Options options;
  options.max_in_flight_per_connection = 4;
  TestServer server(options);
  RpcClient client = server.connect();
  for (std::uint32_t xid = 0; xid < 20; ++xid) ASSERT_TRUE(client.send_record(hold_call(xid, 1)));
  ASSERT_TRUE(server.service.wait_held(1, 4));
  ASSERT_TRUE(eventually([&] { return server.counters().receive_waits.get() > 0; }));
  EXPECT_EQ(server.service.held_now(), 4U);
  // Another connection is not held up, and calls go on as others end.
  RpcClient other = server.connect();
  EXPECT_TRUE(other.ask(call(1, test_program, 2, proc_echo)));
  server.service.release(1);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(client.receive());
  EXPECT_LE(server.service.held_peak(), 4U);
}

TEST(RpcServer, NullPassesTheGlobalBound) {
  Options options;
  options.max_in_flight = 3;
  TestServer server(options);
  RpcClient busy = server.connect();
  for (std::uint32_t xid = 0; xid < 3; ++xid) ASSERT_TRUE(busy.send_record(hold_call(xid, 1)));
  ASSERT_TRUE(server.service.wait_held(1, 3));
  RpcClient client = server.connect();
  EXPECT_TRUE(client.ask(call(1, test_program, 2, 0)));
  ASSERT_TRUE(client.send_record(call(2, test_program, 2, proc_echo)));
  ASSERT_TRUE(eventually([&] { return server.counters().receive_waits.get() > 0; }));
  EXPECT_EQ(server.service.held_now(), 3U);
  server.service.release(1);
  EXPECT_EQ(words(*client.receive())[0], 2U);
}

TEST(RpcServer, PlainWriteIsCopiedNowhere) {
  TestServer server;
  RpcClient client = server.connect();
  for (std::uint32_t i = 0; i < 20; ++i) {
    const std::uint64_t offset = std::uint64_t{47008} * i + 5;
    const Bytes data = pattern(47008, i);
    EXPECT_THAT(
        ask(client, write_call(i, offset, data)),
        ElementsAre(i, reply, accepted, 0, 0, 0, 1, offset % 4096, offset % 4096, sum_of(data)));
  }
  const auto& counters = server.counters();
  EXPECT_EQ(counters.steered_payloads.get(), 20U);
  EXPECT_LE(counters.overread_bytes.get() + counters.head_bytes_copied.get(), 20U * 512);
  EXPECT_EQ(counters.reassembled_bytes.get(), 0U);
}

TEST(RpcServer, WriteInFragmentsIsAnsweredAlike) {
  TestServer server;
  RpcClient client = server.connect();
  const Bytes data = pattern(47008);
  ASSERT_TRUE(client.send(framed(write_call(1, 12, data).bytes(), 2048)));
  const std::optional<Bytes> answer = client.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(words(*answer).at(9), sum_of(data));
  EXPECT_EQ(server.counters().steered_payloads.get(), 0U);
  EXPECT_EQ(server.counters().reassembled_records.get(), 1U);
}

TEST(RpcServer, StopsReadingWhenThePoolIsEmptyAndRecovers) {
  storage::Runtime::Options runtime;
  runtime.buffer_bytes = 2 << 20;
  TestServer server({}, runtime);
  RpcClient client = server.connect();
  const Bytes data = pattern(1 << 20);
  constexpr std::uint32_t calls = 6;
  std::thread sender([&] {
    for (std::uint32_t i = 0; i < calls; ++i) {
      client.send_record(write_call(i, 4096, data, proc_keep));
    }
  });
  ASSERT_TRUE(server.service.wait_held(4096, 2));
  ASSERT_TRUE(eventually([&] { return server.runtime->buffers().gauges().waits > 0; }));
  EXPECT_EQ(server.service.held_now(), 2U);
  EXPECT_LE(server.runtime->buffers().gauges().bytes_peak, 2U << 20);
  // Others are served meanwhile, as far as they need no buffer.
  RpcClient other = server.connect();
  EXPECT_TRUE(other.ask(call(1, test_program, 2, proc_echo)));
  server.service.release(4096);
  for (std::uint32_t i = 0; i < calls; ++i) {
    const std::optional<Bytes> answer = client.receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(words(*answer).at(9), sum_of(data));
  }
  sender.join();
  EXPECT_TRUE(eventually([&] { return server.runtime->buffers().gauges().bytes_used == 0; }));
}

TEST(RpcServer, LargeRepliesByReference) {
  TestServer server;
  RpcClient client = server.connect();
  for (const std::uint32_t size : {0U, 1U, 4096U, 3000001U}) {
    ASSERT_TRUE(client.send_record(call(size, test_program, 2, proc_read).u32(size)));
    const std::optional<Bytes> answer = client.receive();
    ASSERT_TRUE(answer);
    Message expected;
    expected.u32(size).u32(1).u32(0).u32(0).u32(0).u32(0).opaque(pattern(size)).u32(0x7a11);
    EXPECT_EQ(*answer, expected.bytes());
  }
  EXPECT_TRUE(eventually([&] { return server.runtime->buffers().gauges().bytes_used == 0; }));
}

TEST(RpcServer, GarbageOversizeAndCutAreClosedAndCounted) {
  Options options;
  options.limits.max_record = 100000;
  TestServer server(options);
  RpcClient garbage = server.connect();
  Message a_reply;
  a_reply.u32(1).u32(1).u32(0).u32(0).u32(0).u32(0);
  ASSERT_TRUE(garbage.send_record(a_reply));
  EXPECT_TRUE(garbage.closed_by_peer());
  RpcClient short_header = server.connect();
  ASSERT_TRUE(short_header.send_record(Message().u32(1).u32(0).u32(2)));
  EXPECT_TRUE(short_header.closed_by_peer());
  EXPECT_TRUE(eventually([&] { return server.closed(CloseReason::garbage) == 2; }));
  RpcClient oversize = server.connect();
  ASSERT_TRUE(oversize.send(Message().u32(0x80000000U | 100001).bytes()));
  EXPECT_TRUE(oversize.closed_by_peer());
  EXPECT_TRUE(eventually([&] { return server.closed(CloseReason::oversize) == 1; }));
  RpcClient cut = server.connect();
  ASSERT_TRUE(cut.send(Message().u32(0x80000000U | 1000).u32(1).bytes()));
  cut.close();
  EXPECT_TRUE(eventually([&] { return server.closed(CloseReason::peer_cut) == 1; }));
  RpcClient good = server.connect();
  EXPECT_TRUE(good.ask(call(1, test_program, 2, 0)));
  good.close();
  EXPECT_TRUE(eventually([&] { return server.closed(CloseReason::peer_closed) == 1; }));
  EXPECT_EQ(server.counters().connections_accepted.get(), 5U);
  EXPECT_TRUE(eventually([&] { return server.counters().connections_open.get() == 0; }));
}

TEST(RpcServer, HalfSentRecordMeetsItsDeadline) {
  Options options;
  options.record_deadline = milliseconds(50);
  TestServer server(options);
  RpcClient client = server.connect();
  EXPECT_TRUE(client.ask(call(1, test_program, 2, 0)));
  const Bytes record = framed(write_call(2, 0, pattern(50000)).bytes());
  ASSERT_TRUE(client.send(std::span(record).first(30000)));
  EXPECT_TRUE(client.closed_by_peer());
  EXPECT_EQ(server.closed(CloseReason::record_deadline), 1U);
  EXPECT_TRUE(eventually([&] { return server.runtime->buffers().gauges().bytes_used == 0; }));
}

TEST(RpcServer, IdleConnectionIsClosedOnlyWithoutCalls) {
  Options options;
  options.idle_deadline = milliseconds(50);
  TestServer server(options);
  RpcClient busy = server.connect();
  ASSERT_TRUE(busy.send_record(hold_call(1, 1)));
  ASSERT_TRUE(server.service.wait_held(1, 1));
  RpcClient idle = server.connect();
  EXPECT_TRUE(idle.closed_by_peer());
  EXPECT_EQ(server.closed(CloseReason::idle), 1U);
  server.service.release(1);
  EXPECT_TRUE(busy.receive());
  EXPECT_TRUE(busy.closed_by_peer());
}

/// Keeps the kernel from taking replies for a client that does not read: some let it take 32 MiB.
void take_little(const RpcClient& client) {
  const int bytes = 65536;
  ASSERT_EQ(::setsockopt(client.fd(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
}

TEST(RpcServer, SlowReaderMeetsItsDeadline) {
  Options options;
  options.write_deadline = milliseconds(100);
  TestServer server(options);
  RpcClient client = server.connect();
  take_little(client);
  for (std::uint32_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(client.send_record(call(i, test_program, 2, proc_read).u32(4 << 20)));
  }
  EXPECT_TRUE(eventually([&] { return server.closed(CloseReason::write_deadline) == 1; }));
  EXPECT_TRUE(eventually([&] { return server.runtime->buffers().gauges().bytes_used == 0; }));
}

/// Room for one of the calls below, not for two.
storage::Runtime::Options small_pool() {
  storage::Runtime::Options options;
  options.buffer_bytes = std::uint64_t{4} << 20;
  return options;
}

TEST(RpcServer, HalfSentRecordIsCutWhenOthersWaitForItsMemory) {
  Options options;
  options.contended_deadline = milliseconds(50);
  TestServer server(options, small_pool());
  RpcClient stalling = server.connect();
  const Bytes record = framed(write_call(1, 0, pattern(3 << 20)).bytes());
  ASSERT_TRUE(stalling.send(std::span(record).first(30000)));
  ASSERT_TRUE(eventually([&] { return server.runtime->buffers().gauges().bytes_used > 0; }));
  // Nobody waits: it has its time.
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(server.closed(CloseReason::contended), 0U);
  RpcClient other = server.connect();
  EXPECT_TRUE(other.ask(write_call(2, 0, pattern(3 << 20))));
  EXPECT_EQ(server.closed(CloseReason::contended), 1U);
  EXPECT_TRUE(stalling.closed_by_peer());
}

TEST(RpcServer, HalfSentRecordIsCutWhenOthersWaitForItsPermit) {
  Options options;
  options.contended_deadline = milliseconds(50);
  options.max_in_flight = 1;
  TestServer server(options);
  RpcClient stalling = server.connect();
  const Bytes record = framed(write_call(1, 0, pattern(50000)).bytes());
  ASSERT_TRUE(stalling.send(std::span(record).first(30000)));
  ASSERT_TRUE(eventually([&] { return server.runtime->buffers().gauges().bytes_used > 0; }));
  RpcClient other = server.connect();
  EXPECT_TRUE(other.ask(call(2, test_program, 2, proc_echo)));
  EXPECT_EQ(server.closed(CloseReason::contended), 1U);
}

TEST(RpcServer, SlowReaderIsCutWhenOthersWaitForItsMemory) {
  Options options;
  options.contended_deadline = milliseconds(50);
  TestServer server(options, small_pool());
  RpcClient stalling = server.connect();
  take_little(stalling);
  for (std::uint32_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(stalling.send_record(call(i, test_program, 2, proc_read).u32(2 << 20)));
  }
  RpcClient other = server.connect();
  EXPECT_TRUE(other.ask(call(100, test_program, 2, proc_read).u32(3 << 20)));
  EXPECT_TRUE(eventually([&] { return server.closed(CloseReason::contended) == 1; }));
}

TEST(RpcServer, SteadyClientIsNotCutThoughOthersWait) {
  Options options;
  options.contended_deadline = milliseconds(500);
  options.max_in_flight = 1;
  TestServer server(options);
  RpcClient steady = server.connect();
  const Bytes record = framed(write_call(1, 0, pattern(2 << 20)).bytes());
  ASSERT_TRUE(steady.send(std::span(record).first(65536)));
  ASSERT_TRUE(eventually([&] { return server.runtime->buffers().gauges().bytes_used > 0; }));
  RpcClient other = server.connect();
  ASSERT_TRUE(other.send_record(call(2, test_program, 2, proc_echo)));
  // Twice the deadline in all, in steps that each take much less.
  for (std::size_t at = 65536; at < record.size(); at += 131072) {
    std::this_thread::sleep_for(milliseconds(60));
    ASSERT_TRUE(steady.send(
        std::span(record).subspan(at).first(std::min<std::size_t>(131072, record.size() - at))));
  }
  EXPECT_TRUE(steady.receive());
  EXPECT_TRUE(other.receive());
  EXPECT_EQ(server.closed(CloseReason::contended), 0U);
}

TEST(RpcServer, CutConnectionFinishesItsCalls) {
  TestServer server;
  {
    RpcClient client = server.connect();
    ASSERT_TRUE(client.send_record(hold_call(1, 1)));
    ASSERT_TRUE(server.service.wait_held(1, 1));
    // A reset rather than an orderly end.
    const linger reset{1, 0};
    ::setsockopt(client.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  EXPECT_TRUE(eventually([&] { return server.closed(CloseReason::socket_error) == 1; }));
  EXPECT_EQ(server.service.held_now(), 1U);
  server.service.release(1);
  EXPECT_TRUE(eventually([&] { return server.counters().connections_open.get() == 0; }));
  EXPECT_EQ(server.service.held_now(), 0U);
}

TEST(RpcServer, CallsNotStartedAreDroppedWithTheirConnection) {
  Options options;
  options.max_in_flight = 1;
  TestServer server(options);
  RpcClient busy = server.connect();
  ASSERT_TRUE(busy.send_record(hold_call(1, 1)));
  ASSERT_TRUE(server.service.wait_held(1, 1));
  {
    RpcClient gone = server.connect();
    ASSERT_TRUE(gone.send_record(call(2, test_program, 2, proc_change).u32(10)));
    ASSERT_TRUE(gone.send_record(call(3, test_program, 2, proc_change).u32(10)));
    ASSERT_TRUE(eventually([&] { return server.counters().receive_waits.get() > 0; }));
  }
  server.service.release(1);
  EXPECT_TRUE(busy.receive());
  EXPECT_TRUE(eventually([&] { return server.counters().requests_dropped.get() == 1; }));
  EXPECT_TRUE(eventually([&] { return server.counters().connections_open.get() == 1; }));
  EXPECT_EQ(server.service.executions(10), 0U);
}

TEST(RpcServer, ConnectionsInUseAreBounded) {
  Options options;
  options.max_connections = 2;
  TestServer server(options);
  RpcClient first = server.connect();
  RpcClient second = server.connect();
  ASSERT_TRUE(first.send_record(hold_call(1, 1)));
  ASSERT_TRUE(second.send_record(hold_call(2, 1)));
  ASSERT_TRUE(server.service.wait_held(1, 2));
  RpcClient third = server.connect();
  EXPECT_TRUE(third.closed_by_peer());
  EXPECT_EQ(server.counters().connections_refused.get(), 1U);
  server.service.release(1);
  EXPECT_TRUE(first.receive());
  EXPECT_TRUE(second.receive());
  first.close();
  ASSERT_TRUE(eventually([&] { return server.counters().connections_open.get() == 1; }));
  RpcClient fourth = server.connect();
  EXPECT_TRUE(fourth.ask(call(1, test_program, 2, 0)));
}

TEST(RpcServer, ConnectionsIdleForLongestMakeRoom) {
  Options options;
  options.max_connections = 4;
  storage::Runtime::Options runtime;
  runtime.workers = 1;  // A call has ended there before the next one begins.
  TestServer server(options, runtime);
  std::vector<RpcClient> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(server.connect());
    ASSERT_TRUE(clients.back().ask(call(1, test_program, 2, 0)));
  }
  ASSERT_TRUE(clients[0].ask(call(2, test_program, 2, 0)));  // Now the second is the oldest.
  ASSERT_TRUE(clients[2].send_record(hold_call(3, 1)));
  ASSERT_TRUE(server.service.wait_held(1, 1));
  RpcClient fifth = server.connect();
  EXPECT_TRUE(fifth.ask(call(1, test_program, 2, 0)));
  EXPECT_TRUE(clients[1].closed_by_peer());
  RpcClient sixth = server.connect();
  EXPECT_TRUE(sixth.ask(call(1, test_program, 2, 0)));
  EXPECT_TRUE(clients[3].closed_by_peer());
  EXPECT_TRUE(clients[0].ask(call(4, test_program, 2, 0)));
  server.service.release(1);
  EXPECT_TRUE(clients[2].receive());
  EXPECT_EQ(server.counters().connections_refused.get(), 0U);
  EXPECT_EQ(server.closed(CloseReason::idle), 2U);
}

TEST(RpcServer, HalfSentRecordsDoNotKeepOthersOut) {
  Options options;
  options.max_connections = 2;
  options.contended_deadline = milliseconds(50);
  TestServer server(options);
  RpcClient first = server.connect();
  RpcClient second = server.connect();
  const std::array<std::byte, 6> half{std::byte{0x80}, std::byte{0}, std::byte{1}};
  ASSERT_TRUE(first.send(half));
  ASSERT_TRUE(second.send(half));
  ASSERT_TRUE(eventually([&] {
    RpcClient another = server.connect();
    return another.ask(call(1, test_program, 2, 0)).has_value();
  }));
  EXPECT_GE(server.closed(CloseReason::contended), 1U);
}

TEST(RpcServer, DrainLetsCallsFinish) {
  TestServer server;
  const std::uint16_t port = server.server->port();
  RpcClient client = server.connect();
  RpcClient idle = server.connect();
  ASSERT_TRUE(idle.ask(call(1, test_program, 2, 0)));
  ASSERT_TRUE(client.send_record(hold_call(1, 1)));
  ASSERT_TRUE(server.service.wait_held(1, 1));
  bool drained = false;
  std::thread drainer([&] { drained = server.server->drain(milliseconds(20000)); });
  EXPECT_TRUE(idle.closed_by_peer());
  EXPECT_THROW(RpcClient{port}, std::system_error);
  idle.close();
  server.service.release(1);
  const std::optional<Bytes> answer = client.receive();
  EXPECT_TRUE(answer);
  EXPECT_TRUE(client.closed_by_peer());
  client.close();
  drainer.join();
  EXPECT_TRUE(drained);
  EXPECT_EQ(server.counters().connections_open.get(), 0U);
  EXPECT_EQ(server.closed(CloseReason::drained), 2U);
}

TEST(RpcServer, DrainDeadlineCutsWhatIsHeld) {
  TestServer server;
  RpcClient client = server.connect();
  ASSERT_TRUE(client.send_record(hold_call(1, 1)));
  ASSERT_TRUE(server.service.wait_held(1, 1));
  std::thread releaser([&] {
    EXPECT_TRUE(client.closed_by_peer());
    server.service.release(1);
  });
  EXPECT_TRUE(server.server->drain(milliseconds(20)));
  releaser.join();
}

TEST(RpcServer, SecondStartOnTheSamePort) {
  auto runtime = std::make_unique<storage::Runtime>(storage::Runtime::Options());
  TestService service;
  const auto programs = test_programs(service);
  const std::array addresses{boost::asio::ip::make_address("127.0.0.1"),
                             boost::asio::ip::make_address("::1")};
  std::uint16_t port = 0;
  for (int start = 0; start < 3; ++start) {
    server::rpc::Server server(*runtime, programs, {});
    ASSERT_TRUE(server.listen(addresses, port));
    port = server.port();
    ASSERT_EQ(server.endpoints().size(), 2U);
    EXPECT_EQ(server.endpoints()[1].port(), port);
    server.start();
    RpcClient v4(port);
    RpcClient v6(port, "::1");
    EXPECT_TRUE(v4.ask(call(1, test_program, 2, 0)));
    EXPECT_TRUE(v6.ask(call(1, test_program, 2, 0)));
    // Taken: a second server says so.
    server::rpc::Server second(*runtime, programs, {});
    const storage::Result<> taken = second.listen(addresses, port);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error(), storage::errno_code(EADDRINUSE));
    // Closed from our side first: the port stays in TIME_WAIT.
    std::thread drainer([&] { server.drain(milliseconds(20000)); });
    EXPECT_TRUE(v4.closed_by_peer());
    EXPECT_TRUE(v6.closed_by_peer());
    v4.close();
    v6.close();
    drainer.join();
  }
  runtime->stop();
}

TEST(RpcServer, AdoptsAListeningSocket) {
  storage::Runtime runtime{storage::Runtime::Options()};
  TestService service;
  server::rpc::Server server(runtime, test_programs(service), {});
  storage::UniqueFd unbound(::socket(AF_INET, SOCK_STREAM, 0));
  const storage::Result<> refused = server.adopt(std::move(unbound));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), storage::errno_code(EINVAL));
  storage::UniqueFd listening(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listening.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(::listen(listening.get(), 16), 0);
  ASSERT_TRUE(server.adopt(std::move(listening)));
  server.start();
  RpcClient client(server.port());
  EXPECT_TRUE(client.ask(call(1, test_program, 2, 0)));
}

}  // namespace
}  // namespace selvage::testing
