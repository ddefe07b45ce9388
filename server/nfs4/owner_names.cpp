#include "server/nfs4/owner_names.h"

#include <grp.h>
#include <pwd.h>
#include <strings.h>

#include <cerrno>
#include <charconv>
#include <utility>
#include <vector>

namespace selvage::server::nfs4 {
namespace {

using state::Outcome;

constexpr std::size_t first_buffer = 1024;
constexpr std::size_t last_buffer = std::size_t{1} << 20;

// One of the getXXX_r(3): a larger buffer until it fits.
template <class Entry, class Get>
std::optional<Entry> entry_of(std::vector<char>& buffer, Get get) {
  for (std::size_t size = first_buffer; size <= last_buffer; size *= 4) {
    buffer.resize(size);
    Entry entry{};
    Entry* found = nullptr;
    const int error = get(&entry, buffer.data(), buffer.size(), &found);
    if (error == ERANGE) continue;
    if (found == nullptr) return std::nullopt;
    return entry;
  }
  return std::nullopt;
}

std::optional<std::string> machine_name(OwnerKind kind, std::uint32_t id) {
  std::vector<char> buffer;
  if (kind == OwnerKind::user) {
    const auto user =
        entry_of<passwd>(buffer, [id](passwd* entry, char* space, std::size_t size, passwd** to) {
          return ::getpwuid_r(id, entry, space, size, to);
        });
    if (user) return user->pw_name;
  } else {
    const auto users =
        entry_of<group>(buffer, [id](group* entry, char* space, std::size_t size, group** to) {
          return ::getgrgid_r(id, entry, space, size, to);
        });
    if (users) return users->gr_name;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> machine_id(OwnerKind kind, const std::string& name) {
  std::vector<char> buffer;
  if (kind == OwnerKind::user) {
    const auto user = entry_of<passwd>(
        buffer, [&name](passwd* entry, char* space, std::size_t size, passwd** to) {
          return ::getpwnam_r(name.c_str(), entry, space, size, to);
        });
    if (user) return user->pw_uid;
  } else {
    const auto users =
        entry_of<group>(buffer, [&name](group* entry, char* space, std::size_t size, group** to) {
          return ::getgrnam_r(name.c_str(), entry, space, size, to);
        });
    if (users) return users->gr_gid;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  // 0xffffffff is "keep" to the kernel.
  if (error != std::errc{} || end != text.data() + text.size() || id == 0xffffffffU) {
    return std::nullopt;
  }
  return id;
}

std::string key_of(OwnerKind kind, std::string_view what) {
  std::string key(1, kind == OwnerKind::user ? 'u' : 'g');
  return key.append(what);
}

// The part before "@domain"; empty if that is not what the text ends with.
std::string_view local_part(std::string_view text, const std::string& domain) {
  const std::size_t at = text.rfind('@');
  if (domain.empty() || at == std::string_view::npos) return {};
  const std::string given(text.substr(at + 1));
  if (::strcasecmp(given.c_str(), domain.c_str()) != 0 || given.size() != domain.size()) return {};
  const std::string_view name = text.substr(0, at);
  return name.find('\0') == std::string_view::npos ? name : std::string_view();
}

}  // namespace

NameService NameService::of_the_machine() {
  return {machine_name, machine_id};
}

OwnerNames::OwnerNames(std::string domain, NameService service)
    : domain_(std::move(domain)), service_(std::move(service)) {}

template <class Value>
OwnerNames::Memory<Value> OwnerNames::memory(std::optional<Value> value) {
  const auto until =
      Clock::now() + (value ? Clock::duration(lifetime) : Clock::duration(unknown_lifetime));
  return {std::move(value), until};
}

std::optional<std::string> OwnerNames::known_text(OwnerKind kind, std::uint32_t id) {
  const std::string digits = std::to_string(id);
  if (!has_domain()) return digits;
  const std::lock_guard lock(mutex_);
  const auto* found = names_.find(key_of(kind, digits));
  if (found == nullptr || found->until < Clock::now()) return std::nullopt;
  return found->value ? *found->value + "@" + domain_ : digits;
}

std::string OwnerNames::text(OwnerKind kind, std::uint32_t id) {
  if (auto known = known_text(kind, id)) return *known;
  const std::string digits = std::to_string(id);
  auto name = service_.name(kind, id);
  // What would be read as a number, or as another domain's, is no name to send.
  if (name && (name->empty() || number(*name) || name->find('@') != std::string::npos)) {
    name.reset();
  }
  const std::string result = name ? *name + "@" + domain_ : digits;
  const std::lock_guard lock(mutex_);
  const std::string key = key_of(kind, digits);
  names_.erase(key);
  names_.insert(key, memory(std::move(name)), [](const auto&, const auto&) { return true; });
  return result;
}

Outcome<std::uint32_t> OwnerNames::id(OwnerKind kind, std::string_view text) {
  if (text.empty()) return xdr::NFS4ERR_INVAL;
  if (const auto id = number(text)) return *id;
  const std::string name(local_part(text, domain_));
  if (name.empty() || name.size() > longest_name) return xdr::NFS4ERR_BADOWNER;
  const std::string key = key_of(kind, name);
  {
    const std::lock_guard lock(mutex_);
    const auto* found = ids_.find(key);
    if (found != nullptr && found->until >= Clock::now()) {
      if (!found->value) return xdr::NFS4ERR_BADOWNER;
      return *found->value;
    }
  }
  auto id = service_.id(kind, name);
  if (id == 0xffffffffU) id.reset();
  const std::lock_guard lock(mutex_);
  ids_.erase(key);
  ids_.insert(key, memory(id), [](const auto&, const auto&) { return true; });
  if (!id) return xdr::NFS4ERR_BADOWNER;
  return *id;
}

}  // namespace selvage::server::nfs4
