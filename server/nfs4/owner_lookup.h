// Owners and groups of attributes, asked for where that does not keep a worker waiting.
#pragma once

#include "server/nfs4/attributes.h"
#include "server/nfs4/compound.h"

namespace selvage::server::nfs4 {

/// Facts::owner and Facts::group, if they are wanted and are names.
Awaitable<> name_owners(const Compound& compound, const AttributeSet& wanted, Facts& facts);
/// The same on a pool thread.
void name_owners_here(OwnerNames& owners, const AttributeSet& wanted, Facts& facts);

/// decode_attributes(), with what names mean here.
Awaitable<Outcome<NewAttributes>> new_attributes(const Compound& compound, const xdr::fattr4& wire);

}  // namespace selvage::server::nfs4
