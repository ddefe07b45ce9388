// READDIR and READDIRPLUS (RFC 1813, 3.3.16, 3.3.17).
//
// Cookies are the file system's own and stay valid while a directory changes, so that the cookie
// verifier is always zero.
#include "server/nfs3/procedures.h"

#include <algorithm>
#include <cerrno>
#include <vector>

namespace selvage::server::nfs3 {
namespace {

/// Bytes of a reply at most, whatever the client asks for: many such replies may wait in memory for
/// clients that do not take them, and each keeps a thread busy.
constexpr std::uint32_t max_reply_bytes = 64U << 10;

/// Of READDIR3resok and READDIRPLUS3resok without entries: directory attributes, cookie verifier,
/// the end of the list and eof. The attributes are counted even though they could be absent.
constexpr std::uint32_t empty_reply_bytes = (4 + 84) + 8 + 4 + 4;

/// A client that passes a verifier that we never gave has its cookie from somebody else.
Result<> check_cookie(std::uint64_t cookie, const xdr::cookieverf3& verifier) {
  if (cookie != 0 && verifier != xdr::cookieverf3{}) {
    return storage::ErrorCode(storage::Errc::bad_cookie);
  }
  return {};
}

/// How much of a reply is left.
class Room {
 public:
  explicit Room(std::uint32_t bytes) : left_(std::min(bytes, max_reply_bytes)) {}
  bool take(std::size_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

 private:
  std::size_t left_;
};

/// Bytes of directory information in an entry: fileid, name, cookie.
std::size_t information_bytes(const std::string& name) {
  return 8 + 4 + name.size() + xdr::padding(name.size()) + 8;
}

/// Nothing above the export is shown: the root is its own parent, and without a handle.
void hide_parent(const Target& target, std::uint64_t root_fileid, storage::DirectoryEntry& entry) {
  if (entry.name != ".." || !target.is_root()) return;
  entry.fileid = root_fileid;
  entry.node.reset();
}

/// The fileid that hide_parent() puts in; not looked for where it is not needed.
Awaitable<Result<std::uint64_t>> root_fileid(const Target& target, storage::Caller caller) {
  if (!target.is_root()) co_return std::uint64_t{0};
  const auto attributes = co_await target.filesystem().getattr(caller, target.object);
  if (!attributes) co_return attributes.error();
  co_return attributes->fileid;
}

Awaitable<Result<xdr::READDIR3resok>> list(const Target& target, storage::Caller caller,
                                           const xdr::READDIR3args& args) {
  if (const auto good = check_cookie(args.cookie, args.cookieverf); !good) co_return good.error();
  const auto root = co_await root_fileid(target, caller);
  if (!root) co_return root.error();
  xdr::READDIR3resok ok;
  auto& entries = ok.reply.entries.items;
  Room room(args.count);
  const bool holds_empty_reply = room.take(empty_reply_bytes);
  bool full = false;
  storage::EntrySink sink = [&](storage::DirectoryEntry&& entry) {
    hide_parent(target, *root, entry);
    full = !room.take(4 + information_bytes(entry.name));
    if (full) return false;
    xdr::entry3& wire = entries.emplace_back();
    wire.fileid = entry.fileid;
    wire.name.value = std::move(entry.name);
    wire.cookie = entry.cookie;
    return true;
  };
  if (!holds_empty_reply) co_return storage::ErrorCode(storage::Errc::too_small);
  const auto done = co_await target.filesystem().readdir(caller, target.object, args.cookie, false,
                                                         std::move(sink));
  if (!done) co_return done.error();
  if (entries.empty() && full) co_return storage::ErrorCode(storage::Errc::too_small);
  ok.reply.eof = done->end;
  ok.dir_attributes = target.post_op(done->directory);
  co_return ok;
}

Awaitable<Result<xdr::READDIRPLUS3resok>> list_plus(const void* service, const Target& target,
                                                    storage::Caller caller,
                                                    const xdr::READDIRPLUS3args& args) {
  if (const auto good = check_cookie(args.cookie, args.cookieverf); !good) co_return good.error();
  const auto root = co_await root_fileid(target, caller);
  if (!root) co_return root.error();
  xdr::READDIRPLUS3resok ok;
  auto& entries = ok.reply.entries.items;
  Room room(args.maxcount);
  Room information(args.dircount);
  const bool holds_empty_reply = room.take(empty_reply_bytes);
  bool full = false;
  storage::EntrySink sink = [&](storage::DirectoryEntry&& entry) {
    hide_parent(target, *root, entry);
    xdr::entryplus3 wire;
    wire.fileid = entry.fileid;
    wire.cookie = entry.cookie;
    std::size_t bytes = 4 + information_bytes(entry.name) + 4 + 4;
    if (entry.node) {
      wire.name_attributes = target.post_op(entry.node->attributes);
      wire.name_handle = handle_of(service, target, entry.node->id);
      const std::size_t handle = wire.name_handle->data.size();
      bytes += 84 + 4 + handle + xdr::padding(handle);
    }
    full = !information.take(information_bytes(entry.name)) || !room.take(bytes);
    if (full) return false;
    wire.name.value = std::move(entry.name);
    entries.push_back(std::move(wire));
    return true;
  };
  if (!holds_empty_reply) co_return storage::ErrorCode(storage::Errc::too_small);
  const auto done = co_await target.filesystem().readdir(caller, target.object, args.cookie, true,
                                                         std::move(sink));
  if (!done) co_return done.error();
  if (entries.empty() && full) co_return storage::ErrorCode(storage::Errc::too_small);
  ok.reply.eof = done->end;
  ok.dir_attributes = target.post_op(done->directory);
  co_return ok;
}

}  // namespace

Awaitable<Reply> readdir(void* service, Call& call) {
  xdr::READDIR3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.dir);
  if (!target) co_return answer(xdr::READDIR3res(status_of(target.error())));
  const storage::Caller caller = target->caller(call);
  auto listed = co_await list(*target, caller, args);
  if (!listed) {
    xdr::READDIR3resfail fail;
    fail.dir_attributes = co_await current_attributes(*target, caller);
    co_return answer(xdr::READDIR3res(status_of(listed.error()), fail));
  }
  co_return answer(xdr::READDIR3res(std::move(*listed)));
}

Awaitable<Reply> readdirplus(void* service, Call& call) {
  xdr::READDIRPLUS3args args;
  if (!decode_arguments(call, args)) co_return garbage_args();
  const auto target = resolve(service, call, args.dir);
  if (!target) co_return answer(xdr::READDIRPLUS3res(status_of(target.error())));
  const storage::Caller caller = target->caller(call);
  auto listed = co_await list_plus(service, *target, caller, args);
  if (!listed) {
    xdr::READDIRPLUS3resfail fail;
    fail.dir_attributes = co_await current_attributes(*target, caller);
    co_return answer(xdr::READDIRPLUS3res(status_of(listed.error()), fail));
  }
  co_return answer(xdr::READDIRPLUS3res(std::move(*listed)));
}

}  // namespace selvage::server::nfs3
