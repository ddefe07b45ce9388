// EXCHANGE_ID, DESTROY_CLIENTID, RECLAIM_COMPLETE (RFC 8881, 18.35, 18.50, 18.51).
#include "server/nfs4/state/tables.h"

namespace selvage::server::nfs4::state {
namespace {

// SUPP_FENCE_OPS is of minor version 2 and asks for nothing that is here; RFC 8881 calls the bit
// undefined, and so an error.
constexpr std::uint32_t known_flags =
    xdr::EXCHGID4_FLAG_SUPP_MOVED_REFER | xdr::EXCHGID4_FLAG_SUPP_MOVED_MIGR |
    xdr::EXCHGID4_FLAG_BIND_PRINC_STATEID | xdr::EXCHGID4_FLAG_MASK_PNFS |
    xdr::EXCHGID4_FLAG_UPD_CONFIRMED_REC_A;

/// Only SP4_NONE is to be had. The others need RPCSEC_GSS, which no caller has used.
nfsstat4 check_protection(const xdr::state_protect4_a& protect) {
  if (const auto* ssv = protect.get_if<xdr::ssv_sp_parms4>()) {
    if (ssv->ssp_hash_algs.items.empty() || ssv->ssp_encr_algs.items.empty()) {
      return xdr::NFS4ERR_INVAL;
    }
    return xdr::NFS4ERR_ENCR_ALG_UNSUPP;
  }
  return protect.tag == xdr::SP4_NONE ? xdr::NFS4_OK : xdr::NFS4ERR_INVAL;
}

xdr::owner4 bytes_of(const std::string& value) {
  return xdr::owner4(std::span(reinterpret_cast<const std::uint8_t*>(value.data()), value.size()));
}

xdr::EXCHANGE_ID4resok result(const Client& client, const Options& options) {
  xdr::EXCHANGE_ID4resok ok;
  ok.eir_clientid = client.id;
  ok.eir_sequenceid = client.next_sequence;
  ok.eir_flags = xdr::EXCHGID4_FLAG_USE_NON_PNFS;
  if (client.confirmed) ok.eir_flags |= xdr::EXCHGID4_FLAG_CONFIRMED_R;
  ok.eir_server_owner.so_major_id = bytes_of(options.server_owner);
  ok.eir_server_scope = bytes_of(options.server_scope);
  xdr::nfs_impl_id4 implementation;
  implementation.nii_name.value = "selvage " SELVAGE_VERSION;
  ok.eir_server_impl_id.items.push_back(std::move(implementation));
  return ok;
}

}  // namespace

Outcome<xdr::EXCHANGE_ID4resok> State::exchange_id(const xdr::EXCHANGE_ID4args& args,
                                                   const Principal& principal) {
  if ((args.eia_flags & ~known_flags) != 0) return xdr::NFS4ERR_INVAL;
  const nfsstat4 protection = check_protection(args.eia_state_protect);
  if (protection != xdr::NFS4_OK) return protection;

  Guard guard(*this);
  Tables& t = guard.t;
  const std::string owner(text(args.eia_clientowner.co_ownerid.bytes()));
  const xdr::verifier4& verifier = args.eia_clientowner.co_verifier;
  const Tables::Names known = t.names(true, owner);
  Client* confirmed = known.confirmed;
  const auto implementation = [&](Client& client) {
    if (args.eia_client_impl_id.items.empty()) return;
    client.implementation = args.eia_client_impl_id.items.front().nii_name.value;
  };

  // The cases of 18.35.4.
  if ((args.eia_flags & xdr::EXCHGID4_FLAG_UPD_CONFIRMED_REC_A) != 0) {
    if (confirmed == nullptr) return xdr::NFS4ERR_NOENT;                 // 7
    if (confirmed->verifier != verifier) return xdr::NFS4ERR_NOT_SAME;   // 8
    if (!(confirmed->principal == principal)) return xdr::NFS4ERR_PERM;  // 9
    implementation(*confirmed);                                          // 6
    return result(*confirmed, t.options);
  }
  if (confirmed != nullptr) {
    if (!(confirmed->principal == principal)) {  // 3: another client of the same name
      if (t.has_state(*confirmed) && !t.expired(*confirmed)) return xdr::NFS4ERR_CLID_INUSE;
      t.remove_client(*confirmed);
    } else if (confirmed->verifier == verifier) {  // 2
      return result(*confirmed, t.options);
    }
    // 5, the client has restarted: the confirmed one stays until the new one is.
  }
  if (known.unconfirmed != nullptr) t.remove_client(*known.unconfirmed);  // 4
  Client* added = t.add_client(true, owner, principal);                   // 1
  if (added == nullptr) return xdr::NFS4ERR_DELAY;
  added->verifier = verifier;
  implementation(*added);
  return result(*added, t.options);
}

nfsstat4 State::destroy_clientid(clientid4 id) {
  Guard guard(*this);
  Client* client = guard.t.find(id);
  if (client == nullptr || !client->has_sessions) return xdr::NFS4ERR_STALE_CLIENTID;
  if (guard.t.has_state(*client)) return xdr::NFS4ERR_CLIENTID_BUSY;
  guard.t.remove_client(*client);
  return xdr::NFS4_OK;
}

nfsstat4 State::reclaim_complete(const Caller& caller, const xdr::RECLAIM_COMPLETE4args& args) {
  Guard guard(*this);
  Tables& t = guard.t;
  auto usable = t.usable(caller);
  if (!usable) return usable.status();
  Client& client = **usable;
  // One file system's state is not moved here from elsewhere: nothing to do.
  if (args.rca_one_fs) return xdr::NFS4_OK;
  if (client.reclaim_complete) return xdr::NFS4ERR_COMPLETE_ALREADY;
  client.reclaim_complete = true;
  t.grace.complete(true, client.owner, t.now);
  t.record(client);
  t.check_grace_end();
  return xdr::NFS4_OK;
}

}  // namespace selvage::server::nfs4::state
