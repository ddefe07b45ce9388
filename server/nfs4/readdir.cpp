// READDIR (RFC 7530, 16.24; RFC 8881, 18.23).
//
// Cookies are the file system's own and stay valid while a directory changes, so that the cookie
// verifier is always zero. "." and ".." are not listed, which leaves 1 and 2 unused, as the RFCs
// want it.
#include "server/nfs4/facts.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/owner_lookup.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace selvage::server::nfs4 {
namespace {

constexpr std::uint64_t last_reserved_cookie = 2;
/// READDIR4resok without entries: cookie verifier, the end of the list and eof.
constexpr std::size_t empty_reply_bytes = 8 + 4 + 4;
constexpr std::size_t max_reply_bytes = 1U << 20;

// What a listing without a look at each object can say.
const AttributeSet& listed_attributes() {
  static const AttributeSet set{FATTR4_RDATTR_ERROR, FATTR4_FILEID, FATTR4_MOUNTED_ON_FILEID};
  return set;
}

xdr::nfsstat4 check_cookie(const xdr::READDIR4args& args) {
  if (args.cookie == 0) return xdr::NFS4_OK;
  if (args.cookie <= last_reserved_cookie) return xdr::NFS4ERR_BAD_COOKIE;
  return args.cookieverf == xdr::verifier4{} ? xdr::NFS4_OK : xdr::NFS4ERR_NOT_SAME;
}

// The entries of one reply, as many as fit.
class Listing {
 public:
  Listing(const xdr::READDIR4args& args, std::size_t room)
      : left_(std::min<std::size_t>({args.maxcount, room, max_reply_bytes})),
        // A client that does not care says 0 (RFC 7530, 16.24.4).
        information_left_(args.dircount == 0 ? max_reply_bytes : args.dircount) {
    fits_empty_ = left_ >= empty_reply_bytes;
    left_ -= fits_empty_ ? empty_reply_bytes : left_;
  }

  bool add(std::uint64_t cookie, std::string name, xdr::fattr4 attributes) {
    const std::size_t name_bytes = 4 + name.size() + xdr::padding(name.size());
    const std::size_t bytes = 4 + 8 + name_bytes + xdr::encoded_size(attributes);
    const bool first = entries_.empty();
    full_ = bytes > left_ || (!first && 8 + name_bytes > information_left_);
    if (full_) return false;
    left_ -= bytes;
    information_left_ -= std::min(information_left_, 8 + name_bytes);
    xdr::entry4& entry = entries_.emplace_back();
    entry.cookie = cookie;
    entry.name.value = std::move(name);
    entry.attrs = std::move(attributes);
    return true;
  }

  bool too_small() const { return !fits_empty_ || (entries_.empty() && full_); }
  xdr::READDIR4resok result(bool eof) {
    xdr::READDIR4resok ok;
    ok.reply.entries.items = std::move(entries_);
    ok.reply.eof = eof;
    return ok;
  }

 private:
  std::vector<xdr::entry4> entries_;
  std::size_t left_;
  std::size_t information_left_;
  bool fits_empty_ = false;
  bool full_ = false;
};

/// By name: what is shown instead of the directories under which other exports begin.
using Junctions = std::map<std::string, xdr::fattr4, std::less<>>;

Awaitable<Junctions> junctions_of(Compound& compound, const PathNode& node,
                                  const AttributeSet& wanted) {
  Junctions junctions;
  for (const auto& [name, child] : node.children) {
    if (child->inside != nullptr) continue;
    const auto object = compound.enter(*child);
    if (!object) continue;
    const auto facts = co_await facts_of(compound, *object, wanted);
    if (facts) {
      junctions[name] = encode_attributes(wanted, *facts);
    } else {
      Facts none;
      none.minor = compound.minor;
      none.rdattr_error = facts.status();
      junctions[name] = encode_attributes(wanted & AttributeSet{FATTR4_RDATTR_ERROR}, none);
    }
  }
  co_return junctions;
}

// Cookies count from behind the reserved ones, in the order of the names.
xdr::READDIR4res list_pseudo(Junctions junctions, const xdr::READDIR4args& args, Listing& listing) {
  std::uint64_t cookie = last_reserved_cookie;
  bool eof = true;
  for (auto& [name, attributes] : junctions) {
    ++cookie;
    if (cookie <= args.cookie) continue;
    eof = listing.add(cookie, name, std::move(attributes));
    if (!eof) break;
  }
  if (listing.too_small()) return xdr::READDIR4res(xdr::NFS4ERR_TOOSMALL);
  return xdr::READDIR4res(listing.result(eof));
}

xdr::fattr4 attributes_of(const Compound& compound, const Object& directory,
                          const storage::DirectoryEntry& entry, const AttributeSet& wanted) {
  if (entry.node) {
    const Object object = compound.in_export_of(directory, entry.node->id);
    Facts facts = facts_with(compound, object, entry.node->attributes);
    name_owners_here(compound.service.owners, wanted, facts);
    return encode_attributes(wanted, facts);
  }
  Facts facts;
  facts.minor = compound.minor;
  facts.attributes.fileid = facts.mounted_on_fileid = entry.fileid;
  AttributeSet given = wanted & listed_attributes();
  // It was there when the directory was read; what it is now cannot be told.
  if (!wanted.within(listed_attributes())) {
    facts.rdattr_error = xdr::NFS4ERR_NOENT;
    given = wanted & AttributeSet{FATTR4_RDATTR_ERROR};
  }
  return encode_attributes(given, facts);
}

}  // namespace

Awaitable<xdr::READDIR4res> readdir(Compound& compound, xdr::READDIR4args args) {
  const Object& directory = *compound.current;
  const AttributeSet wanted(args.attr_request);
  if (wanted.any_of({FATTR4_TIME_ACCESS_SET, FATTR4_TIME_MODIFY_SET})) {
    co_return xdr::READDIR4res(xdr::NFS4ERR_INVAL);
  }
  const xdr::nfsstat4 good = check_cookie(args);
  if (good != xdr::NFS4_OK) co_return xdr::READDIR4res(good);
  Listing listing(args,
                  compound.max_results - std::min(compound.max_results, compound.results.size()));
  const PathNode* node = directory.node;
  if (node == nullptr) node = compound.names->at(*directory.served, directory.id);
  Junctions junctions;
  if (node != nullptr) junctions = co_await junctions_of(compound, *node, wanted);
  if (directory.pseudo()) co_return list_pseudo(std::move(junctions), args, listing);
  if (listing.too_small()) co_return xdr::READDIR4res(xdr::NFS4ERR_TOOSMALL);

  // On a pool thread, for each entry; the coroutine waits meanwhile.
  storage::EntrySink sink = [&](storage::DirectoryEntry&& entry) {
    if (entry.name == "." || entry.name == "..") return true;
    const auto junction = junctions.find(entry.name);
    xdr::fattr4 attributes = junction != junctions.end()
                                 ? junction->second
                                 : attributes_of(compound, directory, entry, wanted);
    return listing.add(entry.cookie, std::move(entry.name), std::move(attributes));
  };
  const bool with_nodes =
      !(wanted & supported_attributes(compound.minor)).within(listed_attributes());
  const auto done = co_await directory.filesystem().readdir(
      compound.caller(directory), directory.id, args.cookie, with_nodes, std::move(sink));
  if (!done) co_return xdr::READDIR4res(status_of(done.error()));
  if (listing.too_small()) co_return xdr::READDIR4res(xdr::NFS4ERR_TOOSMALL);
  co_return xdr::READDIR4res(listing.result(done->end));
}

}  // namespace selvage::server::nfs4
