// The templates behind decode(), encode() and encoded_size(). Include it in the one translation
// unit per program that instantiates them (SELVAGE_XDR_INSTANTIATE), nowhere else: Boost.PFR over
// a hundred structures takes seconds to compile.
#pragma once

#include "xdr/types.h"

#include <boost/pfr.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace selvage::xdr {
namespace detail {

/// How a type of types.h is put on the wire. The primary template is for aggregates.
template <class T>
struct Wire;

template <class T>
concept Integer = std::same_as<T, std::uint32_t> || std::same_as<T, std::int32_t> ||
                  std::same_as<T, std::uint64_t> || std::same_as<T, std::int64_t>;

/// Counts what Sink would hold.
struct Counter {
  std::size_t bytes = 0;

  void put(auto value) { bytes += sizeof(value); }
  void put(bool) { bytes += 4; }
  void put_opaque(std::span<const std::byte> from) { bytes += from.size() + padding(from.size()); }
  void put_payload(std::span<const std::byte> from) {
    bytes += 4;
    put_opaque(from);
  }
};

inline std::uint32_t length_word(std::size_t length, std::uint32_t max) {
  if (length > max) throw std::length_error("xdr: value over its bound");
  return static_cast<std::uint32_t>(length);
}

/// Length word of variable-length opaque data, then the data: compared with bound and bytes that
/// are there before anything is allocated.
inline bool view_counted(Source& source, std::uint32_t max, std::span<const std::byte>& view) {
  std::uint32_t length = 0;
  return source.get(length) && length <= max && source.view_opaque(length, view);
}

template <Integer T>
struct Wire<T> {
  static constexpr std::size_t least = sizeof(T);
  static bool decode(Source& source, T& value) { return source.get(value); }
  static void encode(auto& out, T value) { out.put(value); }
};

template <>
struct Wire<bool> {
  static constexpr std::size_t least = 4;
  static bool decode(Source& source, bool& value) { return source.get(value); }
  static void encode(auto& out, bool value) { out.put(value); }
};

/// An enum outside a union says with is_valid() which numbers it has.
template <class T>
  requires std::is_enum_v<T>
struct Wire<T> {
  static constexpr std::size_t least = 4;
  static bool decode(Source& source, T& value) {
    std::uint32_t number = 0;
    if (!source.get(number)) return false;
    value = static_cast<T>(number);
    return is_valid(value);
  }
  static void encode(auto& out, T value) { out.put(static_cast<std::uint32_t>(value)); }
};

template <>
struct Wire<Void> {
  static constexpr std::size_t least = 0;
  static bool decode(Source&, Void&) { return true; }
  static void encode(auto&, const Void&) {}
};

template <std::size_t N>
struct Wire<std::array<std::uint8_t, N>> {
  static constexpr std::size_t least = N + padding(N);
  static bool decode(Source& source, std::array<std::uint8_t, N>& value) {
    return source.get_opaque(value);
  }
  static void encode(auto& out, const std::array<std::uint8_t, N>& value) {
    out.put_opaque(std::as_bytes(std::span(value)));
  }
};

template <std::uint32_t Max>
struct Wire<Opaque<Max>> {
  static constexpr std::size_t least = 4;
  static bool decode(Source& source, Opaque<Max>& value) {
    std::span<const std::byte> view;
    if (!view_counted(source, Max, view)) return false;
    const auto to = value.resize(view.size());
    std::ranges::copy(view, std::as_writable_bytes(to).begin());
    return true;
  }
  static void encode(auto& out, const Opaque<Max>& value) {
    out.put(length_word(value.size(), Max));
    out.put_opaque(std::as_bytes(value.bytes()));
  }
};

template <std::uint32_t Max>
struct Wire<String<Max>> {
  static constexpr std::size_t least = 4;
  static bool decode(Source& source, String<Max>& value) {
    std::span<const std::byte> view;
    if (!view_counted(source, Max, view)) return false;
    value.value.assign(reinterpret_cast<const char*>(view.data()), view.size());
    return true;
  }
  static void encode(auto& out, const String<Max>& value) {
    out.put(length_word(value.value.size(), Max));
    out.put_opaque(std::as_bytes(std::span(value.value)));
  }
};

template <std::uint32_t Max>
struct Wire<Payload<Max>> {
  static constexpr std::size_t least = 4;
  static bool decode(Source& source, Payload<Max>& value) {
    return source.view_payload(Max, value.bytes);
  }
  static void encode(auto& out, const Payload<Max>& value) {
    length_word(value.bytes.size(), Max);
    out.put_payload(value.bytes);
  }
};

template <class T>
struct Wire<std::optional<T>> {
  static constexpr std::size_t least = 4;
  static bool decode(Source& source, std::optional<T>& value) {
    bool there = false;
    value.reset();
    return source.get(there) && (!there || Wire<T>::decode(source, value.emplace()));
  }
  static void encode(auto& out, const std::optional<T>& value) {
    out.put(value.has_value());
    if (value) Wire<T>::encode(out, *value);
  }
};

template <class T, std::uint32_t Max>
struct Wire<List<T, Max>> {
  static constexpr std::size_t least = 4;
  static bool decode(Source& source, List<T, Max>& value) {
    static_assert(Wire<T>::least > 0, "a list of nothing has no bound");
    std::uint32_t count = 0;
    value.items.clear();
    if (!source.get(count) || count > Max) return false;
    if (count > source.remaining() / Wire<T>::least) return false;
    value.items.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!Wire<T>::decode(source, value.items.emplace_back())) return false;
    }
    return true;
  }
  static void encode(auto& out, const List<T, Max>& value) {
    out.put(length_word(value.items.size(), Max));
    for (const T& item : value.items) Wire<T>::encode(out, item);
  }
};

