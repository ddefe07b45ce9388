#include "server/mount3/program.h"

#include "server/mount3/path.h"
#include "server/rpc/arguments.h"
#include "storage/filesystem.h"
#include "xdr/mount3.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace selvage::server::mount3 {
namespace {

using rpc::Awaitable;
using rpc::Call;
using rpc::decode_arguments;
using rpc::garbage_args;
using rpc::Reply;
using storage::Result;

Service& self(void* service) {
  return *static_cast<Service*>(service);
}

template <class Results>
Reply answer(const Results& results) {
  Reply reply;
  xdr::encode(reply.results, results);
  return reply;
}

/// The directory that `below` names under the export, walked as the client.
Awaitable<Result<storage::ObjectId>> walk(const Export& served, const AccessRule& rule, Call& call,
                                          std::string_view below) {
  const auto credentials = credentials_for(served, rule, call.auth_sys);
  const storage::Caller caller{call.worker, credentials};
  auto at = served.filesystem->root();
  const auto top = co_await served.filesystem->getattr(caller, at);
  if (!top) co_return top.error();
  auto type = top->type;
  for (const auto& name : names_of(below)) {
    if (type != storage::FileType::directory) co_return storage::errno_code(ENOTDIR);
    const auto found = co_await served.filesystem->lookup(caller, at, name);
    if (!found) co_return found.error();
    at = found->node.id;
    type = found->node.attributes.type;
  }
  if (type != storage::FileType::directory) co_return storage::errno_code(ENOTDIR);
  co_return at;
}

/// The handle of what a client wants to mount, and a note for DUMP.
Awaitable<Result<std::vector<std::uint8_t>>> mount(Service& service, Call& call,
                                                   const std::string& asked) {
  const auto path = normalised(asked);
  if (!path) co_return storage::errno_code(ENOENT);
  const auto table = service.exports.get();
  const auto covering = table->covering(*path);
  if (covering.found == nullptr) co_return storage::errno_code(ENOENT);
  const AccessRule* rule = covering.found->rule_for(call.client);
  if (rule == nullptr || (rule->secure && !reserved_port(call.client_port))) {
    co_return storage::errno_code(EACCES);
  }
  const auto directory = co_await walk(*covering.found, *rule, call, covering.below);
  if (!directory) co_return directory.error();
  MountList::Entry entry{call.client.to_string(), *path};
  service.mounts.add(std::move(entry));
  co_return service.handles.encode(covering.found->id, *directory);
}

/// What version 1 answers is an errno itself.
int errno_of(const storage::ErrorCode& error) {
  if (error.category() != boost::system::system_category()) return EIO;
  switch (error.value()) {
    case ESTALE:
      return ENOENT;  // The export's directory is gone.
    case EXDEV:
      return EACCES;  // Another file system is mounted there.
    default:
      return error.value();
  }
}

xdr::mountstat3 status_of(const storage::ErrorCode& error) {
  switch (errno_of(error)) {
    case EPERM:
      return xdr::MNT3ERR_PERM;
    case ENOENT:
      return xdr::MNT3ERR_NOENT;
    case EIO:
      return xdr::MNT3ERR_IO;
    case EACCES:
      return xdr::MNT3ERR_ACCES;
    case ENOTDIR:
      return xdr::MNT3ERR_NOTDIR;
    case EINVAL:
      return xdr::MNT3ERR_INVAL;
    case ENAMETOOLONG:
      return xdr::MNT3ERR_NAMETOOLONG;
    case EOPNOTSUPP:
      return xdr::MNT3ERR_NOTSUPP;
    default:
      return xdr::MNT3ERR_SERVERFAULT;
  }
}

Awaitable<Reply> null(void* /*service*/, Call& /*call*/) {
  co_return Reply{};
}

Awaitable<Reply> mnt_v3(void* service, Call& call) {
  xdr::dirpath_args arguments;
  if (!decode_arguments(call, arguments)) co_return garbage_args();
  const auto handle = co_await mount(self(service), call, arguments.path.value);
  if (!handle) co_return answer(xdr::mountres3(status_of(handle.error())));
  xdr::mountres3_ok ok;
  ok.fhandle = xdr::fhandle3(*handle);
  ok.auth_flavors.items = {static_cast<std::uint32_t>(xdr::auth_flavor::sys),
                           static_cast<std::uint32_t>(xdr::auth_flavor::none)};
  co_return answer(xdr::mountres3(std::move(ok)));
}

Awaitable<Reply> mnt_v1(void* service, Call& call) {
  xdr::dirpath_args arguments;
  if (!decode_arguments(call, arguments)) co_return garbage_args();
  const auto handle = co_await mount(self(service), call, arguments.path.value);
  if (!handle) {
    co_return answer(xdr::fhstatus(static_cast<std::uint32_t>(errno_of(handle.error()))));
  }
  xdr::fhandle padded;
  if (handle->size() > padded.bytes.size()) co_return answer(xdr::fhstatus(EOPNOTSUPP));
  std::copy(handle->begin(), handle->end(), padded.bytes.begin());
  co_return answer(xdr::fhstatus(std::move(padded)));
}

Awaitable<Reply> dump(void* service, Call& /*call*/) {
  xdr::mountlist list;
  for (auto& entry : self(service).mounts.entries()) {
    xdr::mountbody body;
    body.ml_hostname.value = std::move(entry.client);
    body.ml_directory.value = std::move(entry.path);
    list.entries.items.push_back(std::move(body));
  }
  co_return answer(list);
}

Awaitable<Reply> umnt(void* service, Call& call) {
  xdr::dirpath_args arguments;
  if (!decode_arguments(call, arguments)) co_return garbage_args();
  if (auto path = normalised(arguments.path.value)) {
    const MountList::Entry entry{call.client.to_string(), std::move(*path)};
    self(service).mounts.remove(entry);
  }
  co_return Reply{};
}

Awaitable<Reply> umntall(void* service, Call& call) {
  self(service).mounts.remove_client(call.client.to_string());
  co_return Reply{};
}

/// An export for everybody has no groups: showmount(8) then says "everyone".
Awaitable<Reply> export_(void* service, Call& /*call*/) {
  const auto table = self(service).exports.get();
  xdr::exports list;
  for (const auto& one : table->all()) {
    xdr::exportnode node;
    node.ex_dir.value = one->config.path;
    const auto& rules = one->config.rules;
    const bool everybody =
        std::ranges::find(rules, ClientRule(), &AccessRule::client) != rules.end();
    for (const auto& rule : rules) {
      if (everybody) break;
      xdr::groupnode group;
      group.gr_name.value = rule.client.text();
      node.ex_groups.items.push_back(std::move(group));
    }
    list.entries.items.push_back(std::move(node));
  }
  co_return answer(list);
}

// None is held in the duplicate request cache: done twice they do the same. Of those that take no
// arguments bytes after the header are not looked at, as nothing would be done with them.
constexpr std::array<rpc::Procedure, 6> procedures_v3{{{"NULL", null, false},
                                                       {"MNT", mnt_v3, false},
                                                       {"DUMP", dump, false},
                                                       {"UMNT", umnt, false},
                                                       {"UMNTALL", umntall, false},
                                                       {"EXPORT", export_, false}}};
constexpr std::array<rpc::Procedure, 6> procedures_v1{{{"NULL", null, false},
                                                       {"MNT", mnt_v1, false},
                                                       {"DUMP", dump, false},
                                                       {"UMNT", umnt, false},
                                                       {"UMNTALL", umntall, false},
                                                       {"EXPORT", export_, false}}};

rpc::Program program(Service& service, std::uint32_t version, std::string_view name,
                     std::span<const rpc::Procedure> procedures) {
  rpc::Program program{};
  program.number = xdr::MOUNT_PROGRAM;
  program.version = version;
  program.name = name;
  program.procedures = procedures;
  program.service = &service;
  return program;
}

}  // namespace

rpc::Program program_v3(Service& service) {
  return program(service, xdr::MOUNT_V3, "MOUNTv3", procedures_v3);
}

rpc::Program program_v1(Service& service) {
  return program(service, xdr::MOUNT_V1, "MOUNTv1", procedures_v1);
}

}  // namespace selvage::server::mount3
