// Source and Sink against bytes written out by hand (RFC 4506).
#include "xdr/stream.h"

#include "allocations.h"
#include "xdr/nfs3.h"
#include "xdr/types.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace selvage::xdr::test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes(std::initializer_list<int> values) {
  Bytes result;
  for (const int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

TEST(Source, IntegersAreBigEndian) {
  const Bytes from =
      bytes({0x80, 0,    0,    1,    0xff, 0xff, 0xff, 0xfe, 1, 2, 3, 4, 5, 6, 7, 8,  //
             0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfd, 0, 0, 0, 1});
  Source source(from);
  std::uint32_t u32 = 0;
  std::int32_t i32 = 0;
  std::uint64_t u64 = 0;
  std::int64_t i64 = 0;
  bool b = false;
  ASSERT_TRUE(source.get(u32) && source.get(i32) && source.get(u64) && source.get(i64));
  EXPECT_EQ(source.position(), 24U);
  EXPECT_EQ(source.remaining(), 4U);
  ASSERT_TRUE(source.get(b));
  EXPECT_EQ(u32, 0x80000001U);
  EXPECT_EQ(i32, -2);
  EXPECT_EQ(u64, 0x0102030405060708U);
  EXPECT_EQ(i64, -3);
  EXPECT_TRUE(b);
  EXPECT_FALSE(source.get(u32));
}

TEST(Source, ReadsAtAnyAddress) {
  const Bytes value = bytes({1, 2, 3, 4, 0, 0, 0, 2, 9, 8, 0, 0});
  for (std::size_t skew = 0; skew < 8; ++skew) {
    Bytes memory(skew);
    memory.insert(memory.end(), value.begin(), value.end());
    Source source(std::span<const std::byte>(memory).subspan(skew));
    std::uint32_t number = 0;
    ASSERT_TRUE(source.get(number));
    EXPECT_EQ(number, 0x01020304U);
    std::span<const std::byte> view;
    ASSERT_TRUE(source.get(number));
    ASSERT_TRUE(source.view_opaque(number, view));
    EXPECT_EQ(Bytes(view.begin(), view.end()), bytes({9, 8}));
    EXPECT_EQ(source.remaining(), 0U);
  }
}

TEST(Source, BoolIsZeroOrOne) {
  for (const int value : {2, 255}) {
    const Bytes from = bytes({0, 0, 0, value});
    Source source(from);
    bool b = false;
    EXPECT_FALSE(source.get(b)) << value;
  }
  const Bytes from = bytes({1, 0, 0, 0});
  Source source(from);
  bool b = false;
  EXPECT_FALSE(source.get(b));
}

TEST(Source, PaddingIsThereAndZero) {
  std::array<std::uint8_t, 5> five{};
  const Bytes good = bytes({1, 2, 3, 4, 5, 0, 0, 0});
  Source whole(good);
  ASSERT_TRUE(whole.get_opaque(five));
  EXPECT_EQ(five, (std::array<std::uint8_t, 5>{1, 2, 3, 4, 5}));
  for (std::size_t at = 5; at < 8; ++at) {
    Bytes bad = good;
    bad[at] = std::byte{1};
    Source source(bad);
    EXPECT_FALSE(source.get_opaque(five)) << at;
    Source shorter(std::span(good).first(at));
    EXPECT_FALSE(shorter.get_opaque(five)) << at;
  }
}

TEST(Source, HugeLengthsAreRefused) {
  const Bytes from(16);
  for (const std::size_t length :
       {std::size_t{17}, std::size_t{0xffffffff}, SIZE_MAX, SIZE_MAX - 3}) {
    Source source(from);
    std::span<const std::byte> view;
    EXPECT_FALSE(source.view_opaque(length, view)) << length;
  }
}

TEST(Source, SteeredPayloadIsTheSegmentItself) {
  const Bytes head = bytes({0, 0, 0, 7, 0, 0, 0, 5});
  const Bytes payload = bytes({1, 2, 3, 4, 5});
  const Bytes tail = bytes({0, 0, 0, 0, 0, 0, 9});
  Source source(head, payload, tail);
  std::uint32_t number = 0;
  std::span<const std::byte> view;
  EXPECT_EQ(source.remaining(), 20U);
  ASSERT_TRUE(source.get(number));
  ASSERT_TRUE(source.view_payload(5, view));
  EXPECT_EQ(view.data(), payload.data());
  EXPECT_EQ(view.size(), payload.size());
  EXPECT_EQ(source.position(), 16U);
  ASSERT_TRUE(source.get(number));
  EXPECT_EQ(number, 9U);
  EXPECT_EQ(source.remaining(), 0U);
}

TEST(Source, SteeredPayloadMustFit) {
  const Bytes payload = bytes({1, 2, 3, 4, 5});
  const Bytes tail = bytes({0, 0, 0});
  const Bytes right = bytes({0, 0, 0, 5});
  std::span<const std::byte> view;
  {
    Source over_the_bound(right, payload, tail);
    EXPECT_FALSE(over_the_bound.view_payload(4, view));
  }
  for (const int length : {0, 4, 6, 8}) {
    const Bytes wrong = bytes({0, 0, 0, length});
    Source source(wrong, payload, tail);
    EXPECT_FALSE(source.view_payload(100, view)) << length;
  }
  {
    const Bytes early = bytes({0, 0, 0, 5, 0, 0, 0, 0});
    Source bytes_left_in_head(early, payload, tail);
    EXPECT_FALSE(bytes_left_in_head.view_payload(100, view));
  }
  {
    const Bytes nonzero = bytes({0, 1, 0});
    Source bad_padding(right, payload, nonzero);
    EXPECT_FALSE(bad_padding.view_payload(100, view));
  }
  Source no_padding(right, payload, std::span(tail).first(2));
  EXPECT_FALSE(no_padding.view_payload(100, view));
}

// What is not the payload does not read on into the payload's memory.
TEST(Source, HeadEndsWhereItEnds) {
  const Bytes head = bytes({0, 0});
  const Bytes payload = bytes({0, 1, 0, 0});
  Source source(head, payload);
  std::uint32_t number = 0;
  EXPECT_FALSE(source.get(number));
}

TEST(Source, EmptySteeredPayload) {
  const Bytes head = bytes({0, 0, 0, 0});
  const Bytes tail = bytes({0, 0, 0, 3});
  Source source(head, {}, tail);
  std::span<const std::byte> view;
  std::uint32_t number = 0;
  ASSERT_TRUE(source.view_payload(100, view));
  EXPECT_TRUE(view.empty());
  ASSERT_TRUE(source.get(number));
  EXPECT_EQ(number, 3U);
}

TEST(Sink, BytesAreThoseOfTheRfc) {
  Sink sink;
  sink.put(std::uint32_t{0x01020304});
  sink.put(std::int32_t{-1});
  sink.put(std::uint64_t{0x1112131415161718});
  sink.put(std::int64_t{-2});
  sink.put(true);
  sink.put_opaque(bytes({7, 8, 9}));
  EXPECT_EQ(sink.joined(), bytes({1,    2,    3,    4,    0xff, 0xff, 0xff, 0xff, 0x11, 0x12, 0x13,
                                  0x14, 0x15, 0x16, 0x17, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                  0xff, 0xfe, 0,    0,    0,    1,    7,    8,    9,    0}));
  EXPECT_EQ(sink.head().size(), sink.size());
  EXPECT_TRUE(sink.payload().empty());
  EXPECT_TRUE(sink.tail().empty());
}

TEST(Sink, PayloadIsByReference) {
  const Bytes payload = bytes({1, 2, 3, 4, 5});
  Sink sink;
  sink.put(std::uint32_t{6});
  sink.put_payload(payload);
  sink.put(std::uint32_t{7});
  EXPECT_EQ(sink.payload().data(), payload.data());
  EXPECT_EQ(sink.head().size(), 8U);
  EXPECT_EQ(sink.tail().size(), 7U);
  EXPECT_EQ(sink.size(), 20U);
  EXPECT_EQ(sink.joined(), bytes({0, 0, 0, 6, 0, 0, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 7}));
}

TEST(Sink, SecondPayloadIsCopied) {
  const Bytes first = bytes({1, 2, 3, 4});
  const Bytes second = bytes({5, 6});
  Sink sink;
  sink.put_payload(first);
  sink.put_payload(second);
  EXPECT_EQ(sink.payload().data(), first.data());
  EXPECT_EQ(sink.joined(), bytes({0, 0, 0, 4, 1, 2, 3, 4, 0, 0, 0, 2, 5, 6, 0, 0}));
}

TEST(Sink, MovesLeaveNothingBehind) {
  const Bytes payload = bytes({1, 2, 3, 4});
  Sink a;
  a.put_payload(payload);
  Sink b(std::move(a));
  b.put(std::uint32_t{5});
  EXPECT_EQ(b.joined(), bytes({0, 0, 0, 4, 1, 2, 3, 4, 0, 0, 0, 5}));
  EXPECT_EQ(a.size(), 0U);  // NOLINT(bugprone-use-after-move)
  a.put(std::uint32_t{1});
  EXPECT_EQ(a.joined(), bytes({0, 0, 0, 1}));
  a = std::move(b);
  EXPECT_EQ(a.size(), 12U);
}

TEST(Sink, OrdinaryReplyIsOneAllocation) {
  CREATE3resok ok;
  ok.obj.emplace().data.resize(64);
  ok.obj_attributes.emplace();
  ok.dir_wcc.before.emplace();
  ok.dir_wcc.after.emplace();
  const CREATE3res result(ok);
  const Allocations allocations;
  Sink sink;
  encode(sink, result);
  EXPECT_EQ(allocations.calls(), 1U);
  EXPECT_EQ(sink.size(), 4U + 4 + 68 + 88 + 28 + 88);
}

TEST(Sink, ReadReplyDoesNotCopyItsData) {
  const Bytes data(1 << 20);
  READ3resok ok;
  ok.count = 1 << 20;
  ok.data.bytes = data;
  const READ3res result(ok);
  const Allocations allocations;
  Sink sink;
  encode(sink, result);
  EXPECT_LE(allocations.bytes(), Sink::first_allocation);
  EXPECT_EQ(sink.payload().data(), data.data());
}

}  // namespace
}  // namespace selvage::xdr::test
