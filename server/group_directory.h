// The supplementary groups of users, as this machine knows them (`manage_gids`).
#pragma once

#include "cache/lru.h"
#include "storage/blocking_pool.h"

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace selvage::server {

/// Remembers at most max_users users for five minutes each, those that there are not as well; asks
/// on two threads of its own, so that a dead directory server holds up only those that need it.
/// Any thread.
class GroupDirectory {
 public:
  static constexpr std::size_t max_users = 16'384;
  static constexpr std::size_t max_groups = 65'536;  ///< Of a user: NGROUPS_MAX.
  using Groups = std::vector<gid_t>;

  /// All groups of a user, the first one included; nullopt: there is no such user, or it cannot be
  /// had at the moment. Blocks. getpwuid_r(3) and getgrouplist(3) by default; a seam for tests.
  using LookUp = std::function<std::optional<Groups>(uid_t)>;

  explicit GroupDirectory(LookUp look_up = {});
  /// All learn() have returned.
  ~GroupDirectory();
  GroupDirectory(const GroupDirectory&) = delete;
  GroupDirectory& operator=(const GroupDirectory&) = delete;

  /// Whether anybody is looked up at all. What is known is forgotten: an administrator who has
  /// changed a group reloads.
  void use(bool wanted);

  /// Whether learn() should be called before this user's next request is judged. Cheap.
  bool unknown(uid_t user) const;
  storage::Awaitable<> learn(uid_t user);
  /// nullptr: not known here; what the client sent counts.
  std::shared_ptr<const Groups> find(uid_t user) const;

 private:
  struct Entry {
    std::shared_ptr<const Groups> groups;  ///< nullptr: there is no such user.
    std::uint64_t generation = 0;
    std::chrono::steady_clock::time_point asked;
  };
  bool fresh(const Entry& entry) const;  // Under mutex_.
  void ask(uid_t user);

  const LookUp look_up_;
  std::atomic<bool> wanted_{false};
  mutable std::mutex mutex_;  // Never held while asking.
  mutable cache::Lru<uid_t, Entry> known_;
  std::uint64_t generation_ = 0;
  storage::BlockingPool pool_;
};

}  // namespace selvage::server
