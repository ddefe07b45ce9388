// CREATE, REMOVE, RENAME, LINK (RFC 7530, 16.4, 16.26, 16.27, 16.9).
#include "server/names.h"

#include "server/nfs4/attributes.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/owner_lookup.h"

#include <cerrno>
#include <utility>

namespace selvage::server::nfs4 {
namespace {

using storage::CreateResult;

Awaitable<Result<CreateResult>> make(const Compound& compound, const Object& directory,
                                     xdr::CREATE4args args, storage::SetAttributes set) {
  storage::FileSystem& filesystem = directory.filesystem();
  const storage::Caller caller = compound.caller(directory);
  std::string name = std::move(args.objname.value);
  if (args.objtype.tag == xdr::NF4DIR) {
    co_return co_await filesystem.mkdir(caller, directory.id, std::move(name), set);
  }
  if (auto* target = args.objtype.get_if<xdr::linktext4>()) {
    if (const auto good = check_symlink_target(target->value); !good) co_return good.error();
    co_return co_await filesystem.symlink(caller, directory.id, std::move(name),
                                          std::move(target->value), set);
  }
  storage::MknodRequest request;
  request.attributes = set;
  if (const auto* device = args.objtype.get_if<xdr::specdata4>()) {
    request.major = device->specdata1;
    request.minor = device->specdata2;
  }
  switch (args.objtype.tag) {
    case xdr::NF4BLK:
      request.type = storage::FileType::block;
      break;
    case xdr::NF4CHR:
      request.type = storage::FileType::character;
      break;
    case xdr::NF4SOCK:
      request.type = storage::FileType::socket;
      break;
    case xdr::NF4FIFO:
      request.type = storage::FileType::fifo;
      break;
    default:
      co_return storage::ErrorCode(storage::Errc::bad_type);
  }
  co_return co_await filesystem.mknod(caller, directory.id, std::move(name), request);
}

// A directory is removed by another system call than everything else.
Awaitable<Result<storage::RemoveResult>> remove_name(const Compound& compound,
                                                     const Object& directory, std::string name) {
  storage::FileSystem& filesystem = directory.filesystem();
  const storage::Caller caller = compound.caller(directory);
  auto removed = co_await filesystem.remove(caller, directory.id, name);
  if (removed || removed.error() != storage::errno_code(EISDIR)) co_return removed;
  co_return co_await filesystem.rmdir(caller, directory.id, std::move(name));
}

Awaitable<bool> is_directory(const Compound& compound, const Object& object) {
  const auto attributes = co_await object.filesystem().getattr(compound.caller(object), object.id);
  co_return attributes && attributes->type == storage::FileType::directory;
}

// RFC 7530, 16.27.4: two objects of different kinds are NFS4ERR_EXIST; what names are looked up in
// and is no directory, NFS4ERR_NOTDIR.
Awaitable<xdr::nfsstat4> rename_error(const Compound& compound, const storage::ErrorCode& error) {
  const bool kinds = error == storage::errno_code(EISDIR) || error == storage::errno_code(ENOTDIR);
  if (!kinds) co_return status_of(error);
  const bool source = co_await is_directory(compound, *compound.saved);
  const bool target = co_await is_directory(compound, *compound.current);
  co_return source&& target ? xdr::NFS4ERR_EXIST : xdr::NFS4ERR_NOTDIR;
}

// Between two exports nothing moves; the pseudo file system is one of its own.
xdr::nfsstat4 check_same_export(const Object& a, const Object& b) {
  if (a.pseudo() || b.pseudo()) {
    return a.pseudo() && b.pseudo() ? xdr::NFS4ERR_ROFS : xdr::NFS4ERR_XDEV;
  }
  return a.served == b.served ? xdr::NFS4_OK : xdr::NFS4ERR_XDEV;
}

}  // namespace

Awaitable<xdr::CREATE4res> create(Compound& compound, xdr::CREATE4args args) {
  const Object directory = *compound.current;
  const auto wanted = co_await new_attributes(compound, args.createattrs);
  if (!wanted) co_return xdr::CREATE4res(wanted.status());
  if (args.objtype.tag == xdr::NF4REG || args.objtype.tag > xdr::NF4FIFO) {
    co_return xdr::CREATE4res(xdr::NFS4ERR_BADTYPE);
  }
  xdr::nfsstat4 good = check_component(args.objname.value, compound.utf8());
  if (good == xdr::NFS4_OK) good = compound.check_writable();
  if (good != xdr::NFS4_OK) co_return xdr::CREATE4res(good);
  const auto made = co_await make(compound, directory, std::move(args), wanted->set);
  if (!made) co_return xdr::CREATE4res(status_of(made.error()));
  xdr::CREATE4resok ok;
  ok.cinfo = change_info(made->directory_before, made->directory);
  ok.attrset = wanted->given.wire();
  compound.set_current(compound.in_export_of(directory, made->node.id));
  compound.known = made->node.attributes;
  co_return xdr::CREATE4res(std::move(ok));
}

Awaitable<xdr::REMOVE4res> remove(Compound& compound, xdr::REMOVE4args args) {
  const Object& directory = *compound.current;
  xdr::nfsstat4 good = check_component(args.target.value, compound.utf8());
  if (good == xdr::NFS4_OK) good = compound.check_writable();
  if (good != xdr::NFS4_OK) co_return xdr::REMOVE4res(good);
  const auto done = co_await remove_name(compound, directory, std::move(args.target.value));
  if (!done) co_return xdr::REMOVE4res(status_of(done.error()));
  compound.known = done->directory;
  co_return xdr::REMOVE4res(change_info(done->directory_before, done->directory));
}

Awaitable<xdr::RENAME4res> rename(Compound& compound, xdr::RENAME4args args) {
  const Object& from = *compound.saved;
  const Object& to = *compound.current;
  xdr::nfsstat4 good = check_component(args.oldname.value, compound.utf8());
  if (good == xdr::NFS4_OK) good = check_component(args.newname.value, compound.utf8());
  if (good == xdr::NFS4_OK) good = check_same_export(from, to);
  if (good == xdr::NFS4_OK) good = compound.check_writable();
  if (good != xdr::NFS4_OK) co_return xdr::RENAME4res(good);
  const auto done =
      co_await to.filesystem().rename(compound.caller(to), from.id, std::move(args.oldname.value),
                                      to.id, std::move(args.newname.value));
  if (!done) {
    const xdr::nfsstat4 status = co_await rename_error(compound, done.error());
    co_return xdr::RENAME4res(status);
  }
  xdr::RENAME4resok ok;
  ok.source_cinfo = change_info(done->from_before, done->from);
  ok.target_cinfo = change_info(done->to_before, done->to);
  compound.known = done->to;
  co_return xdr::RENAME4res(ok);
}

Awaitable<xdr::LINK4res> link(Compound& compound, xdr::LINK4args args) {
  const Object& file = *compound.saved;
  const Object& directory = *compound.current;
  xdr::nfsstat4 good = check_component(args.newname.value, compound.utf8());
  if (good == xdr::NFS4_OK) good = check_same_export(file, directory);
  if (good == xdr::NFS4_OK) good = compound.check_writable();
  if (good != xdr::NFS4_OK) co_return xdr::LINK4res(good);
  const bool source_is_directory = co_await is_directory(compound, file);
  if (source_is_directory) co_return xdr::LINK4res(xdr::NFS4ERR_ISDIR);
  const auto done = co_await directory.filesystem().link(
      compound.caller(directory), file.id, directory.id, std::move(args.newname.value));
  if (!done) co_return xdr::LINK4res(status_of(done.error()));
  compound.known = done->directory;
  co_return xdr::LINK4res(change_info(done->directory_before, done->directory));
}

}  // namespace selvage::server::nfs4
