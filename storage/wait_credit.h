// Whether stable WRITEs, or COMMITs, of a file wait for the neighbours of their partial pages, and
// how long (edge mode `assemble`, DESIGN 4). No I/O, no clock.
//
// Who waits is answered later; who does not costs a read of the device, and a write of a page that
// the neighbour writes again. It pays where the neighbours mostly come, and while others come: the
// clients of a phase of a parallel program end all at once, and then nobody comes any more. How
// long it may be quiet is learned in levels: to wait as long as the last one must pay for itself,
// with neighbours that come so late.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <tuple>

namespace selvage::storage {

/// Not thread-safe.
class WaitCredit {
 public:
  using Duration = std::chrono::steady_clock::duration;
  /// The longest quiet of each level, ascending.
  using Levels = std::array<Duration, 3>;
  static constexpr Levels usual{std::chrono::milliseconds(2), std::chrono::milliseconds(8),
                                std::chrono::milliseconds(32)};
  static constexpr std::size_t most = 64;      ///< Of a level's credit.
  static constexpr std::size_t cost = 8;       ///< Of a batch that waited in vain.
  static constexpr std::size_t rarest = 4096;  ///< Batches from one trial of a level to the next.

  explicit WaitCredit(const Levels& levels = usual) : levels_(levels) {}

  /// Before a batch while others are in flight, who may be the neighbours. A level without credit
  /// is tried once in a while, the more rarely the more often it was in vain.
  void next();
  bool left() const { return accounts_.front().credit != 0; }
  /// How long nothing may have come to the file for a request to wait on; zero without credit.
  Duration longest_quiet() const;

  /// A request has waited, and after so long a quiet its pages have become whole.
  void filled(Duration quiet);
  /// Requests of a batch have given up.
  void in_vain();

 private:
  struct Account {
    std::size_t credit = 0;
    std::size_t batches = 0;   // Without credit,
    std::size_t trial_at = 1;  // and how many of them until it is tried.
  };
  // Levels that have credit, and so have all below.
  std::size_t open() const;

  Levels levels_;
  std::array<Account, std::tuple_size_v<Levels>> accounts_;
};

/// What the last file of an export has learned, for the next one that is opened. Thread-safe.
class WaitsLearned {
 public:
  struct Credits {
    WaitCredit writes;
    WaitCredit commits;
  };
  Credits get() const {
    const std::lock_guard lock(mutex_);
    return credits_;
  }
  void set(const Credits& credits) {
    const std::lock_guard lock(mutex_);
    credits_ = credits;
  }

 private:
  mutable std::mutex mutex_;
  Credits credits_;
};

}  // namespace selvage::storage
