// NFS version 3, program 100003 (RFC 1813): every argument and result, under the RFC's names.
#pragma once

#include "xdr/types.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace selvage::xdr {

inline constexpr std::uint32_t NFS_PROGRAM = 100003;
inline constexpr std::uint32_t NFS_V3 = 3;
inline constexpr std::uint32_t NFS3_FHSIZE = 64;
inline constexpr std::size_t NFS3_COOKIEVERFSIZE = 8;
inline constexpr std::size_t NFS3_CREATEVERFSIZE = 8;
inline constexpr std::size_t NFS3_WRITEVERFSIZE = 8;

/// RFC 1813 sets no bounds on these; ours are above what any server accepts, so that a name that is
/// too long gets NFS3ERR_NAMETOOLONG and not GARBAGE_ARGS.
inline constexpr std::uint32_t nfs3_name_max = 4096;
inline constexpr std::uint32_t nfs3_path_max = 8192;
inline constexpr std::uint32_t nfs3_payload_max = 8U << 20;  ///< READ and WRITE data, bytes.

enum nfsproc3 : std::uint32_t {
  NFSPROC3_NULL = 0,
  NFSPROC3_GETATTR = 1,
  NFSPROC3_SETATTR = 2,
  NFSPROC3_LOOKUP = 3,
  NFSPROC3_ACCESS = 4,
  NFSPROC3_READLINK = 5,
  NFSPROC3_READ = 6,
  NFSPROC3_WRITE = 7,
  NFSPROC3_CREATE = 8,
  NFSPROC3_MKDIR = 9,
  NFSPROC3_SYMLINK = 10,
  NFSPROC3_MKNOD = 11,
  NFSPROC3_REMOVE = 12,
  NFSPROC3_RMDIR = 13,
  NFSPROC3_RENAME = 14,
  NFSPROC3_LINK = 15,
  NFSPROC3_READDIR = 16,
  NFSPROC3_READDIRPLUS = 17,
  NFSPROC3_FSSTAT = 18,
  NFSPROC3_FSINFO = 19,
  NFSPROC3_PATHCONF = 20,
  NFSPROC3_COMMIT = 21,
};

enum nfsstat3 : std::uint32_t {
  NFS3_OK = 0,
  NFS3ERR_PERM = 1,
  NFS3ERR_NOENT = 2,
  NFS3ERR_IO = 5,
  NFS3ERR_NXIO = 6,
  NFS3ERR_ACCES = 13,
  NFS3ERR_EXIST = 17,
  NFS3ERR_XDEV = 18,
  NFS3ERR_NODEV = 19,
  NFS3ERR_NOTDIR = 20,
  NFS3ERR_ISDIR = 21,
  NFS3ERR_INVAL = 22,
  NFS3ERR_FBIG = 27,
  NFS3ERR_NOSPC = 28,
  NFS3ERR_ROFS = 30,
  NFS3ERR_MLINK = 31,
  NFS3ERR_NAMETOOLONG = 63,
  NFS3ERR_NOTEMPTY = 66,
  NFS3ERR_DQUOT = 69,
  NFS3ERR_STALE = 70,
  NFS3ERR_REMOTE = 71,
  NFS3ERR_BADHANDLE = 10001,
  NFS3ERR_NOT_SYNC = 10002,
  NFS3ERR_BAD_COOKIE = 10003,
  NFS3ERR_NOTSUPP = 10004,
  NFS3ERR_TOOSMALL = 10005,
  NFS3ERR_SERVERFAULT = 10006,
  NFS3ERR_BADTYPE = 10007,
  NFS3ERR_JUKEBOX = 10008,
};

enum ftype3 : std::uint32_t {
  NF3REG = 1,
  NF3DIR = 2,
  NF3BLK = 3,
  NF3CHR = 4,
  NF3LNK = 5,
  NF3SOCK = 6,
  NF3FIFO = 7,
};
constexpr bool is_valid(ftype3 value) {
  return value >= NF3REG && value <= NF3FIFO;
}

