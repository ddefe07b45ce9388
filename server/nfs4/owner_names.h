// Owners and groups as text: numbers, or names of a domain (RFC 7530, 5.9; RFC 8881, 5.9).
#pragma once

#include "cache/lru.h"
#include "server/nfs4/state/types.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace selvage::server::nfs4 {

enum class OwnerKind : std::uint8_t { user, group };

/// The machine's users and groups. Both block, on whatever the name service asks.
struct NameService {
  std::function<std::optional<std::string>(OwnerKind, std::uint32_t)> name;
  std::function<std::optional<std::uint32_t>(OwnerKind, const std::string&)> id;
  /// getpwuid_r(3) and its like.
  static NameService of_the_machine();
};

/// Without a domain: numbers only. With one: "name@domain", where the machine has a name that
/// another one could mean the same by; else the number. Remembers what it was told, within bounds.
/// Any thread.
class OwnerNames {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t remembered = 8192;  ///< Each of names and numbers.
  static constexpr std::size_t longest_name = 256;
  static constexpr std::chrono::minutes lifetime{10};
  static constexpr std::chrono::seconds unknown_lifetime{30};

  explicit OwnerNames(std::string domain, NameService service = NameService::of_the_machine());

  bool has_domain() const { return !domain_.empty(); }

  /// nullopt if that takes the name service.
  std::optional<std::string> known_text(OwnerKind kind, std::uint32_t id);
  /// May block.
  std::string text(OwnerKind kind, std::uint32_t id);

  /// What a client has sent. INVAL for nothing, BADOWNER for what is neither a number nor known
  /// here. May block if it is a name.
  state::Outcome<std::uint32_t> id(OwnerKind kind, std::string_view text);

 private:
  template <class Value>
  struct Memory {
    std::optional<Value> value;
    Clock::time_point until;
  };
  template <class Value>
  static Memory<Value> memory(std::optional<Value> value);

  const std::string domain_;
  const NameService service_;
  std::mutex mutex_;
  // By 'u' or 'g' and what is asked for.
  cache::Lru<std::string, Memory<std::string>> names_{remembered};
  cache::Lru<std::string, Memory<std::uint32_t>> ids_{remembered};
};

}  // namespace selvage::server::nfs4
