// What NFSv4 clients see above and between the exports: the pseudo file system (RFC 7530, 7;
// RFC 8881, 7).
#pragma once

#include "server/exports.h"
#include "storage/result.h"
#include "storage/worker.h"

#include <boost/asio/ip/address.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace selvage::server::nfs4 {

/// A component of a path that leads to an export. Immutable.
struct PathNode {
  std::uint64_t id = 0;              ///< From the path alone: fileid and handle survive a restart.
  std::string name;                  ///< Empty for "/".
  const PathNode* parent = nullptr;  ///< nullptr for "/".
  std::map<std::string, std::unique_ptr<PathNode>, std::less<>> children;

  const Export* served = nullptr;  ///< The export that begins here.
  const Export* inside =
      nullptr;  ///< The export whose directory this is, where it is not `served`.
  std::optional<storage::ObjectId> object;  ///< With `inside`: that directory.
  std::uint64_t mounted_on = 0;  ///< With `served`: the fileid under which its parent lists it.

  /// Made up by the server: no export covers the path.
  bool pseudo() const { return served == nullptr && inside == nullptr; }
  /// Whether an export at or below it is for that client.
  bool visible(const boost::asio::ip::address& client) const;
};

/// An immutable snapshot of exports and their paths. Any thread.
class Namespace {
 public:
  /// Looks up, in exports, the directories that lead to other exports. Never fails: where such a
  /// directory is not there, the inner export cannot be reached by a walk through the outer one.
  static storage::Awaitable<std::shared_ptr<const Namespace>> make(
      std::shared_ptr<const ExportTable> exports, storage::Worker& worker);

  const ExportTable& exports() const { return *exports_; }
  const PathNode& root() const { return *root_; }
  /// The pseudo directory of that id; nullptr if there is none.
  const PathNode* pseudo(std::uint64_t id) const;
  /// The node of a directory of an export: its root, or one that leads to another export.
  const PathNode* at(const Export& served, const storage::ObjectId& directory) const;
  /// Whether an export takes only UTF-8.
  bool any_utf8() const { return any_utf8_; }
  /// When this snapshot was made: times and change attribute of the pseudo directories.
  timespec made() const { return made_; }

 private:
  storage::Awaitable<> resolve(PathNode& node, storage::Worker& worker);
  PathNode& add(std::string_view path);

  struct Key {
    const Export* served;
    storage::ObjectId object;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return storage::ObjectIdHash{}(key.object) ^ key.served->id;
    }
  };

  std::shared_ptr<const ExportTable> exports_;
  std::unique_ptr<PathNode> root_;
  std::unordered_map<std::uint64_t, const PathNode*> by_id_;
  std::unordered_map<Key, const PathNode*, KeyHash> by_object_;
  timespec made_{};
  bool any_utf8_ = false;
};

}  // namespace selvage::server::nfs4