using filename3 = String<nfs3_name_max>;
using nfspath3 = String<nfs3_path_max>;
using fileid3 = std::uint64_t;
using cookie3 = std::uint64_t;
using cookieverf3 = std::array<std::uint8_t, NFS3_COOKIEVERFSIZE>;
using createverf3 = std::array<std::uint8_t, NFS3_CREATEVERFSIZE>;
using writeverf3 = std::array<std::uint8_t, NFS3_WRITEVERFSIZE>;
using uid3 = std::uint32_t;
using gid3 = std::uint32_t;
using size3 = std::uint64_t;
using offset3 = std::uint64_t;
using mode3 = std::uint32_t;
using count3 = std::uint32_t;

struct specdata3 {
  std::uint32_t specdata1 = 0;
  std::uint32_t specdata2 = 0;
};

struct nfs_fh3 {
  Opaque<NFS3_FHSIZE> data;
};

struct nfstime3 {
  std::uint32_t seconds = 0;
  std::uint32_t nseconds = 0;
};

struct fattr3 {
  ftype3 type = NF3REG;
  mode3 mode = 0;
  std::uint32_t nlink = 0;
  uid3 uid = 0;
  gid3 gid = 0;
  size3 size = 0;
  size3 used = 0;
  specdata3 rdev;
  std::uint64_t fsid = 0;
  fileid3 fileid = 0;
  nfstime3 atime;
  nfstime3 mtime;
  nfstime3 ctime;
};

using post_op_attr = std::optional<fattr3>;

struct wcc_attr {
  size3 size = 0;
  nfstime3 mtime;
  nfstime3 ctime;
};
using pre_op_attr = std::optional<wcc_attr>;

struct wcc_data {
  pre_op_attr before;
  post_op_attr after;
};

using post_op_fh3 = std::optional<nfs_fh3>;

enum time_how : std::uint32_t {
  DONT_CHANGE = 0,
  SET_TO_SERVER_TIME = 1,
  SET_TO_CLIENT_TIME = 2,
};

using set_mode3 = std::optional<mode3>;
using set_uid3 = std::optional<uid3>;
using set_gid3 = std::optional<gid3>;
using set_size3 = std::optional<size3>;
using set_time3 = Union<time_how, Case<Void, DONT_CHANGE, SET_TO_SERVER_TIME>,
                        Case<nfstime3, SET_TO_CLIENT_TIME>>;
using set_atime = set_time3;
using set_mtime = set_time3;

struct sattr3 {
  set_mode3 mode;
  set_uid3 uid;
  set_gid3 gid;
  set_size3 size;
  set_atime atime;
  set_mtime mtime;
};

struct diropargs3 {
  nfs_fh3 dir;
  filename3 name;
};

// 3.3.1 GETATTR
struct GETATTR3args {
  nfs_fh3 object;
};
struct GETATTR3resok {
  fattr3 obj_attributes;
};
using GETATTR3res = Union<nfsstat3, Case<GETATTR3resok, NFS3_OK>, Default<Void>>;

// 3.3.2 SETATTR
using sattrguard3 = std::optional<nfstime3>;
struct SETATTR3args {
  nfs_fh3 object;
  sattr3 new_attributes;
  sattrguard3 guard;
};
struct SETATTR3resok {
  wcc_data obj_wcc;
};
struct SETATTR3resfail {
  wcc_data obj_wcc;
};
using SETATTR3res = Union<nfsstat3, Case<SETATTR3resok, NFS3_OK>, Default<SETATTR3resfail>>;

// 3.3.3 LOOKUP
struct LOOKUP3args {
  diropargs3 what;
};
struct LOOKUP3resok {
  nfs_fh3 object;
  post_op_attr obj_attributes;
  post_op_attr dir_attributes;
};
struct LOOKUP3resfail {
  post_op_attr dir_attributes;
};
using LOOKUP3res = Union<nfsstat3, Case<LOOKUP3resok, NFS3_OK>, Default<LOOKUP3resfail>>;

