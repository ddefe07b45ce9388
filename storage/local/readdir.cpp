// READDIR and READDIRPLUS.
#include "storage/local/local_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

namespace selvage::storage {
namespace {

/// Entries of one getdents64(2). What the sink does not take is read again by the next READDIR:
/// about as much as one reply holds.
constexpr std::size_t buffer_bytes = 32768;

/// An entry in the buffer (struct dirent64 without its fixed-size name).
struct RawEntry {
  std::uint64_t inode;
  std::uint64_t cookie;
  const char* name;
  std::size_t bytes;  ///< Of the entry in the buffer.
};

RawEntry raw_entry(const char* at) {
  RawEntry entry{};
  std::uint16_t length = 0;
  std::memcpy(&entry.inode, at + offsetof(dirent64, d_ino), sizeof entry.inode);
  std::memcpy(&entry.cookie, at + offsetof(dirent64, d_off), sizeof entry.cookie);
  std::memcpy(&length, at + offsetof(dirent64, d_reclen), sizeof length);
  entry.name = at + offsetof(dirent64, d_name);
  entry.bytes = length;
  return entry;
}

class Listing {
 public:
  Listing(const ObjectOpener& opener, FileTable& files, const ObjectId& directory, int dirfd,
          bool with_nodes)
      : opener_(opener),
        files_(files),
        dirfd_(dirfd),
        with_nodes_(with_nodes),
        at_root_(directory == opener.root()),
        inside_(at_root_ || opener.inside(dirfd)) {}

  enum class Stop : std::uint8_t { full, end };

  /// Gives entries after the cookie to the sink until it refuses one or there are no more.
  Result<Stop> run(std::uint64_t cookie, const EntrySink& sink) const {
    if (cookie > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) {
      return make_error_code(Errc::bad_cookie);
    }
    if (cookie != 0 && ::lseek(dirfd_, static_cast<off_t>(cookie), SEEK_SET) < 0) {
      return make_error_code(Errc::bad_cookie);
    }
    alignas(dirent64) std::array<char, buffer_bytes> buffer;
    bool first = true;
    for (;;) {
      const long bytes = ::syscall(SYS_getdents64, dirfd_, buffer.data(), buffer.size());
      if (bytes < 0) {
        const int error = errno;
        // The kernel's words for a removed directory and for a position it cannot make out.
        if (error == ENOENT) return errno_code(ESTALE);
        if (error == EINVAL) return make_error_code(Errc::bad_cookie);
        return errno_code(error);
      }
      if (bytes == 0) return Stop::end;
      for (std::size_t at = 0; at < static_cast<std::size_t>(bytes);) {
        const RawEntry raw = raw_entry(buffer.data() + at);
        at += raw.bytes;
        if (!sink(entry_of(raw))) {
          if (first) return make_error_code(Errc::too_small);
          return Stop::full;
        }
        first = false;
      }
    }
  }

 private:
  DirectoryEntry entry_of(const RawEntry& raw) const {
    DirectoryEntry entry;
    entry.fileid = raw.inode;
    entry.name = raw.name;
    entry.cookie = raw.cookie;
    const bool up = entry.name == "..";
    // Above the export's root there is nothing.
    const std::string looked_up = up && at_root_ ? "." : entry.name;
    if (up && at_root_) {
      const auto root = attributes_of(dirfd_);
      if (root) entry.fileid = root->fileid;
    }
    if (with_nodes_ && (!up || inside_)) {
      // One that vanished, that is a mount point or that the client may not look up has no node.
      auto node = opener_.node_at(dirfd_, looked_up);
      if (node) {
        files_.show(node->id, node->attributes);
        entry.node = std::move(*node);
      }
    }
    return entry;
  }

  const ObjectOpener& opener_;
  FileTable& files_;
  int dirfd_;
  bool with_nodes_;
  bool at_root_;
  bool inside_;
};

}  // namespace

Awaitable<Result<ReaddirResult>> LocalFileSystem::readdir(Caller caller, ObjectId directory,
                                                          std::uint64_t cookie, bool with_nodes,
                                                          EntrySink sink) {
  auto job = [&]() -> Result<ReaddirResult> {
    const auto opened = impl_->opener.open_directory(directory);
    if (!opened) return opened.error();
    const int dirfd = opened->fd.get();
    const Listing listing(impl_->opener, impl_->data.files(), directory, dirfd, with_nodes);
    const ScopedIdentity identity(caller.credentials);
    const auto may_read = check_access(dirfd, R_OK);
    if (!may_read) return may_read.error();
    const auto stop = listing.run(cookie, sink);
    if (!stop) return stop.error();
    const auto after = attributes_of(dirfd);
    if (!after) return after.error();
    return ReaddirResult{*stop == Listing::Stop::end, *after};
  };
  co_return co_await Impl::run(caller.worker, job);
}

}  // namespace selvage::storage
