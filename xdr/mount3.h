// The MOUNT protocol, program 100005: version 3 (RFC 1813, Appendix I) and version 1 (RFC 1094,
// Appendix A). NULL and UMNTALL have neither arguments nor results, UMNT has no results.
#pragma once

#include "xdr/types.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace selvage::xdr {

inline constexpr std::uint32_t MOUNT_PROGRAM = 100005;
inline constexpr std::uint32_t MOUNT_V1 = 1;
inline constexpr std::uint32_t MOUNT_V3 = 3;
inline constexpr std::uint32_t MNTPATHLEN = 1024;
inline constexpr std::uint32_t MNTNAMLEN = 255;
inline constexpr std::uint32_t FHSIZE3 = 64;
inline constexpr std::size_t FHSIZE = 32;

/// The same numbers in versions 1 and 3.
enum mountproc : std::uint32_t {
  MOUNTPROC_NULL = 0,
  MOUNTPROC_MNT = 1,
  MOUNTPROC_DUMP = 2,
  MOUNTPROC_UMNT = 3,
  MOUNTPROC_UMNTALL = 4,
  MOUNTPROC_EXPORT = 5,
};

enum mountstat3 : std::uint32_t {
  MNT3_OK = 0,
  MNT3ERR_PERM = 1,
  MNT3ERR_NOENT = 2,
  MNT3ERR_IO = 5,
  MNT3ERR_ACCES = 13,
  MNT3ERR_NOTDIR = 20,
  MNT3ERR_INVAL = 22,
  MNT3ERR_NAMETOOLONG = 63,
  MNT3ERR_NOTSUPP = 10004,
  MNT3ERR_SERVERFAULT = 10006,
};

using fhandle3 = Opaque<FHSIZE3>;
using dirpath = String<MNTPATHLEN>;
using name = String<MNTNAMLEN>;

/// MNT and UMNT.
struct dirpath_args {
  dirpath path;
};

struct mountres3_ok {
  fhandle3 fhandle;
  List<std::uint32_t, 64> auth_flavors;  ///< RFC 1813 sets no bound.
};
using mountres3 = Union<mountstat3, Case<mountres3_ok, MNT3_OK>, Default<Void>>;

/// Version 1: exactly FHSIZE bytes; the error is a UNIX errno.
struct fhandle {
  std::array<std::uint8_t, FHSIZE> bytes{};
};
using fhstatus = Union<std::uint32_t, Case<fhandle, std::uint32_t{0}>, Default<Void>>;

/// DUMP.
struct mountbody {
  name ml_hostname;
  dirpath ml_directory;
};
struct mountlist {
  Chain<mountbody> entries;
};

/// EXPORT.
struct groupnode {
  name gr_name;
};
struct exportnode {
  dirpath ex_dir;
  Chain<groupnode> ex_groups;
};
struct exports {
  Chain<exportnode> entries;
};

}  // namespace selvage::xdr
