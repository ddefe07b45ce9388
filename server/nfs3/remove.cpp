// REMOVE, RMDIR, RENAME and LINK (RFC 1813, 3.3.12 to 3.3.15).
#include "server/nfs3/procedures.h"

#include <cerrno>

namespace selvage::server::nfs3 {
namespace {

Awaitable<Result<storage::RemoveResult>> checked_remove(const Target& target,
                                                        storage::Caller caller, std::string name) {
  if (const auto writable = check_writable(target); !writable) co_return writable.error();
  if (const auto good = check_real_name(name); !good) co_return good.error();
  co_return co_await target.filesystem().remove(caller, target.object, std::move(name));
}

Awaitable<Result<storage::RemoveResult>> checked_rmdir(const Target& target, storage::Caller caller,
                                                       std::string name) {
  if (const auto writable = check_writable(target); !writable) co_return writable.error();
  // RFC 1813, 3.3.13 tells the two apart: "." is NFS3ERR_INVAL, ".." NFS3ERR_EXIST.
  if (name == "..") co_return storage::errno_code(EEXIST);
  if (const auto good = check_real_name(name); !good) co_return good.error();
  co_return co_await target.filesystem().rmdir(caller, target.object, std::move(name));
}

/// EXDEV between exports, even of one file system: each is a file system of its own to the client.
Result<> check_same_export(const Target& a, const Target& b) {
  if (a.served->id != b.served->id) return storage::errno_code(EXDEV);
  return {};
}

Awaitable<Result<storage::RenameResult>> checked_rename(const Target& from, const Target& to,
                                                        storage::Caller caller,
                                                        xdr::RENAME3args args) {
  if (const auto writable = check_writable(from); !writable) co_return writable.error();
  if (const auto writable = check_writable(to); !writable) co_return writable.error();
  if (const auto same = check_same_export(from, to); !same) co_return same.error();
  if (const auto good = check_real_name(args.from.name.value); !good) co_return good.error();
  if (const auto good = check_real_name(args.to.name.value); !good) co_return good.error();
  co_return co_await from.filesystem().rename(caller, from.object, std::move(args.from.name.value),
                                              to.object, std::move(args.to.name.value));
}

Awaitable<Result<storage::LinkResult>> checked_link(const Target& file, const Target& directory,
                                                    storage::Caller caller, std::string name) {
  if (const auto writable = check_writable(directory); !writable) co_return writable.error();
  if (const auto same = check_same_export(file, directory); !same) co_return same.error();
  if (const auto good = check_new_name(name); !good) co_return good.error();
  co_return co_await directory.filesystem().link(caller, file.object, directory.object,
                                                 std::move(name));
}

}  // namespace

Awaitable<Reply> remove(void* service, Call& call) {
  xdr::REMOVE3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.object.dir);
  if (!target) co_return answer(xdr::REMOVE3res(status_of(target.error())));
  const storage::Caller caller = target->caller(call);
  const auto done = co_await checked_remove(*target, caller, std::move(args.object.name.value));
  if (!done) {
    xdr::REMOVE3resfail fail;
    fail.dir_wcc = co_await current_wcc(*target, caller);
    co_return answer(xdr::REMOVE3res(status_of(done.error()), fail));
  }
  xdr::REMOVE3resok ok;
  ok.dir_wcc = target->wcc(done->directory);
  co_return answer(xdr::REMOVE3res(ok));
}

Awaitable<Reply> rmdir(void* service, Call& call) {
  xdr::RMDIR3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.object.dir);
  if (!target) co_return answer(xdr::RMDIR3res(status_of(target.error())));
  const storage::Caller caller = target->caller(call);
  const auto done = co_await checked_rmdir(*target, caller, std::move(args.object.name.value));
  if (!done) {
    xdr::RMDIR3resfail fail;
    fail.dir_wcc = co_await current_wcc(*target, caller);
    co_return answer(xdr::RMDIR3res(status_of(done.error()), fail));
  }
  xdr::RMDIR3resok ok;
  ok.dir_wcc = target->wcc(done->directory);
  co_return answer(xdr::RMDIR3res(ok));
}

Awaitable<Reply> rename(void* service, Call& call) {
  xdr::RENAME3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto from = resolve(service, call, args.from.dir);
  if (!from) co_return answer(xdr::RENAME3res(status_of(from.error())));
  const auto to = resolve(service, call, args.to.dir);
  if (!to) co_return answer(xdr::RENAME3res(status_of(to.error())));
  const storage::Caller caller = from->caller(call);
  const auto done = co_await checked_rename(*from, *to, caller, std::move(args));
  if (!done) {
    xdr::RENAME3resfail fail;
    fail.fromdir_wcc = co_await current_wcc(*from, caller);
    fail.todir_wcc = co_await current_wcc(*to, to->caller(call));
    co_return answer(xdr::RENAME3res(status_of(done.error()), fail));
  }
  xdr::RENAME3resok ok;
  ok.fromdir_wcc = from->wcc(done->from);
  ok.todir_wcc = to->wcc(done->to);
  co_return answer(xdr::RENAME3res(ok));
}

Awaitable<Reply> link(void* service, Call& call) {
  xdr::LINK3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto file = resolve(service, call, args.file);
  if (!file) co_return answer(xdr::LINK3res(status_of(file.error())));
  const auto directory = resolve(service, call, args.link.dir);
  if (!directory) co_return answer(xdr::LINK3res(status_of(directory.error())));
  const storage::Caller caller = directory->caller(call);
  const auto done =
      co_await checked_link(*file, *directory, caller, std::move(args.link.name.value));
  if (!done) {
    xdr::LINK3resfail fail;
    fail.file_attributes = co_await current_attributes(*file, file->caller(call));
    fail.linkdir_wcc = co_await current_wcc(*directory, caller);
    co_return answer(xdr::LINK3res(status_of(done.error()), fail));
  }
  xdr::LINK3resok ok;
  ok.file_attributes = file->post_op(done->file);
  ok.linkdir_wcc = directory->wcc(done->directory);
  co_return answer(xdr::LINK3res(ok));
}

}  // namespace selvage::server::nfs3