// 3.3.4 ACCESS
inline constexpr std::uint32_t ACCESS3_READ = 0x0001;
inline constexpr std::uint32_t ACCESS3_LOOKUP = 0x0002;
inline constexpr std::uint32_t ACCESS3_MODIFY = 0x0004;
inline constexpr std::uint32_t ACCESS3_EXTEND = 0x0008;
inline constexpr std::uint32_t ACCESS3_DELETE = 0x0010;
inline constexpr std::uint32_t ACCESS3_EXECUTE = 0x0020;
struct ACCESS3args {
  nfs_fh3 object;
  std::uint32_t access = 0;
};
struct ACCESS3resok {
  post_op_attr obj_attributes;
  std::uint32_t access = 0;
};
struct ACCESS3resfail {
  post_op_attr obj_attributes;
};
using ACCESS3res = Union<nfsstat3, Case<ACCESS3resok, NFS3_OK>, Default<ACCESS3resfail>>;

// 3.3.5 READLINK
struct READLINK3args {
  nfs_fh3 symlink;
};
struct READLINK3resok {
  post_op_attr symlink_attributes;
  nfspath3 data;
};
struct READLINK3resfail {
  post_op_attr symlink_attributes;
};
using READLINK3res = Union<nfsstat3, Case<READLINK3resok, NFS3_OK>, Default<READLINK3resfail>>;

// 3.3.6 READ
struct READ3args {
  nfs_fh3 file;
  offset3 offset = 0;
  count3 count = 0;
};
struct READ3resok {
  post_op_attr file_attributes;
  count3 count = 0;
  bool eof = false;
  Payload<nfs3_payload_max> data;
};
struct READ3resfail {
  post_op_attr file_attributes;
};
using READ3res = Union<nfsstat3, Case<READ3resok, NFS3_OK>, Default<READ3resfail>>;

// 3.3.7 WRITE
enum stable_how : std::uint32_t {
  UNSTABLE = 0,
  DATA_SYNC = 1,
  FILE_SYNC = 2,
};
constexpr bool is_valid(stable_how value) {
  return value <= FILE_SYNC;
}
struct WRITE3args {
  nfs_fh3 file;
  offset3 offset = 0;
  count3 count = 0;
  stable_how stable = UNSTABLE;
  Payload<nfs3_payload_max> data;
};
struct WRITE3resok {
  wcc_data file_wcc;
  count3 count = 0;
  stable_how committed = UNSTABLE;
  writeverf3 verf{};
};
struct WRITE3resfail {
  wcc_data file_wcc;
};
using WRITE3res = Union<nfsstat3, Case<WRITE3resok, NFS3_OK>, Default<WRITE3resfail>>;

// 3.3.8 CREATE
enum createmode3 : std::uint32_t {
  UNCHECKED = 0,
  GUARDED = 1,
  EXCLUSIVE = 2,
};
using createhow3 =
    Union<createmode3, Case<sattr3, UNCHECKED, GUARDED>, Case<createverf3, EXCLUSIVE>>;
struct CREATE3args {
  diropargs3 where;
  createhow3 how;
};
struct CREATE3resok {
  post_op_fh3 obj;
  post_op_attr obj_attributes;
  wcc_data dir_wcc;
};
struct CREATE3resfail {
  wcc_data dir_wcc;
};
using CREATE3res = Union<nfsstat3, Case<CREATE3resok, NFS3_OK>, Default<CREATE3resfail>>;

// 3.3.9 MKDIR
struct MKDIR3args {
  diropargs3 where;
  sattr3 attributes;
};
struct MKDIR3resok {
  post_op_fh3 obj;
  post_op_attr obj_attributes;
  wcc_data dir_wcc;
};
struct MKDIR3resfail {
  wcc_data dir_wcc;
};
using MKDIR3res = Union<nfsstat3, Case<MKDIR3resok, NFS3_OK>, Default<MKDIR3resfail>>;

