// Record marking (RFC 5531, 11), and receiving a WRITE payload where it will be written from
// (DESIGN 3, step 1).
#pragma once

#include "server/rpc/counters.h"
#include "server/rpc/gate.h"
#include "server/rpc/program_table.h"
#include "server/rpc/record.h"
#include "storage/buffer_pool.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace selvage::server::rpc {

using Socket = boost::asio::generic::stream_protocol::socket;

/// How reading a record ended.
enum class ReadStatus : std::uint8_t {
  ok,
  peer_closed,   ///< End of stream between two records.
  peer_cut,      ///< End of stream within a record.
  socket_error,  ///< Also when the socket was closed or the read cancelled from this side.
  garbage,       ///< Not a call, or too many empty fragments.
  oversize,      ///< A record over Limits::max_record, or a payload larger than the pool.
  stopping,      ///< The pool or a gate was stopped.
};

/// Times how long the client has been taking to send a record; time that the server makes it wait
/// does not count.
class RecordClock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  void start(Time now) {
    if (!began_) began_ = now;
  }
  void stop() { began_.reset(); }
  void pause(Time now) { paused_ = now; }
  void resume(Time now) {
    if (began_ && paused_) *began_ += now - *paused_;
    paused_.reset();
  }
  /// When the record began; nullopt between two records and while the server makes it wait.
  std::optional<Time> running_since() const { return paused_ ? std::nullopt : began_; }

 private:
  std::optional<Time> began_;
  std::optional<Time> paused_;
};

/// Reads one record after the other: open(), then receive(). On one executor only.
class RecordReader {
 public:
  struct Limits {
    /// Bytes of a whole record: an 8 MiB WRITE and what is around it.
    std::size_t max_record = (std::size_t{8} << 20) + (std::size_t{64} << 10);
    /// Heap bytes of a record that is not steered, before it needs a permit of the `large` gate.
    std::size_t small_record = std::size_t{64} << 10;
  };
  /// Bytes that one read may take beyond what it is for.
  static constexpr std::size_t overread = 512;

  /// All outlive the reader, which makes the socket non-blocking. `large` bounds the records over
  /// Limits::small_record in memory.
  RecordReader(Socket& socket, Limits limits, ProgramTable& programs, storage::BufferPool& pool,
               Gate& large, Counters& counters)
      : socket_(socket),
        limits_(limits),
        programs_(programs),
        pool_(pool),
        large_(large),
        counters_(counters) {
    storage::ErrorCode ignored;
    socket_.non_blocking(true, ignored);
  }

  /// Waits for the next record and reads on until its opening tells whether its payload can be
  /// steered, or that more bytes would not help.
  storage::Awaitable<ReadStatus> open(Opening& opening);

  /// True if receive() will steer the payload of the record just opened.
  bool steers() const { return steered_.has_value(); }

  /// Receives the record just opened, waiting for memory where it must.
  storage::Awaitable<ReadStatus> receive(Record& record);

  /// True if the record just received had to wait for memory.
  bool waited() const { return waited_; }

  /// Bytes taken from the socket, ever.
  std::uint64_t received() const { return received_; }

  RecordClock& clock() { return clock_; }
  const RecordClock& clock() const { return clock_; }

 private:
  static constexpr std::size_t arguments_limit = 512;  ///< Where find_payload is given up.
  static constexpr std::size_t header_limit = 24 + 2 * (8 + xdr::RPC_AUTH_MAX);
  static constexpr std::size_t tail_limit = 4096;
  static constexpr unsigned empty_fragments_limit = 16;  ///< In one record.
  static constexpr std::size_t head_capacity = 2048;
  /// Reads without waiting before other connections have their turn.
  static constexpr unsigned at_once_limit = 16;
  static_assert(xdr::record_mark_bytes + header_limit + arguments_limit + overread <=
                head_capacity);

  struct Steered {
    std::size_t begin;  ///< Of the payload, in the record.
    std::size_t length;
    std::size_t tail;
    std::size_t page_offset;  ///< File offset modulo 4096.
  };

  storage::Awaitable<ReadStatus> receive_steered(Record& record, Steered steered);
  storage::Awaitable<ReadStatus> receive_fragments(Record& record);
  storage::Awaitable<ReadStatus> next_mark();
  storage::Awaitable<ReadStatus> make_room(Record& record);
  storage::Awaitable<std::size_t> read(std::span<std::byte> first, std::span<std::byte> second);
  std::optional<std::size_t> read_now(std::span<std::byte> first, std::span<std::byte> second);
  std::array<boost::asio::mutable_buffer, 3> room(std::span<std::byte> first,
                                                  std::span<std::byte> second);
  std::size_t note_read(std::size_t count, std::size_t wanted, const storage::ErrorCode& error);

  std::span<const std::byte> buffered() const {
    return std::span(head_).subspan(head_begin_, head_end_ - head_begin_);
  }
  void consume(std::size_t count);
  void wait_begins();
  void align_head();
  ReadStatus take_mark();
  ReadStatus cut() const;
  std::optional<Steered> steer(const Opening& opening) const;

  Socket& socket_;
  const Limits limits_;
  ProgramTable& programs_;
  storage::BufferPool& pool_;
  Gate& large_;
  Counters& counters_;
  RecordClock clock_;

  alignas(8) std::array<std::byte, head_capacity> head_;
  std::size_t head_begin_ = 0;
  std::size_t head_end_ = 0;

  std::uint64_t received_ = 0;
  std::size_t record_bytes_ = 0;   ///< Of all fragments whose marks have been seen.
  std::size_t fragment_left_ = 0;  ///< Bytes of the current one not taken from head_ or socket.
  bool last_fragment_ = false;
  unsigned empty_fragments_ = 0;
  std::optional<Steered> steered_;
  bool waited_ = false;
  bool drained_ = true;      ///< The last read emptied the socket,
  bool short_read_ = false;  ///< and brought little.
  unsigned at_once_ = 0;     ///< Reads since others had their turn.
  bool failed_ = false;  ///< The last read ended with an error rather than the end of the stream.
};

}  // namespace selvage::server::rpc
