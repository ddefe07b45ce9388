// CREATE, MKDIR, SYMLINK and MKNOD (RFC 1813, 3.3.8 to 3.3.11).
#include "server/nfs3/procedures.h"

#include <cerrno>

namespace selvage::server::nfs3 {
namespace {

using storage::CreateResult;

Awaitable<Result<CreateResult>> checked_create(const Target& target, storage::Caller caller,
                                               xdr::CREATE3args args) {
  if (const auto writable = check_writable(target); !writable) co_return writable.error();
  if (const auto good = check_new_name(args.where.name.value); !good) co_return good.error();
  storage::CreateRequest request;
  if (const auto* verifier = args.how.get_if<xdr::createverf3>()) {
    request.mode = storage::CreateMode::exclusive;
    request.verifier = from_verifier(*verifier);
  } else if (const auto* wire = args.how.get_if<xdr::sattr3>()) {
    request.mode = args.how.tag == xdr::GUARDED ? storage::CreateMode::guarded
                                                : storage::CreateMode::unchecked;
    const auto set = to_set_attributes(*wire);
    if (!set) co_return set.error();
    request.attributes = *set;
  }
  co_return co_await target.filesystem().create(caller, target.object,
                                                std::move(args.where.name.value), request);
}

Awaitable<Result<CreateResult>> checked_mkdir(const Target& target, storage::Caller caller,
                                              xdr::MKDIR3args args) {
  if (const auto writable = check_writable(target); !writable) co_return writable.error();
  if (const auto good = check_new_name(args.where.name.value); !good) co_return good.error();
  const auto set = to_set_attributes(args.attributes);
  if (!set) co_return set.error();
  co_return co_await target.filesystem().mkdir(caller, target.object,
                                               std::move(args.where.name.value), *set);
}

Awaitable<Result<CreateResult>> checked_symlink(const Target& target, storage::Caller caller,
                                                xdr::SYMLINK3args args) {
  if (const auto writable = check_writable(target); !writable) co_return writable.error();
  if (const auto good = check_new_name(args.where.name.value); !good) co_return good.error();
  if (const auto good = check_symlink_target(args.symlink.symlink_data.value); !good) {
    co_return good.error();
  }
  const auto set = to_set_attributes(args.symlink.symlink_attributes);
  if (!set) co_return set.error();
  co_return co_await target.filesystem().symlink(caller, target.object,
                                                 std::move(args.where.name.value),
                                                 std::move(args.symlink.symlink_data.value), *set);
}

Awaitable<Result<CreateResult>> checked_mknod(const Target& target, storage::Caller caller,
                                              xdr::MKNOD3args args) {
  if (const auto writable = check_writable(target); !writable) co_return writable.error();
  storage::MknodRequest request;
  const xdr::sattr3* wire = nullptr;
  if (const auto* device = args.what.get_if<xdr::devicedata3>()) {
    request.type =
        args.what.tag == xdr::NF3BLK ? storage::FileType::block : storage::FileType::character;
    request.major = device->spec.specdata1;
    request.minor = device->spec.specdata2;
    wire = &device->dev_attributes;
  } else if (const auto* pipe = args.what.get_if<xdr::pipedata3>()) {
    request.type =
        args.what.tag == xdr::NF3SOCK ? storage::FileType::socket : storage::FileType::fifo;
    wire = &pipe->pipe_attributes;
  } else {
    co_return storage::ErrorCode(storage::Errc::bad_type);
  }
  if (const auto good = check_new_name(args.where.name.value); !good) co_return good.error();
  const auto set = to_set_attributes(*wire);
  if (!set) co_return set.error();
  request.attributes = *set;
  co_return co_await target.filesystem().mknod(caller, target.object,
                                               std::move(args.where.name.value), request);
}

/// The four results differ in name only.
template <class Results, class Ok>
Reply created(const void* service, const Target& target, const CreateResult& made) {
  Ok ok;
  ok.obj = handle_of(service, target, made.node.id);
  ok.obj_attributes = target.post_op(made.node.attributes);
  ok.dir_wcc = target.wcc(made.directory);
  return answer(Results(ok));
}

template <class Results, class Fail>
Awaitable<Reply> not_created(const Target& target, storage::Caller caller,
                             storage::ErrorCode error) {
  Fail fail;
  fail.dir_wcc = co_await current_wcc(target, caller);
  co_return answer(Results(status_of(error), fail));
}

}  // namespace

Awaitable<Reply> create(void* service, Call& call) {
  xdr::CREATE3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.where.dir);
  if (!target) co_return answer(xdr::CREATE3res(status_of(target.error())));
  const storage::Caller caller = target->caller(call);
  const auto made = co_await checked_create(*target, caller, std::move(args));
  if (!made) {
    co_return co_await not_created<xdr::CREATE3res, xdr::CREATE3resfail>(*target, caller,
                                                                         made.error());
  }
  co_return created<xdr::CREATE3res, xdr::CREATE3resok>(service, *target, *made);
}

Awaitable<Reply> mkdir(void* service, Call& call) {
  xdr::MKDIR3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.where.dir);
  if (!target) co_return answer(xdr::MKDIR3res(status_of(target.error())));
  const storage::Caller caller = target->caller(call);
  const auto made = co_await checked_mkdir(*target, caller, std::move(args));
  if (!made) {
    co_return co_await not_created<xdr::MKDIR3res, xdr::MKDIR3resfail>(*target, caller,
                                                                       made.error());
  }
  co_return created<xdr::MKDIR3res, xdr::MKDIR3resok>(service, *target, *made);
}

Awaitable<Reply> symlink(void* service, Call& call) {
  xdr::SYMLINK3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.where.dir);
  if (!target) co_return answer(xdr::SYMLINK3res(status_of(target.error())));
  const storage::Caller caller = target->caller(call);
  const auto made = co_await checked_symlink(*target, caller, std::move(args));
  if (!made) {
    co_return co_await not_created<xdr::SYMLINK3res, xdr::SYMLINK3resfail>(*target, caller,
                                                                           made.error());
  }
  co_return created<xdr::SYMLINK3res, xdr::SYMLINK3resok>(service, *target, *made);
}

Awaitable<Reply> mknod(void* service, Call& call) {
  xdr::MKNOD3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.where.dir);
  if (!target) co_return answer(xdr::MKNOD3res(status_of(target.error())));
  const storage::Caller caller = target->caller(call);
  const auto made = co_await checked_mknod(*target, caller, std::move(args));
  if (!made) {
    co_return co_await not_created<xdr::MKNOD3res, xdr::MKNOD3resfail>(*target, caller,
                                                                       made.error());
  }
  co_return created<xdr::MKNOD3res, xdr::MKNOD3resok>(service, *target, *made);
}

}  // namespace selvage::server::nfs3
