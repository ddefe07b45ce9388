// NFS version 4.1 (RFC 8881, 18; RFC 5662) and 4.2 (RFC 7862, 15; RFC 7863): the arguments and
// results of the operations that they add and this server carries out, under the RFCs' names.
#pragma once

#include "xdr/nfs4_ops.h"
#include "xdr/nfs4_types.h"

namespace selvage::xdr {

// RFC 5531, appendix A: AUTH_SYS.
struct authsys_parms {
  std::uint32_t stamp = 0;
  String<255> machinename;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  List<std::uint32_t, 16> gids;
};
struct gss_cb_handles4 {
  rpc_gss_svc_t gcbp_service = RPC_GSS_SVC_NONE;
  Opaque<nfs4_text_max> gcbp_handle_from_server;
  Opaque<nfs4_text_max> gcbp_handle_from_client;
};
/// The discriminant is an RPC auth flavor.
using callback_sec_parms4 = Union<std::uint32_t, Case<Void, 0U>, Case<authsys_parms, 1U>,
                                  Case<gss_cb_handles4, RPCSEC_GSS>>;
using callback_sec_list = List<callback_sec_parms4, 16>;

// 18.33 BACKCHANNEL_CTL
struct BACKCHANNEL_CTL4args {
  std::uint32_t bca_cb_program = 0;
  callback_sec_list bca_sec_parms;
};

// 18.34 BIND_CONN_TO_SESSION
inline constexpr std::uint32_t CDFC4_FORE = 0x1;
inline constexpr std::uint32_t CDFC4_BACK = 0x2;
inline constexpr std::uint32_t CDFC4_FORE_OR_BOTH = 0x3;
inline constexpr std::uint32_t CDFC4_BACK_OR_BOTH = 0x7;
inline constexpr std::uint32_t CDFS4_FORE = 0x1;
inline constexpr std::uint32_t CDFS4_BACK = 0x2;
inline constexpr std::uint32_t CDFS4_BOTH = 0x3;
struct BIND_CONN_TO_SESSION4args {
  sessionid4 bctsa_sessid{};
  std::uint32_t bctsa_dir = 0;
  bool bctsa_use_conn_in_rdma_mode = false;
};
struct BIND_CONN_TO_SESSION4resok {
  sessionid4 bctsr_sessid{};
  std::uint32_t bctsr_dir = 0;
  bool bctsr_use_conn_in_rdma_mode = false;
};
using BIND_CONN_TO_SESSION4res =
    Union<nfsstat4, Case<BIND_CONN_TO_SESSION4resok, NFS4_OK>, Default<Void>>;

// 18.35 EXCHANGE_ID
inline constexpr std::uint32_t EXCHGID4_FLAG_SUPP_MOVED_REFER = 0x00000001;
inline constexpr std::uint32_t EXCHGID4_FLAG_SUPP_MOVED_MIGR = 0x00000002;
inline constexpr std::uint32_t EXCHGID4_FLAG_SUPP_FENCE_OPS = 0x00000004;
inline constexpr std::uint32_t EXCHGID4_FLAG_BIND_PRINC_STATEID = 0x00000100;
inline constexpr std::uint32_t EXCHGID4_FLAG_USE_NON_PNFS = 0x00010000;
inline constexpr std::uint32_t EXCHGID4_FLAG_USE_PNFS_MDS = 0x00020000;
inline constexpr std::uint32_t EXCHGID4_FLAG_USE_PNFS_DS = 0x00040000;
inline constexpr std::uint32_t EXCHGID4_FLAG_MASK_PNFS = 0x00070000;
inline constexpr std::uint32_t EXCHGID4_FLAG_UPD_CONFIRMED_REC_A = 0x40000000;
inline constexpr std::uint32_t EXCHGID4_FLAG_CONFIRMED_R = 0x80000000;
struct client_owner4 {
  verifier4 co_verifier{};
  owner4 co_ownerid;
};
struct server_owner4 {
  std::uint64_t so_minor_id = 0;
  owner4 so_major_id;
};
struct nfs_impl_id4 {
  text4 nii_domain;
  text4 nii_name;
  nfstime4 nii_date;
};
enum state_protect_how4 : std::uint32_t {
  SP4_NONE = 0,
  SP4_MACH_CRED = 1,
  SP4_SSV = 2,
};
struct state_protect_ops4 {
  bitmap4 spo_must_enforce;
  bitmap4 spo_must_allow;
};
struct ssv_sp_parms4 {
  state_protect_ops4 ssp_ops;
  List<sec_oid4, 64> ssp_hash_algs;
  List<sec_oid4, 64> ssp_encr_algs;
  std::uint32_t ssp_window = 0;
  std::uint32_t ssp_num_gss_handles = 0;
};
using state_protect4_a =
    Union<state_protect_how4, Case<Void, SP4_NONE>, Case<state_protect_ops4, SP4_MACH_CRED>,
          Case<ssv_sp_parms4, SP4_SSV>>;
/// SP4_SSV is never granted.
using state_protect4_r =
    Union<state_protect_how4, Case<Void, SP4_NONE>, Case<state_protect_ops4, SP4_MACH_CRED>>;
struct EXCHANGE_ID4args {
  client_owner4 eia_clientowner;
  std::uint32_t eia_flags = 0;
  state_protect4_a eia_state_protect;
  List<nfs_impl_id4, 1> eia_client_impl_id;
};
struct EXCHANGE_ID4resok {
  clientid4 eir_clientid = 0;
  sequenceid4 eir_sequenceid = 0;
  std::uint32_t eir_flags = 0;
  state_protect4_r eir_state_protect;
  server_owner4 eir_server_owner;
  owner4 eir_server_scope;
  List<nfs_impl_id4, 1> eir_server_impl_id;
};
using EXCHANGE_ID4res = Union<nfsstat4, Case<EXCHANGE_ID4resok, NFS4_OK>, Default<Void>>;

// 18.36 CREATE_SESSION
inline constexpr std::uint32_t CREATE_SESSION4_FLAG_PERSIST = 0x1;
inline constexpr std::uint32_t CREATE_SESSION4_FLAG_CONN_BACK_CHAN = 0x2;
inline constexpr std::uint32_t CREATE_SESSION4_FLAG_CONN_RDMA = 0x4;
struct channel_attrs4 {
  count4 ca_headerpadsize = 0;
  count4 ca_maxrequestsize = 0;
  count4 ca_maxresponsesize = 0;
  count4 ca_maxresponsesize_cached = 0;
  count4 ca_maxoperations = 0;
  count4 ca_maxrequests = 0;
  List<std::uint32_t, 1> ca_rdma_ird;
};
struct CREATE_SESSION4args {
  clientid4 csa_clientid = 0;
  sequenceid4 csa_sequence = 0;
  std::uint32_t csa_flags = 0;
  channel_attrs4 csa_fore_chan_attrs;
  channel_attrs4 csa_back_chan_attrs;
  std::uint32_t csa_cb_program = 0;
  callback_sec_list csa_sec_parms;
};
struct CREATE_SESSION4resok {
  sessionid4 csr_sessionid{};
  sequenceid4 csr_sequence = 0;
  std::uint32_t csr_flags = 0;
  channel_attrs4 csr_fore_chan_attrs;
  channel_attrs4 csr_back_chan_attrs;
};
using CREATE_SESSION4res = Union<nfsstat4, Case<CREATE_SESSION4resok, NFS4_OK>, Default<Void>>;

// 18.37 DESTROY_SESSION
struct DESTROY_SESSION4args {
  sessionid4 dsa_sessionid{};
};

// 18.38 FREE_STATEID
struct FREE_STATEID4args {
  stateid4 fsa_stateid;
};

// 18.45 SECINFO_NO_NAME
enum secinfo_style4 : std::uint32_t {
  SECINFO_STYLE4_CURRENT_FH = 0,
  SECINFO_STYLE4_PARENT = 1,
};
constexpr bool is_valid(secinfo_style4 value) {
  return value <= SECINFO_STYLE4_PARENT;
}
struct SECINFO_NO_NAME4args {
  secinfo_style4 style = SECINFO_STYLE4_CURRENT_FH;
};

// 18.46 SEQUENCE
inline constexpr std::uint32_t SEQ4_STATUS_CB_PATH_DOWN = 0x00000001;
inline constexpr std::uint32_t SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED = 0x00000008;
inline constexpr std::uint32_t SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED = 0x00000010;
inline constexpr std::uint32_t SEQ4_STATUS_ADMIN_STATE_REVOKED = 0x00000020;
inline constexpr std::uint32_t SEQ4_STATUS_RECALLABLE_STATE_REVOKED = 0x00000040;
inline constexpr std::uint32_t SEQ4_STATUS_RESTART_RECLAIM_NEEDED = 0x00000100;
inline constexpr std::uint32_t SEQ4_STATUS_CB_PATH_DOWN_SESSION = 0x00000200;
inline constexpr std::uint32_t SEQ4_STATUS_BACKCHANNEL_FAULT = 0x00000400;
struct SEQUENCE4args {
  sessionid4 sa_sessionid{};
  sequenceid4 sa_sequenceid = 0;
  slotid4 sa_slotid = 0;
  slotid4 sa_highest_slotid = 0;
  bool sa_cachethis = false;
};
struct SEQUENCE4resok {
  sessionid4 sr_sessionid{};
  sequenceid4 sr_sequenceid = 0;
  slotid4 sr_slotid = 0;
  slotid4 sr_highest_slotid = 0;
  slotid4 sr_target_highest_slotid = 0;
  std::uint32_t sr_status_flags = 0;
};
using SEQUENCE4res = Union<nfsstat4, Case<SEQUENCE4resok, NFS4_OK>, Default<Void>>;

// 18.48 TEST_STATEID
struct TEST_STATEID4args {
  List<stateid4, nfs4_list_max> ts_stateids;
};
struct TEST_STATEID4resok {
  List<nfsstat4, nfs4_list_max> tsr_status_codes;
};
using TEST_STATEID4res = Union<nfsstat4, Case<TEST_STATEID4resok, NFS4_OK>, Default<Void>>;

// 18.50 DESTROY_CLIENTID
struct DESTROY_CLIENTID4args {
  clientid4 dca_clientid = 0;
};

// 18.51 RECLAIM_COMPLETE
struct RECLAIM_COMPLETE4args {
  bool rca_one_fs = false;
};

// RFC 7862, 15.1 ALLOCATE; 15.4 DEALLOCATE has the same arguments.
struct ALLOCATE4args {
  stateid4 aa_stateid;
  offset4 aa_offset = 0;
  length4 aa_length = 0;
};

// 15.5 IO_ADVISE
struct IO_ADVISE4args {
  stateid4 iaa_stateid;
  offset4 iaa_offset = 0;
  length4 iaa_count = 0;
  bitmap4 iaa_hints;
};
struct IO_ADVISE4resok {
  bitmap4 ior_hints;
};
using IO_ADVISE4res = Union<nfsstat4, Case<IO_ADVISE4resok, NFS4_OK>, Default<Void>>;

// 15.10 READ_PLUS
enum data_content4 : std::uint32_t {
  NFS4_CONTENT_DATA = 0,
  NFS4_CONTENT_HOLE = 1,
};
struct READ_PLUS4args {
  stateid4 rpa_stateid;
  offset4 rpa_offset = 0;
  count4 rpa_count = 0;
};
struct data4 {
  offset4 d_offset = 0;
  Payload<nfs4_payload_max> d_data;
};
struct data_info4 {
  offset4 di_offset = 0;
  length4 di_length = 0;
};
using read_plus_content =
    Union<data_content4, Case<data4, NFS4_CONTENT_DATA>, Case<data_info4, NFS4_CONTENT_HOLE>>;
struct read_plus_res4 {
  bool rpr_eof = false;
  List<read_plus_content, nfs4_list_max> rpr_contents;
};
using READ_PLUS4res = Union<nfsstat4, Case<read_plus_res4, NFS4_OK>, Default<Void>>;

// 15.11 SEEK. sa_what is any number: NFS4ERR_UNION_NOTSUPP is the answer to an unknown one.
struct SEEK4args {
  stateid4 sa_stateid;
  offset4 sa_offset = 0;
  std::uint32_t sa_what = 0;
};
struct seek_res4 {
  bool sr_eof = false;
  offset4 sr_offset = 0;
};
using SEEK4res = Union<nfsstat4, Case<seek_res4, NFS4_OK>, Default<Void>>;

}  // namespace selvage::xdr
