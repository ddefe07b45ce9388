#include "server/rpc/duplicate_request_cache.h"

#include "tests/support/rpc_test_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace selvage::testing {
namespace {

using server::rpc::Counters;
using server::rpc::DuplicateRequestCache;
using server::rpc::Options;
using std::chrono::milliseconds;

Message change_call(std::uint32_t xid, std::uint32_t tag) {
  return call_sys(xid, test_program, 2, proc_change, 1000, 1000).u32(tag);
}

TEST(RpcDuplicates, FinishedCallIsAnsweredWithoutExecution) {
  TestServer server;
  RpcClient first = server.connect();
  const std::optional<Bytes> answer = first.ask(change_call(5, 10));
  ASSERT_TRUE(answer);
  EXPECT_EQ(words(*answer).back(), 1U);
  RpcClient second = server.connect();
  EXPECT_EQ(second.ask(change_call(5, 10)), answer);
  EXPECT_EQ(first.ask(change_call(5, 10)), answer);
  EXPECT_EQ(server.service.executions(10), 1U);
  EXPECT_EQ(server.counters().drc_hits.get(), 2U);
}

TEST(RpcDuplicates, OtherCallsAreExecuted) {
  TestServer server;
  RpcClient client = server.connect();
  ASSERT_TRUE(client.ask(change_call(5, 10)));
  // Another xid; other arguments; another credential; another version.
  EXPECT_EQ(words(*client.ask(change_call(6, 10))).back(), 2U);
  EXPECT_EQ(words(*client.ask(change_call(5, 20))).back(), 1U);
  Message other_user = call_sys(5, test_program, 2, proc_change, 1001, 1000).u32(10);
  EXPECT_EQ(words(*client.ask(other_user)).back(), 3U);
  Message other_version = call_sys(5, test_program, 4, proc_change, 1000, 1000).u32(10);
  EXPECT_EQ(words(*client.ask(other_version)).back(), 4U);
  EXPECT_EQ(server.counters().drc_hits.get(), 0U);
}

TEST(RpcDuplicates, ReadsAreNotHeld) {
  TestServer server;
  RpcClient client = server.connect();
  ASSERT_TRUE(client.ask(call(5, test_program, 2, proc_echo).u32(1)));
  ASSERT_TRUE(client.ask(call(5, test_program, 2, proc_echo).u32(1)));
  EXPECT_EQ(server.counters().drc_hits.get(), 0U);
}

TEST(RpcDuplicates, RetryOfACallInProgressIsAnsweredWhereItCame) {
  TestServer server;
  {
    RpcClient first = server.connect();
    ASSERT_TRUE(first.send_record(change_call(5, 1)));
    ASSERT_TRUE(server.service.wait_held(1, 1));
  }
  // Two, so that one at least is on another worker than the first was.
  RpcClient second = server.connect();
  RpcClient third = server.connect();
  ASSERT_TRUE(second.send_record(change_call(5, 1)));
  ASSERT_TRUE(third.send_record(change_call(5, 1)));
  ASSERT_TRUE(eventually([&] { return server.counters().drc_waits.get() == 2; }));
  EXPECT_EQ(server.service.executions(1), 1U);
  server.service.release(1);
  const std::optional<Bytes> answer = second.receive();
  ASSERT_TRUE(answer);
  EXPECT_THAT(words(*answer), ::testing::ElementsAre(5, 1, 0, 0, 0, 0, 1, 1));
  EXPECT_EQ(third.receive(), answer);
  EXPECT_EQ(server.service.executions(1), 1U);
}

TEST(RpcDuplicates, WriteRetryIsKnownHoweverItIsFramed) {
  TestServer server;
  RpcClient client = server.connect();
  const Bytes data = pattern(47008);
  const std::optional<Bytes> answer = client.ask(write_call(9, 5, data));
  ASSERT_TRUE(answer);
  ASSERT_TRUE(client.send(framed(write_call(9, 5, data).bytes(), 2048)));
  EXPECT_EQ(client.receive(), answer);
  EXPECT_EQ(server.service.executions(5), 1U);
  // The same place and beginning, other data behind: another WRITE.
  Bytes other = data;
  other.back() ^= std::byte{1};
  const std::optional<Bytes> fresh = client.ask(write_call(9, 5, other));
  ASSERT_TRUE(fresh);
  EXPECT_NE(fresh, answer);
  EXPECT_EQ(server.service.executions(5), 2U);
}

TEST(RpcDuplicates, HeldBackWriteHoldsNoBuffer) {
  TestServer server;
  RpcClient first = server.connect();
  const Message write = write_call(5, 8192, pattern(100000), proc_held_write);
  ASSERT_TRUE(first.send_record(write));
  ASSERT_TRUE(server.service.wait_held(8192, 1));
  const std::uint64_t used = server.runtime->buffers().gauges().bytes_used;
  EXPECT_GE(used, 100000U);
  RpcClient second = server.connect();
  ASSERT_TRUE(second.send_record(write));
  ASSERT_TRUE(eventually([&] { return server.counters().drc_waits.get() == 1; }));
  EXPECT_EQ(server.counters().steered_payloads.get(), 2U);
  EXPECT_EQ(server.runtime->buffers().gauges().bytes_used, used);
  server.service.release(8192);
  const std::optional<Bytes> answer = first.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(second.receive(), answer);
  EXPECT_EQ(server.service.executions(8192), 1U);
}

TEST(RpcDuplicates, PassingConditionsAreNotKept) {
  TestServer server;
  RpcClient client = server.connect();
  EXPECT_EQ(words(*client.ask(change_call(5, 1010))).back(), 1U);
  EXPECT_EQ(words(*client.ask(change_call(5, 1010))).back(), 2U);
  EXPECT_EQ(server.counters().drc_hits.get(), 0U);
}

TEST(RpcDuplicates, EntriesExpire) {
  Options options;
  options.duplicates.expiry = milliseconds(0);
  TestServer server(options);
  RpcClient client = server.connect();
  EXPECT_EQ(words(*client.ask(change_call(5, 10))).back(), 1U);
  EXPECT_EQ(words(*client.ask(change_call(5, 10))).back(), 2U);
}

DuplicateRequestCache::Key key_of(std::uint32_t xid) {
  DuplicateRequestCache::Key key;
  key.xid = xid;
  key.checksum = std::uint64_t{xid} * 0x9e3779b97f4a7c15U;
  return key;
}

DuplicateRequestCache::Bytes answer_of(std::size_t size) {
  DuplicateRequestCache::Bytes bytes;
  bytes.resize(size);
  return bytes;
}

TEST(RpcDuplicates, BoundedByEntries) {
  Counters counters;
  DuplicateRequestCache::Options options;
  options.max_entries = 160;
  DuplicateRequestCache cache(options, counters);
  for (std::uint32_t xid = 0; xid < 5000; ++xid) {
    cache.begin(key_of(xid)).execute.finish(answer_of(10), true);
  }
  EXPECT_LE(cache.gauges().entries, 160U);
  // The latest is there, the first is gone.
  EXPECT_TRUE(cache.begin(key_of(4999)).answer);
  EXPECT_TRUE(cache.begin(key_of(0)).execute);
}

TEST(RpcDuplicates, BoundedByBytes) {
  Counters counters;
  DuplicateRequestCache::Options options;
  options.max_bytes = 160000;
  DuplicateRequestCache cache(options, counters);
  for (std::uint32_t xid = 0; xid < 5000; ++xid) {
    cache.begin(key_of(xid)).execute.finish(answer_of(1000), true);
  }
  EXPECT_LE(cache.gauges().entries * 1000, 160000U);
  EXPECT_GE(cache.gauges().entries, 16U);
  // One answer over the bound is not kept, and pushes everything of its shard out at most.
  cache.begin(key_of(9999)).execute.finish(answer_of(1 << 20), true);
  EXPECT_TRUE(cache.begin(key_of(9999)).execute);
}

TEST(RpcDuplicates, AbandonedCallIsForgotten) {
  Counters counters;
  DuplicateRequestCache cache({}, counters);
  {
    const DuplicateRequestCache::Decision decision = cache.begin(key_of(1));
    EXPECT_TRUE(decision.execute);
    const DuplicateRequestCache::Decision retry = cache.begin(key_of(1));
    EXPECT_FALSE(retry.execute);
    EXPECT_FALSE(retry.answer);
    EXPECT_TRUE(retry.first);
  }
  EXPECT_TRUE(cache.begin(key_of(1)).execute);
}

TEST(RpcDuplicates, WaitersAreBounded) {
  Options options;
  options.duplicates.max_waiters = 2;
  TestServer server(options);
  RpcClient client = server.connect();
  ASSERT_TRUE(client.send_record(change_call(5, 1)));
  ASSERT_TRUE(server.service.wait_held(1, 1));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(client.send_record(change_call(5, 1)));
  ASSERT_TRUE(eventually([&] { return server.counters().drc_drops.get() == 2; }));
  server.service.release(1);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(client.receive());
  // Nothing more comes for the two that were dropped.
  EXPECT_EQ(words(*client.ask(call(99, test_program, 2, 0)))[0], 99U);
}

}  // namespace
}  // namespace selvage::testing
