#include "storage/hold_back.h"

#include <algorithm>
#include <numeric>

namespace selvage::storage {

HeldBack hold_back(std::span<const HoldCandidate> candidates, std::uint64_t window, unsigned most) {
  HeldBack hold;
  hold.held.assign(candidates.size(), false);
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return candidates[i].offset; });
  const auto end_of = [&](std::size_t i) { return candidates[i].offset + candidates[i].length; };

  for (std::size_t first = 0; first < order.size();) {
    // A run: neighbours that touch. They go, or are held back, together.
    std::size_t last = first + 1;
    while (last < order.size() && candidates[order[last]].offset == end_of(order[last - 1])) ++last;
    const std::span<const std::size_t> run(order.data() + first, last - first);
    const bool continues = candidates[run.front()].continues;
    const bool patient =
        std::ranges::all_of(run, [&](std::size_t i) { return candidates[i].held < most; });
    const bool held = first != 0 && !continues && patient &&
                      candidates[run.front()].offset - end_of(order[first - 1]) <= window;
    for (std::size_t i : run) {
      hold.held[i] = held;
      if (held || candidates[i].held == 0) continue;
      ++(continues || i != run.front() ? hold.filled : hold.in_vain);
    }
    first = last;
  }
  return hold;
}

bool HoldCredit::next() {
  return credit_ != 0 || batches_++ % try_every < tries;
}

void HoldCredit::note(const HeldBack& hold) {
  credit_ = std::min(credit_ + hold.filled, limit);
  if (credit_ != 0) batches_ = tries;
  in_vain(hold.in_vain);
}

void HoldCredit::in_vain(std::size_t requests) {
  credit_ -= std::min(credit_, requests);
}

}  // namespace selvage::storage
