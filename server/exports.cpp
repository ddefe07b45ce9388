#include "server/exports.h"

#include "server/printable.h"

#include <linux/capability.h>
#include <sodium.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <span>
#include <utility>

namespace selvage::server {
namespace {

/// BLAKE2b of the path, with a word that tells the two uses apart.
std::array<std::uint8_t, 16> path_hash(std::string_view path, std::string_view use) {
  std::array<std::uint8_t, 16> hash{};
  const auto* text = reinterpret_cast<const unsigned char*>(path.data());
  const auto* key = reinterpret_cast<const unsigned char*>(use.data());
  crypto_generichash(hash.data(), hash.size(), text, path.size(), key, use.size());
  return hash;
}

std::uint64_t number_from(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (const auto byte : bytes) value = value << 8 | byte;
  return value;
}

/// What stands in the way of serving a directory.
std::string reason(const storage::ErrorCode& error) {
  if (error == storage::errno_code(EOPNOTSUPP)) {
    return "its file system has no file handles (name_to_handle_at(2); overlayfs has them with "
           "nfs_export=on)";
  }
  if (error == storage::errno_code(EPERM)) {
    return "files cannot be opened by handle without CAP_DAC_READ_SEARCH: start selvaged as root";
  }
  if (error == storage::errno_code(ENOMEM)) {
    return "no memory for its edge pages: memory_limit is too small for so many exports";
  }
  return error.message();
}

}  // namespace

std::uint32_t export_id(std::string_view path) {
  const auto hash = path_hash(path, "selvage export id");
  const auto id = static_cast<std::uint32_t>(number_from(std::span(hash).first(4)));
  return id == 0 ? 1 : id;
}

std::uint64_t export_fsid(std::string_view path) {
  const auto hash = path_hash(path, "selvage fsid 0000");
  const auto fsid = number_from(std::span(hash).first(8));
  return fsid == 0 ? 1 : fsid;
}

const AccessRule* Export::rule_for(const boost::asio::ip::address& client) const {
  std::shared_ptr<const ClientNames> names;
  for (const AccessRule& rule : config.rules) {
    if (rule.client.needs_names() && !names && directories.clients != nullptr) {
      names = directories.clients->find(client);
    }
    if (rule.client.matches(client, names.get())) return &rule;
  }
  return nullptr;
}

Parsed<std::shared_ptr<const ExportTable>> ExportTable::make(
    const std::vector<ExportConfig>& exports, const Open& open, Directories directories) {
  auto table = std::make_shared<ExportTable>();
  for (const auto& config : exports) {
    auto one = std::make_unique<Export>();
    one->config = config;
    one->name = printable(config.path);
    one->directories = directories;
    one->id = export_id(config.path);
    one->fsid = export_fsid(config.path);
    const auto [place, added] = table->by_id_.emplace(one->id, one.get());
    if (!added) {
      return ConfigError{config.origin + ": " + config.path + " has the same export id as " +
                         place->second->config.path + ": serve one of them under another path"};
    }
    auto filesystem = open(config);
    if (!filesystem) {
      return ConfigError{config.origin + ": " + config.path + ": " + reason(filesystem.error())};
    }
    one->filesystem = std::move(*filesystem);
    table->exports_.push_back(std::move(one));
  }
  return std::shared_ptr<const ExportTable>(std::move(table));
}

const Export* ExportTable::by_id(std::uint32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

const Export* ExportTable::by_path(std::string_view path) const {
  const Export* found = nullptr;
  for (const auto& one : exports_) {
    if (one->name == path) return one.get();
    if (one->config.path == path) found = one.get();
  }
  return found;
}

ExportTable::Covering ExportTable::covering(std::string_view path) const {
  Covering best;
  std::size_t longest = 0;
  for (const auto& one : exports_) {
    const std::string_view mine = one->config.path;
    if (mine.size() < longest || !path.starts_with(mine)) continue;
    auto below = path.substr(mine.size());
    if (mine != "/" && !below.empty()) {
      if (below.front() != '/') continue;
      below.remove_prefix(1);
    }
    longest = mine.size();
    best = {one.get(), below};
  }
  return best;
}

storage::Credentials credentials_for(const Export& one, const AccessRule& config,
                                     const xdr::AuthSys* client) {
  constexpr auto no_id = std::numeric_limits<std::uint32_t>::max();
  storage::Credentials who;
  who.uid = config.anonuid;
  who.gid = config.anongid;
  if (client == nullptr || config.squash == Squash::all) return who;

  const bool squash_root = config.squash == Squash::root;
  const auto anonymous = [&](std::uint32_t id) { return id == no_id || (squash_root && id == 0); };
  if (!anonymous(client->uid)) who.uid = client->uid;
  if (!anonymous(client->gid)) who.gid = client->gid;
  std::shared_ptr<const GroupDirectory::Groups> known;
  if (one.config.manage_gids && one.directories.groups != nullptr) {
    known = one.directories.groups->find(client->uid);
  }
  const std::span<const gid_t> groups =
      known ? std::span<const gid_t>(*known) : std::span<const gid_t>(client->gids.items);
  for (const auto group : groups) {
    who.groups.push_back(anonymous(group) ? config.anongid : group);
  }
  std::sort(who.groups.begin(), who.groups.end());
  who.groups.erase(std::unique(who.groups.begin(), who.groups.end()), who.groups.end());
  return who;
}

bool may_switch_identity() {
  __user_cap_header_struct header{};
  header.version = _LINUX_CAPABILITY_VERSION_3;
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) return false;
  constexpr auto needed = (1U << CAP_SETUID) | (1U << CAP_SETGID);
  return (data[0].effective & needed) == needed;
}

}  // namespace selvage::server