// 3.3.10 SYMLINK
struct symlinkdata3 {
  sattr3 symlink_attributes;
  nfspath3 symlink_data;
};
struct SYMLINK3args {
  diropargs3 where;
  symlinkdata3 symlink;
};
struct SYMLINK3resok {
  post_op_fh3 obj;
  post_op_attr obj_attributes;
  wcc_data dir_wcc;
};
struct SYMLINK3resfail {
  wcc_data dir_wcc;
};
using SYMLINK3res = Union<nfsstat3, Case<SYMLINK3resok, NFS3_OK>, Default<SYMLINK3resfail>>;

// 3.3.11 MKNOD. Any other type decodes as Void, for the server to answer NFS3ERR_BADTYPE.
struct devicedata3 {
  sattr3 dev_attributes;
  specdata3 spec;
};
struct pipedata3 {
  sattr3 pipe_attributes;
};
using mknoddata3 = Union<ftype3, Case<devicedata3, NF3CHR, NF3BLK>,
                         Case<pipedata3, NF3SOCK, NF3FIFO>, Default<Void>>;
struct MKNOD3args {
  diropargs3 where;
  mknoddata3 what;
};
struct MKNOD3resok {
  post_op_fh3 obj;
  post_op_attr obj_attributes;
  wcc_data dir_wcc;
};
struct MKNOD3resfail {
  wcc_data dir_wcc;
};
using MKNOD3res = Union<nfsstat3, Case<MKNOD3resok, NFS3_OK>, Default<MKNOD3resfail>>;

// 3.3.12 REMOVE
struct REMOVE3args {
  diropargs3 object;
};
struct REMOVE3resok {
  wcc_data dir_wcc;
};
struct REMOVE3resfail {
  wcc_data dir_wcc;
};
using REMOVE3res = Union<nfsstat3, Case<REMOVE3resok, NFS3_OK>, Default<REMOVE3resfail>>;

// 3.3.13 RMDIR
struct RMDIR3args {
  diropargs3 object;
};
struct RMDIR3resok {
  wcc_data dir_wcc;
};
struct RMDIR3resfail {
  wcc_data dir_wcc;
};
using RMDIR3res = Union<nfsstat3, Case<RMDIR3resok, NFS3_OK>, Default<RMDIR3resfail>>;

// 3.3.14 RENAME
struct RENAME3args {
  diropargs3 from;
  diropargs3 to;
};
struct RENAME3resok {
  wcc_data fromdir_wcc;
  wcc_data todir_wcc;
};
struct RENAME3resfail {
  wcc_data fromdir_wcc;
  wcc_data todir_wcc;
};
using RENAME3res = Union<nfsstat3, Case<RENAME3resok, NFS3_OK>, Default<RENAME3resfail>>;

// 3.3.15 LINK
struct LINK3args {
  nfs_fh3 file;
  diropargs3 link;
};
struct LINK3resok {
  post_op_attr file_attributes;
  wcc_data linkdir_wcc;
};
struct LINK3resfail {
  post_op_attr file_attributes;
  wcc_data linkdir_wcc;
};
using LINK3res = Union<nfsstat3, Case<LINK3resok, NFS3_OK>, Default<LINK3resfail>>;

// 3.3.16 READDIR. In the reply an entry takes 4 bytes (the TRUE before it) + encoded_size(entry);
// the end of the list and eof take 8.
struct READDIR3args {
  nfs_fh3 dir;
  cookie3 cookie = 0;
  cookieverf3 cookieverf{};
  count3 count = 0;
};
struct entry3 {
  fileid3 fileid = 0;
  filename3 name;
  cookie3 cookie = 0;
};
struct dirlist3 {
  Chain<entry3> entries;
  bool eof = false;
};
struct READDIR3resok {
  post_op_attr dir_attributes;
  cookieverf3 cookieverf{};
  dirlist3 reply;
};
struct READDIR3resfail {
  post_op_attr dir_attributes;
};
using READDIR3res = Union<nfsstat3, Case<READDIR3resok, NFS3_OK>, Default<READDIR3resfail>>;

