// Calls that no proper client sends: each gets an RPC answer or its connection closed, changes
// nothing, and leaves the server serving everybody else.
#include "tests/protocol/fixture.h"

#include <random>

namespace selvage::tests {
namespace {

constexpr std::uint32_t garbage_args = 4;

class MalformedTest : public ProtocolTest {
 protected:
  void SetUp() override {
    file_ = root_->make_file(top_, "file");
    ASSERT_OK(root_->write(file_, 0, "content"));
    ASSERT_OK(root_->symlink(top_, "symlink", "target"));
    symlink_ = root_->look(top_, "symlink");
  }

  /// A new client is served.
  void expect_alive() {
    Nfs3Client fresh(port());
    const RpcReply null = fresh.raw(0, "");
    ASSERT_TRUE(null.accepted && null.status == 0);
    ASSERT_EQ(fresh.getattr(top_).status(), NFS3_OK);
  }

  void expect_untouched() {
    EXPECT_EQ(root_->read_all(file_), "content");
    std::size_t names = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path("rw"))) {
      ++names;
    }
    EXPECT_EQ(names, 2u);
  }

  Bytes file_, symlink_;
};

TEST_F(MalformedTest, TruncatedArgumentsOfEveryProcedure) {
  for (const Sample& sample : samples(top_, file_, symlink_, "x-")) {
    for (std::size_t size = 0; size < sample.arguments.size(); ++size) {
      const RpcReply reply = root_->raw(sample.procedure, sample.arguments.substr(0, size));
      ASSERT_TRUE(reply.accepted) << sample.name << " cut to " << size;
      ASSERT_EQ(reply.status, garbage_args) << sample.name << " cut to " << size;
    }
  }
  expect_alive();
  expect_untouched();
}

TEST_F(MalformedTest, TrailingBytesOfEveryProcedure) {
  for (const Sample& sample : samples(top_, file_, symlink_, "x-")) {
    for (const std::size_t extra : {1u, 4u, 1000u}) {
      const RpcReply reply = root_->raw(sample.procedure, sample.arguments + Bytes(extra, '\0'));
      ASSERT_TRUE(reply.accepted) << sample.name;
      EXPECT_EQ(reply.status, garbage_args) << sample.name << " with " << extra << " bytes more";
    }
  }
  expect_alive();
  expect_untouched();
}

TEST_F(MalformedTest, LengthsThatLie) {
  for (const Sample& sample : samples(top_, file_, symlink_, "x-")) {
    for (const std::uint32_t length :
         {65u, 128u, 0x7fffffffu, 0x80000000u, 0xfffffffcu, 0xffffffffu}) {
      Bytes arguments = sample.arguments;
      arguments.replace(0, 4, XdrWriter{}.u32(length).bytes());
      const RpcReply reply = root_->raw(sample.procedure, arguments);
      ASSERT_TRUE(reply.accepted) << sample.name << " " << length;
      ASSERT_EQ(reply.status, garbage_args) << sample.name << " " << length;
    }
  }
  for (const std::uint32_t length : {0u, 3u, 8u, 4096u, 8u << 20, (8u << 20) + 1, 0xffffffffu}) {
    Bytes arguments = write_arguments(file_, 0, 4, FILE_SYNC, "data");
    arguments.replace(arguments.size() - 8, 4, XdrWriter{}.u32(length).bytes());
    const RpcReply reply = root_->raw(7, arguments);
    ASSERT_TRUE(reply.accepted) << length;
    EXPECT_EQ(reply.status, garbage_args) << length;  // With 3: padding that is not zero.
  }
  expect_alive();
  expect_untouched();
}

