// What WRITEs cost the server beside the device: allocations, copies and system calls, counted.
// The counts do not depend on the machine's speed; what is shared by a batch is allowed for each
// batch, however large the clients' timing lets it become.
#include "tests/support/allocations.h"
#include "tests/support/nfs3_client.h"
#include "tests/support/test_server.h"
#include "tests/support/xfs.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace selvage::tests {
namespace {

constexpr std::uint32_t record_bytes = 47008;

class CostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = std::make_unique<storage::XfsOn4kn>();
    if (!device_->ok()) GTEST_SKIP() << "needs root, loop devices and mkfs.xfs";
    server_ = std::make_unique<TestServer>(
        std::vector<std::string>{device_->path() + ":squash=none,edges=assemble"});
    client_ = std::make_unique<Nfs3Client>(server_->port());
    file_ = client_->make_file(client_->root(device_->path()), "file");
  }

  /// `rounds` times `depth` records in flight on one connection, one record after the other.
  void write(unsigned rounds, unsigned depth, stable_how stable) {
    const std::string data(record_bytes, 'x');
    for (unsigned round = 0; round < rounds; ++round) {
      for (unsigned i = 0; i < depth; ++i, next_ += record_bytes) {
        const Bytes arguments = write_arguments(file_, next_, record_bytes, stable, data);
        const Bytes call =
            call_message(client_->next_xid(), 100003, 3, 7, client_->identity(), arguments);
        ASSERT_TRUE(client_->connection().send_record(call));
      }
      for (unsigned i = 0; i < depth; ++i) {
        const auto reply = client_->connection().receive_reply();
        ASSERT_TRUE(reply && reply->accepted && reply->status == 0);
        ASSERT_EQ(reply->results.substr(0, 4), std::string(4, '\0'));
      }
    }
  }

  /// Counters of the server by name, and allocations, that the same load moves once warm.
  std::map<std::string, std::uint64_t> cost(unsigned depth, stable_how stable) {
    write(256 / depth, depth, stable);
    next_ = 0;
    std::map<std::string, std::uint64_t> moved;
    for (const char* name : {"assemble_batches", "bounce_copies", "head_bytes_copied",
                             "overread_bytes", "pool_calls", "reassembled_records", "receives",
                             "reply_writes", "ring_submits", "steered_payloads", "writes"}) {
      moved[name] = server_->counter(name);
    }
    {
      const OtherThreadsAllocations allocations;
      write(256 / depth, depth, stable);
      moved["allocations"] = allocations.calls();
    }
    for (auto& [name, value] : moved) {
      if (name != "allocations") value = server_->counter(name) - value;
      RecordProperty(name, std::to_string(value));
    }
    return moved;
  }

  std::unique_ptr<storage::XfsOn4kn> device_;
  std::unique_ptr<TestServer> server_;
  std::unique_ptr<Nfs3Client> client_;
  Bytes file_;
  std::uint64_t next_ = 0;
};

void expect_cheap(std::map<std::string, std::uint64_t> cost) {
  const std::uint64_t writes = cost["writes"];
  const std::uint64_t batches = cost["assemble_batches"];
  ASSERT_GT(writes, 0U);
  // The payload lies where it was received: what came along with the head is copied, nothing else.
  EXPECT_EQ(cost["steered_payloads"], writes);
  EXPECT_EQ(cost["reassembled_records"], 0U);
  EXPECT_EQ(cost["bounce_copies"], 0U);
  EXPECT_LE(cost["overread_bytes"], 512 * writes);
  EXPECT_LE(cost["head_bytes_copied"], 256 * writes);

  EXPECT_LE(cost["allocations"], 16 * writes + 24 * batches);
  EXPECT_LE(cost["reply_writes"], writes);
  // Reads of unknown rests, writes, those that wait for the size, a tail, the sync.
  EXPECT_LE(cost["ring_submits"], 5 * batches);
}

TEST_F(CostTest, ManyStableWritesInFlight) {
  expect_cheap(cost(32, FILE_SYNC));
}

TEST_F(CostTest, ManyUnstableWritesInFlight) {
  expect_cheap(cost(32, UNSTABLE));
}

TEST_F(CostTest, OneWriteAfterTheOther) {
  auto moved = cost(1, UNSTABLE);
  expect_cheap(moved);
  EXPECT_EQ(moved["reply_writes"], moved["writes"]);
}

}  // namespace
}  // namespace selvage::tests
