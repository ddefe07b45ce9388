// LOOKUP, LOOKUPP, READLINK, SECINFO, SECINFO_NO_NAME (RFC 7530, 16.13, 16.14, 16.25, 16.31;
// RFC 8881, 18.45).
#include "server/nfs4/operations.h"

#include <cerrno>
#include <optional>
#include <utility>

namespace selvage::server::nfs4 {
namespace {

// NOTDIR, or SYMLINK for a symbolic link: what a name was looked up in is no directory.
Awaitable<xdr::nfsstat4> not_directory(Compound& compound, const Object& object) {
  const auto attributes = co_await object.filesystem().getattr(compound.caller(object), object.id);
  if (!attributes) co_return status_of(attributes.error());
  const bool link = attributes->type == storage::FileType::symlink;
  co_return link ? xdr::NFS4ERR_SYMLINK : xdr::NFS4ERR_NOTDIR;
}

// The node below an object's own that a name leads to; nullptr: an ordinary name.
const PathNode* child_node(const Compound& compound, const Object& object,
                           const std::string& name) {
  const PathNode* node =
      object.pseudo() ? object.node : compound.names->at(*object.served, object.id);
  if (node == nullptr) return nullptr;
  const auto found = node->children.find(name);
  return found == node->children.end() ? nullptr : found->second.get();
}

// `attributes`: of an object in the same export, the lookup's own.
Awaitable<Outcome<Object>> look_up(Compound& compound, std::string name,
                                   std::optional<storage::Attributes>& attributes) {
  const xdr::nfsstat4 good = check_component(name, compound.utf8());
  if (good != xdr::NFS4_OK) co_return good;
  const Object& directory = *compound.current;
  const PathNode* child = child_node(compound, directory, name);
  if (directory.pseudo()) {
    if (child == nullptr) co_return xdr::NFS4ERR_NOENT;
    co_return compound.enter(*child);
  }
  const auto found = co_await directory.filesystem().lookup(compound.caller(directory),
                                                            directory.id, std::move(name));
  if (!found && found.error() == storage::errno_code(ENOTDIR)) {
    co_return co_await not_directory(compound, directory);
  }
  if (!found) co_return status_of(found.error());
  // The kernel has judged the search; here another export begins.
  if (child != nullptr && child->served != nullptr) co_return compound.enter(*child);
  attributes = found->node.attributes;
  co_return compound.in_export_of(directory, found->node.id);
}

Awaitable<Outcome<Object>> look_up_parent(Compound& compound) {
  const Object& directory = *compound.current;
  const PathNode* node = directory.node;
  if (!directory.pseudo() && directory.is_root()) {
    node = compound.names->at(*directory.served, directory.id);
  }
  if (node != nullptr) {
    if (node->parent == nullptr) co_return xdr::NFS4ERR_NOENT;
    co_return compound.enter(*node->parent);
  }
  const auto found =
      co_await directory.filesystem().lookup(compound.caller(directory), directory.id, "..");
  if (!found && found.error() == storage::errno_code(ENOTDIR)) {
    co_return co_await not_directory(compound, directory);
  }
  if (!found) co_return status_of(found.error());
  co_return compound.in_export_of(directory, found->node.id);
}

// What any export takes: AUTH_SYS, and AUTH_NONE as the anonymous user.
xdr::SECINFO4resok flavors() {
  xdr::SECINFO4resok list;
  list.items.emplace_back(1U);
  list.items.emplace_back(0U);
  return list;
}

}  // namespace

Awaitable<xdr::STATUS4res> lookup(Compound& compound, xdr::LOOKUP4args args) {
  std::optional<storage::Attributes> attributes;
  auto found = co_await look_up(compound, std::move(args.objname.value), attributes);
  if (!found) co_return xdr::STATUS4res(found.status());
  compound.set_current(std::move(*found));
  compound.known = attributes;
  co_return xdr::STATUS4res(xdr::NFS4_OK);
}

Awaitable<xdr::STATUS4res> lookupp(Compound& compound) {
  auto found = co_await look_up_parent(compound);
  if (!found) co_return xdr::STATUS4res(found.status());
  compound.set_current(std::move(*found));
  co_return xdr::STATUS4res(xdr::NFS4_OK);
}

Awaitable<xdr::READLINK4res> readlink(Compound& compound) {
  const Object& object = *compound.current;
  if (object.pseudo()) co_return xdr::READLINK4res(xdr::NFS4ERR_INVAL);
  auto link = co_await object.filesystem().readlink(compound.caller(object), object.id);
  if (!link) co_return xdr::READLINK4res(status_of(link.error()));
  xdr::linktext4 text;
  text.value = std::move(link->target);
  co_return xdr::READLINK4res(std::move(text));
}

// RFC 8881, 2.6.3.1.1.8: the current filehandle is consumed; RFC 7530 says nothing of the kind.
Awaitable<xdr::SECINFO4res> secinfo(Compound& compound, xdr::SECINFO4args args) {
  std::optional<storage::Attributes> unused;
  const auto found = co_await look_up(compound, std::move(args.name.value), unused);
  if (!found) co_return xdr::SECINFO4res(found.status());
  if (compound.minor != 0) compound.current.reset();
  co_return xdr::SECINFO4res(flavors());
}

Awaitable<xdr::SECINFO4res> secinfo_no_name(Compound& compound, xdr::SECINFO_NO_NAME4args args) {
  if (args.style == xdr::SECINFO_STYLE4_PARENT) {
    const auto found = co_await look_up_parent(compound);
    if (!found) co_return xdr::SECINFO4res(found.status());
  }
  compound.current.reset();
  co_return xdr::SECINFO4res(flavors());
}

}  // namespace selvage::server::nfs4
