#include "server/nfs4/facts.h"

#include "server/nfs4/owner_lookup.h"

namespace selvage::server::nfs4 {
namespace {

// Another file system than every export's.
constexpr xdr::fsid4 pseudo_fsid{0, 1};

// To the client each export is a file system; below "/" of one it is its own.
std::uint64_t mounted_on(const Compound& compound, const Object& object, std::uint64_t fileid) {
  if (!object.is_root()) return fileid;
  const PathNode* node = compound.names->at(*object.served, object.id);
  return node == nullptr || node->parent == nullptr ? fileid : node->mounted_on;
}

}  // namespace

storage::Attributes pseudo_attributes(const Compound& compound, const PathNode& node) {
  storage::Attributes attributes;
  attributes.type = storage::FileType::directory;
  attributes.mode = 0555;
  attributes.nlink = static_cast<std::uint32_t>(2 + node.children.size());
  attributes.size = 4096;
  attributes.fileid = node.id;
  attributes.atime = attributes.mtime = attributes.ctime = compound.names->made();
  return attributes;
}

Facts facts_with(const Compound& compound, const Object& object,
                 const storage::Attributes& attributes) {
  Facts facts;
  facts.minor = compound.minor;
  facts.attributes = attributes;
  facts.handle = compound.handle_of(object);
  facts.lease_seconds = compound.service.lease_seconds.load();
  if (object.pseudo()) {
    facts.fsid = pseudo_fsid;
    facts.mounted_on_fileid = object.node->id;
  } else {
    facts.fsid = {object.served->fsid, 0};
    facts.mounted_on_fileid = mounted_on(compound, object, attributes.fileid);
  }
  return facts;
}

Awaitable<Outcome<Facts>> facts_of(const Compound& compound, const Object& object,
                                   const AttributeSet& wanted) {
  if (object.pseudo()) {
    Facts facts = facts_with(compound, object, pseudo_attributes(compound, *object.node));
    facts.usage = storage::FileSystemUsage{};
    facts.limits = storage::FileSystemLimits{max_offset, 255, 65535};
    co_await name_owners(compound, wanted, facts);
    co_return facts;
  }
  storage::FileSystem& filesystem = object.filesystem();
  const storage::Caller caller = compound.caller(object);
  const auto attributes = co_await filesystem.getattr(caller, object.id);
  if (!attributes) co_return status_of(attributes.error());
  Facts facts = facts_with(compound, object, *attributes);
  if (wanted.any_of(usage_attributes())) {
    const auto usage = co_await filesystem.usage(caller, object.id);
    if (!usage) co_return status_of(usage.error());
    facts.usage = *usage;
  }
  if (wanted.any_of(limits_attributes())) {
    const auto limits = co_await filesystem.limits(caller, object.id);
    if (!limits) co_return status_of(limits.error());
    facts.limits = *limits;
  }
  if (compound.service.owners.has_domain()) co_await name_owners(compound, wanted, facts);
  co_return facts;
}

}  // namespace selvage::server::nfs4
