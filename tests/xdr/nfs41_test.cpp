// Arguments and results of what NFSv4.1 and 4.2 add, against rpcgen's code.
#include "xdr/nfs41_ops.h"

#include "nfs4_reference.h"

#include "reference/nfs41.h"

#include <gtest/gtest.h>

// A macro of rpc/auth_unix.h.
#undef authsys_parms

namespace selvage::xdr {

void convert(const authsys_parms& from, ::cb_authsys_parms& to) {
  convert(from.stamp, to.stamp);
  convert(from.machinename, to.machinename);
  convert(from.uid, to.uid);
  convert(from.gid, to.gid);
  convert(from.gids, to.gids);
}
STRUCT(gss_cb_handles4, 3, gcbp_service, gcbp_handle_from_server, gcbp_handle_from_client)
void convert(const callback_sec_parms4& from, ::callback_sec_parms4& to) {
  convert(from.tag, to.cb_secflavor);
  ARM(authsys_parms, callback_sec_parms4, cbsp_sys_cred)
  ARM(gss_cb_handles4, callback_sec_parms4, cbsp_gss_handles)
}
STRUCT(state_protect_ops4, 2, spo_must_enforce, spo_must_allow)
STRUCT(ssv_sp_parms4, 5, ssp_ops, ssp_hash_algs, ssp_encr_algs, ssp_window, ssp_num_gss_handles)
void convert(const state_protect4_a& from, ::state_protect4_a& to) {
  convert(from.tag, to.spa_how);
  ARM(state_protect_ops4, state_protect4_a, spa_mach_ops)
  ARM(ssv_sp_parms4, state_protect4_a, spa_ssv_parms)
}
void convert(const state_protect4_r& from, ::state_protect4_r& to) {
  convert(from.tag, to.spr_how);
  ARM(state_protect_ops4, state_protect4_r, spr_mach_ops)
}
STRUCT(data4, 2, d_offset, d_data)
STRUCT(data_info4, 2, di_offset, di_length)
void convert(const read_plus_content& from, ::read_plus_content& to) {
  convert(from.tag, to.rpc_content);
  ARM(data4, read_plus_content, rpc_data)
  ARM(data_info4, read_plus_content, rpc_hole)
}

STRUCT(BACKCHANNEL_CTL4args, 2, bca_cb_program, bca_sec_parms)
STRUCT(BIND_CONN_TO_SESSION4args, 3, bctsa_sessid, bctsa_dir, bctsa_use_conn_in_rdma_mode)
STRUCT(BIND_CONN_TO_SESSION4resok, 3, bctsr_sessid, bctsr_dir, bctsr_use_conn_in_rdma_mode)
STRUCT(client_owner4, 2, co_verifier, co_ownerid)
STRUCT(server_owner4, 2, so_minor_id, so_major_id)
STRUCT(nfs_impl_id4, 3, nii_domain, nii_name, nii_date)
STRUCT(EXCHANGE_ID4args, 4, eia_clientowner, eia_flags, eia_state_protect, eia_client_impl_id)
STRUCT(EXCHANGE_ID4resok, 7, eir_clientid, eir_sequenceid, eir_flags, eir_state_protect,
       eir_server_owner, eir_server_scope, eir_server_impl_id)
STRUCT(channel_attrs4, 7, ca_headerpadsize, ca_maxrequestsize, ca_maxresponsesize,
       ca_maxresponsesize_cached, ca_maxoperations, ca_maxrequests, ca_rdma_ird)
STRUCT(CREATE_SESSION4args, 7, csa_clientid, csa_sequence, csa_flags, csa_fore_chan_attrs,
       csa_back_chan_attrs, csa_cb_program, csa_sec_parms)
STRUCT(CREATE_SESSION4resok, 5, csr_sessionid, csr_sequence, csr_flags, csr_fore_chan_attrs,
       csr_back_chan_attrs)
STRUCT(DESTROY_SESSION4args, 1, dsa_sessionid)
STRUCT(FREE_STATEID4args, 1, fsa_stateid)
STRUCT(SEQUENCE4args, 5, sa_sessionid, sa_sequenceid, sa_slotid, sa_highest_slotid, sa_cachethis)
STRUCT(SEQUENCE4resok, 6, sr_sessionid, sr_sequenceid, sr_slotid, sr_highest_slotid,
       sr_target_highest_slotid, sr_status_flags)
STRUCT(TEST_STATEID4args, 1, ts_stateids)
STRUCT(TEST_STATEID4resok, 1, tsr_status_codes)
STRUCT(ALLOCATE4args, 3, aa_stateid, aa_offset, aa_length)
STRUCT(IO_ADVISE4args, 4, iaa_stateid, iaa_offset, iaa_count, iaa_hints)
STRUCT(IO_ADVISE4resok, 1, ior_hints)
STRUCT(READ_PLUS4args, 3, rpa_stateid, rpa_offset, rpa_count)
STRUCT(read_plus_res4, 2, rpr_eof, rpr_contents)
STRUCT(SEEK4args, 3, sa_stateid, sa_offset, sa_what)
STRUCT(seek_res4, 2, sr_eof, sr_offset)

RESULT(BIND_CONN_TO_SESSION4res, BIND_CONN_TO_SESSION4resok)
RESULT(EXCHANGE_ID4res, EXCHANGE_ID4resok)
RESULT(CREATE_SESSION4res, CREATE_SESSION4resok)
RESULT(SEQUENCE4res, SEQUENCE4resok)
RESULT(TEST_STATEID4res, TEST_STATEID4resok)
RESULT(IO_ADVISE4res, IO_ADVISE4resok)
RESULT(READ_PLUS4res, read_plus_res4)
RESULT(SEEK4res, seek_res4)

namespace test {
namespace {

#define BOTH_WAYS(type, seed)                                 \
  TEST(Nfs41AgainstRpcgen, type) {                            \
    check_against_reference<type, ::type>(&xdr_##type, seed); \
  }

BOTH_WAYS(BACKCHANNEL_CTL4args, 1)
BOTH_WAYS(BIND_CONN_TO_SESSION4args, 2)
BOTH_WAYS(BIND_CONN_TO_SESSION4res, 3)
BOTH_WAYS(EXCHANGE_ID4args, 4)
BOTH_WAYS(EXCHANGE_ID4res, 5)
BOTH_WAYS(CREATE_SESSION4args, 6)
BOTH_WAYS(CREATE_SESSION4res, 7)
BOTH_WAYS(DESTROY_SESSION4args, 8)
BOTH_WAYS(FREE_STATEID4args, 9)
BOTH_WAYS(SEQUENCE4args, 10)
BOTH_WAYS(SEQUENCE4res, 11)
BOTH_WAYS(TEST_STATEID4args, 12)
BOTH_WAYS(TEST_STATEID4res, 13)
BOTH_WAYS(ALLOCATE4args, 14)
BOTH_WAYS(IO_ADVISE4args, 15)
BOTH_WAYS(IO_ADVISE4res, 16)
BOTH_WAYS(READ_PLUS4args, 17)
BOTH_WAYS(READ_PLUS4res, 18)
BOTH_WAYS(SEEK4args, 19)
BOTH_WAYS(SEEK4res, 20)

}  // namespace
}  // namespace test
}  // namespace selvage::xdr
