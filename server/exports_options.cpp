#include "server/exports_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <utility>

namespace selvage::server {
namespace {

using Notice = std::function<void(const std::string&)>;

struct Flag {
  std::string_view name;
  bool ExportsAccess::* member;
  bool value;
};

/// What sec= may set apart.
constexpr std::array flags{Flag{"ro", &ExportsAccess::read_only, true},
                           Flag{"rw", &ExportsAccess::read_only, false},
                           Flag{"secure", &ExportsAccess::secure, true},
                           Flag{"insecure", &ExportsAccess::secure, false},
                           Flag{"root_squash", &ExportsAccess::root_squash, true},
                           Flag{"no_root_squash", &ExportsAccess::root_squash, false},
                           Flag{"all_squash", &ExportsAccess::all_squash, true},
                           Flag{"no_all_squash", &ExportsAccess::all_squash, false}};

/// They say what is done anyhow, or concern protocols that are not served.
constexpr std::array silent{std::string_view("sync"),         std::string_view("hide"),
                            std::string_view("nocrossmnt"),   std::string_view("wdelay"),
                            std::string_view("no_wdelay"),    std::string_view("no_subtree_check"),
                            std::string_view("auth_nlm"),     std::string_view("no_auth_nlm"),
                            std::string_view("secure_locks"), std::string_view("insecure_locks"),
                            std::string_view("acl"),          std::string_view("no_acl"),
                            std::string_view("no_pnfs")};

constexpr std::array noted{
    std::pair{std::string_view("crossmnt"),
              "other file systems mounted below are not crossed into: export each by itself"},
    std::pair{std::string_view("nohide"),
              "other file systems mounted below are not crossed into: export each by itself"},
    std::pair{std::string_view("subtree_check"),
              "not done: handles are signed, and one out of the export cannot be made"},
    std::pair{std::string_view("pnfs"), "there is no pNFS"},
    std::pair{std::string_view("security_label"), "there are no security labels"},
    std::pair{std::string_view("nordirplus"), "READDIRPLUS is answered all the same"}};

/// A decimal number as strtol(3) takes it: also negative, for -2. nullopt for anything else, and
/// for -1, which is no id.
std::optional<std::uint32_t> id_of(std::string_view text) {
  std::int64_t value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < std::numeric_limits<std::int32_t>::min() ||
      value >= std::numeric_limits<std::uint32_t>::max() || value == -1) {
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(value);
}

std::optional<std::string> flavours(std::string_view list, ExportsOptions& to,
                                    const Notice& notice) {
  bool has_sys = false;
  std::string others;
  while (!list.empty()) {
    const auto one = list.substr(0, list.find(':'));
    list.remove_prefix(std::min(one.size() + 1, list.size()));
    const bool sys = one == "sys" || one == "unix" || one == "1";
    const bool none = one == "none" || one == "null" || one == "0";
    const bool krb5 = one == "krb5" || one == "krb5i" || one == "krb5p";
    if (!sys && !none && !krb5) return "sec=: '" + std::string(one) + "' is no security flavour";
    has_sys = has_sys || sys;
    if (krb5) others += (others.empty() ? "" : ":") + std::string(one);
  }
  if (!others.empty()) notice("sec=" + others + " is not supported: those clients must use sys");
  to.flavours_given = true;
  to.for_sys = has_sys;
  if (has_sys && !to.sys) to.sys = to.common;
  return std::nullopt;
}

/// xprtsec=: a client may choose among those listed, so that one without TLS needs none to be
/// there.
std::optional<std::string> transports(std::string_view list, const Notice& notice) {
  const std::string whole(list);
  bool has_none = false;
  bool has_tls = false;
  while (!list.empty()) {
    const auto one = list.substr(0, list.find(':'));
    list.remove_prefix(std::min(one.size() + 1, list.size()));
    const bool tls = one == "tls" || one == "mtls";
    if (one != "none" && !tls) return "xprtsec=: '" + std::string(one) + "' is no policy";
    has_none = has_none || one == "none";
    has_tls = has_tls || tls;
  }
  if (!has_none)
    return "xprtsec=" + whole + ": there is no TLS, and none is not among the policies";
  if (has_tls) notice("xprtsec=" + whole + ": there is no TLS: clients must do without");
  return std::nullopt;
}

std::optional<std::string> apply_one(std::string_view option, ExportsOptions& to,
                                     const Notice& notice) {
  const auto value = [&](std::string_view key) -> std::optional<std::string_view> {
    if (!option.starts_with(key)) return std::nullopt;
    return option.substr(key.size());
  };
  for (const Flag& flag : flags) {
    if (option != flag.name) continue;
    // As nfs-utils: what is said of one flavour holds for those as well that are named later.
    to.common.*flag.member = flag.value;
    if (to.sys && to.for_sys) (*to.sys).*flag.member = flag.value;
    return std::nullopt;
  }
  if (std::ranges::find(silent, option) != silent.end()) return std::nullopt;
  for (const auto& [name, why] : noted) {
    if (option == name) {
      notice(std::string(name) + ": " + why);
      return std::nullopt;
    }
  }
  if (option == "async") {
    return "async: a reply before the data is safe is not given; what may be left unsafe is said "
           "by "
           "sync=no in selvage's own settings of the export";
  }
  for (const auto& [key, member] : {std::pair{"anonuid=", &ExportsOptions::anonuid},
                                    std::pair{"anongid=", &ExportsOptions::anongid}}) {
    const auto text = value(key);
    if (!text) continue;
    const auto id = id_of(*text);
    if (!id) return std::string(key) + ": '" + std::string(*text) + "' is not an id";
    to.*member = *id;
    return std::nullopt;
  }
  if (const auto list = value("sec=")) return flavours(*list, to, notice);
  if (const auto id = value("fsid=")) {
    if (id->empty()) return "fsid=: a value is missing";
    const bool root = *id == "0" || *id == "root";
    notice("fsid=" + std::string(*id) +
           (root ? ": NFSv4 clients mount by the whole path, as those of NFSv3"
                 : ": not needed: handles depend on the path alone"));
    return std::nullopt;
  }
  if (option == "mountpoint" || option == "mp") {
    to.mountpoint = true;
    return std::nullopt;
  }
  for (const auto* key : {"mountpoint=", "mp="}) {
    const auto path = value(key);
    if (!path) continue;
    if (!path->starts_with('/')) return std::string(key) + ": must be an absolute path";
    to.mountpoint = true;
    to.mountpoint_path = *path;
    return std::nullopt;
  }
  if (value("refer=") || value("replicas=")) {
    return std::string(option.substr(0, option.find('='))) + "=: referrals are not given";
  }
  if (const auto list = value("xprtsec=")) return transports(*list, notice);
  return "unknown option '" + std::string(option) + "'";
}

}  // namespace

AccessRule ExportsOptions::rule() const {
  const ExportsAccess& access = sys ? *sys : common;
  AccessRule rule;
  rule.read_only = access.read_only;
  rule.secure = access.secure;
  rule.squash = access.root_squash ? Squash::root : Squash::none;
  if (access.all_squash) rule.squash = Squash::all;
  rule.anonuid = anonuid;
  rule.anongid = anongid;
  return rule;
}

std::optional<std::string> apply_exports_options(std::string_view list, ExportsOptions& to,
                                                 const Notice& notice) {
  const auto skip_blanks = [&] {
    while (list.starts_with(' ') || list.starts_with('\t')) list.remove_prefix(1);
  };
  skip_blanks();
  while (!list.empty()) {
    const auto option = list.substr(0, list.find(','));
    list.remove_prefix(std::min(option.size() + 1, list.size()));
    if (auto reason = apply_one(option, to, notice)) return reason;
    skip_blanks();
  }
  if (to.flavours_given && !to.sys)
    return "sec=: sys is not among the flavours, and only sys is supported";
  return std::nullopt;
}

}  // namespace selvage::server
