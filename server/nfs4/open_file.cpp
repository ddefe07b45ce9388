#include "server/nfs4/open_file.h"

#include "server/nfs4/attributes.h"
#include "server/nfs4/owner_lookup.h"
#include "server/verifier.h"

#include <cerrno>
#include <string>

namespace selvage::server::nfs4 {
namespace {

constexpr int create_attempts = 16;

// The file is there: may the client open it so?
Awaitable<xdr::nfsstat4> check_file(const Compound& compound, const Object& object,
                                    storage::FileType type, std::uint32_t access) {
  switch (type) {
    case storage::FileType::regular:
      break;
    case storage::FileType::directory:
      co_return xdr::NFS4ERR_ISDIR;
    case storage::FileType::symlink:
      co_return xdr::NFS4ERR_SYMLINK;
    default:
      // RFC 7530, 16.16.6, has nothing nearer for a device or a fifo.
      co_return compound.minor == 0 ? xdr::NFS4ERR_SYMLINK : xdr::NFS4ERR_WRONG_TYPE;
  }
  const bool writes = (access & xdr::OPEN4_SHARE_ACCESS_WRITE) != 0;
  const bool reads = (access & xdr::OPEN4_SHARE_ACCESS_READ) != 0;
  if (writes && object.rule->read_only) co_return xdr::NFS4ERR_ROFS;
  const auto may = co_await object.filesystem().access(compound.caller(object), object.id);
  if (!may) co_return status_of(may.error());
  // Who may execute a file must be able to read it in.
  const bool readable = may->read || (may->execute && !writes);
  const bool allowed = (!reads || readable) && (!writes || may->write);
  co_return allowed ? xdr::NFS4_OK : xdr::NFS4ERR_ACCESS;
}

OpenedFile opened(const Compound& compound, const Object& directory, const storage::ObjectId& file,
                  const storage::Attributes& before, const storage::Attributes& after) {
  OpenedFile result;
  result.object = compound.in_export_of(directory, file);
  result.directory = change_info(before, after);
  return result;
}

Awaitable<Outcome<OpenedFile>> open_existing(Compound& compound, const Object& directory,
                                             const std::string& name, std::uint32_t access) {
  const auto found =
      co_await directory.filesystem().lookup(compound.caller(directory), directory.id, name);
  if (!found) co_return status_of(found.error());
  OpenedFile result =
      opened(compound, directory, found->node.id, found->directory, found->directory);
  const xdr::nfsstat4 good =
      co_await check_file(compound, result.object, found->node.attributes.type, access);
  if (good != xdr::NFS4_OK) co_return good;
  co_return result;
}

// UNCHECKED4, GUARDED4.
Awaitable<Outcome<OpenedFile>> create_unless_there(Compound& compound, const Object& directory,
                                                   const std::string& name,
                                                   const NewAttributes& wanted, bool guarded,
                                                   std::uint32_t access) {
  storage::CreateRequest request;
  request.mode = storage::CreateMode::guarded;
  request.attributes = wanted.set;
  request.hold = true;
  for (int attempt = 0; attempt < create_attempts; ++attempt) {
    const auto made = co_await directory.filesystem().create(compound.caller(directory),
                                                             directory.id, name, request);
    if (made) {
      OpenedFile result =
          opened(compound, directory, made->node.id, made->directory_before, made->directory);
      result.attributes = made->node.attributes;
      result.hold = made->hold;
      result.attributes_set = wanted.given;
      co_return result;
    }
    if (made.error() != storage::errno_code(EEXIST) || guarded) co_return status_of(made.error());
    auto found = co_await open_existing(compound, directory, name, access);
    if (found && wanted.set.size == 0) {
      found->on_open.size = wanted.set.size;
      found->attributes_set.add(FATTR4_SIZE);
    }
    // It was removed in between: now it can be made.
    if (found || found.status() != xdr::NFS4ERR_NOENT) co_return found;
  }
  co_return xdr::NFS4ERR_DELAY;
}

// EXCLUSIVE4, EXCLUSIVE4_1. The attributes of the latter are set after the verifier is durable, and
// again by a retry.
Awaitable<Outcome<OpenedFile>> create_exclusive(Compound& compound, const Object& directory,
                                                const std::string& name,
                                                const xdr::verifier4& verifier,
                                                const NewAttributes& wanted) {
  storage::CreateRequest request;
  request.mode = storage::CreateMode::exclusive;
  request.verifier = from_verifier(verifier);
  const auto made = co_await directory.filesystem().create(compound.caller(directory), directory.id,
                                                           name, request);
  if (!made) co_return status_of(made.error());
  OpenedFile result =
      opened(compound, directory, made->node.id, made->directory_before, made->directory);
  result.attributes_set = wanted.given;
  result.on_open = wanted.set;
  // They hold the verifier: the client sets them next (RFC 7530, 16.16.5).
  result.attributes_set.add(FATTR4_TIME_ACCESS);
  result.attributes_set.add(FATTR4_TIME_MODIFY);
  co_return result;
}

Awaitable<Outcome<OpenedFile>> create_by_name(Compound& compound, const Object& directory,
                                              const std::string& name, const xdr::createhow4& how,
                                              std::uint32_t access) {
  if (directory.rule->read_only) co_return xdr::NFS4ERR_ROFS;
  if (const auto* attributes = how.get_if<xdr::fattr4>()) {
    const auto wanted = co_await new_attributes(compound, *attributes);
    if (!wanted) co_return wanted.status();
    const bool guarded = how.tag == xdr::GUARDED4;
    co_return co_await create_unless_there(compound, directory, name, *wanted, guarded, access);
  }
  if (const auto* verifier = how.get_if<xdr::verifier4>()) {
    const NewAttributes none;
    co_return co_await create_exclusive(compound, directory, name, *verifier, none);
  }
  const auto* both = how.get_if<xdr::creatverfattr>();
  if (both == nullptr || compound.minor == 0) co_return xdr::NFS4ERR_INVAL;
  const auto wanted = co_await new_attributes(compound, both->cva_attrs);
  if (!wanted) co_return wanted.status();
  if (!wanted->given.within(exclusive_create_attributes(compound.minor))) {
    co_return xdr::NFS4ERR_INVAL;
  }
  co_return co_await create_exclusive(compound, directory, name, both->cva_verf, *wanted);
}

Awaitable<Outcome<OpenedFile>> open_by_name(Compound& compound, const xdr::OPEN4args& args,
                                            const std::string& name) {
  const Object directory = *compound.current;
  const xdr::nfsstat4 good = check_component(name, compound.utf8());
  if (good != xdr::NFS4_OK) co_return good;
  const auto* how = args.openhow.get_if<xdr::createhow4>();
  if (directory.pseudo()) {
    const bool there = directory.node->children.contains(name);
    if (how != nullptr && !there) co_return xdr::NFS4ERR_ROFS;
    co_return there ? xdr::NFS4ERR_ISDIR : xdr::NFS4ERR_NOENT;
  }
  if (how == nullptr) {
    co_return co_await open_existing(compound, directory, name, args.share_access);
  }
  co_return co_await create_by_name(compound, directory, name, *how, args.share_access);
}

// CLAIM_FH, CLAIM_PREVIOUS. What was open before a restart is not judged again: rights may have
// been taken away since.
Awaitable<Outcome<OpenedFile>> open_current(Compound& compound, const xdr::OPEN4args& args) {
  const Object object = *compound.current;
  if (args.openhow.tag == xdr::OPEN4_CREATE) co_return xdr::NFS4ERR_INVAL;
  if (object.pseudo()) co_return xdr::NFS4ERR_ISDIR;
  const auto attributes = co_await object.filesystem().getattr(compound.caller(object), object.id);
  if (!attributes) co_return status_of(attributes.error());
  const bool reclaim = args.claim.tag == xdr::CLAIM_PREVIOUS;
  const bool regular = attributes->type == storage::FileType::regular;
  if (!reclaim || !regular) {
    const xdr::nfsstat4 good =
        co_await check_file(compound, object, attributes->type, args.share_access);
    if (good != xdr::NFS4_OK) co_return good;
  }
  OpenedFile result;
  result.object = object;
  result.directory = change_info(*attributes, *attributes);
  co_return result;
}

}  // namespace

Awaitable<Outcome<OpenedFile>> open_file(Compound& compound, const xdr::OPEN4args& args) {
  switch (args.claim.tag) {
    case xdr::CLAIM_NULL:
      co_return co_await open_by_name(compound, args, args.claim.get_if<xdr::component4>()->value);
    case xdr::CLAIM_PREVIOUS:
      co_return co_await open_current(compound, args);
    case xdr::CLAIM_FH:
      if (compound.minor == 0) co_return xdr::NFS4ERR_INVAL;
      co_return co_await open_current(compound, args);
    // There are no delegations whose opens could be claimed.
    case xdr::CLAIM_DELEGATE_CUR:
    case xdr::CLAIM_DELEG_CUR_FH:
      co_return xdr::NFS4ERR_BAD_STATEID;
    case xdr::CLAIM_DELEGATE_PREV:
    case xdr::CLAIM_DELEG_PREV_FH:
      break;
  }
  co_return xdr::NFS4ERR_NOTSUPP;
}

}  // namespace selvage::server::nfs4
