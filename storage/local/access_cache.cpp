#include "storage/local/access_cache.h"

#include "storage/blocking_pool.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace selvage::storage {
namespace {

/// 0 or an errno. The raw call: glibc emulates flags it believes the kernel to lack.
int refusal(int fd, int mode) {
  const long done = ::syscall(SYS_faccessat2, fd, "", mode, AT_EACCESS | AT_EMPTY_PATH);
  return done == 0 ? 0 : errno;
}

}  // namespace

Rights judge(int fd, const Credentials& credentials, const Attributes& attributes) {
  const ScopedIdentity identity(credentials);
  Rights rights;
  rights.read = refusal(fd, R_OK);
  if (rights.read == EACCES && refusal(fd, X_OK) == 0) rights.read = 0;
  rights.write = refusal(fd, W_OK);
  if (credentials.uid == attributes.uid) {
    if (rights.read == EACCES) rights.read = 0;
    if (rights.write == EACCES) rights.write = 0;
  }
  return rights;
}

std::optional<Rights> AccessCache::find(const Credentials& credentials, Time now) {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) {
    if (entry.used && now - entry.judged < validity && entry.credentials == credentials) {
      return entry.rights;
    }
  }
  return std::nullopt;
}

std::uint64_t AccessCache::generation() {
  const std::lock_guard lock(mutex_);
  return generation_;
}

void AccessCache::remember(const Credentials& credentials, Rights rights,
                           const Attributes& attributes, std::uint64_t generation, Time now) {
  const std::lock_guard lock(mutex_);
  if (generation != generation_) return;
  const Owner owner{attributes.mode, attributes.uid, attributes.gid};
  if (owner != owner_) {
    clear_locked();
    owner_ = owner;
  }
  Entry* place = nullptr;
  for (Entry& entry : entries_) {
    if (entry.used && entry.credentials == credentials) place = &entry;
  }
  if (place == nullptr) {
    place = &entries_[next_];
    next_ = (next_ + 1) % entries_.size();
  }
  *place = Entry{credentials, rights, now, true};
}

void AccessCache::observe(const Attributes& attributes) {
  const Owner owner{attributes.mode, attributes.uid, attributes.gid};
  const std::lock_guard lock(mutex_);
  if (owner == owner_) return;
  clear_locked();
  owner_ = owner;
}

void AccessCache::clear() {
  const std::lock_guard lock(mutex_);
  clear_locked();
}

void AccessCache::clear_locked() {
  for (Entry& entry : entries_) entry.used = false;
  ++generation_;
}

}  // namespace selvage::storage
