// What is served to whom: the immutable table of exports.
#pragma once

#include "server/client_directory.h"
#include "server/config.h"
#include "server/group_directory.h"
#include "storage/credentials.h"
#include "storage/filesystem.h"
#include "xdr/rpc.h"

#include <boost/asio/ip/address.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace selvage::server {

/// What names and groups are looked up in; they outlive the exports. Without `clients` rules with
/// names match nobody, without `groups` what clients send counts.
struct Directories {
  const ClientDirectory* clients = nullptr;
  const GroupDirectory* groups = nullptr;
};

/// One served directory. Immutable but for its file system, which any worker may call.
struct Export {
  ExportConfig config;
  std::string name;  ///< Its path as printable().
  /// In file handles. From the path alone, so that handles survive restarts and moved devices.
  std::uint32_t id = 0;
  std::uint64_t fsid = 0;  ///< fattr3.fsid; from the path alone as well.
  std::shared_ptr<storage::FileSystem> filesystem;

  Directories directories;

  /// The rule that decides for a client; nullptr: it is not served.
  const AccessRule* rule_for(const boost::asio::ip::address& client) const;
};

std::uint32_t export_id(std::string_view path);  ///< Never 0.
std::uint64_t export_fsid(std::string_view path);

/// An immutable snapshot; requests hold it by shared_ptr<const ExportTable>. Any thread.
class ExportTable {
 public:
  /// Opens the file system of one export. Blocks.
  using Open =
      std::function<storage::Result<std::shared_ptr<storage::FileSystem>>(const ExportConfig&)>;

  /// Refuses the whole table on the first failure: a directory that cannot be exported, or two
  /// paths with the same id.
  static Parsed<std::shared_ptr<const ExportTable>> make(const std::vector<ExportConfig>& exports,
                                                         const Open& open,
                                                         Directories directories = {});

  const std::vector<std::unique_ptr<Export>>& all() const { return exports_; }

  /// nullptr if there is none.
  const Export* by_id(std::uint32_t id) const;

  /// The one whose name this is, else the one with this path; nullptr if there is none.
  const Export* by_path(std::string_view path) const;

  struct Covering {
    const Export* found = nullptr;  ///< nullptr if no export covers the path.
    std::string_view below;         ///< What follows its path, without a leading slash.
  };
  /// The longest export path that is `path` or a parent directory of it. `path` is normalised:
  /// absolute, no empty part, no "." or "..", no trailing slash; `below` points into it.
  Covering covering(std::string_view path) const;

 private:
  std::vector<std::unique_ptr<Export>> exports_;
  std::unordered_map<std::uint32_t, const Export*> by_id_;
};

/// The table that is served now. Any thread: a request takes it once and keeps it to its end, while
/// another may be put in its place. (Not std::atomic<std::shared_ptr>: libstdc++'s is a lock as
/// well, and one whose order ThreadSanitizer does not see.)
class CurrentExports {
 public:
  explicit CurrentExports(std::shared_ptr<const ExportTable> table = nullptr)
      : table_(std::move(table)) {}

  std::shared_ptr<const ExportTable> get() const {
    const std::lock_guard lock(mutex_);
    return table_;
  }
  /// The table before, which requests may still be using.
  std::shared_ptr<const ExportTable> replace(std::shared_ptr<const ExportTable> table) {
    const std::lock_guard lock(mutex_);
    return std::exchange(table_, std::move(table));
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const ExportTable> table_;
};

/// Whom the kernel sees, after squashing as exports(5) describes it. `client` is nullptr with
/// AUTH_NONE: anonymous. An id of 0xffffffff is anonymous too. With manage_gids the groups are
/// those that this machine knows the user to be in, if it knows the user. Groups come back sorted.
storage::Credentials credentials_for(const Export& one, const AccessRule& rule,
                                     const xdr::AuthSys* client);

/// A port that only root may use, as `secure` asks for.
inline bool reserved_port(std::uint16_t port) {
  return port < 1024;
}

/// Whether this process may act under other users' identities. Without that everybody is the
/// server's own user, whatever credentials_for() says.
bool may_switch_identity();

}  // namespace selvage::server