TEST_F(MalformedTest, ValuesThatDoNotExist) {
  const auto expect_garbage = [&](std::uint32_t procedure, const XdrWriter& arguments) {
    const RpcReply reply = root_->raw(procedure, arguments.bytes());
    ASSERT_TRUE(reply.accepted);
    EXPECT_EQ(reply.status, garbage_args) << "procedure " << procedure;
  };
  XdrWriter stable_how_3;
  expect_garbage(7, stable_how_3.opaque(file_).u64(0).u32(4).u32(3).opaque("data"));
  XdrWriter create_mode_3;
  expect_garbage(8, create_mode_3.opaque(top_).opaque("x").u32(3).u64(0));
  XdrWriter time_how_3;
  expect_garbage(2, time_how_3.opaque(file_).u32(0).u32(0).u32(0).u32(0).u32(3).u32(0).u32(0));
  XdrWriter bool_2;
  expect_garbage(2, bool_2.opaque(file_).u32(2).u32(0).u32(0).u32(0).u32(0).u32(0).u32(0));
  XdrWriter guard_2;
  expect_garbage(2, guard_2.opaque(file_).u32(0).u32(0).u32(0).u32(0).u32(0).u32(0).u32(2));
  XdrWriter padding;
  expect_garbage(3, padding.opaque(top_).u32(1).u32(0x78000001));
  expect_untouched();
}

TEST_F(MalformedTest, ProceduresAndVersionsThatDoNotExist) {
  for (const std::uint32_t procedure : {22u, 23u, 1000u, 0xffffffffu}) {
    const RpcReply reply = root_->raw(procedure, "");
    ASSERT_TRUE(reply.accepted);
    EXPECT_EQ(reply.status, 3u) << "PROC_UNAVAIL";
  }
  const RpcReply version = root_->raw(0, "", 100003, 77);
  ASSERT_TRUE(version.accepted);
  EXPECT_EQ(version.status, 2u) << "PROG_MISMATCH";
  const RpcReply program = root_->raw(0, "", 200000, 3);
  ASSERT_TRUE(program.accepted);
  EXPECT_EQ(program.status, 1u) << "PROG_UNAVAIL";
  expect_alive();
}

TEST_F(MalformedTest, RandomDamage) {
  std::mt19937 random(20240229);
  const std::vector<Sample> all = samples(top_, file_, symlink_, "x-");
  auto victim = client(Identity{alice_uid, alice_uid, {}, false});
  for (int round = 0; round < 3000; ++round) {
    const Sample& sample = all[random() % all.size()];
    Bytes arguments = sample.arguments;
    for (std::uint32_t n = 1 + random() % 3; n > 0; --n) {
      const std::size_t at = random() % arguments.size();
      arguments[at] = static_cast<char>(arguments[at] ^ (1 << random() % 8));
    }
    const Bytes message = call_message(victim->next_xid(), 100003, 3, sample.procedure,
                                       victim->identity(), arguments);
    if (!victim->connection().send_record(message) ||
        !victim->connection().receive_reply().has_value()) {
      victim = client(Identity{alice_uid, alice_uid, {}, false});
    }
    if (round % 500 == 0) expect_alive();
  }
  expect_alive();
}

TEST_F(MalformedTest, ClientsThatVanishInMidRecord) {
  const Bytes arguments = write_arguments(file_, 0, 100000, FILE_SYNC, Bytes(100000, 'z'));
  const Bytes message = call_message(77, 100003, 3, 7, {}, arguments);
  const Bytes record =
      XdrWriter{}.u32(0x80000000u | static_cast<std::uint32_t>(message.size())).bytes() + message;
  for (const std::size_t part : {1u, 3u, 4u, 20u, 100u, 200u, 5000u, 99999u}) {
    RpcConnection connection(port());
    ASSERT_TRUE(connection.send_bytes(record.substr(0, part)));
    connection.cut();
  }
  expect_alive();
  expect_untouched();
}

TEST_F(MalformedTest, RecordsOverTheLimitCloseTheConnection) {
  for (const std::uint32_t size : {64u << 20, 0x7fffffffu}) {
    RpcConnection connection(port());
    ASSERT_TRUE(connection.send_bytes(XdrWriter{}.u32(0x80000000u | size).bytes()));
    connection.send_bytes(call_message(1, 100003, 3, 7, {}, Bytes(1000, 'x')));
    EXPECT_TRUE(connection.closed_by_peer()) << size;
  }
  expect_alive();
  expect_untouched();
}

}  // namespace
}  // namespace selvage::tests
