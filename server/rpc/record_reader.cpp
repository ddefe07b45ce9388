#include "server/rpc/record_reader.h"

#include "storage/result.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace selvage::server::rpc {

namespace asio = boost::asio;
using storage::Awaitable;

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t first_room = 512;
/// A read shorter than this that empties the socket and leaves a record incomplete may have met
/// Nagle's algorithm on the other side, which waits for our acknowledgement. Longer runs the kernel
/// acknowledges by itself: a large WRITE costs no system call for this.
constexpr std::size_t quickack_below = 4096;

std::chrono::steady_clock::time_point steady_now() {
  return std::chrono::steady_clock::now();
}

}  // namespace

/// Where a read goes: `first`, `second` (may be empty) and, beyond them, up to `overread` bytes of
/// the head buffer, which must be empty or in use alone.
std::array<asio::mutable_buffer, 3> RecordReader::room(std::span<std::byte> first,
                                                       std::span<std::byte> second) {
  return {asio::buffer(first.data(), first.size()), asio::buffer(second.data(), second.size()),
          asio::buffer(head_.data() + head_end_, overread)};
}

/// Waits for bytes. 0 at the end of the stream or on an error.
Awaitable<std::size_t> RecordReader::read(std::span<std::byte> first, std::span<std::byte> second) {
  if (short_read_ && clock_.running_since()) {
    const int on = 1;
    // Not a TCP socket in some tests: then there is nothing to acknowledge.
    if (::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on) == 0) {
      counters_.quickacks.add();
    }
  }
  at_once_ = 0;
  const std::array<asio::mutable_buffer, 3> buffers = room(first, second);
  storage::ErrorCode error;
  const std::size_t count =
      co_await socket_.async_read_some(buffers, asio::redirect_error(asio::use_awaitable, error));
  co_return note_read(count, first.size() + second.size(), error);
}

/// The same where bytes are there already. nullopt if they are not, or it is not worth a try.
std::optional<std::size_t> RecordReader::read_now(std::span<std::byte> first,
                                                  std::span<std::byte> second) {
  if (drained_ || ++at_once_ > at_once_limit) return std::nullopt;
  storage::ErrorCode error;
  const std::size_t count = socket_.read_some(room(first, second), error);
  if (error == asio::error::would_block) return std::nullopt;
  return note_read(count, first.size() + second.size(), error);
}

std::size_t RecordReader::note_read(std::size_t count, std::size_t wanted,
                                    const storage::ErrorCode& error) {
  if (error) {
    failed_ = error != asio::error::eof;
    return 0;
  }
  received_ += count;
  counters_.receives.add();
  counters_.bytes_received.add(count);
  if (count > wanted) head_end_ += count - wanted;
  drained_ = count < wanted + overread;
  short_read_ = drained_ && count < quickack_below;
  return count;
}

void RecordReader::consume(std::size_t count) {
  head_begin_ += count;
  if (head_begin_ == head_end_) head_begin_ = head_end_ = 0;
}

void RecordReader::align_head() {
  if (head_begin_ == 0) return;
  std::memmove(head_.data(), head_.data() + head_begin_, head_end_ - head_begin_);
  head_end_ -= head_begin_;
  head_begin_ = 0;
}

ReadStatus RecordReader::cut() const {
  return failed_ ? ReadStatus::socket_error : ReadStatus::peer_cut;
}

/// Takes a record mark out of the head buffer, which holds one.
ReadStatus RecordReader::take_mark() {
  const xdr::RecordMark mark = xdr::decode_record_mark(buffered().first<xdr::record_mark_bytes>());
  consume(xdr::record_mark_bytes);
  fragment_left_ = mark.length;
  last_fragment_ = mark.last;
  record_bytes_ += mark.length;
  if (record_bytes_ > limits_.max_record) return ReadStatus::oversize;
  if (mark.length == 0 && ++empty_fragments_ > empty_fragments_limit) return ReadStatus::garbage;
  return ReadStatus::ok;
}

std::optional<RecordReader::Steered> RecordReader::steer(const Opening& opening) const {
  // A payload of several fragments has marks in it: it is put together, and copied by the decoder.
  if (!opening.place || !last_fragment_) return std::nullopt;
  const PayloadPlace& place = *opening.place;
  const std::size_t begin = opening.arguments + place.position;
  if (place.length == 0 || begin > fragment_left_ || place.length > fragment_left_ - begin) {
    return std::nullopt;
  }
  const std::size_t tail = fragment_left_ - begin - place.length;
  if (tail > tail_limit || begin > buffered().size()) return std::nullopt;
  return Steered{begin, place.length, tail, static_cast<std::size_t>(place.file_offset % page)};
}

Awaitable<ReadStatus> RecordReader::open(Opening& opening) {
  opening = Opening{};
  steered_.reset();
  record_bytes_ = 0;
  empty_fragments_ = 0;
  waited_ = false;
  failed_ = false;
  clock_.stop();
  bool marked = false;
  for (;;) {
    if (!marked && buffered().size() >= xdr::record_mark_bytes) {
      // The decoder wants it aligned; a client may have sent a record of odd length before.
      if (head_begin_ % 4 != 0) align_head();
      const ReadStatus status = take_mark();
      if (status != ReadStatus::ok) co_return status;
      marked = true;
    }
    if (marked) {
      const std::size_t here = std::min(buffered().size(), fragment_left_);
      opening = programs_.inspect(buffered().first(here));
      if (opening.status == xdr::CallStatus::not_a_call) co_return ReadStatus::garbage;
      if (here == fragment_left_ || opening.place) break;
      if (opening.status != xdr::CallStatus::truncated &&
          (!opening.may_carry_payload || here >= opening.arguments + arguments_limit)) {
        break;
      }
      if (here > header_limit + arguments_limit) break;
    }
    if (head_end_ + overread > head_.size()) align_head();
    const bool begun = marked || !buffered().empty();
    if (begun) clock_.start(steady_now());
    std::optional<std::size_t> count = read_now({}, {});
    if (!count) count = co_await read({}, {});
    if (*count == 0) {
      co_return begun || failed_ ? cut() : ReadStatus::peer_closed;
    }
  }
  clock_.start(steady_now());
  steered_ = steer(opening);
  co_return ReadStatus::ok;
}

