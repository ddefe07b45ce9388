#include "server/rpc/record_reader.h"

#include "tests/support/record_harness.h"
#include "tests/support/rpc_client.h"
#include "tests/support/rpc_test_program.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace selvage::testing {
namespace {

using server::rpc::ReadStatus;
using server::rpc::Record;
using server::rpc::RecordReader;

constexpr std::uint64_t pool_bytes = 32 << 20;

Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Bytes echo_record(std::size_t arguments, std::uint32_t xid = 1) {
  return call(xid, test_program, 2, proc_echo).raw(pattern(arguments)).bytes();
}

std::size_t misplaced_by(const Record& record, std::uint64_t offset) {
  return (reinterpret_cast<std::uintptr_t>(record.payload.data()) - offset) % 4096;
}

TEST(RpcRecordReader, OneRecordOneFragment) {
  storage::BufferPool pool(pool_bytes);
  RecordHarness harness(pool);
  const Bytes record = echo_record(100);
  harness.feed(framed(record));
  ASSERT_EQ(harness.records.size(), 1U);
  EXPECT_EQ(RecordHarness::joined(harness.records[0]), record);
  harness.finish();
  EXPECT_EQ(harness.end, ReadStatus::peer_closed);
}

TEST(RpcRecordReader, WriteIsReceivedInPlace) {
  storage::BufferPool pool(pool_bytes);
  const Bytes data = pattern(47008);
  for (const std::uint64_t offset : {0UL, 47008UL, 94016UL, 1UL, 4095UL, (1UL << 40) + 17}) {
    RecordHarness harness(pool);
    const Bytes record = write_call(7, offset, data).bytes();
    harness.feed(framed(record));
    ASSERT_EQ(harness.records.size(), 1U);
    EXPECT_EQ(RecordHarness::joined(harness.records[0]), record);
    EXPECT_EQ(Bytes(harness.records[0].payload.begin(), harness.records[0].payload.end()), data);
    EXPECT_EQ(misplaced_by(harness.records[0], offset), 0U);
    // The proof by counting: all that was copied came with one read of at most 512 bytes.
    EXPECT_EQ(harness.counters.steered_payloads.get(), 1U);
    EXPECT_GT(harness.counters.overread_bytes.get(), 0U);
    EXPECT_LE(harness.counters.overread_bytes.get() + harness.counters.head_bytes_copied.get(),
              512U);
    EXPECT_EQ(harness.counters.reassembled_bytes.get(), 0U);
  }
}

TEST(RpcRecordReader, StreamOfWritesCopiesOnlyOverreadBytes) {
  storage::BufferPool pool(pool_bytes);
  RecordHarness harness(pool);
  constexpr unsigned count = 50;
  Bytes stream;
  for (unsigned i = 0; i < count; ++i) {
    stream = stream + framed(write_call(i, std::uint64_t{47008} * i, pattern(47008, i)).bytes());
  }
  harness.feed(stream);
  ASSERT_EQ(harness.records.size(), count);
  for (unsigned i = 0; i < count; ++i) {
    const Record& record = harness.records[i];
    EXPECT_EQ(Bytes(record.payload.begin(), record.payload.end()), pattern(47008, i));
    EXPECT_EQ(misplaced_by(record, std::uint64_t{47008} * i), 0U);
  }
  EXPECT_LE(harness.counters.overread_bytes.get() + harness.counters.head_bytes_copied.get(),
            512U * count);
  EXPECT_EQ(harness.counters.reassembled_records.get(), 0U);
  // One read for payload and the next head, where the bytes are there.
  EXPECT_LT(harness.counters.receives.get(), 4U * count);
}

TEST(RpcRecordReader, SmallAndOddWrites) {
  storage::BufferPool pool(pool_bytes);
  for (const std::size_t size : {1UL, 2UL, 3UL, 4UL, 100UL, 511UL, 512UL, 513UL, 4097UL}) {
    RecordHarness harness(pool);
    const Bytes first = write_call(1, 4000, pattern(size)).bytes();
    const Bytes second = write_call(2, 4000 + size, pattern(size, 2)).bytes();
    harness.feed(framed(first) + framed(second) + framed(echo_record(8)));
    ASSERT_EQ(harness.records.size(), 3U) << size;
    EXPECT_EQ(RecordHarness::joined(harness.records[0]), first);
    EXPECT_EQ(RecordHarness::joined(harness.records[1]), second);
    EXPECT_EQ(misplaced_by(harness.records[0], 4000), 0U);
    EXPECT_EQ(misplaced_by(harness.records[1], 4000 + size), 0U);
    EXPECT_EQ(RecordHarness::joined(harness.records[2]), echo_record(8));
  }
}

TEST(RpcRecordReader, EmptyWriteNeedsNoBuffer) {
  storage::BufferPool pool(pool_bytes);
  RecordHarness harness(pool);
  const Bytes record = write_call(1, 0, {}).bytes();
  harness.feed(framed(record));
  ASSERT_EQ(harness.records.size(), 1U);
  EXPECT_EQ(RecordHarness::joined(harness.records[0]), record);
  EXPECT_EQ(pool.gauges().bytes_used, 0U);
}

TEST(RpcRecordReader, SplitAtEveryByte) {
  storage::BufferPool pool(pool_bytes);
  const Bytes write = write_call(1, 12345, pattern(700)).bytes();
  const Bytes stream = framed(write) + framed(echo_record(16));
  for (std::size_t split = 1; split < stream.size(); ++split) {
    RecordHarness harness(pool);
    harness.feed(std::span(stream).first(split));
    harness.feed(std::span(stream).subspan(split));
    ASSERT_EQ(harness.records.size(), 2U) << split;
    EXPECT_EQ(RecordHarness::joined(harness.records[0]), write) << split;
    EXPECT_EQ(misplaced_by(harness.records[0], 12345), 0U) << split;
    EXPECT_EQ(harness.counters.steered_payloads.get(), 1U) << split;
    EXPECT_EQ(RecordHarness::joined(harness.records[1]), echo_record(16)) << split;
  }
}

TEST(RpcRecordReader, ByteByByte) {
  storage::BufferPool pool(pool_bytes);
  RecordHarness harness(pool);
  const Bytes write = write_call(1, 12345, pattern(700)).bytes();
  harness.feed(framed(write) + framed(echo_record(16)), 1);
  ASSERT_EQ(harness.records.size(), 2U);
  EXPECT_EQ(RecordHarness::joined(harness.records[0]), write);
  EXPECT_EQ(misplaced_by(harness.records[0], 12345), 0U);
  EXPECT_EQ(RecordHarness::joined(harness.records[1]), echo_record(16));
}

TEST(RpcRecordReader, FragmentsOfAnySize) {
  storage::BufferPool pool(pool_bytes);
  const Bytes write = write_call(1, 12345, pattern(3001)).bytes();
  for (const std::size_t fragment : {1UL, 2UL, 3UL, 7UL, 100UL, 511UL, 2048UL, 3000UL}) {
    for (const std::size_t chunk : {1UL, 13UL, 100000UL}) {
      RecordHarness harness(pool);
      harness.feed(framed(write, fragment) + framed(echo_record(16), fragment), chunk);
      ASSERT_EQ(harness.records.size(), 2U) << fragment << " " << chunk;
      EXPECT_EQ(RecordHarness::joined(harness.records[0]), write) << fragment << " " << chunk;
      EXPECT_EQ(RecordHarness::joined(harness.records[1]), echo_record(16));
      EXPECT_EQ(harness.counters.reassembled_records.get(), 2U);
    }
  }
}

TEST(RpcRecordReader, EmptyFragmentsAreBounded) {
  storage::BufferPool pool(pool_bytes);
  const Bytes empty(4);
  const Bytes record = echo_record(8);
  RecordHarness few(pool);
  few.feed(empty + empty + framed(record));
  ASSERT_EQ(few.records.size(), 1U);
  EXPECT_EQ(RecordHarness::joined(few.records[0]), record);
  RecordHarness many(pool);
  many.feed(Bytes(4000));
  EXPECT_EQ(many.end, ReadStatus::garbage);
}

TEST(RpcRecordReader, OversizeIsRefusedAtItsMark) {
  storage::BufferPool pool(pool_bytes);
  RecordReader::Limits limits;
  limits.max_record = 10000;
  RecordHarness fits(pool, limits);
  fits.feed(framed(call(1, test_program, 2, proc_echo).raw(pattern(10000 - 40)).bytes()));
  EXPECT_EQ(fits.records.size(), 1U);
  RecordHarness one(pool, limits);
  one.feed(framed(call(1, test_program, 2, proc_echo).raw(pattern(10001 - 40)).bytes()));
  EXPECT_EQ(one.end, ReadStatus::oversize);
  RecordHarness sum(pool, limits);
  sum.feed(framed(pattern(10001), 5000));
  EXPECT_TRUE(sum.end == ReadStatus::oversize || sum.end == ReadStatus::garbage);
  RecordHarness largest(pool, limits);
  largest.feed(Bytes(4, std::byte{0xff}));
  EXPECT_EQ(largest.end, ReadStatus::oversize);
}

TEST(RpcRecordReader, MemoryGrowsWithWhatHasComeOnly) {
  storage::BufferPool pool(pool_bytes);
  RecordHarness harness(pool, {}, 1);
  // Announces 8 MiB of an unknown procedure, sends little: neither a large permit nor the pool.
  Bytes start = framed(call(1, test_program, 2, proc_echo).raw(pattern(8 << 20)).bytes());
  start.resize(10000);
  harness.feed(start);
  EXPECT_EQ(harness.large.in_use(), 0U);
  EXPECT_EQ(pool.gauges().bytes_used, 0U);
  harness.finish();
  EXPECT_EQ(harness.end, ReadStatus::peer_cut);
}

TEST(RpcRecordReader, LargeRecordsWaitForTheirTurn) {
  storage::BufferPool pool(pool_bytes);
  RecordHarness harness(pool, {}, 1);
  const Bytes large = echo_record(200000);
  const Bytes stream = framed(large);
  harness.feed(stream);
  ASSERT_EQ(harness.records.size(), 1U);
  EXPECT_EQ(RecordHarness::joined(harness.records[0]), large);
  EXPECT_EQ(harness.large.in_use(), 1U);
  // The permit is the first record's: the second is not read to its end before that is gone.
  harness.feed(std::span(stream).first(100000));
  EXPECT_EQ(harness.large.waits(), 1U);
  EXPECT_FALSE(harness.reader().clock().running_since());
  harness.records.clear();
  harness.run_ready();
  harness.feed(std::span(stream).subspan(100000));
  ASSERT_EQ(harness.records.size(), 1U);
  EXPECT_EQ(RecordHarness::joined(harness.records[0]), large);
}

TEST(RpcRecordReader, WaitsForBuffersAndGoesOn) {
  storage::BufferPool pool(2 << 20);
  RecordHarness harness(pool);
  storage::Buffer all = pool.try_acquire(2 << 20);
  ASSERT_TRUE(all);
  const Bytes write = write_call(1, 12345, pattern(50000)).bytes();
  harness.feed(framed(write));
  EXPECT_TRUE(harness.records.empty());
  EXPECT_EQ(pool.gauges().waits, 1U);
  // The client is not to blame: its deadline stands still.
  EXPECT_FALSE(harness.reader().clock().running_since());
  all = storage::Buffer();
  harness.run_ready();
  harness.feed({});
  ASSERT_EQ(harness.records.size(), 1U);
  EXPECT_EQ(RecordHarness::joined(harness.records[0]), write);
  EXPECT_EQ(harness.counters.receive_waits.get(), 1U);
}

TEST(RpcRecordReader, PayloadLargerThanThePool) {
  storage::BufferPool pool(2 << 20);
  RecordHarness harness(pool);
  harness.feed(framed(write_call(1, 0, pattern(3 << 20)).bytes()));
  EXPECT_EQ(harness.end, ReadStatus::oversize);
}

TEST(RpcRecordReader, LyingLengthsAreNotSteered) {
  storage::BufferPool pool(pool_bytes);
  RecordHarness harness(pool);
  Message beyond = call(1, test_program, 2, proc_write);
  beyond.opaque(pattern(28)).u64(0).u32(1000).u32(2).u32(1000).raw(pattern(500));
  Message huge = call(2, test_program, 2, proc_write);
  huge.opaque(pattern(28)).u64(0).u32(1000).u32(2).u32(0xffffffffU).raw(pattern(500));
  Message trailing = call(3, test_program, 2, proc_write);
  trailing.opaque(pattern(28)).u64(0).u32(8).u32(2).opaque(pattern(8)).raw(pattern(100000));
  harness.feed(framed(beyond.bytes()) + framed(huge.bytes()) + framed(trailing.bytes()));
  ASSERT_EQ(harness.records.size(), 3U);
  EXPECT_EQ(RecordHarness::joined(harness.records[0]), beyond.bytes());
  EXPECT_EQ(RecordHarness::joined(harness.records[1]), huge.bytes());
  EXPECT_EQ(RecordHarness::joined(harness.records[2]), trailing.bytes());
  EXPECT_EQ(harness.counters.steered_payloads.get(), 0U);
}

TEST(RpcRecordReader, MoreAfterThePayloadIsTheTail) {
  storage::BufferPool pool(pool_bytes);
  RecordHarness harness(pool);
  Message message = write_call(1, 77, pattern(5001));
  message.raw(pattern(200));
  harness.feed(framed(message.bytes()) + framed(echo_record(4)));
  ASSERT_EQ(harness.records.size(), 2U);
  EXPECT_EQ(RecordHarness::joined(harness.records[0]), message.bytes());
  EXPECT_EQ(harness.records[0].payload.size(), 5001U);
  EXPECT_EQ(harness.records[0].tail.size(), 203U);
}

TEST(RpcRecordReader, LongestHeaderIsStillSteered) {
  storage::BufferPool pool(pool_bytes);
  RecordHarness harness(pool);
  Message message;
  message.u32(1).u32(0).u32(2).u32(test_program).u32(2).u32(proc_write);
  message.u32(0).opaque(pattern(400)).u32(0).opaque(pattern(400));
  message.opaque(pattern(64)).u64(99).u32(60000).u32(2).opaque(pattern(60000));
  harness.feed(framed(message.bytes()) + framed(message.bytes()));
  ASSERT_EQ(harness.records.size(), 2U);
  for (const Record& record : harness.records) {
    EXPECT_EQ(RecordHarness::joined(record), message.bytes());
    EXPECT_EQ(misplaced_by(record, 99), 0U);
  }
  EXPECT_EQ(harness.counters.steered_payloads.get(), 2U);
  EXPECT_LE(harness.counters.overread_bytes.get(), 2U * 512);
}

TEST(RpcRecordReader, GarbageEnds) {
  storage::BufferPool pool(pool_bytes);
  RecordHarness reply(pool);
  Message not_a_call;
  not_a_call.u32(1).u32(1).u32(0).u32(0).u32(0).u32(0);
  reply.feed(framed(not_a_call.bytes()));
  EXPECT_EQ(reply.end, ReadStatus::garbage);
  // An HTTP request: its first four bytes announce 0x47455420 bytes.
  RecordHarness http(pool);
  http.feed(std::as_bytes(std::span(std::string_view("GET / HTTP/1.0\r\n\r\n"))));
  EXPECT_EQ(http.end, ReadStatus::oversize);
}

TEST(RpcRecordReader, CutWithinARecord) {
  storage::BufferPool pool(pool_bytes);
  const Bytes stream = framed(write_call(1, 0, pattern(3000)).bytes());
  for (const std::size_t size : {1UL, 4UL, 20UL, 200UL, 1000UL, stream.size() - 1}) {
    RecordHarness harness(pool);
    harness.feed(std::span(stream).first(size));
    EXPECT_TRUE(harness.reader().clock().running_since()) << size;
    harness.finish();
    EXPECT_EQ(harness.end, ReadStatus::peer_cut) << size;
    EXPECT_TRUE(harness.records.empty());
  }
  EXPECT_EQ(pool.gauges().bytes_used, 0U);
}

}  // namespace
}  // namespace selvage::testing
