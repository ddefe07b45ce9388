// ACCESS, GETATTR, SETATTR, VERIFY, NVERIFY (RFC 7530, 16.1, 16.7, 16.32, 16.35, 16.15).
#include "server/nfs4/facts.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/owner_lookup.h"
#include "server/nfs4/stateid_check.h"

#include <utility>

namespace selvage::server::nfs4 {
namespace {

constexpr std::uint32_t all_rights = xdr::ACCESS4_READ | xdr::ACCESS4_LOOKUP | xdr::ACCESS4_MODIFY |
                                     xdr::ACCESS4_EXTEND | xdr::ACCESS4_DELETE |
                                     xdr::ACCESS4_EXECUTE;

// Which rights mean something for an object of that type.
std::uint32_t supported_rights(storage::FileType type) {
  constexpr std::uint32_t changes = xdr::ACCESS4_READ | xdr::ACCESS4_MODIFY | xdr::ACCESS4_EXTEND;
  switch (type) {
    case storage::FileType::directory:
      return changes | xdr::ACCESS4_LOOKUP | xdr::ACCESS4_DELETE;
    case storage::FileType::regular:
      return changes | xdr::ACCESS4_EXECUTE;
    default:
      return changes;
  }
}

std::uint32_t granted_rights(const storage::AccessResult& may, bool read_only) {
  const bool directory = may.attributes.type == storage::FileType::directory;
  // A directory is changed through its names, and no name is reached without search permission.
  const bool change = may.write && !read_only && (!directory || may.execute);
  std::uint32_t rights = 0;
  if (may.read) rights |= xdr::ACCESS4_READ;
  if (change) rights |= xdr::ACCESS4_MODIFY | xdr::ACCESS4_EXTEND | xdr::ACCESS4_DELETE;
  if (may.execute) rights |= xdr::ACCESS4_LOOKUP | xdr::ACCESS4_EXECUTE;
  return rights & supported_rights(may.attributes.type);
}

Awaitable<xdr::nfsstat4> set_attributes(Compound& compound, const NewAttributes& wanted,
                                        const xdr::stateid4& given) {
  const Object& object = *compound.current;
  const xdr::nfsstat4 writable = compound.check_writable();
  if (writable != xdr::NFS4_OK) co_return writable;
  if (wanted.given.has(FATTR4_SIZE)) {
    const auto may = co_await check_stateid(compound, given, StateidUse::write);
    if (!may) co_return may.status();
  }
  const auto done = co_await object.filesystem().setattr(compound.caller(object), object.id,
                                                         wanted.set, std::nullopt);
  co_return done ? xdr::NFS4_OK : status_of(done.error());
}

// SAME or NOT_SAME, or what is wrong with the attributes.
Awaitable<xdr::nfsstat4> compare(Compound& compound, const xdr::fattr4& given) {
  const AttributeSet wanted(given.attrmask);
  const AttributeSet unreadable{FATTR4_RDATTR_ERROR, FATTR4_TIME_ACCESS_SET, FATTR4_TIME_MODIFY_SET,
                                FATTR4_MODE_UMASK};
  if (!wanted.within(supported_attributes(compound.minor))) co_return xdr::NFS4ERR_ATTRNOTSUPP;
  if (wanted.any_of(unreadable)) co_return xdr::NFS4ERR_INVAL;
  const auto facts = co_await facts_of(compound, *compound.current, wanted);
  if (!facts) co_return facts.status();
  const xdr::fattr4 is = encode_attributes(wanted, *facts);
  co_return is.attr_vals == given.attr_vals ? xdr::NFS4ERR_SAME : xdr::NFS4ERR_NOT_SAME;
}

}  // namespace

Awaitable<xdr::ACCESS4res> access(Compound& compound, xdr::ACCESS4args args) {
  const Object& object = *compound.current;
  if ((args.access & ~all_rights) != 0) co_return xdr::ACCESS4res(xdr::NFS4ERR_INVAL);
  xdr::ACCESS4resok ok;
  if (object.pseudo()) {
    ok.supported = supported_rights(storage::FileType::directory) & args.access;
    ok.access = (xdr::ACCESS4_READ | xdr::ACCESS4_LOOKUP) & args.access;
    co_return xdr::ACCESS4res(ok);
  }
  const auto may = co_await object.filesystem().access(compound.caller(object), object.id);
  if (!may) co_return xdr::ACCESS4res(status_of(may.error()));
  ok.supported = supported_rights(may->attributes.type) & args.access;
  ok.access = granted_rights(*may, object.rule->read_only) & args.access;
  compound.known = may->attributes;
  co_return xdr::ACCESS4res(ok);
}

Awaitable<xdr::GETATTR4res> getattr(Compound& compound, xdr::GETATTR4args args) {
  const Object& object = *compound.current;
  const AttributeSet wanted(args.attr_request);
  // RFC 7530, 5.6: these can only be set.
  if (wanted.any_of({FATTR4_TIME_ACCESS_SET, FATTR4_TIME_MODIFY_SET})) {
    co_return xdr::GETATTR4res(xdr::NFS4ERR_INVAL);
  }
  const bool more = wanted.any_of(usage_attributes()) || wanted.any_of(limits_attributes());
  if (compound.known && !more) {
    Facts facts = facts_with(compound, object, *compound.known);
    if (compound.service.owners.has_domain()) co_await name_owners(compound, wanted, facts);
    co_return xdr::GETATTR4res(encode_attributes(wanted, facts));
  }
  const auto facts = co_await facts_of(compound, object, wanted);
  if (!facts) co_return xdr::GETATTR4res(facts.status());
  co_return xdr::GETATTR4res(encode_attributes(wanted, *facts));
}

Awaitable<xdr::SETATTR4res> setattr(Compound& compound, xdr::SETATTR4args args) {
  xdr::SETATTR4res result;
  const auto wanted = co_await new_attributes(compound, args.obj_attributes);
  if (!wanted) {
    result.status = wanted.status();
    co_return result;
  }
  if (wanted->given.has(FATTR4_MODE_UMASK)) {
    result.status = xdr::NFS4ERR_INVAL;
    co_return result;
  }
  result.status = co_await set_attributes(compound, *wanted, args.stateid);
  if (result.status == xdr::NFS4_OK) result.attrsset = wanted->given.wire();
  co_return result;
}

Awaitable<xdr::STATUS4res> verify(Compound& compound, xdr::VERIFY4args args) {
  const xdr::nfsstat4 status = co_await compare(compound, args.obj_attributes);
  co_return xdr::STATUS4res(status == xdr::NFS4ERR_SAME ? xdr::NFS4_OK : status);
}

Awaitable<xdr::STATUS4res> nverify(Compound& compound, xdr::VERIFY4args args) {
  const xdr::nfsstat4 status = co_await compare(compound, args.obj_attributes);
  co_return xdr::STATUS4res(status == xdr::NFS4ERR_NOT_SAME ? xdr::NFS4_OK : status);
}

}  // namespace selvage::server::nfs4
