#include "server/nfs3/program.h"

#include "server/nfs3/procedures.h"
#include "xdr/nfs3.h"
#include "xdr/stream.h"

#include <array>

namespace selvage::server::nfs3 {
namespace {

/// By procedure number. What changes something is held in the duplicate request cache; COMMIT is
/// not: done twice it does the same.
constexpr std::array<rpc::Procedure, 22> procedures{{
    {"NULL", null, false},     {"GETATTR", getattr, false}, {"SETATTR", setattr, true},
    {"LOOKUP", lookup, false}, {"ACCESS", access, false},   {"READLINK", readlink, false},
    {"READ", read, false},     {"WRITE", write, true},      {"CREATE", create, true},
    {"MKDIR", mkdir, true},    {"SYMLINK", symlink, true},  {"MKNOD", mknod, true},
    {"REMOVE", remove, true},  {"RMDIR", rmdir, true},      {"RENAME", rename, true},
    {"LINK", link, true},      {"READDIR", readdir, false}, {"READDIRPLUS", readdirplus, false},
    {"FSSTAT", fsstat, false}, {"FSINFO", fsinfo, false},   {"PATHCONF", pathconf, false},
    {"COMMIT", commit, false},
}};

}  // namespace

Awaitable<Reply> null(void* /*service*/, Call& /*call*/) {
  co_return Reply{};
}

std::optional<rpc::PayloadPlace> find_payload(std::uint32_t procedure,
                                              std::span<const std::byte> head) {
  if (procedure != xdr::NFSPROC3_WRITE) return std::nullopt;
  xdr::Source source(head);
  std::uint32_t handle_bytes = 0;
  if (!source.get(handle_bytes) || handle_bytes > xdr::NFS3_FHSIZE) return std::nullopt;
  std::span<const std::byte> handle;
  std::uint64_t offset = 0;
  std::uint32_t count = 0, stable = 0, length = 0;
  if (!source.view_opaque(handle_bytes, handle) || !source.get(offset) || !source.get(count) ||
      !source.get(stable) || !source.get(length) || length == 0 || length > xdr::nfs3_payload_max) {
    return std::nullopt;
  }
  rpc::PayloadPlace place{};
  place.position = source.position();
  place.length = length;
  place.file_offset = offset;
  return place;
}

rpc::Program program(Service& service) {
  rpc::Program program{};
  program.number = xdr::NFS_PROGRAM;
  program.version = xdr::NFS_V3;
  program.name = "NFSv3";
  program.procedures = procedures;
  program.find_payload = find_payload;
  program.service = &service;
  return program;
}

}  // namespace selvage::server::nfs3
