#include "server/group_directory.h"

#include <grp.h>
#include <pwd.h>

#include <cerrno>
#include <utility>

namespace selvage::server {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds keep_groups{300};
constexpr unsigned lookup_threads = 2;
constexpr std::size_t largest_record = std::size_t{1} << 20;

std::optional<GroupDirectory::Groups> system_groups(uid_t user) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> room(4096);
  int error = ERANGE;
  while ((error = ::getpwuid_r(user, &entry, room.data(), room.size(), &found)) == ERANGE &&
         room.size() < largest_record) {
    room.resize(2 * room.size());
  }
  if (error != 0 || found == nullptr) return std::nullopt;
  int count = 64;
  for (;;) {
    GroupDirectory::Groups groups(static_cast<std::size_t>(count));
    const int got = ::getgrouplist(found->pw_name, found->pw_gid, groups.data(), &count);
    if (got >= 0) {
      groups.resize(static_cast<std::size_t>(got));
      return groups;
    }
    if (static_cast<std::size_t>(count) <= groups.size()) return std::nullopt;
    if (static_cast<std::size_t>(count) > GroupDirectory::max_groups) return std::nullopt;
  }
}

}  // namespace

GroupDirectory::GroupDirectory(LookUp look_up)
    : look_up_(look_up ? std::move(look_up) : LookUp(system_groups)),
      known_(max_users),
      pool_(lookup_threads) {}

GroupDirectory::~GroupDirectory() {
  pool_.stop();
}

void GroupDirectory::use(bool wanted) {
  const std::lock_guard lock(mutex_);
  ++generation_;
  wanted_.store(wanted, std::memory_order_release);
}

bool GroupDirectory::fresh(const Entry& entry) const {
  return entry.generation == generation_ && steady_clock::now() - entry.asked < keep_groups;
}

bool GroupDirectory::unknown(uid_t user) const {
  if (!wanted_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(mutex_);
  const Entry* entry = known_.find(user);
  return entry == nullptr || !fresh(*entry);
}

std::shared_ptr<const GroupDirectory::Groups> GroupDirectory::find(uid_t user) const {
  const std::lock_guard lock(mutex_);
  const Entry* entry = known_.peek(user);
  return entry == nullptr ? nullptr : entry->groups;
}

storage::Awaitable<> GroupDirectory::learn(uid_t user) {
  // Whoever comes while another asks about the same user finds it known.
  auto job = [this, user] {
    if (unknown(user)) ask(user);
  };
  co_await pool_.run(std::move(job));
}

void GroupDirectory::ask(uid_t user) {
  Entry entry;
  {
    const std::lock_guard lock(mutex_);
    entry.generation = generation_;
  }
  if (auto groups = look_up_(user)) {
    entry.groups = std::make_shared<const Groups>(std::move(*groups));
  }
  entry.asked = steady_clock::now();
  const std::lock_guard lock(mutex_);
  const auto any = [](uid_t, const Entry&) { return true; };
  const auto place = known_.insert(user, entry, any);
  if (place.value != nullptr && !place.added) *place.value = std::move(entry);
}

}  // namespace selvage::server
