#include "xdr/stream.h"

#include <rpc/types.h>
#include <rpc/xdr.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace selvage::xdr {
namespace {

// A libtirpc stream over exactly the bytes of one value, bounds having been checked. Making one
// costs a few stores and leaves nothing in Source or Sink that a copy or a move could break. An
// address that is not a multiple of 4 is fine for everything but xdr_inline().
XDR stream(std::byte* bytes, std::size_t length, xdr_op op) {
  XDR xdr;
  xdrmem_create(&xdr, reinterpret_cast<char*>(bytes), static_cast<u_int>(length), op);
  return xdr;
}

template <class Wire, class T>
bool decode_integer(const std::byte* from, T& value, bool_t (*primitive)(XDR*, Wire*)) {
  static_assert(sizeof(Wire) == sizeof(T));
  if (from == nullptr) return false;
  // xdrmem only reads from a stream that decodes.
  XDR xdr = stream(const_cast<std::byte*>(from), sizeof(T), XDR_DECODE);
  Wire wire{};
  if (primitive(&xdr, &wire) == 0) return false;
  value = static_cast<T>(wire);
  return true;
}

template <class Wire, class T>
void encode_integer(std::byte* to, T value, bool_t (*primitive)(XDR*, Wire*)) {
  static_assert(sizeof(Wire) == sizeof(T));
  XDR xdr = stream(to, sizeof(T), XDR_ENCODE);
  Wire wire = static_cast<Wire>(value);
  primitive(&xdr, &wire);
}

bool all_zero(const std::byte* from, std::size_t length) {
  return std::all_of(from, from + length, [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

Source::Source(std::span<const std::byte> head, std::span<const std::byte> payload,
               std::span<const std::byte> tail)
    : segment_(head),
      payload_(payload),
      tail_(tail),
      later_(payload.size() + tail.size()),
      total_(head.size() + payload.size() + tail.size()),
      steered_(later_ != 0) {}

const std::byte* Source::take(std::size_t length) {
  if (length > segment_.size() - at_) return nullptr;
  const std::byte* bytes = segment_.data() + at_;
  at_ += length;
  return bytes;
}

bool Source::get(std::uint32_t& value) {
  return decode_integer(take(sizeof(value)), value, &xdr_u_int);
}

bool Source::get(std::int32_t& value) {
  return decode_integer(take(sizeof(value)), value, &xdr_int);
}

bool Source::get(std::uint64_t& value) {
  return decode_integer(take(sizeof(value)), value, &xdr_uint64_t);
}

bool Source::get(std::int64_t& value) {
  return decode_integer(take(sizeof(value)), value, &xdr_int64_t);
}

bool Source::get(bool& value) {
  std::uint32_t number = 0;
  if (!get(number) || number > 1) return false;
  value = number == 1;
  return true;
}

bool Source::view_opaque(std::size_t length, std::span<const std::byte>& view) {
  if (length > segment_.size() - at_) return false;
  const std::size_t pad = padding(length);
  const std::byte* bytes = take(length + pad);
  if (bytes == nullptr || !all_zero(bytes + length, pad)) return false;
  view = {bytes, length};
  return true;
}

bool Source::get_opaque(std::span<std::uint8_t> bytes) {
  std::span<const std::byte> view;
  if (!view_opaque(bytes.size(), view)) return false;
  std::copy_n(reinterpret_cast<const std::uint8_t*>(view.data()), view.size(), bytes.begin());
  return true;
}

bool Source::view_payload(std::uint32_t max, std::span<const std::byte>& view) {
  std::uint32_t length = 0;
  if (!get(length) || length > max) return false;
  if (!steered_) return view_opaque(length, view);
  if (at_ != segment_.size() || length != payload_.size()) return false;
  view = payload_;
  segment_ = tail_;
  at_ = 0;
  later_ = 0;
  steered_ = false;
  const std::size_t pad = padding(length);
  const std::byte* zeros = take(pad);
  return pad == 0 || (zeros != nullptr && all_zero(zeros, pad));
}

Sink::Sink(Sink&& other) noexcept {
  *this = std::move(other);
}

Sink& Sink::operator=(Sink&& other) noexcept {
  if (this == &other) return *this;
  buffer_ = std::move(other.buffer_);
  other.buffer_.clear();
  payload_ = std::exchange(other.payload_, {});
  split_ = std::exchange(other.split_, 0);
  has_payload_ = std::exchange(other.has_payload_, false);
  return *this;
}

std::byte* Sink::extend(std::size_t length) {
  const std::size_t at = buffer_.size();
  if (at + length > buffer_.capacity() && at + length < first_allocation) {
    buffer_.reserve(first_allocation);
  }
  buffer_.resize(at + length);
  return buffer_.data() + at;
}

void Sink::put(std::uint32_t value) {
  encode_integer(extend(sizeof(value)), value, &xdr_u_int);
}

void Sink::put(std::int32_t value) {
  encode_integer(extend(sizeof(value)), value, &xdr_int);
}

void Sink::put(std::uint64_t value) {
  encode_integer(extend(sizeof(value)), value, &xdr_uint64_t);
}

void Sink::put(std::int64_t value) {
  encode_integer(extend(sizeof(value)), value, &xdr_int64_t);
}

void Sink::put_opaque(std::span<const std::byte> bytes) {
  std::copy(bytes.begin(), bytes.end(), extend(bytes.size() + padding(bytes.size())));
}

void Sink::put_payload(std::span<const std::byte> payload) {
  if (payload.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw std::length_error("xdr: payload over 2^32 - 1 bytes");
  }
  put(static_cast<std::uint32_t>(payload.size()));
  if (has_payload_ || payload.empty()) {
    put_opaque(payload);
    return;
  }
  has_payload_ = true;
  payload_ = payload;
  split_ = buffer_.size();
  extend(padding(payload.size()));
}

void Sink::replace(std::size_t at, std::uint32_t value) {
  encode_integer(buffer_.data() + at, value, &xdr_u_int);
}

void Sink::own_payload() {
  if (!has_payload_) return;
  buffer_.insert(buffer_.begin() + static_cast<std::ptrdiff_t>(split_), payload_.begin(),
                 payload_.end());
  payload_ = {};
  has_payload_ = false;
}

std::vector<std::byte> Sink::joined() const {
  std::vector<std::byte> all;
  all.reserve(size());
  for (const auto part : {head(), payload(), tail()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace selvage::xdr
