// GETATTR, SETATTR and ACCESS (RFC 1813, 3.3.1, 3.3.2, 3.3.4).
#include "server/nfs3/procedures.h"

#include <cerrno>

namespace selvage::server::nfs3 {
namespace {

/// The bits that mean something for an object of that type and that its caller may do.
std::uint32_t granted_bits(const storage::AccessResult& may, bool read_only) {
  const bool directory = may.attributes.type == storage::FileType::directory;
  const bool regular = may.attributes.type == storage::FileType::regular;
  // A directory is changed through its names, and no name is reached without search permission.
  const bool change = may.write && !read_only && (!directory || may.execute);
  std::uint32_t bits = 0;
  if (may.read) bits |= xdr::ACCESS3_READ;
  if (change) bits |= xdr::ACCESS3_MODIFY | xdr::ACCESS3_EXTEND;
  if (change && directory) bits |= xdr::ACCESS3_DELETE;
  if (may.execute && directory) bits |= xdr::ACCESS3_LOOKUP;
  if (may.execute && regular) bits |= xdr::ACCESS3_EXECUTE;
  return bits;
}

Awaitable<Result<storage::Attributes>> checked_setattr(const Target& target, storage::Caller caller,
                                                       const xdr::SETATTR3args& args) {
  if (const auto writable = check_writable(target); !writable) co_return writable.error();
  const auto set = to_set_attributes(args.new_attributes);
  if (!set) co_return set.error();
  std::optional<timespec> guard;
  if (args.guard) {
    const auto time = to_timespec(*args.guard);
    if (!time) co_return storage::ErrorCode(storage::Errc::not_sync);
    guard = *time;
  }
  auto done = co_await target.filesystem().setattr(caller, target.object, *set, guard);
  // The size of a directory cannot be set; RFC 1813 has no NFS3ERR_ISDIR for SETATTR.
  if (!done && done.error() == storage::errno_code(EISDIR)) {
    co_return storage::errno_code(EINVAL);
  }
  co_return done;
}

}  // namespace

Awaitable<Reply> getattr(void* service, Call& call) {
  xdr::GETATTR3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.object);
  if (!target) co_return answer(xdr::GETATTR3res(status_of(target.error())));
  const auto attributes =
      co_await target->filesystem().getattr(target->caller(call), target->object);
  if (!attributes) co_return answer(xdr::GETATTR3res(status_of(attributes.error())));
  xdr::GETATTR3resok ok;
  ok.obj_attributes = to_fattr3(*attributes, target->served->fsid);
  co_return answer(xdr::GETATTR3res(ok));
}

Awaitable<Reply> setattr(void* service, Call& call) {
  xdr::SETATTR3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.object);
  if (!target) co_return answer(xdr::SETATTR3res(status_of(target.error())));
  const storage::Caller caller = target->caller(call);
  const auto done = co_await checked_setattr(*target, caller, args);
  if (!done) {
    xdr::SETATTR3resfail fail;
    fail.obj_wcc = co_await current_wcc(*target, caller);
    co_return answer(xdr::SETATTR3res(status_of(done.error()), fail));
  }
  xdr::SETATTR3resok ok;
  ok.obj_wcc = target->wcc(*done);
  co_return answer(xdr::SETATTR3res(ok));
}

Awaitable<Reply> access(void* service, Call& call) {
  xdr::ACCESS3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.object);
  if (!target) co_return answer(xdr::ACCESS3res(status_of(target.error())));
  const storage::Caller caller = target->caller(call);
  const auto may = co_await target->filesystem().access(caller, target->object);
  if (!may) {
    xdr::ACCESS3resfail fail;
    fail.obj_attributes = co_await current_attributes(*target, caller);
    co_return answer(xdr::ACCESS3res(status_of(may.error()), fail));
  }
  xdr::ACCESS3resok ok;
  ok.obj_attributes = target->post_op(may->attributes);
  ok.access = granted_bits(*may, target->rule->read_only) & args.access;
  co_return answer(xdr::ACCESS3res(ok));
}

}  // namespace selvage::server::nfs3
