// Who asks: the identity under which the kernel judges an operation.
#pragma once

#include <sys/types.h>

#include <vector>

namespace selvage::storage {

/// A client's identity after squashing. Immutable for the length of a request.
struct Credentials {
  uid_t uid = 65534;
  gid_t gid = 65534;
  std::vector<gid_t> groups;  ///< Supplementary groups, sorted; AUTH_SYS carries at most 16.

  friend bool operator==(const Credentials&, const Credentials&) = default;
};

}  // namespace selvage::storage
