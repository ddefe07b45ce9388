// NFS version 4.0 (RFC 7530, 16; RFC 7531): every operation's arguments and results, under the
// RFC's names. What RFC 8881 adds to them (claims, create modes) is here as well. A structure that
// would be empty is not there: the operation takes or gives nothing.
#pragma once

#include "xdr/nfs4_types.h"

namespace selvage::xdr {

/// COMPOUND4args up to its operations, which are decoded one by one as they are executed.
struct COMPOUND4head {
  text4 tag;
  std::uint32_t minorversion = 0;
  std::uint32_t operations = 0;
};
/// COMPOUND4res up to the results of the operations.
struct COMPOUND4reshead {
  nfsstat4 status = NFS4_OK;
  text4 tag;
  std::uint32_t operations = 0;
};

/// The result of an operation that has nothing to say but its status.
using STATUS4res = Union<nfsstat4, Default<Void>>;

// 16.1 ACCESS
inline constexpr std::uint32_t ACCESS4_READ = 0x0001;
inline constexpr std::uint32_t ACCESS4_LOOKUP = 0x0002;
inline constexpr std::uint32_t ACCESS4_MODIFY = 0x0004;
inline constexpr std::uint32_t ACCESS4_EXTEND = 0x0008;
inline constexpr std::uint32_t ACCESS4_DELETE = 0x0010;
inline constexpr std::uint32_t ACCESS4_EXECUTE = 0x0020;
struct ACCESS4args {
  std::uint32_t access = 0;
};
struct ACCESS4resok {
  std::uint32_t supported = 0;
  std::uint32_t access = 0;
};
using ACCESS4res = Union<nfsstat4, Case<ACCESS4resok, NFS4_OK>, Default<Void>>;

// 16.2 CLOSE
struct CLOSE4args {
  seqid4 seqid = 0;
  stateid4 open_stateid;
};
using CLOSE4res = Union<nfsstat4, Case<stateid4, NFS4_OK>, Default<Void>>;

// 16.3 COMMIT
struct COMMIT4args {
  offset4 offset = 0;
  count4 count = 0;
};
struct COMMIT4resok {
  verifier4 writeverf{};
};
using COMMIT4res = Union<nfsstat4, Case<COMMIT4resok, NFS4_OK>, Default<Void>>;

// 16.4 CREATE
using createtype4 =
    Union<nfs_ftype4, Case<linktext4, NF4LNK>, Case<specdata4, NF4BLK, NF4CHR>, Default<Void>>;
struct CREATE4args {
  createtype4 objtype;
  component4 objname;
  fattr4 createattrs;
};
struct CREATE4resok {
  change_info4 cinfo;
  bitmap4 attrset;
};
using CREATE4res = Union<nfsstat4, Case<CREATE4resok, NFS4_OK>, Default<Void>>;

// 16.5 DELEGPURGE
struct DELEGPURGE4args {
  clientid4 clientid = 0;
};

// 16.6 DELEGRETURN
struct DELEGRETURN4args {
  stateid4 deleg_stateid;
};

// 16.7 GETATTR
struct GETATTR4args {
  bitmap4 attr_request;
};
using GETATTR4res = Union<nfsstat4, Case<fattr4, NFS4_OK>, Default<Void>>;

// 16.8 GETFH
using GETFH4res = Union<nfsstat4, Case<nfs_fh4, NFS4_OK>, Default<Void>>;

// 16.9 LINK
struct LINK4args {
  component4 newname;
};
using LINK4res = Union<nfsstat4, Case<change_info4, NFS4_OK>, Default<Void>>;

// 16.10 LOCK
enum nfs_lock_type4 : std::uint32_t {
  READ_LT = 1,
  WRITE_LT = 2,
  READW_LT = 3,
  WRITEW_LT = 4,
};
constexpr bool is_valid(nfs_lock_type4 value) {
  return value >= READ_LT && value <= WRITEW_LT;
}
struct open_to_lock_owner4 {
  seqid4 open_seqid = 0;
  stateid4 open_stateid;
  seqid4 lock_seqid = 0;
  state_owner4 lock_owner;
};
struct exist_lock_owner4 {
  stateid4 lock_stateid;
  seqid4 lock_seqid = 0;
};
/// The discriminant is a bool: new_lock_owner.
using locker4 = Union<std::uint32_t, Case<exist_lock_owner4, 0U>, Case<open_to_lock_owner4, 1U>>;
struct LOCK4args {
  nfs_lock_type4 locktype = READ_LT;
  bool reclaim = false;
  offset4 offset = 0;
  length4 length = 0;
  locker4 locker;
};
struct LOCK4denied {
  offset4 offset = 0;
  length4 length = 0;
  nfs_lock_type4 locktype = READ_LT;
  state_owner4 owner;
};
using LOCK4res =
    Union<nfsstat4, Case<stateid4, NFS4_OK>, Case<LOCK4denied, NFS4ERR_DENIED>, Default<Void>>;

// 16.11 LOCKT
struct LOCKT4args {
  nfs_lock_type4 locktype = READ_LT;
  offset4 offset = 0;
  length4 length = 0;
  state_owner4 owner;
};
using LOCKT4res = Union<nfsstat4, Case<LOCK4denied, NFS4ERR_DENIED>, Default<Void>>;

// 16.12 LOCKU
struct LOCKU4args {
  nfs_lock_type4 locktype = READ_LT;
  seqid4 seqid = 0;
  stateid4 lock_stateid;
  offset4 offset = 0;
  length4 length = 0;
};
using LOCKU4res = Union<nfsstat4, Case<stateid4, NFS4_OK>, Default<Void>>;

// 16.13 LOOKUP
struct LOOKUP4args {
  component4 objname;
};

// 16.15 NVERIFY, 16.35 VERIFY
struct VERIFY4args {
  fattr4 obj_attributes;
};

// 16.16 OPEN
enum opentype4 : std::uint32_t {
  OPEN4_NOCREATE = 0,
  OPEN4_CREATE = 1,
};
enum createmode4 : std::uint32_t {
  UNCHECKED4 = 0,
  GUARDED4 = 1,
  EXCLUSIVE4 = 2,
  EXCLUSIVE4_1 = 3,
};
struct creatverfattr {
  verifier4 cva_verf{};
  fattr4 cva_attrs;
};
using createhow4 = Union<createmode4, Case<fattr4, UNCHECKED4, GUARDED4>,
                         Case<verifier4, EXCLUSIVE4>, Case<creatverfattr, EXCLUSIVE4_1>>;
using openflag4 = Union<opentype4, Case<Void, OPEN4_NOCREATE>, Case<createhow4, OPEN4_CREATE>>;

enum open_delegation_type4 : std::uint32_t {
  OPEN_DELEGATE_NONE = 0,
  OPEN_DELEGATE_READ = 1,
  OPEN_DELEGATE_WRITE = 2,
  OPEN_DELEGATE_NONE_EXT = 3,
};
constexpr bool is_valid(open_delegation_type4 value) {
  return value <= OPEN_DELEGATE_NONE_EXT;
}
enum open_claim_type4 : std::uint32_t {
  CLAIM_NULL = 0,
  CLAIM_PREVIOUS = 1,
  CLAIM_DELEGATE_CUR = 2,
  CLAIM_DELEGATE_PREV = 3,
  CLAIM_FH = 4,
  CLAIM_DELEG_CUR_FH = 5,
  CLAIM_DELEG_PREV_FH = 6,
};
struct open_claim_delegate_cur4 {
  stateid4 delegate_stateid;
  component4 file;
};
using open_claim4 =
    Union<open_claim_type4, Case<component4, CLAIM_NULL, CLAIM_DELEGATE_PREV>,
          Case<open_delegation_type4, CLAIM_PREVIOUS>,
          Case<open_claim_delegate_cur4, CLAIM_DELEGATE_CUR>,
          Case<Void, CLAIM_FH, CLAIM_DELEG_PREV_FH>, Case<stateid4, CLAIM_DELEG_CUR_FH>>;

inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_READ = 1;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WRITE = 2;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_BOTH = 3;
inline constexpr std::uint32_t OPEN4_SHARE_DENY_NONE = 0;
inline constexpr std::uint32_t OPEN4_SHARE_DENY_READ = 1;
inline constexpr std::uint32_t OPEN4_SHARE_DENY_WRITE = 2;
inline constexpr std::uint32_t OPEN4_SHARE_DENY_BOTH = 3;
// RFC 8881: wishes in the upper bits of share_access.
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WANT_DELEG_MASK = 0xFF00;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WANT_NO_PREFERENCE = 0x0000;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WANT_READ_DELEG = 0x0100;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG = 0x0200;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WANT_ANY_DELEG = 0x0300;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WANT_NO_DELEG = 0x0400;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WANT_CANCEL = 0x0500;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL = 0x10000;
inline constexpr std::uint32_t OPEN4_SHARE_ACCESS_WANT_PUSH_DELEG_WHEN_UNCONTENDED = 0x20000;

struct OPEN4args {
  seqid4 seqid = 0;
  std::uint32_t share_access = 0;
  std::uint32_t share_deny = 0;
  state_owner4 owner;
  openflag4 openhow;
  open_claim4 claim;
};

enum why_no_delegation4 : std::uint32_t {
  WND4_NOT_WANTED = 0,
  WND4_CONTENTION = 1,
  WND4_RESOURCE = 2,
  WND4_NOT_SUPP_FTYPE = 3,
  WND4_WRITE_DELEG_NOT_SUPP_FTYPE = 4,
  WND4_NOT_SUPP_UPGRADE = 5,
  WND4_NOT_SUPP_DOWNGRADE = 6,
  WND4_CANCELLED = 7,
  WND4_IS_DIR = 8,
};
/// The bool of WND4_CONTENTION (server_will_push_deleg) and of WND4_RESOURCE (will_signal_avail).
using open_none_delegation4 =
    Union<why_no_delegation4, Case<bool, WND4_CONTENTION, WND4_RESOURCE>, Default<Void>>;
enum limit_by4 : std::uint32_t {
  NFS_LIMIT_SIZE = 1,
  NFS_LIMIT_BLOCKS = 2,
};
struct nfs_modified_limit4 {
  std::uint32_t num_blocks = 0;
  std::uint32_t bytes_per_block = 0;
};
using nfs_space_limit4 = Union<limit_by4, Case<std::uint64_t, NFS_LIMIT_SIZE>,
                               Case<nfs_modified_limit4, NFS_LIMIT_BLOCKS>>;
struct open_read_delegation4 {
  stateid4 stateid;
  bool recall = false;
  nfsace4 permissions;
};
struct open_write_delegation4 {
  stateid4 stateid;
  bool recall = false;
  nfs_space_limit4 space_limit;
  nfsace4 permissions;
};
using open_delegation4 = Union<open_delegation_type4, Case<Void, OPEN_DELEGATE_NONE>,
                               Case<open_read_delegation4, OPEN_DELEGATE_READ>,
                               Case<open_write_delegation4, OPEN_DELEGATE_WRITE>,
                               Case<open_none_delegation4, OPEN_DELEGATE_NONE_EXT>>;

inline constexpr std::uint32_t OPEN4_RESULT_CONFIRM = 0x0002;
inline constexpr std::uint32_t OPEN4_RESULT_LOCKTYPE_POSIX = 0x0004;
inline constexpr std::uint32_t OPEN4_RESULT_PRESERVE_UNLINKED = 0x0008;
inline constexpr std::uint32_t OPEN4_RESULT_MAY_NOTIFY_LOCK = 0x0020;
struct OPEN4resok {
  stateid4 stateid;
  change_info4 cinfo;
  std::uint32_t rflags = 0;
  bitmap4 attrset;
  open_delegation4 delegation;
};
using OPEN4res = Union<nfsstat4, Case<OPEN4resok, NFS4_OK>, Default<Void>>;

// 16.17 OPENATTR
struct OPENATTR4args {
  bool createdir = false;
};

// 16.18 OPEN_CONFIRM
struct OPEN_CONFIRM4args {
  stateid4 open_stateid;
  seqid4 seqid = 0;
};
using OPEN_CONFIRM4res = Union<nfsstat4, Case<stateid4, NFS4_OK>, Default<Void>>;

// 16.19 OPEN_DOWNGRADE
struct OPEN_DOWNGRADE4args {
  stateid4 open_stateid;
  seqid4 seqid = 0;
  std::uint32_t share_access = 0;
  std::uint32_t share_deny = 0;
};
using OPEN_DOWNGRADE4res = Union<nfsstat4, Case<stateid4, NFS4_OK>, Default<Void>>;

// 16.20 PUTFH
struct PUTFH4args {
  nfs_fh4 object;
};

// 16.23 READ
struct READ4args {
  stateid4 stateid;
  offset4 offset = 0;
  count4 count = 0;
};
struct READ4resok {
  bool eof = false;
  Payload<nfs4_payload_max> data;
};
using READ4res = Union<nfsstat4, Case<READ4resok, NFS4_OK>, Default<Void>>;

// 16.24 READDIR
struct READDIR4args {
  nfs_cookie4 cookie = 0;
  verifier4 cookieverf{};
  count4 dircount = 0;
  count4 maxcount = 0;
  bitmap4 attr_request;
};
struct entry4 {
  nfs_cookie4 cookie = 0;
  component4 name;
  fattr4 attrs;
};
struct dirlist4 {
  Chain<entry4> entries;
  bool eof = false;
};
struct READDIR4resok {
  verifier4 cookieverf{};
  dirlist4 reply;
};
using READDIR4res = Union<nfsstat4, Case<READDIR4resok, NFS4_OK>, Default<Void>>;

// 16.25 READLINK
using READLINK4res = Union<nfsstat4, Case<linktext4, NFS4_OK>, Default<Void>>;

// 16.26 REMOVE
struct REMOVE4args {
  component4 target;
};
using REMOVE4res = Union<nfsstat4, Case<change_info4, NFS4_OK>, Default<Void>>;

// 16.27 RENAME
struct RENAME4args {
  component4 oldname;
  component4 newname;
};
struct RENAME4resok {
  change_info4 source_cinfo;
  change_info4 target_cinfo;
};
using RENAME4res = Union<nfsstat4, Case<RENAME4resok, NFS4_OK>, Default<Void>>;

// 16.28 RENEW
struct RENEW4args {
  clientid4 clientid = 0;
};

// 16.31 SECINFO
enum rpc_gss_svc_t : std::uint32_t {
  RPC_GSS_SVC_NONE = 1,
  RPC_GSS_SVC_INTEGRITY = 2,
  RPC_GSS_SVC_PRIVACY = 3,
};
constexpr bool is_valid(rpc_gss_svc_t value) {
  return value >= RPC_GSS_SVC_NONE && value <= RPC_GSS_SVC_PRIVACY;
}
using sec_oid4 = Opaque<nfs4_text_max>;
struct rpcsec_gss_info {
  sec_oid4 oid;
  std::uint32_t qop = 0;
  rpc_gss_svc_t service = RPC_GSS_SVC_NONE;
};
inline constexpr std::uint32_t RPCSEC_GSS = 6;
/// The discriminant is an RPC auth flavor.
using secinfo4 = Union<std::uint32_t, Case<rpcsec_gss_info, RPCSEC_GSS>, Default<Void>>;
using SECINFO4resok = List<secinfo4, nfs4_list_max>;
struct SECINFO4args {
  component4 name;
};
using SECINFO4res = Union<nfsstat4, Case<SECINFO4resok, NFS4_OK>, Default<Void>>;

// 16.32 SETATTR
struct SETATTR4args {
  stateid4 stateid;
  fattr4 obj_attributes;
};
/// Not a union: what was set is told with an error as well.
struct SETATTR4res {
  nfsstat4 status = NFS4_OK;
  bitmap4 attrsset;
};

// 16.33 SETCLIENTID
struct nfs_client_id4 {
  verifier4 verifier{};
  owner4 id;
};
struct cb_client4 {
  std::uint32_t cb_program = 0;
  netaddr4 cb_location;
};
struct SETCLIENTID4args {
  nfs_client_id4 client;
  cb_client4 callback;
  std::uint32_t callback_ident = 0;
};
struct SETCLIENTID4resok {
  clientid4 clientid = 0;
  verifier4 setclientid_confirm{};
};
using SETCLIENTID4res = Union<nfsstat4, Case<SETCLIENTID4resok, NFS4_OK>,
                              Case<netaddr4, NFS4ERR_CLID_INUSE>, Default<Void>>;

// 16.34 SETCLIENTID_CONFIRM
struct SETCLIENTID_CONFIRM4args {
  clientid4 clientid = 0;
  verifier4 setclientid_confirm{};
};

// 16.36 WRITE
struct WRITE4args {
  stateid4 stateid;
  offset4 offset = 0;
  stable_how4 stable = UNSTABLE4;
  Payload<nfs4_payload_max> data;
};
struct WRITE4resok {
  count4 count = 0;
  stable_how4 committed = UNSTABLE4;
  verifier4 writeverf{};
};
using WRITE4res = Union<nfsstat4, Case<WRITE4resok, NFS4_OK>, Default<Void>>;

// 16.37 RELEASE_LOCKOWNER
struct RELEASE_LOCKOWNER4args {
  state_owner4 lock_owner;
};

}  // namespace selvage::xdr
