#include "server/nfs3/context.h"

#include <cerrno>

namespace selvage::server::nfs3 {

Result<Target> resolve(const void* service, const Call& call, const xdr::nfs_fh3& handle) {
  const auto& self = *static_cast<const Service*>(service);
  const auto decoded = self.handles.decode(handle.data.bytes());
  if (!decoded) return decoded.error();
  Target target;
  target.table = self.exports.get();
  target.served = target.table->by_id(decoded->export_id);
  if (target.served == nullptr) return storage::errno_code(ESTALE);
  target.rule = target.served->rule_for(call.client);
  if (target.rule == nullptr) return storage::errno_code(EACCES);
  if (target.rule->secure && !reserved_port(call.client_port)) return storage::errno_code(EPERM);
  target.object = decoded->object;
  target.credentials = credentials_for(*target.served, *target.rule, call.auth_sys);
  return target;
}

Result<> check_writable(const Target& target) {
  if (target.rule->read_only) return storage::errno_code(EROFS);
  return {};
}

xdr::nfs_fh3 handle_of(const void* service, const Target& target, const storage::ObjectId& object) {
  const auto& self = *static_cast<const Service*>(service);
  xdr::nfs_fh3 handle;
  handle.data = decltype(handle.data)(self.handles.encode(target.served->id, object));
  return handle;
}

Awaitable<xdr::post_op_attr> current_attributes(const Target& target, storage::Caller caller) {
  const auto attributes = co_await target.filesystem().getattr(caller, target.object);
  if (!attributes) co_return std::nullopt;
  co_return target.post_op(*attributes);
}

Awaitable<xdr::wcc_data> current_wcc(const Target& target, storage::Caller caller) {
  xdr::wcc_data wcc;
  wcc.after = co_await current_attributes(target, caller);
  co_return wcc;
}

}  // namespace selvage::server::nfs3
