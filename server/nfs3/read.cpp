// READ (RFC 1813, 3.3.6).
#include "server/nfs3/procedures.h"

#include <algorithm>
#include <cerrno>

namespace selvage::server::nfs3 {

Awaitable<Reply> read(void* service, Call& call) {
  xdr::READ3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.file);
  if (!target) co_return answer(xdr::READ3res(status_of(target.error())));
  const storage::Caller caller = target->caller(call);

  // Nothing lies beyond the highest offset: what is asked there is the end of the file, not an
  // error.
  const std::uint64_t offset = std::min<std::uint64_t>(args.offset, max_offset);
  const auto count = static_cast<std::uint32_t>(
      std::min<std::uint64_t>({args.count, xdr::nfs3_payload_max, max_offset - offset}));
  auto got = co_await target->filesystem().read(caller, target->object, offset, count,
                                                storage::ReadMemory::pool);
  if (!got) {
    xdr::READ3resfail fail;
    fail.file_attributes = co_await current_attributes(*target, caller);
    // RFC 1813 has no NFS3ERR_ISDIR for READ: anything but a regular file is NFS3ERR_INVAL.
    auto error = got.error();
    if (error == storage::errno_code(EISDIR)) error = storage::errno_code(EINVAL);
    co_return answer(xdr::READ3res(status_of(error), fail));
  }
  xdr::READ3resok ok;
  ok.file_attributes = target->post_op(got->after);
  ok.count = static_cast<std::uint32_t>(got->data.size());
  ok.eof = got->eof;
  ok.data.bytes = got->data;
  Reply reply = answer(xdr::READ3res(ok));
  reply.payload_owner = std::move(got->buffer);
  co_return reply;
}

}  // namespace selvage::server::nfs3
