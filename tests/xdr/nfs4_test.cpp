// Arguments and results of NFSv4.0 against rpcgen's code.
#include "nfs4_reference.h"

#include <gtest/gtest.h>

namespace selvage::xdr {

STRUCT(nfsace4, 4, type, flag, access_mask, who)
void convert(const createtype4& from, ::createtype4& to) {
  convert(from.tag, to.type);
  ARM(linktext4, createtype4, linkdata)
  ARM(specdata4, createtype4, devdata)
}
STRUCT(open_to_lock_owner4, 4, open_seqid, open_stateid, lock_seqid, lock_owner)
STRUCT(exist_lock_owner4, 2, lock_stateid, lock_seqid)
void convert(const locker4& from, ::locker4& to) {
  convert(from.tag, to.new_lock_owner);
  ARM(open_to_lock_owner4, locker4, open_owner)
  ARM(exist_lock_owner4, locker4, lock_owner)
}
STRUCT(creatverfattr, 2, cva_verf, cva_attrs)
void convert(const createhow4& from, ::createhow4& to) {
  convert(from.tag, to.mode);
  ARM(fattr4, createhow4, createattrs)
  ARM(verifier4, createhow4, createverf)
  ARM(creatverfattr, createhow4, ch_createboth)
}
void convert(const openflag4& from, ::openflag4& to) {
  convert(from.tag, to.opentype);
  ARM(createhow4, openflag4, how)
}
STRUCT(open_claim_delegate_cur4, 2, delegate_stateid, file)
void convert(const open_claim4& from, ::open_claim4& to) {
  convert(from.tag, to.claim);
  if (auto* file = from.get_if<component4>()) {
    auto& arms = to.open_claim4_u;
    convert(*file, from.tag == CLAIM_NULL ? arms.file : arms.file_delegate_prev);
  }
  ARM(open_delegation_type4, open_claim4, delegate_type)
  ARM(open_claim_delegate_cur4, open_claim4, delegate_cur_info)
  ARM(stateid4, open_claim4, oc_delegate_stateid)
}
STRUCT(nfs_modified_limit4, 2, num_blocks, bytes_per_block)
void convert(const nfs_space_limit4& from, ::nfs_space_limit4& to) {
  convert(from.tag, to.limitby);
  ARM(std::uint64_t, nfs_space_limit4, filesize)
  ARM(nfs_modified_limit4, nfs_space_limit4, mod_blocks)
}
STRUCT(open_read_delegation4, 3, stateid, recall, permissions)
STRUCT(open_write_delegation4, 4, stateid, recall, space_limit, permissions)
void convert(const open_none_delegation4& from, ::open_none_delegation4& to) {
  convert(from.tag, to.ond_why);
  if (auto* flag = from.get_if<bool>()) {
    auto& arms = to.open_none_delegation4_u;
    convert(*flag, from.tag == WND4_CONTENTION ? arms.ond_server_will_push_deleg
                                               : arms.ond_server_will_signal_avail);
  }
}
void convert(const open_delegation4& from, ::open_delegation4& to) {
  convert(from.tag, to.delegation_type);
  ARM(open_read_delegation4, open_delegation4, read)
  ARM(open_write_delegation4, open_delegation4, write)
  ARM(open_none_delegation4, open_delegation4, od_whynone)
}
STRUCT(rpcsec_gss_info, 3, oid, qop, service)
void convert(const secinfo4& from, ::secinfo4& to) {
  convert(from.tag, to.flavor);
  ARM(rpcsec_gss_info, secinfo4, flavor_info)
}
STRUCT(entry4, 3, cookie, name, attrs)
void convert(const dirlist4& from, ::dirlist4& to) {
  ::entry4** next = &to.entries;
  for (const entry4& entry : from.entries.items) {
    *next = new_node<::entry4>();
    convert(entry, **next);
    next = &(*next)->nextentry;
  }
  *next = nullptr;
  convert(from.eof, to.eof);
}

STRUCT(COMPOUND4head, 3, tag, minorversion, operations)
STRUCT(ACCESS4args, 1, access)
STRUCT(ACCESS4resok, 2, supported, access)
STRUCT(CLOSE4args, 2, seqid, open_stateid)
STRUCT(COMMIT4args, 2, offset, count)
STRUCT(COMMIT4resok, 1, writeverf)
STRUCT(CREATE4args, 3, objtype, objname, createattrs)
STRUCT(CREATE4resok, 2, cinfo, attrset)
STRUCT(GETATTR4args, 1, attr_request)
STRUCT(LINK4args, 1, newname)
STRUCT(LOCK4args, 5, locktype, reclaim, offset, length, locker)
STRUCT(LOCK4denied, 4, offset, length, locktype, owner)
STRUCT(LOCKT4args, 4, locktype, offset, length, owner)
STRUCT(LOCKU4args, 5, locktype, seqid, lock_stateid, offset, length)
STRUCT(LOOKUP4args, 1, objname)
STRUCT(VERIFY4args, 1, obj_attributes)
STRUCT(OPEN4args, 6, seqid, share_access, share_deny, owner, openhow, claim)
STRUCT(OPEN4resok, 5, stateid, cinfo, rflags, attrset, delegation)
STRUCT(OPEN_CONFIRM4args, 2, open_stateid, seqid)
STRUCT(OPEN_DOWNGRADE4args, 4, open_stateid, seqid, share_access, share_deny)
STRUCT(PUTFH4args, 1, object)
STRUCT(READ4args, 3, stateid, offset, count)
STRUCT(READ4resok, 2, eof, data)
STRUCT(READDIR4args, 5, cookie, cookieverf, dircount, maxcount, attr_request)
STRUCT(READDIR4resok, 2, cookieverf, reply)
STRUCT(REMOVE4args, 1, target)
STRUCT(RENAME4args, 2, oldname, newname)
STRUCT(RENAME4resok, 2, source_cinfo, target_cinfo)
STRUCT(RENEW4args, 1, clientid)
STRUCT(SECINFO4args, 1, name)
STRUCT(SETATTR4args, 2, stateid, obj_attributes)
STRUCT(SETATTR4res, 2, status, attrsset)
STRUCT(nfs_client_id4, 2, verifier, id)
STRUCT(cb_client4, 2, cb_program, cb_location)
STRUCT(SETCLIENTID4args, 3, client, callback, callback_ident)
STRUCT(SETCLIENTID4resok, 2, clientid, setclientid_confirm)
STRUCT(SETCLIENTID_CONFIRM4args, 2, clientid, setclientid_confirm)
STRUCT(WRITE4args, 4, stateid, offset, stable, data)
STRUCT(WRITE4resok, 3, count, committed, writeverf)
STRUCT(RELEASE_LOCKOWNER4args, 1, lock_owner)

RESULT(ACCESS4res, ACCESS4resok)
RESULT(CLOSE4res, stateid4)
RESULT(COMMIT4res, COMMIT4resok)
RESULT(CREATE4res, CREATE4resok)
RESULT(GETATTR4res, fattr4)
RESULT(GETFH4res, nfs_fh4)
RESULT(LINK4res, change_info4)
RESULT(OPEN4res, OPEN4resok)
RESULT(READ4res, READ4resok)
RESULT(READDIR4res, READDIR4resok)
RESULT(READLINK4res, linktext4)
RESULT(RENAME4res, RENAME4resok)
RESULT(SECINFO4res, SECINFO4resok)
RESULT(WRITE4res, WRITE4resok)
void convert(const LOCK4res& from, ::LOCK4res& to) {
  convert(from.tag, to.status);
  ARM(stateid4, LOCK4res, ok)
  ARM(LOCK4denied, LOCK4res, denied)
}
void convert(const LOCKT4res& from, ::LOCKT4res& to) {
  convert(from.tag, to.status);
  ARM(LOCK4denied, LOCKT4res, denied)
}
void convert(const SETCLIENTID4res& from, ::SETCLIENTID4res& to) {
  convert(from.tag, to.status);
  ARM(SETCLIENTID4resok, SETCLIENTID4res, ok)
  ARM(netaddr4, SETCLIENTID4res, client_using)
}

namespace test {
namespace {

#define BOTH_WAYS(type, seed)                                 \
  TEST(Nfs4AgainstRpcgen, type) {                             \
    check_against_reference<type, ::type>(&xdr_##type, seed); \
  }

BOTH_WAYS(ACCESS4args, 1)
BOTH_WAYS(ACCESS4res, 2)
BOTH_WAYS(CLOSE4args, 3)
BOTH_WAYS(CLOSE4res, 4)
BOTH_WAYS(COMMIT4args, 5)
BOTH_WAYS(COMMIT4res, 6)
BOTH_WAYS(COMPOUND4head, 7)
BOTH_WAYS(CREATE4args, 8)
BOTH_WAYS(CREATE4res, 9)
BOTH_WAYS(GETATTR4args, 10)
BOTH_WAYS(GETATTR4res, 11)
BOTH_WAYS(GETFH4res, 12)
BOTH_WAYS(LINK4args, 13)
BOTH_WAYS(LINK4res, 14)
BOTH_WAYS(LOCK4args, 15)
BOTH_WAYS(LOCK4res, 16)
BOTH_WAYS(LOCKT4args, 17)
BOTH_WAYS(LOCKT4res, 18)
BOTH_WAYS(LOCKU4args, 19)
BOTH_WAYS(LOOKUP4args, 20)
BOTH_WAYS(VERIFY4args, 21)
BOTH_WAYS(OPEN4args, 22)
BOTH_WAYS(OPEN4res, 23)
BOTH_WAYS(OPEN_CONFIRM4args, 24)
BOTH_WAYS(OPEN_DOWNGRADE4args, 25)
BOTH_WAYS(PUTFH4args, 26)
BOTH_WAYS(READ4args, 27)
BOTH_WAYS(READ4res, 28)
BOTH_WAYS(READDIR4args, 29)
BOTH_WAYS(READDIR4res, 30)
BOTH_WAYS(READLINK4res, 31)
BOTH_WAYS(REMOVE4args, 32)
BOTH_WAYS(RENAME4args, 33)
BOTH_WAYS(RENAME4res, 34)
BOTH_WAYS(RENEW4args, 35)
BOTH_WAYS(SECINFO4args, 36)
BOTH_WAYS(SECINFO4res, 37)
BOTH_WAYS(SETATTR4args, 38)
BOTH_WAYS(SETATTR4res, 39)
BOTH_WAYS(SETCLIENTID4args, 40)
BOTH_WAYS(SETCLIENTID4res, 41)
BOTH_WAYS(SETCLIENTID_CONFIRM4args, 42)
BOTH_WAYS(WRITE4args, 43)
BOTH_WAYS(WRITE4res, 44)
BOTH_WAYS(RELEASE_LOCKOWNER4args, 45)

}  // namespace
}  // namespace test
}  // namespace selvage::xdr
