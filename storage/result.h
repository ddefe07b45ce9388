// Expected failures are values: Result<T> holds a T or an error code.
//
// Failures of the kernel carry their errno in the system category. What no errno says exactly is
// an Errc. server/nfs3 and server/nfs4 map both to protocol status in one function each.
#pragma once

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <string>

namespace selvage::storage {

using ErrorCode = boost::system::error_code;

template <class T = void>
using Result = boost::system::result<T, ErrorCode>;

/// An errno value as an error code.
inline ErrorCode errno_code(int error) {
  return {error, boost::system::system_category()};
}

enum class Errc {
  bad_handle = 1,  ///< A file handle that this server did not make, or damaged (NFS3ERR_BADHANDLE).
  not_sync,        ///< A guard did not match: the object has changed (NFS3ERR_NOT_SYNC).
  bad_cookie,      ///< A READDIR cookie that is not valid (NFS3ERR_BAD_COOKIE).
  bad_type,        ///< A type of object that cannot be made (NFS3ERR_BADTYPE).
  too_small,       ///< The caller's buffer holds not even one entry (NFS3ERR_TOOSMALL).
  bad_name,        ///< A name with '/' or NUL in it, or empty (NFS3ERR_INVAL).
  reserved_name,   ///< "." or ".." where a real name is needed.
};

const boost::system::error_category& storage_category();
inline ErrorCode make_error_code(Errc e) {
  return {static_cast<int>(e), storage_category()};
}

}  // namespace selvage::storage

template <>
struct boost::system::is_error_code_enum<selvage::storage::Errc> : std::true_type {};
