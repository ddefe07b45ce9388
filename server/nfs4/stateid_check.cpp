#include "server/nfs4/stateid_check.h"

#include "server/nfs4/records.h"

namespace selvage::server::nfs4 {

Awaitable<Outcome<state::StateidUse>> check_stateid(const Compound& compound,
                                                    const xdr::stateid4& given, StateidUse use) {
  const auto stateid = compound.stateid(given);
  if (!stateid) co_return stateid.status();
  const std::uint32_t access =
      use == StateidUse::read ? xdr::OPEN4_SHARE_ACCESS_READ : xdr::OPEN4_SHARE_ACCESS_WRITE;
  state::State& state = compound.service.state;
  const state::FileKey file = compound.current->key();
  auto used = state.use_stateid(compound.on_behalf(), *stateid, file, access);
  // RFC 8881, 18.22.4: who has it open for writing may have to read the rest of a page.
  if (!used && used.status() == xdr::NFS4ERR_OPENMODE && use == StateidUse::read) {
    used = state.use_stateid(compound.on_behalf(), *stateid, file, xdr::OPEN4_SHARE_ACCESS_WRITE);
  }
  if (used && used->unrecorded) {
    const auto recorded = co_await write_records(compound);
    if (!recorded) co_return xdr::NFS4ERR_IO;
  }
  co_return used;
}

}  // namespace selvage::server::nfs4
