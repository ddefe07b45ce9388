// Which WRITEs are better written with the next batch (edge mode `assemble`, DESIGN 4). No I/O.
//
// Clients that write records of one file in turn keep records in flight that are contiguous, but
// for those of clients that lag. Written as they come, such a batch is many short vectors with a
// partial page at each end, and clients that have drifted apart stay apart. So a WRITE behind a
// small gap waits for whoever is to fill it: those who lag go alone, and then all go together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace selvage::storage {

/// A WRITE that could go now.
struct HoldCandidate {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  /// Nothing of its first page is missing: it begins the page, or the bytes before it are known.
  bool continues = false;
  unsigned held = 0;  ///< Batches that it has been held back from.
};

struct HeldBack {
  std::vector<bool> held;   ///< By candidate.
  std::size_t filled = 0;   ///< Candidates that go now, together with what they were held for,
  std::size_t in_vain = 0;  ///< or without.
};

/// `candidates`: at least one, they do not overlap, in any order. `window`: the widest gap that is
/// worth waiting for, bytes. `most`: batches that a WRITE is held back from. The one with the
/// lowest offset always goes.
HeldBack hold_back(std::span<const HoldCandidate> candidates, std::uint64_t window, unsigned most);

/// Whether holding back pays: it does where most gaps get filled. Where they stay open (random
/// access) nothing is held soon, but for a try now and then. Not thread-safe.
class HoldCredit {
 public:
  static constexpr std::size_t limit = 64;  ///< WRITEs held in vain before it is given up.
  /// Before a batch: whether to hold back at all.
  bool next();
  /// After it.
  void note(const HeldBack& hold);
  /// Requests have waited for what did not come.
  void in_vain(std::size_t requests);
  bool left() const { return credit_ != 0; }

 private:
  static constexpr unsigned tries = 3;  // Batches in a row,
  static constexpr unsigned try_every = 16;
  std::size_t credit_ = limit;
  unsigned batches_ = 0;  // Without credit.
};

}  // namespace selvage::storage
