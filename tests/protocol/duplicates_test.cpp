// Retries of calls that change something (RFC 1813 4.5): executed once, whatever connection they
// come by, and never late.
#include "tests/protocol/fixture.h"

#include <chrono>
#include <functional>
#include <thread>

namespace selvage::tests {
namespace {

using storage::OpKind;

class DuplicatesTest : public ProtocolTest {
 protected:
  /// The same message by two connections, one after the other: the reply to each.
  std::pair<RpcReply, RpcReply> send_twice(const Sample& sample) {
    const Bytes message =
        call_message(root_->next_xid(), 100003, 3, sample.procedure, {}, sample.arguments);
    std::vector<RpcReply> replies;
    for (int i = 0; i < 2; ++i) {
      RpcConnection connection(port());
      connection.send_record(message);
      replies.push_back(connection.receive_reply().value_or(RpcReply{}));
    }
    return {replies[0], replies[1]};
  }
};

TEST_F(DuplicatesTest, ARetryGetsTheFirstAnswer) {
  const Bytes file = root_->make_file(top_, "file");
  root_->make_file(top_, "missing");
  const Bytes guarded = XdrWriter{}
                            .opaque(top_)
                            .opaque("guarded")
                            .u32(GUARDED)
                            .u32(0)
                            .u32(0)
                            .u32(0)
                            .u32(0)
                            .u32(0)
                            .u32(0)
                            .bytes();
  std::vector<Sample> calls;
  for (Sample& sample : samples(top_, file, file, "x-")) {
    if (sample.modifies) calls.push_back(std::move(sample));
  }
  calls.push_back({"CREATE GUARDED", 8, guarded, true});
  for (const Sample& sample : calls) {
    SCOPED_TRACE(sample.name);
    // Each of REMOVE, RMDIR, RENAME finds what it takes away, once.
    std::filesystem::remove_all(path("rw/missing"));
    if (sample.name == "RMDIR") {
      root_->make_directory(top_, "missing");
    } else {
      root_->make_file(top_, "missing");
    }
    const auto [first, second] = send_twice(sample);
    ASSERT_TRUE(first.accepted && first.status == 0);
    EXPECT_EQ(status_of(first), static_cast<std::uint32_t>(NFS3_OK));
    EXPECT_TRUE(second.results == first.results);  // To the last attribute.
    EXPECT_EQ(second.xid, first.xid);
  }
}

TEST_F(DuplicatesTest, AnotherXidIsAnotherCall) {
  root_->make_file(top_, "f");
  ASSERT_OK(root_->remove(top_, "f"));
  EXPECT_STATUS(NFS3ERR_NOENT, root_->remove(top_, "f"));
}

TEST_F(DuplicatesTest, TheSameXidWithOtherArgumentsIsAnotherCall) {
  const Bytes file = root_->make_file(top_, "f");
  const std::uint32_t xid = root_->next_xid();
  for (const std::string data : {"first", "other"}) {
    RpcConnection connection(port());
    const Bytes arguments = write_arguments(file, 0, 5, FILE_SYNC, data);
    connection.send_record(call_message(xid, 100003, 3, 7, {}, arguments));
    const auto reply = connection.receive_reply();
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(status_of(*reply), static_cast<std::uint32_t>(NFS3_OK));
    EXPECT_EQ(root_->read_all(file), data);
  }
}

/// WRITE A is held in the device and its connection cut. The client sends A again by a new one and,
/// once that is answered, B over the same bytes. Then the first A goes on. Without the cache the
/// retry is executed and answered while the first A is still held, which then undoes B.
void late_write_undoes_nothing(std::uint16_t port, Nfs3Client& client, const Bytes& file,
                               storage::FaultScript& faults,
                               const std::shared_ptr<storage::Hold>& hold,
                               const std::function<bool()>& retry_is_held_back) {
  const std::string a(8192, 'A'), b(8192, 'B');
  const Bytes message = call_message(client.next_xid(), 100003, 3, 7, {},
                                     write_arguments(file, 0, 8192, FILE_SYNC, a));
  auto first = std::make_unique<RpcConnection>(port);
  ASSERT_TRUE(first->send_record(message));
  ASSERT_TRUE(hold->wait_held());
  first->cut();

  RpcConnection second(port);
  ASSERT_TRUE(second.send_record(message));
  std::optional<RpcReply> retried;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!retried && !retry_is_held_back() && std::chrono::steady_clock::now() < deadline) {
    retried = second.receive_reply(20);
  }
  const auto write_b = [&] {
    const auto answer = client.write(file, 0, b);
    ASSERT_OK(answer);
    ASSERT_EQ(RESOK(answer, WRITE).count, b.size());
  };
  if (retried) {
    write_b();  // As a client may that has its answer.
    hold->release();
  } else {
    hold->release();
    retried = second.receive_reply();
    ASSERT_TRUE(retried.has_value());
    write_b();
  }
  ASSERT_EQ(status_of(*retried), static_cast<std::uint32_t>(NFS3_OK));
  // The device has done what it was ever going to do.
  ASSERT_OK(client.commit(file));
  EXPECT_TRUE(client.read_all(file) == b);
  std::size_t writes = 0;
  for (const storage::Op& op : faults.log()) writes += op.kind == OpKind::writev ? 1 : 0;
  EXPECT_EQ(writes, 2u) << "A once, B once";

