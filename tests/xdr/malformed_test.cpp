// What a client may send instead: refused at once, and nothing allocated for what is only claimed.
#include "allocations.h"

#include "xdr/mount3.h"
#include "xdr/nfs3.h"
#include "xdr/rpc.h"
#include "xdr/types.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace selvage::xdr::test {
namespace {

using Bytes = std::vector<std::byte>;

/// Words of 4 bytes.
Bytes words(const std::vector<std::uint32_t>& values) {
  Sink sink;
  for (const std::uint32_t value : values) sink.put(value);
  return sink.joined();
}

template <class T>
bool decodes(const Bytes& bytes) {
  Source source(bytes);
  T value;
  return decode(source, value) && source.remaining() == 0;
}

template <class T>
Bytes encoded(const T& value) {
  Sink sink;
  encode(sink, value);
  return sink.joined();
}

/// false, and less was allocated than four times what was there.
template <class T>
testing::AssertionResult refused_cheaply(const Bytes& bytes) {
  Source source(bytes);
  T value;
  const Allocations allocations;
  if (decode(source, value)) return testing::AssertionFailure() << "decoded";
  if (allocations.bytes() > 4 * bytes.size()) {
    return testing::AssertionFailure() << allocations.bytes() << " bytes allocated";
  }
  return testing::AssertionSuccess();
}

constexpr std::uint32_t huge = std::numeric_limits<std::uint32_t>::max();

TEST(Malformed, HandleOver64Bytes) {
  Bytes bytes = words({64});
  bytes.resize(68);
  EXPECT_TRUE(decodes<GETATTR3args>(bytes));
  bytes = words({65});
  bytes.resize(72);
  EXPECT_FALSE(decodes<GETATTR3args>(bytes));
  EXPECT_TRUE(decodes<GETATTR3args>(words({0})));
  for (const std::uint32_t length : {std::uint32_t{1}, huge, huge - 2, 0x80000000U}) {
    EXPECT_TRUE(refused_cheaply<GETATTR3args>(words({length}))) << length;
  }
}

TEST(Malformed, NameOverItsBound) {
  Bytes bytes = words({0, nfs3_name_max});
  bytes.resize(bytes.size() + nfs3_name_max);
  EXPECT_TRUE(decodes<LOOKUP3args>(bytes));
  bytes = words({0, nfs3_name_max + 1});
  bytes.resize(bytes.size() + nfs3_name_max + 4);
  EXPECT_FALSE(decodes<LOOKUP3args>(bytes));
}

TEST(Malformed, NameIsClaimedOnly) {
  for (const std::uint32_t length : {5U, nfs3_name_max, huge, huge - 3}) {
    EXPECT_TRUE(refused_cheaply<LOOKUP3args>(words({0, length, 0}))) << length;
  }
}

TEST(Malformed, NulInANameIsLetThrough) {
  LOOKUP3args args;
  args.what.name.value = std::string("a\0b", 3);
  const Bytes bytes = encoded(args);
  Source source(bytes);
  LOOKUP3args again;
  ASSERT_TRUE(decode(source, again));
  EXPECT_EQ(again.what.name.value, args.what.name.value);
}

TEST(Malformed, PaddingOfAName) {
  const Bytes good = words({0, 1, 0x61000000});
  EXPECT_TRUE(decodes<LOOKUP3args>(good));
  EXPECT_FALSE(decodes<LOOKUP3args>(words({0, 1, 0x61000001})));
  EXPECT_FALSE(decodes<LOOKUP3args>(words({0, 1, 0x61010000})));
}

TEST(Malformed, MountPathOverItsBound) {
  Bytes bytes = words({MNTPATHLEN});
  bytes.resize(4 + MNTPATHLEN);
  EXPECT_TRUE(decodes<dirpath_args>(bytes));
  bytes = words({MNTPATHLEN + 1});
  bytes.resize(8 + MNTPATHLEN);
  EXPECT_FALSE(decodes<dirpath_args>(bytes));
  EXPECT_TRUE(refused_cheaply<dirpath_args>(words({huge, 0})));
}

TEST(Malformed, WriteDataOverItsBound) {
  // Handle, offset, count, FILE_SYNC.
  for (const std::uint32_t length : {huge, huge - 3, nfs3_payload_max + 1, nfs3_payload_max, 5U}) {
    EXPECT_TRUE(refused_cheaply<WRITE3args>(words({0, 0, 0, length, 2, length, 0}))) << length;
  }
  Bytes bytes = words({0, 0, 0, 0, 2, nfs3_payload_max});
  bytes.resize(bytes.size() + nfs3_payload_max);
  EXPECT_TRUE(decodes<WRITE3args>(bytes));
  bytes = words({0, 0, 0, 0, 2, nfs3_payload_max + 4});
  bytes.resize(bytes.size() + nfs3_payload_max + 4);
  EXPECT_FALSE(decodes<WRITE3args>(bytes));
}

// The counts need not agree: that is the server's to answer.
TEST(Malformed, WriteCountAndLengthMayDiffer) {
  EXPECT_TRUE(decodes<WRITE3args>(words({0, 0, 0, 17, 0, 4, 1})));
}

TEST(Malformed, StableHowOutOfRange) {
  EXPECT_TRUE(decodes<WRITE3args>(words({0, 0, 0, 0, 2, 0})));
  EXPECT_FALSE(decodes<WRITE3args>(words({0, 0, 0, 0, 3, 0})));
  EXPECT_FALSE(decodes<WRITE3args>(words({0, 0, 0, 0, huge, 0})));
}

TEST(Malformed, CreateModeOutOfRange) {
  // Handle, name, UNCHECKED with an empty sattr3; EXCLUSIVE with its verifier.
  EXPECT_TRUE(decodes<CREATE3args>(words({0, 0, 0, 0, 0, 0, 0, 0, 0})));
  EXPECT_TRUE(decodes<CREATE3args>(words({0, 0, 2, 1, 2})));
  EXPECT_FALSE(decodes<CREATE3args>(words({0, 0, 3, 1, 2})));
  EXPECT_FALSE(decodes<CREATE3args>(words({0, 0, huge, 1, 2})));
}

TEST(Malformed, TimeHowAndSetItOutOfRange) {
  const auto setattr = [](std::uint32_t set_mode, std::uint32_t atime, std::uint32_t guard) {
    std::vector<std::uint32_t> values{0, set_mode};
    if (set_mode == 1) values.push_back(0644);
    for (const std::uint32_t value : {0U, 0U, 0U, atime, 1U, guard}) values.push_back(value);
    return words(values);
  };
  EXPECT_TRUE(decodes<SETATTR3args>(setattr(1, 1, 0)));
  EXPECT_TRUE(decodes<SETATTR3args>(setattr(0, 0, 0)));
  EXPECT_FALSE(decodes<SETATTR3args>(setattr(2, 0, 0)));
  EXPECT_FALSE(decodes<SETATTR3args>(setattr(0, 3, 0)));
  EXPECT_FALSE(decodes<SETATTR3args>(setattr(0, 0, 2)));
}

// RFC 1813, 3.3.11: NFS3ERR_BADTYPE is an answer, so the type must arrive.
TEST(Malformed, MknodOfAnUnknownTypeIsDecoded) {
  for (const std::uint32_t type : {0U, 1U, 2U, 5U, 8U, 99U, huge}) {
    const Bytes bytes = words({0, 0, type});
    Source source(bytes);
    MKNOD3args args;
    ASSERT_TRUE(decode(source, args)) << type;
    EXPECT_EQ(args.what.tag, static_cast<ftype3>(type));
    EXPECT_NE(args.what.get_if<Void>(), nullptr);
  }
}

TEST(Malformed, FileTypeInAttributes) {
  fattr3 attributes;
  Bytes bytes = encoded(attributes);
  EXPECT_TRUE(decodes<fattr3>(bytes));
  for (const int type : {0, 8}) {
    bytes[3] = static_cast<std::byte>(type);
    EXPECT_FALSE(decodes<fattr3>(bytes)) << type;
  }
}

TEST(Malformed, AuthSysBounds) {
  const auto auth_sys = [](std::uint32_t name, std::uint32_t gids) {
    Sink sink;
    sink.put(std::uint32_t{1});
    sink.put(name);
    sink.put_opaque(Bytes(name, std::byte{'h'}));
    sink.put(std::uint32_t{1000});
    sink.put(std::uint32_t{100});
    sink.put(gids);
    for (std::uint32_t i = 0; i < gids; ++i) sink.put(i);
    return sink.joined();
  };
  AuthSys value;
  ASSERT_TRUE(decode_auth_sys(auth_sys(255, 16), value));
  EXPECT_EQ(value.machinename.value, std::string(255, 'h'));
  EXPECT_EQ(value.uid, 1000U);
  EXPECT_EQ(value.gid, 100U);
  EXPECT_EQ(value.gids.items.size(), 16U);
  EXPECT_FALSE(decode_auth_sys(auth_sys(256, 0), value));
  EXPECT_FALSE(decode_auth_sys(auth_sys(0, 17), value));
  Bytes longer = auth_sys(3, 2);
  ASSERT_TRUE(decode_auth_sys(longer, value));
  longer.resize(longer.size() + 4);
  EXPECT_FALSE(decode_auth_sys(longer, value));
  EXPECT_TRUE(refused_cheaply<AuthSys>(words({1, huge})));
  EXPECT_TRUE(refused_cheaply<AuthSys>(words({1, 0, 0, 0, huge})));
  EXPECT_TRUE(refused_cheaply<AuthSys>(words({1, 0, 0, 0, 16, 1, 2})));
}

TEST(Malformed, ListOfFlavoursIsClaimedOnly) {
  EXPECT_TRUE(refused_cheaply<mountres3>(words({0, 0, 64, 1})));
  EXPECT_TRUE(refused_cheaply<mountres3>(words({0, 0, huge, 1})));
}

// As many items as there are bytes for, and no end: time and memory follow the bytes.
TEST(Malformed, EndlessChain) {
  std::vector<std::uint32_t> values;
  for (int i = 0; i < 100'000; ++i) {
    for (const std::uint32_t value : {1U, 0U, 0U}) values.push_back(value);
  }
  const Bytes bytes = words(values);
  Source source(bytes);
  mountlist list;
  EXPECT_FALSE(decode(source, list));
  EXPECT_EQ(list.entries.items.size(), 100'000U);
  EXPECT_FALSE(decodes<mountlist>(words({2, 0, 0, 0})));
}

TEST(Encode, OverABoundThrows) {
  Sink sink;
  LOOKUP3args lookup;
  lookup.what.name.value.resize(nfs3_name_max + 1);
  EXPECT_THROW(encode(sink, lookup), std::length_error);
  EXPECT_THROW(encoded_size(lookup), std::length_error);
  const std::vector<std::uint8_t> handle(65);
  EXPECT_THROW(Opaque<64>{handle}, std::length_error);
  const Bytes data(nfs3_payload_max + 1);
  WRITE3args write;
  write.data.bytes = data;
  EXPECT_THROW(encode(sink, write), std::length_error);
  AuthSys auth;
  auth.gids.items.resize(17);
  EXPECT_THROW(encode(sink, auth), std::length_error);
}

TEST(Encode, UnionBodyMustBelongToItsDiscriminant) {
  Sink sink;
  const LOOKUP3res wrong(NFS3ERR_STALE, LOOKUP3resok{});
  EXPECT_THROW(encode(sink, wrong), std::logic_error);
  EXPECT_THROW(createhow3(static_cast<createmode3>(3)), std::logic_error);
}

TEST(Union, IsBuiltByStatus) {
  const LOOKUP3res ok{LOOKUP3resok{}};
  EXPECT_EQ(ok.tag, NFS3_OK);
  const LOOKUP3res stale(NFS3ERR_STALE);
  EXPECT_NE(stale.get_if<LOOKUP3resfail>(), nullptr);
  EXPECT_EQ(encoded(stale), words({70, 0}));
  EXPECT_EQ(encoded(GETATTR3res(NFS3ERR_IO)), words({5}));
  EXPECT_EQ(encoded(createhow3(GUARDED)), words({1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(encoded(fhstatus(13U)), words({13}));
}

}  // namespace
}  // namespace selvage::xdr::test
