// Who may read and write one open file, remembered for a short time (DESIGN 7).
#pragma once

#include "storage/attributes.h"
#include "storage/credentials.h"
#include "storage/result.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace selvage::storage {

/// What the kernel said for one identity: 0, or the errno of the refusal.
struct Rights {
  int read = 0;
  int write = 0;
};

/// Blocks, for the blocking pool: asks the kernel under the client's identity (faccessat2(2)).
/// NFSv3's rules for a protocol without open (RFC 1813 section 4.4): the owner may always read and
/// write, and what may be executed may be read. `attributes` are the file's, just seen.
Rights judge(int fd, const Credentials& credentials, const Attributes& attributes);

/// The last few answers for one file. They count for a second at most, and only while mode, owner
/// and group are those that they were given under. Any thread.
class AccessCache {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds validity{1};

  std::optional<Rights> find(const Credentials& credentials, Time now);

  /// To be read before judging, for remember().
  std::uint64_t generation();

  /// Nothing, if anything changed since `generation` was read.
  void remember(const Credentials& credentials, Rights rights, const Attributes& attributes,
                std::uint64_t generation, Time now);

  /// Attributes as an operation saw them afterwards: forgets all if the rights may have changed.
  void observe(const Attributes& attributes);

  void clear();

 private:
  struct Entry {
    Credentials credentials;
    Rights rights;
    Time judged;
    bool used = false;
  };
  struct Owner {
    std::uint32_t mode = 0, uid = 0, gid = 0;
    bool operator==(const Owner&) const = default;
  };
  void clear_locked();

  std::mutex mutex_;
  std::array<Entry, 16> entries_;
  std::size_t next_ = 0;
  std::uint64_t generation_ = 0;
  Owner owner_;
};

}  // namespace selvage::storage
