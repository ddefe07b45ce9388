// Comparison with an independent implementation: rpcgen's code from the RFCs' own descriptions
// (*.x beside this file).
//
// A test defines, in namespace selvage::xdr, convert(const Ours&, Reference&) member by member and
// name by name, then calls check_against_reference(): what ours encodes are the reference's bytes,
// what either encodes the other decodes, each field where it belongs.
#pragma once

#include "generate.h"
#include "xdr/types.h"

#include <rpc/rpc.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <type_traits>
#include <vector>

namespace selvage::xdr {

template <class A, class B>
concept Scalars = (std::is_arithmetic_v<A> || std::is_enum_v<A>) &&
                  (std::is_arithmetic_v<B> || std::is_enum_v<B>);

template <class A, class B>
  requires Scalars<A, B>
void convert(A from, B& to) {
  to = static_cast<B>(from);
}

template <std::size_t N>
void convert(const std::array<std::uint8_t, N>& from, char (&to)[N]) {
  std::memcpy(to, from.data(), N);
}

template <std::uint32_t Max>
void convert(const String<Max>& from, char*& to) {
  to = const_cast<char*>(from.value.c_str());
}

/// The reference's `struct { u_int x_len; char* x_val; }`, whatever x is.
template <class Counted>
void convert_bytes(const void* bytes, std::size_t size, Counted& to) {
  auto& [length, value] = to;
  length = static_cast<u_int>(size);
  value = static_cast<char*>(const_cast<void*>(bytes));
}

template <std::uint32_t Max, class Counted>
void convert(const Opaque<Max>& from, Counted& to) {
  convert_bytes(from.bytes().data(), from.size(), to);
}

template <std::uint32_t Max, class Counted>
void convert(const Payload<Max>& from, Counted& to) {
  convert_bytes(from.bytes.data(), from.bytes.size(), to);
}

template <std::uint32_t Max, class Counted>
void convert(const List<std::uint32_t, Max>& from, Counted& to) {
  auto& [length, value] = to;
  length = static_cast<u_int>(from.items.size());
  value = reinterpret_cast<std::remove_reference_t<decltype(value)>>(
      const_cast<std::uint32_t*>(from.items.data()));
}

/// Memory for one item of the reference's linked lists, kept until the program ends.
template <class Node>
Node* new_node() {
  static std::deque<Node> nodes;
  return &nodes.emplace_back();
}

namespace test {

using Bytes = std::vector<std::byte>;

template <class T>
Bytes encoded(const T& value) {
  Sink sink;
  encode(sink, value);
  EXPECT_EQ(sink.size(), encoded_size(value));
  return sink.joined();
}

template <class Reference>
Bytes reference_encoded(Reference& value, bool_t (*proc)(XDR*, Reference*)) {
  static Bytes bytes(1 << 17);
  XDR xdr;
  xdrmem_create(&xdr, reinterpret_cast<char*>(bytes.data()), static_cast<u_int>(bytes.size()),
                XDR_ENCODE);
  EXPECT_TRUE(proc(&xdr, &value));
  const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(xdr_getpos(&xdr));
  const Bytes result(bytes.begin(), end);
  // xdr_callmsg() leaves padding as it finds it.
  std::fill(bytes.begin(), end, std::byte{0});
  return result;
}

template <class Ours, class Reference>
Bytes through_reference(const Ours& value, bool_t (*proc)(XDR*, Reference*)) {
  Reference reference;
  std::memset(static_cast<void*>(&reference), 0, sizeof(reference));
  convert(value, reference);
  return reference_encoded(reference, proc);
}

/// Decodes with the reference and encodes again.
template <class Reference>
Bytes reference_recoded(const Bytes& bytes, bool_t (*proc)(XDR*, Reference*)) {
  Reference value;
  std::memset(static_cast<void*>(&value), 0, sizeof(value));
  XDR xdr;
  xdrmem_create(&xdr, reinterpret_cast<char*>(const_cast<std::byte*>(bytes.data())),
                static_cast<u_int>(bytes.size()), XDR_DECODE);
  EXPECT_TRUE(proc(&xdr, &value));
  EXPECT_EQ(xdr_getpos(&xdr), bytes.size());
  Bytes again = reference_encoded(value, proc);
  xdr_free(reinterpret_cast<xdrproc_t>(proc), &value);
  return again;
}

/// Every proper prefix is refused. Each is an allocation of its own, so that AddressSanitizer sees
/// a byte read too many.
template <class Ours>
void check_truncation(const Bytes& bytes) {
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const Bytes prefix(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    Source source(prefix);
    Ours value;
    ASSERT_FALSE(decode(source, value)) << length << " of " << bytes.size() << " bytes";
  }
}

/// From three pieces of memory, each at any alignment, as from one.
template <class Ours>
void check_three_segments(const Ours& value, const Bytes& bytes) {
  Sink sink;
  encode(sink, value);
  for (std::size_t skew = 0; skew < 4; ++skew) {
    std::array<Bytes, 3> parts;
    std::array<std::span<const std::byte>, 3> segments;
    const std::array from{sink.head(), sink.payload(), sink.tail()};
    for (std::size_t i = 0; i < 3; ++i) {
      parts[i].resize(skew + from[i].size());
      std::copy(from[i].begin(), from[i].end(),
                parts[i].begin() + static_cast<std::ptrdiff_t>(skew));
      segments[i] = std::span(parts[i]).subspan(skew);
    }
    Source source(segments[0], segments[1], segments[2]);
    Ours again;
    ASSERT_EQ(source.remaining(), bytes.size());
    ASSERT_TRUE(decode(source, again));
    EXPECT_EQ(source.remaining(), 0U);
    EXPECT_EQ(source.position(), bytes.size());
    EXPECT_EQ(encoded(again), bytes);
  }
}

template <class Ours, class Reference>
void check_against_reference(bool_t (*proc)(XDR*, Reference*), std::uint32_t seed) {
  Generator generator(seed);
  int truncations = 0;
  for (int round = 0; round < 60; ++round) {
    const Ours value = generator.make<Ours>();
    const Bytes bytes = encoded(value);
    ASSERT_EQ(bytes, through_reference(value, proc));
    ASSERT_EQ(bytes, reference_recoded(bytes, proc));

    // Bytes of the next request follow: they must be neither read nor minded.
    Bytes longer = bytes;
    longer.resize(bytes.size() + 12, std::byte{0xff});
    Source source(longer);
    Ours again;
    ASSERT_TRUE(decode(source, again));
    ASSERT_EQ(source.remaining(), 12U);
    ASSERT_EQ(bytes, encoded(again));
    ASSERT_EQ(bytes, through_reference(again, proc));

    ASSERT_NO_FATAL_FAILURE(check_three_segments(value, bytes));
    if (bytes.size() < 1000 && truncations < 4) {
      ++truncations;
      ASSERT_NO_FATAL_FAILURE(check_truncation<Ours>(bytes));
    }
  }
  EXPECT_GT(truncations, 0);
}

}  // namespace test
}  // namespace selvage::xdr
