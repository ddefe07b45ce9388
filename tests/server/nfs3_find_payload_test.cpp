#include "server/nfs3/program.h"
#include "tests/support/nfs3_client.h"

#include <gtest/gtest.h>

namespace selvage::tests {
namespace {

std::span<const std::byte> octets(const Bytes& bytes) {
  return std::as_bytes(std::span(bytes));
}

TEST(Nfs3FindPayload, LiesAfterItsLengthWord) {
  for (const std::size_t handle : {0u, 1u, 31u, 32u, 63u, 64u}) {
    const Bytes data = "payload";
    const Bytes arguments = write_arguments(Bytes(handle, 'h'), 0x123456789abcdef0, 7, 2, data);
    const auto place = server::nfs3::find_payload(7, octets(arguments));
    ASSERT_TRUE(place.has_value()) << handle;
    EXPECT_EQ(arguments.substr(place->position, place->length), data) << handle;
    EXPECT_EQ(place->length, 7u);
    EXPECT_EQ(place->file_offset, 0x123456789abcdef0u);
  }
}

TEST(Nfs3FindPayload, NeedsTheHeadAndNothingMore) {
  const Bytes arguments = write_arguments(Bytes(32, 'h'), 4096, 47008, 2, Bytes(47008, 'd'));
  const std::size_t head = arguments.size() - 47008;
  for (std::size_t size = 0; size < head; ++size) {
    EXPECT_FALSE(server::nfs3::find_payload(7, octets(arguments.substr(0, size))).has_value());
  }
  const auto place = server::nfs3::find_payload(7, octets(arguments.substr(0, head)));
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->position, head);
}

TEST(Nfs3FindPayload, OnlyWriteHasOne) {
  const Bytes arguments = write_arguments(Bytes(32, 'h'), 4096, 4, 2, "data");
  for (std::uint32_t procedure = 0; procedure < 30; ++procedure) {
    EXPECT_EQ(server::nfs3::find_payload(procedure, octets(arguments)).has_value(), procedure == 7);
  }
}

TEST(Nfs3FindPayload, LeavesWhatIsWrongToTheDecoder) {
  const Bytes nothing = write_arguments(Bytes(32, 'h'), 4096, 0, 2, "");
  EXPECT_FALSE(server::nfs3::find_payload(7, octets(nothing)).has_value());
  const Bytes long_handle = write_arguments(Bytes(65, 'h'), 4096, 4, 2, "data");
  EXPECT_FALSE(server::nfs3::find_payload(7, octets(long_handle)).has_value());
  XdrWriter huge;
  huge.opaque(Bytes(32, 'h')).u64(0).u32(0xffffffff).u32(2).u32(0xffffffff);
  EXPECT_FALSE(server::nfs3::find_payload(7, octets(huge.bytes())).has_value());
}

TEST(Nfs3FindPayload, TheTableIsThatOfRfc1813) {
  const server::CurrentExports exports;
  server::nfs3::Service service{exports, storage::HandleCodec(storage::HandleKey{})};
  const server::rpc::Program program = server::nfs3::program(service);
  EXPECT_EQ(program.number, 100003u);
  EXPECT_EQ(program.version, 3u);
  ASSERT_EQ(program.procedures.size(), 22u);
  const std::vector<std::pair<std::string_view, bool>> expected = {
      {"NULL", false},     {"GETATTR", false},     {"SETATTR", true}, {"LOOKUP", false},
      {"ACCESS", false},   {"READLINK", false},    {"READ", false},   {"WRITE", true},
      {"CREATE", true},    {"MKDIR", true},        {"SYMLINK", true}, {"MKNOD", true},
      {"REMOVE", true},    {"RMDIR", true},        {"RENAME", true},  {"LINK", true},
      {"READDIR", false},  {"READDIRPLUS", false}, {"FSSTAT", false}, {"FSINFO", false},
      {"PATHCONF", false}, {"COMMIT", false},
  };
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(program.procedures[i].name, expected[i].first);
    EXPECT_EQ(program.procedures[i].changes_something, expected[i].second) << expected[i].first;
  }
}

}  // namespace
}  // namespace selvage::tests
