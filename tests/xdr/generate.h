// Random values of any wire type, for a given seed always the same.
#pragma once

#include "xdr/nfs3.h"
#include "xdr/nfs4_ops.h"
#include "xdr/types.h"

#include <boost/pfr.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace selvage::xdr::test {

class Generator {
 public:
  explicit Generator(std::uint32_t seed) : random_(seed) {}

  std::uint32_t below(std::uint32_t bound) {
    return std::uniform_int_distribution<std::uint32_t>(0, bound - 1)(random_);
  }

  template <class T>
  T make() {
    T value;
    fill(value);
    return value;
  }

  void fill(bool& value) { value = below(2) == 1; }
  void fill(std::uint32_t& value) { value = static_cast<std::uint32_t>(number()); }
  void fill(std::int32_t& value) { value = static_cast<std::int32_t>(number()); }
  void fill(std::uint64_t& value) { value = number(); }
  void fill(std::int64_t& value) { value = static_cast<std::int64_t>(number()); }
  void fill(Void&) {}

  template <class T>
    requires std::is_enum_v<T>
  void fill(T& value) {
    do {
      value = static_cast<T>(below(8));
    } while (!is_valid(value));
  }

  template <std::size_t N>
  void fill(std::array<std::uint8_t, N>& value) {
    fill_bytes(value);
  }

  template <std::uint32_t Max>
  void fill(Opaque<Max>& value) {
    fill_bytes(value.resize(length(Max)));
  }

  /// Without NUL: rpcgen's strings are C strings.
  template <std::uint32_t Max>
  void fill(String<Max>& value) {
    value.value.resize(length(Max));
    for (char& c : value.value) c = static_cast<char>(1 + below(255));
  }

  template <std::uint32_t Max>
  void fill(Payload<Max>& value) {
    if (pool_.empty()) {
      pool_.resize(4096);
      fill_bytes(std::span(reinterpret_cast<std::uint8_t*>(pool_.data()), pool_.size()));
    }
    value.bytes = std::span(pool_).subspan(below(64), below(500));
  }

  template <class T>
  void fill(std::optional<T>& value) {
    value.reset();
    if (below(2) == 1) fill(value.emplace());
  }

  template <class T, std::uint32_t Max>
  void fill(List<T, Max>& value) {
    // Long lists of large items would be all there is.
    constexpr std::uint32_t most = std::min<std::uint32_t>(Max, 64);
    value.items.resize(below(4) == 0 ? most : below(most + 1));
    for (T& item : value.items) fill(item);
  }

  template <class T>
  void fill(Chain<T>& value) {
    value.items.resize(below(5));
    for (T& item : value.items) fill(item);
  }

  /// Each arm equally often, under any number that selects it.
  template <class D, class... Arms>
  void fill(Union<D, Arms...>& value) {
    using U = Union<D, Arms...>;
    const std::size_t wanted = below(sizeof...(Arms));
    std::vector<D> tags;
    for (const std::uint32_t number :
         {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U, 13U, 70U, 10001U, 10008U, 10010U, 10017U}) {
      const D tag = static_cast<D>(number);
      if (representable(tag) && U::arm(tag) == wanted) tags.push_back(tag);
    }
    value.select(tags.at(below(static_cast<std::uint32_t>(tags.size()))));
    std::visit([this](auto& body) { this->fill(body); }, value.body);
  }

  template <class T>
    requires std::is_aggregate_v<T>
  void fill(T& value) {
    boost::pfr::for_each_field(value, [this](auto& field) { this->fill(field); });
  }

 private:
  /// Whether the reference's enum, which has no fixed type, may hold it.
  static bool representable(ftype3 tag) { return tag < 8; }
  static bool representable(nfs_ftype4 tag) { return tag < 16; }
  static bool representable(why_no_delegation4 tag) { return tag < 16; }
  static bool representable(auto) { return true; }

  std::uint64_t number() {
    switch (below(4)) {
      case 0:
        return below(10);
      case 1:
        return ~std::uint64_t{below(3)};
      default:
        return (std::uint64_t{below(0xffffffff)} << 32) | below(0xffffffff);
    }
  }
  std::uint32_t length(std::uint32_t max) {
    const std::uint32_t most = std::min<std::uint32_t>(max, 4096);
    return below(16) == 0 ? most : below(std::min<std::uint32_t>(max, 70) + 1);
  }
  void fill_bytes(std::span<std::uint8_t> bytes) {
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(below(256));
  }

  std::mt19937 random_;
  std::vector<std::byte> pool_;
};

}  // namespace selvage::xdr::test
