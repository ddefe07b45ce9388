// READ, WRITE and COMMIT over the wire (RFC 1813 3.3.6, 3.3.7, 3.3.21).
#include "tests/protocol/fixture.h"

#include <fstream>
#include <iterator>
#include <random>

namespace selvage::tests {
namespace {

constexpr std::uint64_t highest = (std::uint64_t{1} << 63) - 1;

/// Bytes that tell their own position.
std::string pattern(std::size_t size, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::string data(size, '\0');
  for (char& byte : data) byte = static_cast<char>(random());
  return data;
}

class DataTest : public ProtocolTest {
 protected:
  /// The file as the server's own file system has it.
  std::string local(const std::string& name) const {
    std::ifstream in(path("rw/" + name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
};

/// READ compared with the model: data, count, eof.
void expect_read(Nfs3Client& client, const Bytes& file, const std::string& model,
                 std::uint64_t offset, std::uint32_t count) {
  SCOPED_TRACE("READ " + std::to_string(offset) + "+" + std::to_string(count));
  const auto answer = client.read(file, offset, count);
  ASSERT_OK(answer);
  const READ3resok& ok = RESOK(answer, READ);
  const std::string expected =
      offset < model.size() ? model.substr(static_cast<std::size_t>(offset), count) : "";
  EXPECT_EQ(ok.count, expected.size());
  EXPECT_TRUE(std::string(ok.data.data_val, ok.data.data_len) == expected);
  EXPECT_EQ(ok.eof != 0, offset + expected.size() >= model.size());
  EXPECT_EQ(attributes(ok.file_attributes).size, model.size());
}

TEST_F(DataTest, ReadAtEveryMisalignmentAroundPages) {
  const Bytes file = root_->make_file(top_, "f");
  const std::string model = pattern(3 * 4096 + 123);
  ASSERT_OK(root_->write(file, 0, model));
  const std::vector<std::uint64_t> around = {0, 1, 2, 511, 512, 513, 2048, 4094, 4095, 4096};
  for (const std::uint64_t page : {0u, 4096u, 8192u, 12288u}) {
    for (const std::uint64_t offset : around) {
      for (const std::uint32_t count : {0u, 1u, 2u, 3u, 511u, 512u, 4095u, 4096u, 4097u, 9000u}) {
        expect_read(*root_, file, model, page + offset, count);
      }
    }
  }
  for (std::uint64_t offset = model.size() - 5; offset < model.size() + 5; ++offset) {
    for (std::uint32_t count = 0; count < 10; ++count) {
      expect_read(*root_, file, model, offset, count);
    }
  }
}

TEST_F(DataTest, ReadBeyondTheEnd) {
  const Bytes file = root_->make_file(top_, "f");
  expect_read(*root_, file, "", 0, 100);
  ASSERT_OK(root_->write(file, 0, "abc"));
  for (const std::uint64_t offset :
       {std::uint64_t{3}, std::uint64_t{4096}, std::uint64_t{1} << 40, highest - 1, highest,
        highest + 1, ~std::uint64_t{0} - 5, ~std::uint64_t{0}}) {
    for (const std::uint32_t count : {0u, 1u, 4096u, 0xffffffffu}) {
      const auto answer = root_->read(file, offset, count);
      ASSERT_OK(answer) << offset << "+" << count;
      EXPECT_EQ(RESOK(answer, READ).count, 0u);
      EXPECT_EQ(RESOK(answer, READ).data.data_len, 0u);
      EXPECT_NE(RESOK(answer, READ).eof, 0u) << offset << "+" << count;
    }
  }
}

TEST_F(DataTest, ReadOfAHugeCountIsCapped) {
  const Bytes file = root_->make_file(top_, "f");
  const std::string model = pattern(9 << 20);
  for (std::size_t at = 0; at < model.size(); at += 1 << 20) {
    ASSERT_OK(root_->write(file, at, model.substr(at, 1 << 20), UNSTABLE));
  }
  ASSERT_OK(root_->commit(file));
  const auto answer = root_->read(file, 1, 0xffffffff);
  ASSERT_OK(answer);
  EXPECT_EQ(RESOK(answer, READ).count, 8u << 20);  // rtmax
  EXPECT_EQ(RESOK(answer, READ).eof, 0u);
  EXPECT_TRUE(std::string(RESOK(answer, READ).data.data_val, RESOK(answer, READ).data.data_len) ==
              model.substr(1, 8 << 20));
}

TEST_F(DataTest, ReadOfHoles) {
  const Bytes file = root_->make_file(top_, "f");
  ASSERT_OK(root_->write(file, 100000, "end"));
  const std::string model = std::string(100000, '\0') + "end";
  expect_read(*root_, file, model, 0, 200000);
  expect_read(*root_, file, model, 50001, 4096);
  expect_read(*root_, file, model, 99999, 2);
}

TEST_F(DataTest, WritesAtEveryMisalignmentAgainstAModel) {
  const Bytes file = root_->make_file(top_, "f");
  std::string model;
  std::uint32_t seed = 1;
  for (const std::uint64_t page : {0u, 4096u, 40960u, 16384u}) {
    for (const std::uint64_t offset : {0u, 1u, 511u, 512u, 4095u}) {
      for (const std::size_t length :
           {std::size_t{1}, std::size_t{3}, std::size_t{512}, std::size_t{4095}, std::size_t{4096},
            std::size_t{4097}, std::size_t{12288}, std::size_t{47008}}) {
        const std::string data = pattern(length, ++seed);
        const auto stable = static_cast<stable_how>(seed % 3);
        const auto answer = root_->write(file, page + offset, data, stable);
        ASSERT_OK(answer);
        const WRITE3resok& ok = RESOK(answer, WRITE);
        ASSERT_EQ(ok.count, length);
        EXPECT_GE(ok.committed, stable);
        model.resize(std::max<std::size_t>(model.size(), page + offset + length));
        model.replace(page + offset, length, data);
        EXPECT_EQ(after(ok.file_wcc).size, model.size());
      }
    }
  }
  EXPECT_TRUE(root_->read_all(file) == model);
  ASSERT_OK(root_->commit(file));
  EXPECT_TRUE(local("f") == model);
}

TEST_F(DataTest, UnstableThenCommit) {
  const Bytes file = root_->make_file(top_, "f");
  const std::string data = pattern(47008);
  const auto written = root_->write(file, 47008, data, UNSTABLE);
  ASSERT_OK(written);
  const auto committed = root_->commit(file);
  ASSERT_OK(committed);
  EXPECT_EQ(after(RESOK(committed, COMMIT).file_wcc).size, 2u * 47008);
  const auto again = root_->write(file, 0, data, FILE_SYNC);
  ASSERT_OK(again);
  EXPECT_EQ(RESOK(again, WRITE).committed, FILE_SYNC);
  const Bytes verifier(RESOK(written, WRITE).verf, 8);
  EXPECT_EQ(Bytes(RESOK(committed, COMMIT).verf, 8), verifier);
  EXPECT_EQ(Bytes(RESOK(again, WRITE).verf, 8), verifier);
  EXPECT_NE(verifier, Bytes(8, '\0'));
  EXPECT_TRUE(local("f") == data + data);
}

TEST_F(DataTest, VerifierChangesWithTheServerAndHandlesStay) {
  const Bytes file = root_->make_file(top_, "f");
  const auto before = root_->write(file, 0, "before", UNSTABLE);
  ASSERT_OK(before);
  ASSERT_OK(root_->commit(file));
  const Bytes verifier(RESOK(before, WRITE).verf, 8);
  restart_server();
  const auto committed = root_->commit(file);
  ASSERT_OK(committed);
  EXPECT_NE(Bytes(RESOK(committed, COMMIT).verf, 8), verifier);
  EXPECT_EQ(root_->read_all(file), "before");
  EXPECT_EQ(root_->look(top_, "f"), file);
  EXPECT_EQ(root_->root(path("rw")), top_);
}

TEST_F(DataTest, CommitOfAnyRange) {
  const Bytes file = root_->make_file(top_, "f");
  ASSERT_OK(root_->write(file, 0, pattern(10000), UNSTABLE));
  for (const std::uint64_t offset :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{9999}, std::uint64_t{1} << 40, highest,
        highest + 1, ~std::uint64_t{0}}) {
    for (const std::uint32_t count : {0u, 1u, 4096u, 0xffffffffu}) {
      const auto answer = root_->commit(file, offset, count);
      ASSERT_OK(answer) << offset << "+" << count;
      EXPECT_EQ(after(RESOK(answer, COMMIT).file_wcc).size, 10000u);
    }
  }
}

TEST_F(DataTest, WriteOfNothing) {
  const Bytes file = root_->make_file(top_, "f");
  ASSERT_OK(root_->write(file, 0, "abc"));
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{1000}, highest}) {
    const auto answer = root_->write(file, offset, "", FILE_SYNC);
    ASSERT_OK(answer);
    EXPECT_EQ(RESOK(answer, WRITE).count, 0u);
    EXPECT_EQ(after(RESOK(answer, WRITE).file_wcc).size, 3u);
  }
  EXPECT_STATUS(NFS3ERR_ACCES, alice_->write(file, 0, ""));
}

TEST_F(DataTest, CountAndDataMustAgree) {
  const Bytes file = root_->make_file(top_, "f");
  ASSERT_OK(root_->write(file, 0, "untouched"));
  for (const std::uint32_t count : {0u, 3u, 5u, 4097u, 0xffffffffu}) {
    const RpcReply reply = root_->raw(7, write_arguments(file, 0, count, FILE_SYNC, "data"));
    ASSERT_TRUE(reply.accepted && reply.status == 0) << count;
    EXPECT_EQ(status_of(reply), static_cast<std::uint32_t>(NFS3ERR_INVAL)) << count;
  }
  // A payload long enough to be received apart from its record.
  const std::string large = pattern(100000);
  for (const std::uint32_t count : {99999u, 100001u}) {
    const RpcReply reply = root_->raw(7, write_arguments(file, 0, count, FILE_SYNC, large));
    EXPECT_EQ(status_of(reply), static_cast<std::uint32_t>(NFS3ERR_INVAL)) << count;
  }
  EXPECT_EQ(root_->read_all(file), "untouched");
}

TEST_F(DataTest, OffsetsBeyondWhatAFileCanBe) {
  const Bytes file = root_->make_file(top_, "f");
  for (const std::uint64_t offset :
       {highest, highest + 1, highest - 2, ~std::uint64_t{0}, ~std::uint64_t{0} - 3}) {
    const auto answer = root_->write(file, offset, "data");
    EXPECT_STATUS(NFS3ERR_FBIG, answer) << offset;
    EXPECT_EQ(after(RESFAIL(answer, WRITE).file_wcc).size, 0u);
  }
  EXPECT_EQ(RESOK(root_->getattr(file), GETATTR).obj_attributes.size, 0u);
}

TEST_F(DataTest, OnlyRegularFilesHaveData) {
  ASSERT_OK(root_->symlink(top_, "l", "f"));
  ASSERT_OK(root_->mknod(top_, "p", NF3FIFO));
  ASSERT_OK(root_->mknod(top_, "s", NF3SOCK));
  ASSERT_OK(root_->mknod(top_, "c", NF3CHR, {}, 1, 3));  // /dev/null's number: never opened.
  root_->make_directory(top_, "d");
  for (const std::string name : {"l", "p", "s", "c", "d"}) {
    SCOPED_TRACE(name);
    const Bytes object = root_->look(top_, name);
    const auto read = root_->read(object, 0, 10);
    EXPECT_STATUS(NFS3ERR_INVAL, read);
    attributes(RESFAIL(read, READ).file_attributes);
    const auto written = root_->write(object, 0, "data");
    EXPECT_STATUS(NFS3ERR_INVAL, written);
    after(RESFAIL(written, WRITE).file_wcc);
    const auto committed = root_->commit(object);
    EXPECT_STATUS(NFS3ERR_INVAL, committed);
    after(RESFAIL(committed, COMMIT).file_wcc);
  }
}

TEST_F(DataTest, IsJudgedByTheKernel) {
  const Bytes file = root_->make_file(top_, "f", 0640);
  Sattr owner;
  owner.uid = bob_uid;
  owner.gid = team_gid;
  ASSERT_OK(root_->setattr(file, owner));
  ASSERT_OK(bob_->write(file, 0, "secret"));
  EXPECT_EQ(alice_->read_all(file), "secret");  // By her supplementary group.
  const auto denied = alice_->write(file, 0, "x");
  EXPECT_STATUS(NFS3ERR_ACCES, denied);
  EXPECT_EQ(after(RESFAIL(denied, WRITE).file_wcc).size, 6u);
  Nfs3Client stranger(port(), Identity{4000, 4000, {}, false});
  const auto unread = stranger.read(file, 0, 6);
  EXPECT_STATUS(NFS3ERR_ACCES, unread);
  EXPECT_EQ(attributes(RESFAIL(unread, READ).file_attributes).size, 6u);
  // The right is looked at again when the mode changes.
  Sattr open;
  open.mode = 0666;
  ASSERT_OK(bob_->setattr(file, open));
  ASSERT_OK(stranger.write(file, 0, "public"));
  Sattr closed;
  closed.mode = 0600;
  ASSERT_OK(bob_->setattr(file, closed));
  EXPECT_STATUS(NFS3ERR_ACCES, stranger.write(file, 0, "x"));
  EXPECT_STATUS(NFS3ERR_ACCES, stranger.read(file, 0, 1));
  // The owner keeps what he could have open (RFC 1813 4.4).
  Sattr read_only;
  read_only.mode = 0400;
  ASSERT_OK(bob_->setattr(file, read_only));
  ASSERT_OK(bob_->write(file, 0, "PUBLIC"));
  EXPECT_EQ(bob_->read_all(file), "PUBLIC");
}

TEST_F(DataTest, WhatMayBeExecutedMayBeRead) {
  const Bytes file = root_->make_file(top_, "f", 0711);
  ASSERT_OK(root_->write(file, 0, "program"));
  EXPECT_EQ(alice_->read_all(file), "program");  // A client reads it to run it.
  EXPECT_STATUS(NFS3ERR_ACCES, alice_->write(file, 0, "x"));
}

TEST_F(DataTest, TheLargestWrite) {
  const Bytes file = root_->make_file(top_, "f");
  const std::string model = pattern(8 << 20);
  const auto answer = root_->write(file, 12345, model, FILE_SYNC);
  ASSERT_OK(answer);
  const std::uint32_t count = RESOK(answer, WRITE).count;
  ASSERT_GT(count, 0u);
  EXPECT_EQ(after(RESOK(answer, WRITE).file_wcc).size, 12345u + count);
  EXPECT_TRUE(root_->read_all(file) == std::string(12345, '\0') + model.substr(0, count));
}

TEST_F(DataTest, RecordsInManyFragments) {
  const Bytes file = root_->make_file(top_, "f");
  std::string model(47008 * 2 + 1, '\0');
  for (const std::size_t fragment : {1u, 3u, 4u, 100u, 4096u, 47000u}) {
    const std::string data =
        pattern(fragment == 1 ? 3000 : 47008, static_cast<std::uint32_t>(fragment));
    const std::uint64_t offset = fragment % 2 == 0 ? 47009 : 0;
    const Bytes arguments =
        write_arguments(file, offset, static_cast<std::uint32_t>(data.size()), FILE_SYNC, data);
    const Bytes message = call_message(root_->next_xid(), 100003, 3, 7, {}, arguments);
    ASSERT_TRUE(root_->connection().send_record(message, fragment));
    const auto reply = root_->connection().receive_reply();
    ASSERT_TRUE(reply.has_value());
    ASSERT_EQ(status_of(*reply), static_cast<std::uint32_t>(NFS3_OK));
    model.replace(static_cast<std::size_t>(offset), data.size(), data);
  }
  EXPECT_TRUE(root_->read_all(file) == model);
}

TEST_F(DataTest, SizeNeverFallsBehindAnAcknowledgedWrite) {
  const Bytes file = root_->make_file(top_, "f");
  std::uint64_t end = 0;
  for (int i = 0; i < 100; ++i) {
    const std::string data = pattern(6000, static_cast<std::uint32_t>(i));
    const auto answer = root_->write(file, end, data, i % 2 == 0 ? UNSTABLE : FILE_SYNC);
    ASSERT_OK(answer);
    end += data.size();
    EXPECT_GE(after(RESOK(answer, WRITE).file_wcc).size, end);
    EXPECT_GE(RESOK(bob_->getattr(file), GETATTR).obj_attributes.size, end);
  }
}

}  // namespace
}  // namespace selvage::tests
