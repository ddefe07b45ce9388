// What the comparisons of NFSv4's minor versions with rpcgen's code have in common.
#pragma once

#include "xdr/nfs4_ops.h"

#include "generate.h"

#include "members.h"
#include "reference.h"

#include "reference/nfs4.h"

#include <deque>
#include <memory>

namespace selvage::xdr {

#define RESULT(type, resok)                                              \
  inline void convert(const type& from, ::type& to) {                    \
    convert(from.tag, to.status);                                        \
    if (auto* ok = from.get_if<resok>()) convert(*ok, (to.type##_u).ok); \
  }

/// An arm of a union; `member` is the reference's.
#define ARM(body, type, member) \
  if (auto* arm = from.get_if<body>()) convert(*arm, to.type##_u.member);

/// The reference's `struct { u_int x_len; X* x_val; }` of structures or enums.
template <class T, std::uint32_t Max, class Counted>
  requires(!std::is_same_v<T, std::uint32_t>)
void convert(const List<T, Max>& from, Counted& to) {
  auto& [length, value] = to;
  using Item = std::remove_pointer_t<std::remove_reference_t<decltype(value)>>;
  static std::deque<std::unique_ptr<Item[]>> arrays;
  arrays.push_back(std::make_unique<Item[]>(from.items.size()));
  length = static_cast<u_int>(from.items.size());
  value = arrays.back().get();
  for (std::size_t i = 0; i < from.items.size(); ++i) convert(from.items[i], value[i]);
}

inline void convert(const nfs_fh4& from, ::nfs_fh4& to) {
  convert(from.data, to);
}

STRUCT(fsid4, 2, major, minor)
STRUCT(specdata4, 2, specdata1, specdata2)
STRUCT(nfstime4, 2, seconds, nseconds)
STRUCT(change_info4, 3, atomic, before, after)
STRUCT(stateid4, 2, seqid, other)
STRUCT(fattr4, 2, attrmask, attr_vals)
STRUCT(state_owner4, 2, clientid, owner)
STRUCT(netaddr4, 2, na_r_netid, na_r_addr)

}  // namespace selvage::xdr
