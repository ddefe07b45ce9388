// The vocabulary of XDR types (RFC 4506): a wire structure is a plain aggregate of these.
//
// Aggregates are described once, by Boost.PFR, for both directions: no C arrays, no base classes,
// no private members. The templates behind decode() and encode() are in xdr/codec.h and are
// instantiated in one translation unit per program, for the types named there.
#pragma once

#include "xdr/stream.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace selvage::xdr {

/// Decodes one value. false on any malformed input: truncated, over a bound, a bool that is neither
/// 0 nor 1, padding that is not zero, an enum or a union arm that does not exist. Never allocates
/// more than a small multiple of the bytes that are there. Bytes after the value are left in the
/// source: the caller looks at remaining().
template <class T>
bool decode(Source& source, T& value);

/// Appends one value.
/// @throws std::length_error if a part of it is over its bound, std::logic_error if a union's body
/// does not belong to its discriminant: both are bugs of the caller.
template <class T>
void encode(Sink& sink, const T& value);

/// Bytes that encode() would append, payload included.
template <class T>
std::size_t encoded_size(const T& value);

/// `void` as a union arm, an argument or a result.
struct Void {};

/// opaque data<Max>. Small ones (file handles) live inside the object.
template <std::uint32_t Max>
class Opaque {
 public:
  static constexpr std::uint32_t max_bytes = Max;

  Opaque() = default;
  /// @throws std::length_error over Max bytes.
  explicit Opaque(std::span<const std::uint8_t> from) {
    const auto to = resize(from.size());
    std::copy(from.begin(), from.end(), to.begin());
  }

  std::span<const std::uint8_t> bytes() const { return {storage_.data(), size()}; }
  std::size_t size() const {
    if constexpr (inside) {
      return size_;
    } else {
      return storage_.size();
    }
  }
  bool empty() const { return size() == 0; }

  /// The bytes, to be overwritten.
  /// @throws std::length_error over Max bytes.
  std::span<std::uint8_t> resize(std::size_t bytes) {
    if (bytes > Max) throw std::length_error("xdr: opaque data over its bound");
    if constexpr (inside) {
      size_ = static_cast<std::uint8_t>(bytes);
    } else {
      storage_.resize(bytes);
    }
    return {storage_.data(), bytes};
  }

  friend bool operator==(const Opaque& a, const Opaque& b) {
    return std::ranges::equal(a.bytes(), b.bytes());
  }

 private:
  static constexpr bool inside = Max <= 64;
  struct Nothing {};

  std::conditional_t<inside, std::array<std::uint8_t, inside ? Max : 0>, std::vector<std::uint8_t>>
      storage_{};
  [[no_unique_address]] std::conditional_t<inside, std::uint8_t, Nothing> size_{};
};

/// string value<Max>. NUL bytes and non-ASCII are let through in both directions.
template <std::uint32_t Max>
struct String {
  static constexpr std::uint32_t max_bytes = Max;
  std::string value;
};

/// T items<Max>.
template <class T, std::uint32_t Max>
struct List {
  static constexpr std::uint32_t max_items = Max;
  std::vector<T> items;
};

/// A linked list: `*T` whose last member is the next `*T`. On the wire each item follows a TRUE and
/// a FALSE ends it; T is the structure without that last member.
template <class T>
struct Chain {
  std::vector<T> items;
};

/// opaque data<Max> that is file data: a view of what was received, or of what will be sent.
template <std::uint32_t Max>
struct Payload {
  static constexpr std::uint32_t max_bytes = Max;
  std::span<const std::byte> bytes;
};

/// `case Values...: T` of a union. Each T occurs in one arm only.
template <class T, auto... Values>
struct Case {
  using Body = T;
  static constexpr std::size_t values = sizeof...(Values);
  static constexpr bool matches(auto tag) { return ((tag == Values) || ...); }
  static constexpr auto first() { return std::array{Values...}[0]; }
};

/// `default: T` of a union, its last arm. The discriminant may then be any number, even one that
/// its enum does not name: the protocol has an answer for it.
template <class T>
struct Default {
  using Body = T;
  static constexpr std::size_t values = 0;
  static constexpr bool matches(auto) { return true; }
};

/// A discriminated union. Without a Default arm a discriminant with no Case is malformed.
///
///     LOOKUP3res ok(LOOKUP3resok{...});                            // one value: implied
///     LOOKUP3res stale(NFS3ERR_STALE);                             // body value-initialised
///     LOOKUP3res noent(NFS3ERR_NOENT, LOOKUP3resfail{attributes});
template <class D, class... Arms>
struct Union {
  using Discriminant = D;
  using Body = std::variant<typename Arms::Body...>;
  static constexpr std::size_t no_arm = sizeof...(Arms);

  D tag;
  Body body;

  /// The first arm under its first value.
  Union() : tag(FirstArm::first()) {}
  /// The arm of `t`, its body value-initialised.
  /// @throws std::logic_error if there is none.
  explicit Union(D t) : tag(t) {
    if (!select(t)) throw std::logic_error("xdr: no such union arm");
  }
  template <class T>
    requires(std::is_same_v<T, typename Arms::Body> || ...)
  Union(D t, T value) : tag(t), body(std::move(value)) {}
  template <class T>
    requires((std::is_same_v<T, typename Arms::Body> && Arms::values == 1) || ...)
  explicit Union(T value) : tag(only_value<T>()), body(std::move(value)) {}

  template <class T>
  T* get_if() {
    return std::get_if<T>(&body);
  }
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&body);
  }

  /// Index of the arm that `t` selects, or no_arm.
  static constexpr std::size_t arm(D t) {
    std::size_t index = 0;
    ((Arms::matches(t) || (++index, false)) || ...);
    return index;
  }

  /// Makes `t` the discriminant and value-initialises its body. false if it has no arm.
  bool select(D t) {
    const std::size_t wanted = arm(t);
    if (wanted == no_arm) return false;
    tag = t;
    emplace(wanted, std::index_sequence_for<Arms...>{});
    return true;
  }

 private:
  using FirstArm = std::tuple_element_t<0, std::tuple<Arms...>>;

  template <std::size_t... I>
  void emplace(std::size_t wanted, std::index_sequence<I...>) {
    ((I == wanted ? static_cast<void>(body.template emplace<I>()) : void()), ...);
  }

  template <class T>
  static constexpr D only_value() {
    D value{};
    (value_of<T, Arms>(value), ...);
    return value;
  }
  template <class T, class Arm>
  static constexpr void value_of(D& value) {
    if constexpr (std::is_same_v<T, typename Arm::Body>) value = Arm::first();
  }
};

}  // namespace selvage::xdr
