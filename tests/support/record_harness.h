// A record reader at one end of a socketpair, and what it has read; shared with the fuzz target.
#pragma once

#include "server/rpc/counters.h"
#include "server/rpc/gate.h"
#include "server/rpc/program_table.h"
#include "server/rpc/record_reader.h"
#include "storage/buffer_pool.h"
#include "storage/unique_fd.h"
#include "tests/support/test_payload.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace selvage::testing {

/// Single-threaded: the reader runs within feed() and finish().
class RecordHarness {
 public:
  explicit RecordHarness(storage::BufferPool& pool, server::rpc::RecordReader::Limits limits = {},
                         std::size_t large_permits = 4)
      : large(large_permits),
        programs_(std::array{server::rpc::Program{test_program, 2, "TEST", procedures_,
                                                  find_test_payload, nullptr}}),
        pair_(make_pair()),
        socket_(context_, boost::asio::generic::stream_protocol(AF_UNIX, 0),
                pair_.second.release()),
        reader_(socket_, limits, programs_, pool, large, counters) {
    boost::asio::co_spawn(context_, read_all(), boost::asio::detached);
    context_.poll();
  }

  /// Sends, as far as the reader takes it.
  void feed(std::span<const std::byte> bytes) {
    while (!bytes.empty() && !end) {
      const ssize_t sent =
          ::send(pair_.first.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
      const std::size_t ran = context_.poll();
      if (sent <= 0 && ran == 0) return;
    }
    context_.poll();
  }
  void feed(std::span<const std::byte> bytes, std::size_t chunk) {
    for (; !bytes.empty() && !end; bytes = bytes.subspan(std::min(chunk, bytes.size()))) {
      feed(bytes.first(std::min(chunk, bytes.size())));
    }
  }
  /// Ends the stream.
  void finish() {
    ::shutdown(pair_.first.get(), SHUT_WR);
    context_.poll();
  }
  void run_ready() { context_.poll(); }

  static std::vector<std::byte> joined(const server::rpc::Record& record) {
    std::vector<std::byte> bytes;
    for (const auto part : {record.head.bytes(), record.payload, record.tail.bytes()}) {
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
    return bytes;
  }
  const server::rpc::RecordReader& reader() const { return reader_; }

  server::rpc::Counters counters;
  server::rpc::Gate large;
  std::vector<server::rpc::Record> records;
  std::optional<server::rpc::ReadStatus> end;

 private:
  static std::pair<storage::UniqueFd, storage::UniqueFd> make_pair() {
    std::array<int, 2> fds{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0) std::abort();
    return {storage::UniqueFd(fds[0]), storage::UniqueFd(fds[1])};
  }

  storage::Awaitable<> read_all() {
    for (;;) {
      server::rpc::Opening opening;
      server::rpc::ReadStatus status = co_await reader_.open(opening);
      server::rpc::Record record;
      if (status == server::rpc::ReadStatus::ok) status = co_await reader_.receive(record);
      if (status != server::rpc::ReadStatus::ok) {
        end = status;
        break;
      }
      records.push_back(std::move(record));
    }
  }

  static constexpr std::array<server::rpc::Procedure, 13> procedures_{};
  server::rpc::ProgramTable programs_;
  boost::asio::io_context context_{1};
  std::pair<storage::UniqueFd, storage::UniqueFd> pair_;
  server::rpc::Socket socket_;
  server::rpc::RecordReader reader_;
};

}  // namespace selvage::testing