// 3.3.17 READDIRPLUS. Sizes as with READDIR.
struct READDIRPLUS3args {
  nfs_fh3 dir;
  cookie3 cookie = 0;
  cookieverf3 cookieverf{};
  count3 dircount = 0;
  count3 maxcount = 0;
};
struct entryplus3 {
  fileid3 fileid = 0;
  filename3 name;
  cookie3 cookie = 0;
  post_op_attr name_attributes;
  post_op_fh3 name_handle;
};
struct dirlistplus3 {
  Chain<entryplus3> entries;
  bool eof = false;
};
struct READDIRPLUS3resok {
  post_op_attr dir_attributes;
  cookieverf3 cookieverf{};
  dirlistplus3 reply;
};
struct READDIRPLUS3resfail {
  post_op_attr dir_attributes;
};
using READDIRPLUS3res =
    Union<nfsstat3, Case<READDIRPLUS3resok, NFS3_OK>, Default<READDIRPLUS3resfail>>;

// 3.3.18 FSSTAT
struct FSSTAT3args {
  nfs_fh3 fsroot;
};
struct FSSTAT3resok {
  post_op_attr obj_attributes;
  size3 tbytes = 0;
  size3 fbytes = 0;
  size3 abytes = 0;
  size3 tfiles = 0;
  size3 ffiles = 0;
  size3 afiles = 0;
  std::uint32_t invarsec = 0;
};
struct FSSTAT3resfail {
  post_op_attr obj_attributes;
};
using FSSTAT3res = Union<nfsstat3, Case<FSSTAT3resok, NFS3_OK>, Default<FSSTAT3resfail>>;

// 3.3.19 FSINFO
inline constexpr std::uint32_t FSF3_LINK = 0x0001;
inline constexpr std::uint32_t FSF3_SYMLINK = 0x0002;
inline constexpr std::uint32_t FSF3_HOMOGENEOUS = 0x0008;
inline constexpr std::uint32_t FSF3_CANSETTIME = 0x0010;
struct FSINFO3args {
  nfs_fh3 fsroot;
};
struct FSINFO3resok {
  post_op_attr obj_attributes;
  std::uint32_t rtmax = 0;
  std::uint32_t rtpref = 0;
  std::uint32_t rtmult = 0;
  std::uint32_t wtmax = 0;
  std::uint32_t wtpref = 0;
  std::uint32_t wtmult = 0;
  std::uint32_t dtpref = 0;
  size3 maxfilesize = 0;
  nfstime3 time_delta;
  std::uint32_t properties = 0;
};
struct FSINFO3resfail {
  post_op_attr obj_attributes;
};
using FSINFO3res = Union<nfsstat3, Case<FSINFO3resok, NFS3_OK>, Default<FSINFO3resfail>>;

// 3.3.20 PATHCONF
struct PATHCONF3args {
  nfs_fh3 object;
};
struct PATHCONF3resok {
  post_op_attr obj_attributes;
  std::uint32_t linkmax = 0;
  std::uint32_t name_max = 0;
  bool no_trunc = false;
  bool chown_restricted = false;
  bool case_insensitive = false;
  bool case_preserving = false;
};
struct PATHCONF3resfail {
  post_op_attr obj_attributes;
};
using PATHCONF3res = Union<nfsstat3, Case<PATHCONF3resok, NFS3_OK>, Default<PATHCONF3resfail>>;

// 3.3.21 COMMIT
struct COMMIT3args {
  nfs_fh3 file;
  offset3 offset = 0;
  count3 count = 0;
};
struct COMMIT3resok {
  wcc_data file_wcc;
  writeverf3 verf{};
};
struct COMMIT3resfail {
  wcc_data file_wcc;
};
using COMMIT3res = Union<nfsstat3, Case<COMMIT3resok, NFS3_OK>, Default<COMMIT3resfail>>;

}  // namespace selvage::xdr
