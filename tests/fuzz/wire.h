// What the fuzz targets of the wire formats have in common.
#pragma once

#include "xdr/stream.h"
#include "xdr/types.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

namespace selvage::xdr::fuzz {

inline void require(bool condition) {
  if (!condition) std::abort();
}

/// Whatever decodes is canonical: encoded again it is the bytes that were consumed, of the size
/// that encoded_size() tells; and cut in three around its payload it decodes to the same.
template <class T>
void decode_and_encode(std::span<const std::byte> input) {
  Source source(input);
  T value;
  if (!decode(source, value)) return;
  require(source.position() + source.remaining() == input.size());
  Sink sink;
  encode(sink, value);
  const std::vector<std::byte> again = sink.joined();
  require(again.size() == source.position() && again.size() == encoded_size(value));
  require(std::ranges::equal(again, input.first(again.size())));

  Source pieces(sink.head(), sink.payload(), sink.tail());
  T same;
  require(decode(pieces, same) && pieces.remaining() == 0);
  Sink second;
  encode(second, same);
  require(second.joined() == again);
}

/// Cuts the input after `cut` and again after `length` more bytes, wherever that is: whatever a
/// receiver took for the payload, it is decoded or refused.
template <class T>
void decode_in_pieces(std::span<const std::byte> input, std::size_t cut, std::size_t length) {
  const auto head = input.first(std::min(cut, input.size()));
  const auto rest = input.subspan(head.size());
  const auto payload = rest.first(std::min(length, rest.size()));
  Source source(head, payload, rest.subspan(payload.size()));
  T value;
  if (decode(source, value)) require(source.position() <= input.size());
}

}  // namespace selvage::xdr::fuzz
