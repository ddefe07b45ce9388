#include "storage/handle_codec.h"

#include "tests/support/temp_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>
#include <thread>

namespace selvage::storage {
namespace {

HandleKey key_of(std::uint8_t first) {
  HandleKey key;
  std::iota(key.begin(), key.end(), first);
  return key;
}

ObjectId object_of(std::int32_t type, std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
  return ObjectId(type, bytes);
}

const ErrorCode bad_handle = make_error_code(Errc::bad_handle);

TEST(HandleCodec, RoundTripsEverySizeAndType) {
  const HandleCodec codec(key_of(0));
  for (std::size_t size = 0; size <= ObjectId::max_bytes; ++size) {
    for (const std::int32_t type : {0, 1, 0x81, 0x10081, 0xffffff}) {
      const ObjectId object = object_of(type, size);
      const auto handle = codec.encode(0xdeadbeef, object);
      EXPECT_LE(handle.size(), HandleCodec::max_bytes);
      const auto decoded = codec.decode(handle);
      ASSERT_TRUE(decoded);
      EXPECT_EQ(decoded->export_id, 0xdeadbeefU);
      EXPECT_EQ(decoded->object, object);
      EXPECT_EQ(codec.encode(0xdeadbeef, object), handle);
    }
  }
}

// The form on the wire is kept by clients over restarts and upgrades. The MAC is that of Python's
// hashlib.blake2b(bytes.fromhex("01000000070000810102"), key=bytes(range(32)), digest_size=16).
TEST(HandleCodec, FormIsStable) {
  const HandleCodec codec(key_of(0));
  const std::vector<std::uint8_t> expected = {0x01, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x81, 0x01,
                                              0x02, 0xbb, 0xcf, 0xa5, 0x5f, 0xbc, 0x73, 0xdd, 0x98,
                                              0x20, 0xe3, 0x74, 0x59, 0x6e, 0xd7, 0xa3, 0x74};
  EXPECT_EQ(codec.encode(7, object_of(0x81, 2)), expected);
}

TEST(HandleCodec, EveryAlteredBitIsRefused) {
  const HandleCodec codec(key_of(0));
  for (const std::size_t size : {0U, 8U, 28U, 40U}) {
    auto handle = codec.encode(3, object_of(1, size));
    for (std::size_t bit = 0; bit < handle.size() * 8; ++bit) {
      const auto mask = static_cast<std::uint8_t>(1U << (bit % 8));
      handle[bit / 8] ^= mask;
      const auto decoded = codec.decode(handle);
      ASSERT_FALSE(decoded) << "bit " << bit;
      EXPECT_EQ(decoded.error(), bad_handle);
      handle[bit / 8] ^= mask;
    }
    EXPECT_TRUE(codec.decode(handle));
  }
}

TEST(HandleCodec, EveryOtherLengthIsRefused) {
  const HandleCodec codec(key_of(0));
  const auto handle = codec.encode(3, object_of(1, 28));
  for (std::size_t length = 0; length <= 200; ++length) {
    auto other = handle;
    other.resize(length);
    EXPECT_EQ(codec.decode(other).has_value(), length == handle.size()) << length;
  }
}

TEST(HandleCodec, AnotherKeysHandleIsRefused) {
  const auto handle = HandleCodec(key_of(0)).encode(3, object_of(1, 28));
  EXPECT_EQ(HandleCodec(key_of(1)).decode(handle).error(), bad_handle);
}

TEST(HandleCodec, ExportsAndTypesAreApart) {
  const HandleCodec codec(key_of(0));
  std::set<std::vector<std::uint8_t>> handles;
  for (const std::uint32_t id : {0U, 1U, 256U, 0xffffffffU}) {
    for (const std::int32_t type : {0, 1, 256})
      handles.insert(codec.encode(id, object_of(type, 8)));
  }
  EXPECT_EQ(handles.size(), 12U);
}

TEST(HandleCodec, TypesThatDoNotFitAreNotCutOff) {
  const HandleCodec codec(key_of(0));
  EXPECT_THROW(codec.encode(0, object_of(0x1000000, 8)), std::invalid_argument);
  EXPECT_THROW(codec.encode(0, object_of(-1, 8)), std::invalid_argument);
}

TEST(HandleKey, IsMadeOnceAndKept) {
  const TempDir dir;
  const auto made = load_or_make_handle_key(dir / "key");
  ASSERT_TRUE(made) << made.error().message();
  struct stat status{};
  ASSERT_EQ(::stat((dir / "key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  EXPECT_EQ(status.st_size, 32);
  EXPECT_NE(*made, HandleKey{});
  std::ifstream file(dir / "key", std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), made->begin(), made->end(),
                         [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; }));
  EXPECT_EQ(*load_or_make_handle_key(dir / "key"), *made);
  EXPECT_NE(*load_or_make_handle_key(dir / "other"), *made);
}

TEST(HandleKey, NothingElseIsLeftBehind) {
  const TempDir dir;
  ASSERT_TRUE(load_or_make_handle_key(dir / "key"));
  const std::filesystem::directory_iterator entries(dir.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST(HandleKey, AFileOfAnotherSizeIsAnErrorAndStays) {
  const TempDir dir;
  for (const std::size_t size : {0U, 31U, 33U}) {
    std::ofstream(dir / "key", std::ios::binary | std::ios::trunc) << std::string(size, 'k');
    EXPECT_EQ(load_or_make_handle_key(dir / "key").error(), errno_code(EINVAL)) << size;
    EXPECT_EQ(std::filesystem::file_size(dir / "key"), size);
  }
}

TEST(HandleKey, WhatIsNotAFileIsAnError) {
  const TempDir dir;
  EXPECT_EQ(load_or_make_handle_key(dir.path()).error(), errno_code(EINVAL));
  EXPECT_EQ(load_or_make_handle_key(dir / "missing/key").error(), errno_code(ENOENT));
}

TEST(HandleKey, ProcessesThatRaceGetTheSameKey) {
  for (int round = 0; round < 20; ++round) {
    const TempDir dir;
    std::array<HandleKey, 4> keys{};
    std::vector<std::thread> threads;
    for (HandleKey& key : keys) {
      threads.emplace_back([&dir, &key] { key = *load_or_make_handle_key(dir / "key"); });
    }
    for (std::thread& each : threads) each.join();
    for (const HandleKey& key : keys) EXPECT_EQ(key, keys[0]);
  }
}

}  // namespace
}  // namespace selvage::storage