  // A retry that is later still gets A's answer and changes nothing.
  RpcConnection third(port);
  ASSERT_TRUE(third.send_record(message));
  const auto late = third.receive_reply();
  ASSERT_TRUE(late.has_value());
  EXPECT_TRUE(late->results == retried->results);
  EXPECT_TRUE(client.read_all(file) == b);
}

TEST_F(DuplicatesTest, ALateWriteUndoesNothingHeldBeforeItIsDone) {
  const Bytes file = root_->make_file(top_, "f");
  faults_.reset_seen();
  storage::When once;
  once.times = 1;
  const auto hold = faults_.hold_before(OpKind::writev, once);
  late_write_undoes_nothing(port(), *root_, file, faults_, hold,
                            [this] { return server_->counter("duplicates_held_back") > 0; });
}

TEST_F(DuplicatesTest, ALateWriteUndoesNothingHeldInItsSync) {
  const Bytes file = root_->make_file(top_, "f");
  faults_.reset_seen();
  storage::When once;
  once.times = 1;
  const auto hold = faults_.hold_before(OpKind::sync, once);
  late_write_undoes_nothing(port(), *root_, file, faults_, hold,
                            [this] { return server_->counter("duplicates_held_back") > 0; });
}

TEST_F(DuplicatesTest, AllRetriesOfOneCallGetItsOneAnswer) {
  const Bytes file = root_->make_file(top_, "f");
  faults_.reset_seen();
  storage::When once;
  once.times = 1;
  const auto hold = faults_.hold_before(OpKind::writev, once);
  const Bytes message = call_message(root_->next_xid(), 100003, 3, 7, {},
                                     write_arguments(file, 0, 8192, FILE_SYNC, Bytes(8192, 'A')));
  std::vector<std::unique_ptr<RpcConnection>> connections;
  for (int i = 0; i < 5; ++i) {
    connections.push_back(std::make_unique<RpcConnection>(port()));
    ASSERT_TRUE(connections.back()->send_record(message));
  }
  ASSERT_TRUE(hold->wait_held());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (server_->counter("duplicates_held_back") < 4 &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  hold->release();
  Bytes results;
  for (auto& connection : connections) {
    const auto reply = connection->receive_reply();
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(status_of(*reply), static_cast<std::uint32_t>(NFS3_OK));
    if (results.empty()) results = reply->results;
    EXPECT_TRUE(reply->results == results);
  }
  std::size_t writes = 0;
  for (const storage::Op& op : faults_.log()) writes += op.kind == OpKind::writev ? 1 : 0;
  EXPECT_EQ(writes, 1u);
}

TEST_F(DuplicatesTest, APassingConditionIsNotKept) {
  const Bytes file = root_->make_file(top_, "f");
  storage::When once;
  once.times = 1;
  faults_.fail(OpKind::writev, ENOMEM, once);
  const Sample sample{"WRITE", 7, write_arguments(file, 0, 8192, FILE_SYNC, Bytes(8192, 'A')),
                      true};
  const auto [first, second] = send_twice(sample);
  EXPECT_EQ(status_of(first), static_cast<std::uint32_t>(NFS3ERR_JUKEBOX));
  EXPECT_EQ(status_of(second), static_cast<std::uint32_t>(NFS3_OK));
}

}  // namespace
}  // namespace selvage::tests
