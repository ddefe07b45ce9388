// XDR streams (RFC 4506): where values are decoded from and encoded into.
//
// The primitives are libtirpc's (xdrmem). Nothing here trusts a length before it has been compared
// with the bytes that are there. Not thread safe; no I/O.
#pragma once

#include <boost/container/small_vector.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace selvage::xdr {

/// Bytes of zero padding after `length` bytes of opaque data (RFC 4506, 3).
constexpr std::size_t padding(std::size_t length) {
  return (4 - length % 4) % 4;
}

/// Decodes from one record. Owns no memory: what it was made from must outlive it and every view
/// taken from it. Copyable: a copy reads on from where the original stood.
///
/// A record whose payload was received elsewhere is three segments: the head ends right after the
/// payload's length word, the payload segment is exactly the payload, the tail begins with the
/// payload's padding. Without payload and tail the whole record is the head, and a payload is a
/// view into it.
///
/// Each get returns false if the bytes are not there or not canonical; the position is then
/// unspecified and decoding must end.
class Source {
 public:
  Source() = default;
  explicit Source(std::span<const std::byte> head, std::span<const std::byte> payload = {},
                  std::span<const std::byte> tail = {});

  /// Bytes of all segments that have not been consumed.
  std::size_t remaining() const { return segment_.size() - at_ + later_; }
  /// Bytes of all segments that have been consumed.
  std::size_t position() const { return total_ - remaining(); }

  bool get(std::uint32_t& value);
  bool get(std::int32_t& value);
  bool get(std::uint64_t& value);
  bool get(std::int64_t& value);
  /// false for anything but 0 and 1.
  bool get(bool& value);

  /// What is left of the segment that is being read, not consumed.
  std::span<const std::byte> rest_of_segment() const { return segment_.subspan(at_); }

  /// Fixed-length opaque data and its padding. false also if the padding is not zero.
  bool get_opaque(std::span<std::uint8_t> bytes);
  /// The same without a copy.
  bool view_opaque(std::size_t length, std::span<const std::byte>& view);
  /// Length word, payload and padding. false if the length is over `max`, or is not that of the
  /// payload segment.
  bool view_payload(std::uint32_t max, std::span<const std::byte>& view);

 private:
  const std::byte* take(std::size_t length);

  std::span<const std::byte> segment_;  ///< The one being read: the head, later the tail.
  std::size_t at_ = 0;
  std::span<const std::byte> payload_;  ///< Not yet consumed.
  std::span<const std::byte> tail_;
  std::size_t later_ = 0;  ///< Bytes of payload_ and tail_ while they are still to come.
  std::size_t total_ = 0;
  bool steered_ = false;  ///< payload_ and tail_ are still to come.
};

/// Encodes into memory of its own, and at most one payload by reference. Movable, not copyable.
/// Allocates nothing for `inside` bytes, payload not counted, and once for `first_allocation`.
class Sink {
 public:
  static constexpr std::size_t inside = 160;
  static constexpr std::size_t first_allocation = 512;

  Sink() = default;
  Sink(Sink&& other) noexcept;
  Sink& operator=(Sink&& other) noexcept;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  ~Sink() = default;

  /// Makes room for `bytes` more, so that encoding them allocates nothing.
  void reserve(std::size_t bytes) { buffer_.reserve(buffer_.size() + bytes); }

  void put(std::uint32_t value);
  void put(std::int32_t value);
  void put(std::uint64_t value);
  void put(std::int64_t value);
  void put(bool value) { put(std::uint32_t{value ? 1U : 0U}); }

  /// Fixed-length opaque data and its padding, copied.
  void put_opaque(std::span<const std::byte> bytes);
  /// Length word, the payload by reference, and its padding. The payload must outlive the sink. A
  /// second payload in one sink is copied.
  /// @throws std::length_error over 2^32 - 1 bytes.
  void put_payload(std::span<const std::byte> payload);

  /// Overwrites the four bytes at `at`, counted from the first byte put and without a payload that
  /// lies before them: what was not known when it was put.
  /// @pre at + 4 bytes have been put.
  void replace(std::size_t at, std::uint32_t value);
  /// Copies the payload, if there is one: its memory is not needed any more.
  void own_payload();

  /// The record is head, payload, tail. Valid until the next put. Without a payload everything is
  /// in head().
  std::span<const std::byte> head() const { return std::span(buffer_).first(head_size()); }
  std::span<const std::byte> payload() const { return payload_; }
  std::span<const std::byte> tail() const { return std::span(buffer_).subspan(head_size()); }
  /// Bytes of head, payload and tail.
  std::size_t size() const { return buffer_.size() + payload_.size(); }

  /// Head, payload and tail in one piece, copied.
  std::vector<std::byte> joined() const;

 private:
  std::byte* extend(std::size_t length);
  std::size_t head_size() const { return has_payload_ ? split_ : buffer_.size(); }

  boost::container::small_vector<std::byte, inside> buffer_;
  std::span<const std::byte> payload_;
  std::size_t split_ = 0;  ///< Where in buffer_ the payload belongs.
  bool has_payload_ = false;
};

}  // namespace selvage::xdr
