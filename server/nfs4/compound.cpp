#include "server/nfs4/compound.h"

#include "server/names.h"
#include "server/nfs4/attributes.h"
#include "server/nfs4/utf8.h"

#include <array>
#include <span>
#include <utility>

namespace selvage::server::nfs4 {
namespace {

// A pseudo directory's handle: export 0, and its id where an object's kernel handle would be.
constexpr std::uint32_t pseudo_export = 0;
constexpr std::int32_t pseudo_type = 0;

storage::ObjectId pseudo_object(std::uint64_t id) {
  std::array<std::uint8_t, 8> bytes{};
  for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte, id >>= 8U) {
    *byte = static_cast<std::uint8_t>(id);
  }
  return {pseudo_type, bytes};
}

std::uint64_t pseudo_id(const storage::ObjectId& object) {
  std::uint64_t id = 0;
  for (const std::uint8_t byte : object.bytes()) id = id << 8U | byte;
  return id;
}

}  // namespace

state::Principal Compound::principal() const {
  state::Principal principal;
  principal.machine = call.client.to_string();
  if (call.auth_sys != nullptr) {
    principal.flavor = 1;
    principal.uid = call.auth_sys->uid;
  }
  return principal;
}

Outcome<Object> Compound::resolve(const xdr::nfs_fh4& handle) const {
  const auto decoded = service.handles.decode(handle.data.bytes());
  if (!decoded) return status_of(decoded.error());
  if (decoded->export_id == pseudo_export) {
    const PathNode* node = names->pseudo(pseudo_id(decoded->object));
    if (node == nullptr) return xdr::NFS4ERR_STALE;
    return enter(*node);
  }
  Object object;
  const Export* served = names->exports().by_id(decoded->export_id);
  if (served == nullptr) return xdr::NFS4ERR_STALE;
  const xdr::nfsstat4 good = enter_export(*served, object);
  if (good != xdr::NFS4_OK) return good;
  object.id = decoded->object;
  return object;
}

xdr::nfsstat4 Compound::enter_export(const Export& served, Object& object) const {
  object.served = &served;
  object.rule = served.rule_for(call.client);
  if (object.rule == nullptr) return xdr::NFS4ERR_ACCESS;
  if (object.rule->secure && !reserved_port(call.client_port)) return xdr::NFS4ERR_PERM;
  object.credentials = credentials_for(served, *object.rule, call.auth_sys);
  return xdr::NFS4_OK;
}

Outcome<Object> Compound::enter(const PathNode& node) const {
  // Who may see no export sees an empty root.
  const bool is_root = node.parent == nullptr;
  if (!is_root && !node.visible(call.client)) return xdr::NFS4ERR_NOENT;
  Object object;
  if (node.pseudo()) {
    object.node = &node;
    return object;
  }
  const xdr::nfsstat4 good =
      enter_export(node.served != nullptr ? *node.served : *node.inside, object);
  if (good != xdr::NFS4_OK) return good;
  if (node.served == nullptr && !node.object) return xdr::NFS4ERR_NOENT;
  object.id = node.served != nullptr ? object.filesystem().root() : *node.object;
  return object;
}

xdr::nfs_fh4 Compound::handle_of(const Object& object) const {
  const auto bytes = object.pseudo()
                         ? service.handles.encode(pseudo_export, pseudo_object(object.node->id))
                         : service.handles.encode(object.served->id, object.id);
  xdr::nfs_fh4 handle;
  handle.data = decltype(handle.data)(bytes);
  return handle;
}

Object Compound::in_export_of(const Object& other, const storage::ObjectId& id) const {
  Object object = other;
  object.id = id;
  return object;
}

Outcome<xdr::stateid4> Compound::stateid(const xdr::stateid4& given) const {
  constexpr xdr::stateid4 current_one{1, {}};
  if (minor == 0 || given != current_one) return given;
  if (!current_stateid) return xdr::NFS4ERR_BAD_STATEID;
  return *current_stateid;
}

xdr::nfsstat4 Compound::check_writable() const {
  const bool writable = !current->pseudo() && !current->rule->read_only;
  return writable ? xdr::NFS4_OK : xdr::NFS4ERR_ROFS;
}

xdr::change_info4 change_info(const storage::Attributes& before, const storage::Attributes& after) {
  return {false, change_of(before), change_of(after)};
}

xdr::nfsstat4 check_component(const std::string& name, bool utf8) {
  if (name.empty()) return xdr::NFS4ERR_INVAL;
  if (utf8 && !is_utf8(name)) return xdr::NFS4ERR_INVAL;
  const auto good = check_real_name(name);
  return good ? xdr::NFS4_OK : status_of(good.error());
}

}  // namespace selvage::server::nfs4
