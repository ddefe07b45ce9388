// FSSTAT, FSINFO and PATHCONF (RFC 1813, 3.3.18 to 3.3.20).
#include "server/nfs3/procedures.h"

#include <algorithm>

namespace selvage::server::nfs3 {
namespace {

/// What Linux takes for rsize and wsize when it is not told.
constexpr std::uint32_t preferred_io_bytes = 1U << 20;
constexpr std::uint32_t io_multiple_bytes = 4096;
constexpr std::uint32_t preferred_readdir_bytes = 64U << 10;

}  // namespace

Awaitable<Reply> fsstat(void* service, Call& call) {
  xdr::FSSTAT3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.fsroot);
  if (!target) co_return answer(xdr::FSSTAT3res(status_of(target.error())));
  const storage::Caller caller = target->caller(call);
  const auto usage = co_await target->filesystem().usage(caller, target->object);
  const auto attributes = co_await current_attributes(*target, caller);
  if (!usage) {
    xdr::FSSTAT3resfail fail;
    fail.obj_attributes = attributes;
    co_return answer(xdr::FSSTAT3res(status_of(usage.error()), fail));
  }
  xdr::FSSTAT3resok ok;
  ok.obj_attributes = attributes;
  ok.tbytes = usage->total_bytes;
  ok.fbytes = usage->free_bytes;
  ok.abytes = usage->available_bytes;
  ok.tfiles = usage->total_files;
  ok.ffiles = usage->free_files;
  ok.afiles = usage->available_files;
  co_return answer(xdr::FSSTAT3res(ok));
}

Awaitable<Reply> fsinfo(void* service, Call& call) {
  xdr::FSINFO3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.fsroot);
  if (!target) co_return answer(xdr::FSINFO3res(status_of(target.error())));
  const storage::Caller caller = target->caller(call);
  const auto limits = co_await target->filesystem().limits(caller, target->object);
  const auto attributes = co_await current_attributes(*target, caller);
  if (!limits) {
    xdr::FSINFO3resfail fail;
    fail.obj_attributes = attributes;
    co_return answer(xdr::FSINFO3res(status_of(limits.error()), fail));
  }
  xdr::FSINFO3resok ok;
  ok.obj_attributes = attributes;
  ok.rtmax = ok.wtmax = xdr::nfs3_payload_max;
  ok.rtpref = ok.wtpref = preferred_io_bytes;
  ok.rtmult = ok.wtmult = io_multiple_bytes;
  ok.dtpref = preferred_readdir_bytes;
  ok.maxfilesize = std::min<std::uint64_t>(limits->max_file_size, max_offset);
  ok.time_delta.nseconds = 1;
  ok.properties = xdr::FSF3_LINK | xdr::FSF3_SYMLINK | xdr::FSF3_HOMOGENEOUS | xdr::FSF3_CANSETTIME;
  co_return answer(xdr::FSINFO3res(ok));
}

Awaitable<Reply> pathconf(void* service, Call& call) {
  xdr::PATHCONF3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.object);
  if (!target) co_return answer(xdr::PATHCONF3res(status_of(target.error())));
  const storage::Caller caller = target->caller(call);
  const auto limits = co_await target->filesystem().limits(caller, target->object);
  const auto attributes = co_await current_attributes(*target, caller);
  if (!limits) {
    xdr::PATHCONF3resfail fail;
    fail.obj_attributes = attributes;
    co_return answer(xdr::PATHCONF3res(status_of(limits.error()), fail));
  }
  xdr::PATHCONF3resok ok;
  ok.obj_attributes = attributes;
  ok.linkmax = limits->max_links;
  ok.name_max = limits->max_name;
  ok.no_trunc = true;
  ok.chown_restricted = true;
  ok.case_insensitive = false;
  ok.case_preserving = true;
  co_return answer(xdr::PATHCONF3res(ok));
}

}  // namespace selvage::server::nfs3