// Every item takes at least four bytes of the source, which bounds the loop; nothing recurses.
template <class T>
struct Wire<Chain<T>> {
  static constexpr std::size_t least = 4;
  static bool decode(Source& source, Chain<T>& value) {
    bool more = false;
    value.items.clear();
    while (source.get(more)) {
      if (!more) return true;
      if (Wire<T>::least > source.remaining()) return false;
      if (!Wire<T>::decode(source, value.items.emplace_back())) return false;
    }
    return false;
  }
  static void encode(auto& out, const Chain<T>& value) {
    for (const T& item : value.items) {
      out.put(true);
      Wire<T>::encode(out, item);
    }
    out.put(false);
  }
};

template <class D, class... Arms>
struct Wire<Union<D, Arms...>> {
  using U = Union<D, Arms...>;
  static constexpr std::size_t least = 4;
  static bool decode(Source& source, U& value) {
    std::uint32_t number = 0;
    if (!source.get(number) || !value.select(static_cast<D>(number))) return false;
    return std::visit([&](auto& body) { return decode_body(source, body); }, value.body);
  }
  static void encode(auto& out, const U& value) {
    if (U::arm(value.tag) != value.body.index()) {
      throw std::logic_error("xdr: union body does not belong to its discriminant");
    }
    out.put(static_cast<std::uint32_t>(value.tag));
    std::visit([&](const auto& body) { encode_body(out, body); }, value.body);
  }

 private:
  template <class T>
  static bool decode_body(Source& source, T& body) {
    return Wire<T>::decode(source, body);
  }
  template <class T>
  static void encode_body(auto& out, const T& body) {
    Wire<T>::encode(out, body);
  }
};

template <class T>
struct Wire {
  static_assert(std::is_aggregate_v<T>);

  static constexpr std::size_t least = []<std::size_t... I>(std::index_sequence<I...>) {
    return (std::size_t{0} + ... + Wire<boost::pfr::tuple_element_t<I, T>>::least);
  }(std::make_index_sequence<boost::pfr::tuple_size_v<T>>{});

  static bool decode(Source& source, T& value) {
    return std::apply([&](auto&... field) { return (decode_field(source, field) && ...); },
                      boost::pfr::structure_tie(value));
  }
  static void encode(auto& out, const T& value) {
    std::apply([&](const auto&... field) { (encode_field(out, field), ...); },
               boost::pfr::structure_tie(value));
  }

 private:
  template <class F>
  static bool decode_field(Source& source, F& field) {
    return Wire<F>::decode(source, field);
  }
  template <class F>
  static void encode_field(auto& out, const F& field) {
    Wire<F>::encode(out, field);
  }
};

}  // namespace detail

template <class T>
bool decode(Source& source, T& value) {
  return detail::Wire<T>::decode(source, value);
}

template <class T>
void encode(Sink& sink, const T& value) {
  detail::Wire<T>::encode(sink, value);
}

template <class T>
std::size_t encoded_size(const T& value) {
  detail::Counter counter;
  detail::Wire<T>::encode(counter, value);
  return counter.bytes;
}

}  // namespace selvage::xdr

/// Within namespace selvage::xdr.
#define SELVAGE_XDR_INSTANTIATE(T)          \
  template bool decode<T>(Source&, T&);     \
  template void encode<T>(Sink&, const T&); \
  template std::size_t encoded_size<T>(const T&)
