#include "server/nfs4/program.h"

#include "server/nfs4/engine.h"
#include "xdr/nfs41_ops.h"
#include "xdr/nfs4_ops.h"

#include <array>

namespace selvage::server::nfs4 {
namespace {

Awaitable<rpc::Reply> null(void* /*service*/, Call& /*call*/) {
  co_return rpc::Reply{};
}

constexpr std::array<rpc::Procedure, 2> procedures{{
    {"NULL", null, false},
    {"COMPOUND", compound, false, changes_something},
}};

bool skip(xdr::Source& source, std::size_t bytes) {
  std::span<const std::byte> view;
  return source.view_opaque(bytes, view);
}

bool skip_counted(xdr::Source& source, std::uint32_t most) {
  std::uint32_t bytes = 0;
  return source.get(bytes) && bytes <= most && skip(source, bytes);
}

bool skip_bitmap(xdr::Source& source) {
  std::uint32_t words = 0;
  return source.get(words) && words <= xdr::nfs4_bitmap_max && skip(source, std::size_t{4} * words);
}

struct Head {
  std::uint32_t minor = 0;
  std::uint32_t operations = 0;
};

bool read_head(xdr::Source& source, Head& head) {
  return skip_counted(source, xdr::nfs4_text_max) && source.get(head.minor) &&
         source.get(head.operations);
}

/// The arguments of an operation that changes nothing; false for every other, and if they are not
/// all there.
bool skip_harmless(xdr::Source& source, std::uint32_t operation) {
  constexpr std::size_t stateid_bytes = 16;
  switch (operation) {
    case xdr::OP_SEQUENCE:
      return skip(source, xdr::NFS4_SESSIONID_SIZE + 16);
    case xdr::OP_PUTFH:
      return skip_counted(source, xdr::NFS4_FHSIZE);
    case xdr::OP_PUTROOTFH:
    case xdr::OP_PUTPUBFH:
    case xdr::OP_GETFH:
    case xdr::OP_SAVEFH:
    case xdr::OP_RESTOREFH:
    case xdr::OP_LOOKUPP:
    case xdr::OP_READLINK:
      return true;
    case xdr::OP_ACCESS:
      return skip(source, 4);
    case xdr::OP_RENEW:
      return skip(source, 8);
    case xdr::OP_COMMIT:
      return skip(source, 12);
    case xdr::OP_GETATTR:
      return skip_bitmap(source);
    case xdr::OP_LOOKUP:
      return skip_counted(source, xdr::nfs4_name_max);
    case xdr::OP_READ:
      return skip(source, stateid_bytes + 12);
    case xdr::OP_READDIR:
      return skip(source, 24) && skip_bitmap(source);
    default:
      return false;
  }
}

}  // namespace

std::optional<rpc::PayloadPlace> find_payload(std::uint32_t procedure,
                                              std::span<const std::byte> head) {
  if (procedure != xdr::NFSPROC4_COMPOUND) return std::nullopt;
  xdr::Source source(head);
  Head compound;
  if (!read_head(source, compound)) return std::nullopt;
  std::uint32_t operation = 0;
  do {
    if (!source.get(operation)) return std::nullopt;
    // READ wants memory of its own while the payload's is held.
    if (operation == xdr::OP_READ || operation == xdr::OP_READDIR) return std::nullopt;
  } while (operation != xdr::OP_WRITE && skip_harmless(source, operation));
  xdr::stateid4 stateid;
  std::uint64_t offset = 0;
  std::uint32_t stable = 0;
  std::uint32_t length = 0;
  if (operation != xdr::OP_WRITE || !xdr::decode(source, stateid) || !source.get(offset) ||
      !source.get(stable) || !source.get(length) || length == 0 || length > xdr::nfs4_payload_max) {
    return std::nullopt;
  }
  rpc::PayloadPlace place{};
  place.position = source.position();
  place.length = length;
  place.file_offset = offset;
  return place;
}

bool changes_something(xdr::Source arguments) {
  Head head;
  if (!read_head(arguments, head) || head.minor != 0) return false;
  for (std::uint32_t i = 0; i < head.operations; ++i) {
    std::uint32_t operation = 0;
    if (!arguments.get(operation)) return false;
    if (!skip_harmless(arguments, operation)) return true;
  }
  return false;
}

rpc::Program program(Service& service) {
  rpc::Program program{};
  program.number = xdr::NFS4_PROGRAM;
  program.version = xdr::NFS_V4;
  program.name = "NFSv4";
  program.procedures = procedures;
  program.find_payload = find_payload;
  program.service = &service;
  return program;
}

}  // namespace selvage::server::nfs4
