#include "storage/wait_credit.h"

#include <algorithm>

namespace selvage::storage {

std::size_t WaitCredit::open() const {
  const auto first = std::ranges::find(accounts_, std::size_t{0}, &Account::credit);
  return static_cast<std::size_t>(first - accounts_.begin());
}

void WaitCredit::next() {
  for (Account& account : accounts_) {
    if (account.credit != 0) continue;
    if (++account.batches < account.trial_at) return;  // Nor those above.
    account.batches = 0;
    account.credit = account.trial_at == 1 ? cost + 1 : 1;  // One wait in vain proves little.
    account.trial_at = std::clamp<std::size_t>(2 * account.trial_at, 16, rarest);
  }
}

WaitCredit::Duration WaitCredit::longest_quiet() const {
  const std::size_t count = open();
  return count == 0 ? Duration::zero() : levels_[count - 1];
}

void WaitCredit::filled(Duration quiet) {
  const auto level = std::ranges::lower_bound(levels_, quiet);
  const auto i =
      std::min<std::size_t>(static_cast<std::size_t>(level - levels_.begin()), levels_.size() - 1);
  // Of the first level are most waits; of those above it a few make the difference.
  Account& account = accounts_[i];
  account.credit = std::min(account.credit + (i == 0 ? 1 : cost), most);
  if (account.credit > cost) account.trial_at = 1;
}

void WaitCredit::in_vain() {
  const std::size_t count = open();
  if (count == 0) return;
  Account& account = accounts_[count - 1];
  account.credit -= std::min(account.credit, cost);
}

}  // namespace selvage::storage
