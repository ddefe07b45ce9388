#include "server/nfs4/owner_lookup.h"

namespace selvage::server::nfs4 {
namespace {

bool known_owners(OwnerNames& owners, const AttributeSet& wanted, Facts& facts) {
  if (wanted.has(FATTR4_OWNER)) {
    facts.owner = owners.known_text(OwnerKind::user, facts.attributes.uid);
    if (!facts.owner) return false;
  }
  if (wanted.has(FATTR4_OWNER_GROUP)) {
    facts.group = owners.known_text(OwnerKind::group, facts.attributes.gid);
    if (!facts.group) return false;
  }
  return true;
}

}  // namespace

void name_owners_here(OwnerNames& owners, const AttributeSet& wanted, Facts& facts) {
  if (!owners.has_domain()) return;
  if (wanted.has(FATTR4_OWNER)) {
    facts.owner = owners.text(OwnerKind::user, facts.attributes.uid);
  }
  if (wanted.has(FATTR4_OWNER_GROUP)) {
    facts.group = owners.text(OwnerKind::group, facts.attributes.gid);
  }
}

Awaitable<> name_owners(const Compound& compound, const AttributeSet& wanted, Facts& facts) {
  OwnerNames& owners = compound.service.owners;
  if (!owners.has_domain() || known_owners(owners, wanted, facts)) co_return;
  auto ask = [&] { name_owners_here(owners, wanted, facts); };
  co_await compound.call.worker.pool.run(ask);
}

Awaitable<Outcome<NewAttributes>> new_attributes(const Compound& compound,
                                                 const xdr::fattr4& wire) {
  OwnerNames& owners = compound.service.owners;
  const AttributeSet given(wire.attrmask);
  if (!owners.has_domain() || !given.any_of({FATTR4_OWNER, FATTR4_OWNER_GROUP})) {
    co_return decode_attributes(wire, compound.minor, owners);
  }
  auto ask = [&] { return decode_attributes(wire, compound.minor, owners); };
  co_return co_await compound.call.worker.pool.run(ask);
}

}  // namespace selvage::server::nfs4
