// Clients of minor version 0: SETCLIENTID, SETCLIENTID_CONFIRM, RENEW (RFC 7530, 16.33, 16.34,
// 16.28).
#include "server/nfs4/state/tables.h"

namespace selvage::server::nfs4::state {
namespace {

/// Unlike any other of this instance, and of any other.
xdr::verifier4 confirm_verifier(std::uint32_t epoch, std::uint64_t number) {
  const std::uint64_t value = (std::uint64_t{epoch} << 32) ^ (number << 1U | 1U);
  xdr::verifier4 verifier;
  for (std::size_t i = 0; i < verifier.size(); ++i) {
    verifier[i] = static_cast<std::uint8_t>(value >> (56 - 8 * i));
  }
  return verifier;
}

}  // namespace

// In the RFC's terms: the request is {v, x, c}, a record {v, x, c, l, s}: verifier, id, callback,
// clientid, confirm verifier.
xdr::SETCLIENTID4res State::setclientid(const xdr::SETCLIENTID4args& args,
                                        const Principal& principal) {
  Guard guard(*this);
  Tables& t = guard.t;
  const std::string owner(text(args.client.id.bytes()));
  const Tables::Names known = t.names(false, owner);
  Client* confirmed = known.confirmed;
  const Client::Callback callback{args.callback, args.callback_ident};
  if (confirmed != nullptr && !(confirmed->principal == principal)) {
    if (t.has_state(*confirmed) && !t.expired(*confirmed)) {
      return {xdr::NFS4ERR_CLID_INUSE, confirmed->callback.client.cb_location};
    }
    t.remove_client(*confirmed);
    confirmed = nullptr;
  }
  // Whatever was not confirmed is replaced.
  if (known.unconfirmed != nullptr) t.remove_client(*known.unconfirmed);
  xdr::SETCLIENTID4resok ok;
  if (confirmed != nullptr && confirmed->verifier == args.client.verifier) {
    // The same incarnation: its callback changes, once that is confirmed.
    ok.clientid = confirmed->id;
    ok.setclientid_confirm = confirm_verifier(t.epoch, t.next_id++);
    confirmed->update = {ok.setclientid_confirm, callback};
    return xdr::SETCLIENTID4res(ok);
  }
  Client* added = t.add_client(false, owner, principal);
  if (added == nullptr) return xdr::SETCLIENTID4res(xdr::NFS4ERR_RESOURCE);
  added->verifier = args.client.verifier;
  added->confirm = confirm_verifier(t.epoch, t.next_id++);
  added->callback = callback;
  ok.clientid = added->id;
  ok.setclientid_confirm = added->confirm;
  return xdr::SETCLIENTID4res(ok);
}

nfsstat4 State::setclientid_confirm(const xdr::SETCLIENTID_CONFIRM4args& args,
                                    const Principal& principal) {
  Guard guard(*this);
  Tables& t = guard.t;
  Client* client = t.find(args.clientid);
  if (client == nullptr || client->has_sessions || client->revoked != Revoked::no) {
    return xdr::NFS4ERR_STALE_CLIENTID;
  }
  const bool update = client->update && client->update->first == args.setclientid_confirm;
  if (!update && client->confirm != args.setclientid_confirm) return xdr::NFS4ERR_STALE_CLIENTID;
  if (!(client->principal == principal)) return xdr::NFS4ERR_CLID_INUSE;
  if (update) {
    client->confirm = client->update->first;
    client->callback = client->update->second;
    client->update.reset();
  }
  if (client->confirmed) {
    // An update, or a retry.
    t.renew(*client);
  } else {
    t.confirm(*client);
  }
  return xdr::NFS4_OK;
}

nfsstat4 State::renew(clientid4 client) {
  Guard guard(*this);
  auto usable = guard.t.usable({0, client});
  return usable ? xdr::NFS4_OK : usable.status();
}

}  // namespace selvage::server::nfs4::state
