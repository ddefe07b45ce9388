// LOOKUP and READLINK (RFC 1813, 3.3.3, 3.3.5).
#include "server/nfs3/procedures.h"

namespace selvage::server::nfs3 {
namespace {

Awaitable<Result<storage::LookupResult>> checked_lookup(const Target& target,
                                                        storage::Caller caller, std::string name) {
  if (const auto good = check_name(name); !good) co_return good.error();
  // Nothing above the export is shown: its root is its own parent.
  if (name == ".." && target.is_root()) name = ".";
  co_return co_await target.filesystem().lookup(caller, target.object, std::move(name));
}

}  // namespace

Awaitable<Reply> lookup(void* service, Call& call) {
  xdr::LOOKUP3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.what.dir);
  if (!target) co_return answer(xdr::LOOKUP3res(status_of(target.error())));
  const storage::Caller caller = target->caller(call);
  const auto found = co_await checked_lookup(*target, caller, std::move(args.what.name.value));
  if (!found) {
    xdr::LOOKUP3resfail fail;
    fail.dir_attributes = co_await current_attributes(*target, caller);
    co_return answer(xdr::LOOKUP3res(status_of(found.error()), fail));
  }
  xdr::LOOKUP3resok ok;
  ok.object = handle_of(service, *target, found->node.id);
  ok.obj_attributes = target->post_op(found->node.attributes);
  ok.dir_attributes = target->post_op(found->directory);
  co_return answer(xdr::LOOKUP3res(ok));
}

Awaitable<Reply> readlink(void* service, Call& call) {
  xdr::READLINK3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.symlink);
  if (!target) co_return answer(xdr::READLINK3res(status_of(target.error())));
  const storage::Caller caller = target->caller(call);
  auto link = co_await target->filesystem().readlink(caller, target->object);
  if (!link) {
    xdr::READLINK3resfail fail;
    fail.symlink_attributes = co_await current_attributes(*target, caller);
    co_return answer(xdr::READLINK3res(status_of(link.error()), fail));
  }
  xdr::READLINK3resok ok;
  ok.symlink_attributes = target->post_op(link->attributes);
  ok.data.value = std::move(link->target);
  co_return answer(xdr::READLINK3res(std::move(ok)));
}

}  // namespace selvage::server::nfs3