Awaitable<ReadStatus> RecordReader::receive(Record& record) {
  if (steered_) return receive_steered(record, *steered_);
  return receive_fragments(record);
}

void RecordReader::wait_begins() {
  waited_ = true;
  counters_.receive_waits.add();
  clock_.pause(steady_now());
}

Awaitable<ReadStatus> RecordReader::receive_steered(Record& record, Steered steered) {
  record.head.reserve(steered.begin);
  record.head.append(buffered().first(steered.begin));
  consume(steered.begin);

  const std::size_t bytes = steered.page_offset + steered.length;
  record.payload_owner = pool_.try_acquire(bytes);
  if (!record.payload_owner) {
    wait_begins();
    storage::Result<storage::Buffer> buffer = co_await pool_.acquire(bytes);
    clock_.resume(steady_now());
    if (!buffer) {
      const bool too_large = buffer.error() == storage::errno_code(ENOMEM);
      co_return too_large ? ReadStatus::oversize : ReadStatus::stopping;
    }
    record.payload_owner = std::move(*buffer);
  }
  const std::span<std::byte> payload(record.payload_owner.data() + steered.page_offset,
                                     steered.length);
  record.payload = payload;
  record.tail.reserve(steered.tail);

  const std::size_t over = std::min(buffered().size(), steered.length);
  if (over > 0) std::memcpy(payload.data(), buffered().data(), over);
  consume(over);
  const std::size_t tail_over = std::min(buffered().size(), steered.tail);
  record.tail.append(buffered().first(tail_over));
  consume(tail_over);
  counters_.steered_payloads.add();
  counters_.overread_bytes.add(over);
  counters_.head_bytes_copied.add(steered.begin + tail_over);

  std::span<std::byte> left = payload.subspan(over);
  while (!left.empty() || record.tail.size() < steered.tail) {
    const std::span<std::byte> tail = record.tail.spare().first(steered.tail - record.tail.size());
    std::optional<std::size_t> count = read_now(left, tail);
    if (!count) count = co_await read(left, tail);
    if (*count == 0) co_return cut();
    const std::size_t in_payload = std::min(*count, left.size());
    left = left.subspan(in_payload);
    record.tail.commit(std::min(*count - in_payload, tail.size()));
  }
  clock_.stop();
  co_return ReadStatus::ok;
}

/// Waits until a record mark is in the head buffer, and takes it.
Awaitable<ReadStatus> RecordReader::next_mark() {
  while (buffered().size() < xdr::record_mark_bytes) {
    if (head_end_ + overread > head_.size()) align_head();
    std::optional<std::size_t> count = read_now({}, {});
    if (!count) count = co_await read({}, {});
    if (*count == 0) co_return cut();
  }
  co_return take_mark();
}

/// Room for at least one more byte of the current fragment, growing with what has been received:
/// a client does not get memory for bytes that it has only announced.
Awaitable<ReadStatus> RecordReader::make_room(Record& record) {
  if (!record.head.spare().empty()) co_return ReadStatus::ok;
  const std::size_t have = record.head.size();
  const std::size_t target = std::min(std::max(2 * have, first_room), have + fragment_left_);
  if (target > limits_.small_record && !record.large) {
    record.large = large_.try_acquire();
    if (!record.large) {
      wait_begins();
      record.large = co_await large_.acquire();
      clock_.resume(steady_now());
    }
    if (!record.large) co_return ReadStatus::stopping;
  }
  record.head.reserve(target);
  co_return ReadStatus::ok;
}

Awaitable<ReadStatus> RecordReader::receive_fragments(Record& record) {
  for (;;) {
    while (fragment_left_ > 0) {
      const ReadStatus status = co_await make_room(record);
      if (status != ReadStatus::ok) co_return status;
      const std::size_t room_left = std::min(record.head.spare().size(), fragment_left_);
      if (!buffered().empty()) {
        const std::size_t count = std::min(room_left, buffered().size());
        record.head.append(buffered().first(count));
        consume(count);
        fragment_left_ -= count;
        continue;
      }
      const std::span<std::byte> spare = record.head.spare().first(room_left);
      std::optional<std::size_t> count = read_now(spare, {});
      if (!count) count = co_await read(spare, {});
      if (*count == 0) co_return cut();
      const std::size_t in_fragment = std::min(*count, room_left);
      record.head.commit(in_fragment);
      fragment_left_ -= in_fragment;
    }
    if (last_fragment_) break;
    const ReadStatus status = co_await next_mark();
    if (status != ReadStatus::ok) co_return status;
  }
  counters_.reassembled_records.add();
  counters_.reassembled_bytes.add(record.head.size());
  clock_.stop();
  co_return ReadStatus::ok;
}

}  // namespace selvage::server::rpc
