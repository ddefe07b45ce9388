#include "storage/group_commit.h"

namespace selvage::storage {

void GroupCommit::made(const Result<>& result) {
  counters_.syncs.add();
  syncs_.fetch_add(1, std::memory_order_acq_rel);
  if (result.has_value()) return;
  counters_.sync_errors.add();
  verifier_.failed(result.error());
}

}  // namespace selvage::storage
