#include "storage/thread_identity.h"

#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <pthread.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <vector>

namespace selvage::storage {
namespace {

constexpr std::uint64_t bit(int capability) {
  return std::uint64_t{1} << capability;
}

constexpr std::uint64_t client_mask = bit(CAP_CHOWN) | bit(CAP_DAC_OVERRIDE) |
                                      bit(CAP_DAC_READ_SEARCH) | bit(CAP_FOWNER) | bit(CAP_FSETID) |
                                      bit(CAP_LINUX_IMMUTABLE) | bit(CAP_MKNOD) |
                                      bit(CAP_MAC_OVERRIDE) | bit(CAP_SYS_RESOURCE);

struct Capabilities {
  std::uint64_t effective = 0;
  std::uint64_t permitted = 0;
  std::uint64_t inheritable = 0;
};

constexpr std::uint64_t join(std::uint32_t low, std::uint32_t high) {
  return std::uint64_t{high} << 32 | low;
}

Capabilities capabilities_of_thread() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) return {};
  return {join(data[0].effective, data[1].effective), join(data[0].permitted, data[1].permitted),
          join(data[0].inheritable, data[1].inheritable)};
}

bool set_capabilities(const Capabilities& set) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
  const std::array<__user_cap_data_struct, 2> data{
      {{low(set.effective), low(set.permitted), low(set.inheritable)},
       {high(set.effective), high(set.permitted), high(set.inheritable)}}};
  return ::syscall(SYS_capset, &header, data.data()) == 0;
}

// setfsuid(2) reports no failure: ask again with an id that is never valid.
constexpr auto no_change = static_cast<uid_t>(-1);

uid_t current_fsuid() {
  return static_cast<uid_t>(::setfsuid(no_change));
}
gid_t current_fsgid() {
  return static_cast<gid_t>(::setfsgid(no_change));
}

bool set_fsuid(uid_t uid) {
  ::setfsuid(uid);
  return uid != no_change && current_fsuid() == uid;
}

bool set_fsgid(gid_t gid) {
  ::setfsgid(gid);
  return gid != no_change && current_fsgid() == gid;
}

// What the thread was when it first came here: the server's identity.
class ThreadIdentity {
 public:
  static ThreadIdentity& mine() {
    thread_local ThreadIdentity identity;
    return identity;
  }

  bool is_root() const { return uid_ == 0; }
  bool can_switch() const {
    constexpr std::uint64_t needed = bit(CAP_SETUID) | bit(CAP_SETGID);
    return (server_.effective & needed) == needed;
  }

  // For the server's own user there is little to do: most calls of a client's root.
  bool is(uid_t uid, gid_t gid) const { return at_home_ && uid == 0 && uid_ == 0 && gid == gid_; }

  bool set_groups(const std::vector<gid_t>& groups) {
    if (groups_ && *groups_ == groups) return true;
    groups_.reset();
    if (::syscall(SYS_setgroups, groups.size(), groups.data()) != 0) return false;
    groups_ = groups;
    return true;
  }

  // Groups and gid first: with the uid go the rights to change them in some configurations.
  bool enter(uid_t uid, gid_t gid, const std::vector<gid_t>& groups) {
    at_home_ = false;
    if (!set_groups(groups) || !set_fsgid(gid) || !set_fsuid(uid)) return false;
    return set_capabilities(uid == 0 ? server_ : reduced());
  }

  void leave() {
    // setfsuid(0) raises capabilities, hence these last. Going on under a client's identity would
    // be worse than to end.
    if (!set_fsuid(uid_) || !set_fsgid(gid_) || !set_capabilities(server_)) {
      std::fputs("selvage: cannot return to the server's identity\n", stderr);
      std::abort();
    }
    at_home_ = true;
  }

  void enter_data(bool for_good) {
    at_home_ = false;
    if (can_switch()) {
      set_groups({});
      set_fsgid(data_gid);
      set_fsuid(data_uid);
    }
    Capabilities set = reduced();
    if (for_good) {
      set.effective |= server_.effective & bit(CAP_FOWNER);
      set.permitted &= ~client_mask | set.effective;
    }
    set_capabilities(set);
  }

 private:
  static constexpr uid_t data_uid = 65534;
  static constexpr gid_t data_gid = 65534;

  ThreadIdentity()
      : uid_(current_fsuid()), gid_(current_fsgid()), server_(capabilities_of_thread()) {}

  Capabilities reduced() const {
    Capabilities set = server_;
    set.effective &= ~client_mask;
    return set;
  }

  uid_t uid_;
  gid_t gid_;
  Capabilities server_;
  std::optional<std::vector<gid_t>> groups_;  // As last set; empty optional: not known.
  bool at_home_ = true;                       // The server's ids and capabilities are in force.
};

}  // namespace

ScopedIdentity::ScopedIdentity(const Credentials& credentials) {
  ThreadIdentity& thread = ThreadIdentity::mine();
  const auto refuse = [] {
    throw std::system_error(EACCES, std::system_category(), "cannot take a client's identity");
  };
  if (!thread.can_switch()) {
    if (thread.is_root()) refuse();
    return;
  }
  if (thread.is(credentials.uid, credentials.gid)) {
    if (!thread.set_groups(credentials.groups)) refuse();
    return;
  }
  if (!thread.enter(credentials.uid, credentials.gid, credentials.groups)) {
    thread.leave();
    refuse();
  }
  switched_ = true;
}

ScopedIdentity::~ScopedIdentity() {
  if (switched_) ThreadIdentity::mine().leave();
}

void restrict_thread_to_data() {
  ThreadIdentity::mine().enter_data(true);
}

ScopedDataIdentity::ScopedDataIdentity() {
  ThreadIdentity::mine().enter_data(false);
}
ScopedDataIdentity::~ScopedDataIdentity() {
  ThreadIdentity::mine().leave();
}

ScopedSignalBlock::ScopedSignalBlock() {
  sigset_t all;
  sigfillset(&all);
  // Blocked, these would kill without a report.
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
    sigdelset(&all, signal);
  }
  pthread_sigmask(SIG_SETMASK, &all, &old_);
}

ScopedSignalBlock::~ScopedSignalBlock() {
  pthread_sigmask(SIG_SETMASK, &old_, nullptr);
}

}  // namespace selvage::storage
