// Gathers what is to be told of an object.
#pragma once

#include "server/nfs4/attribute_set.h"
#include "server/nfs4/attributes.h"
#include "server/nfs4/compound.h"

namespace selvage::server::nfs4 {

/// Everything that `wanted` asks for.
Awaitable<Outcome<Facts>> facts_of(const Compound& compound, const Object& object,
                                   const AttributeSet& wanted);

/// The same of an object whose attributes are known, as long as `wanted` needs no more of the file
/// system than that: no usage, no limits.
Facts facts_with(const Compound& compound, const Object& object,
                 const storage::Attributes& attributes);

/// Of a pseudo directory.
storage::Attributes pseudo_attributes(const Compound& compound, const PathNode& node);

}  // namespace selvage::server::nfs4
