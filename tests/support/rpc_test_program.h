// A tiny program to drive the RPC front end with, and a server that serves it on loopback.
#pragma once

#include "server/rpc/server.h"
#include "storage/parked.h"
#include "storage/worker.h"
#include "tests/support/rpc_client.h"
#include "tests/support/test_payload.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace selvage::testing {

/// Procedures of the test program, versions 2 and 4 (3 is left out on purpose: its range is 2-4).
enum TestProcedure : std::uint32_t {
  proc_null = 0,
  proc_echo = 1,  ///< Answers with its arguments' bytes.
  proc_hold = 2,  ///< Argument: a tag. Answers (tag) once release(tag) was called.
  // proc_write = 3: handle<64>, offset, count, stable, data<>: as NFSv3 WRITE. Answers with
  // the count of executions, address and offset modulo 4096, and a checksum.
  proc_throw = 4,
  proc_garbage = 5,  ///< Answers GARBAGE_ARGS.
  proc_weak = 6,     ///< Answers AUTH_TOOWEAK.
  proc_missing = 7,  ///< No handler.
  proc_change = 8,   ///< As proc_hold, but changes something; counted by tag. Tags from 1000 on are
                     ///< not cacheable; a tag of 0 mod 10 does not wait.
  proc_read = 9,     ///< Argument: a length. Answers opaque data of that length by reference.
  proc_who = 10,     ///< Answers flavour (0, 1), uid, gid, count of groups.
  // proc_keep = 11: as proc_write, but keeps its payload until release(tag = offset).
  // proc_held_write = 12: as proc_keep, but changes something.
};

/// What the handlers share with the test. Any thread.
class TestService {
 public:
  /// Lets the calls held under `tag` go on, also those that come later.
  void release(std::uint32_t tag);
  /// Waits until `count` calls have been held under `tag`, ever. False after 20 s.
  bool wait_held(std::uint32_t tag, unsigned count);
  unsigned executions(std::uint32_t tag);
  unsigned held_now() const { return held_now_.load(); }
  unsigned held_peak() const { return held_peak_.load(); }

  server::rpc::Awaitable<> hold(std::uint32_t tag);
  unsigned executed(std::uint32_t tag);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint32_t, unsigned> held_, executions_;
  std::map<std::uint32_t, bool> released_;
  std::multimap<std::uint32_t, storage::Parked> parked_;
  std::atomic<unsigned> held_now_{0}, held_peak_{0};
};

std::vector<server::rpc::Program> test_programs(TestService& service);

/// Arguments of proc_write.
Message write_call(std::uint32_t xid, std::uint64_t offset, std::span<const std::byte> data,
                   std::uint32_t procedure = proc_write);
/// The checksum that proc_write answers with.
std::uint32_t sum_of(std::span<const std::byte> data);

struct TestServer {
  explicit TestServer(server::rpc::Options options = {}, storage::Runtime::Options runtime = {});
  ~TestServer();
  RpcClient connect() { return RpcClient(server->port()); }
  const server::rpc::Counters& counters() const { return server->counters(); }
  std::uint64_t closed(server::rpc::CloseReason reason) const {
    return counters().connections_closed[static_cast<std::size_t>(reason)].get();
  }

  TestService service;
  std::unique_ptr<storage::Runtime> runtime;
  std::unique_ptr<server::rpc::Server> server;
};

/// Polls until `condition` holds; false after 20 s.
template <class Condition>
bool eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace selvage::testing
