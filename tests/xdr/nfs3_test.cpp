// Every argument and result of NFSv3 against rpcgen's code.
#include "xdr/nfs3.h"

#include "generate.h"

#include "members.h"
#include "reference.h"

#include "reference/nfs3.h"

#include <gtest/gtest.h>

namespace selvage::xdr {

#define OPTIONAL(ours, type, flag, member)        \
  void convert(const ours& from, ::type& to) {    \
    to.flag = from.has_value() ? TRUE : FALSE;    \
    if (from) convert(*from, to.type##_u.member); \
  }
#define RESULT(proc)                                                                           \
  void convert(const proc##3res & from, ::proc##3res & to) {                                   \
    convert(from.tag, to.status);                                                              \
    if (auto* ok = from.get_if<proc##3resok>()) convert(*ok, (to.proc##3res_u).resok);         \
    if (auto* fail = from.get_if<proc##3resfail>()) convert(*fail, (to.proc##3res_u).resfail); \
  }

STRUCT(specdata3, 2, specdata1, specdata2)
STRUCT(nfs_fh3, 1, data)
STRUCT(nfstime3, 2, seconds, nseconds)
STRUCT(fattr3, 13, type, mode, nlink, uid, gid, size, used, rdev, fsid, fileid, atime, mtime, ctime)
STRUCT(wcc_attr, 3, size, mtime, ctime)
OPTIONAL(post_op_attr, post_op_attr, attributes_follow, attributes)
OPTIONAL(pre_op_attr, pre_op_attr, attributes_follow, attributes)
OPTIONAL(post_op_fh3, post_op_fh3, handle_follows, handle)
STRUCT(wcc_data, 2, before, after)
// Ours of uid, gid and mode are one type; the reference's are not.
OPTIONAL(set_mode3, set_mode3, set_it, mode)
OPTIONAL(set_uid3, set_uid3, set_it, uid)
OPTIONAL(set_gid3, set_gid3, set_it, gid)
OPTIONAL(set_size3, set_size3, set_it, size)
OPTIONAL(sattrguard3, sattrguard3, check, obj_ctime)
void convert(const set_time3& from, ::set_atime& to) {
  convert(from.tag, to.set_it);
  if (auto* time = from.get_if<nfstime3>()) convert(*time, to.set_atime_u.atime);
}
void convert(const set_time3& from, ::set_mtime& to) {
  convert(from.tag, to.set_it);
  if (auto* time = from.get_if<nfstime3>()) convert(*time, to.set_mtime_u.mtime);
}
STRUCT(sattr3, 6, mode, uid, gid, size, atime, mtime)
STRUCT(diropargs3, 2, dir, name)

STRUCT(GETATTR3args, 1, object)
STRUCT(GETATTR3resok, 1, obj_attributes)
void convert(const GETATTR3res& from, ::GETATTR3res& to) {
  convert(from.tag, to.status);
  if (auto* ok = from.get_if<GETATTR3resok>()) convert(*ok, to.GETATTR3res_u.resok);
}

STRUCT(SETATTR3args, 3, object, new_attributes, guard)
STRUCT(SETATTR3resok, 1, obj_wcc)
STRUCT(SETATTR3resfail, 1, obj_wcc)
RESULT(SETATTR)

STRUCT(LOOKUP3args, 1, what)
STRUCT(LOOKUP3resok, 3, object, obj_attributes, dir_attributes)
STRUCT(LOOKUP3resfail, 1, dir_attributes)
RESULT(LOOKUP)

STRUCT(ACCESS3args, 2, object, access)
STRUCT(ACCESS3resok, 2, obj_attributes, access)
STRUCT(ACCESS3resfail, 1, obj_attributes)
RESULT(ACCESS)

STRUCT(READLINK3args, 1, symlink)
STRUCT(READLINK3resok, 2, symlink_attributes, data)
STRUCT(READLINK3resfail, 1, symlink_attributes)
RESULT(READLINK)

STRUCT(READ3args, 3, file, offset, count)
STRUCT(READ3resok, 4, file_attributes, count, eof, data)
STRUCT(READ3resfail, 1, file_attributes)
RESULT(READ)

STRUCT(WRITE3args, 5, file, offset, count, stable, data)
STRUCT(WRITE3resok, 4, file_wcc, count, committed, verf)
STRUCT(WRITE3resfail, 1, file_wcc)
RESULT(WRITE)

void convert(const createhow3& from, ::createhow3& to) {
  convert(from.tag, to.mode);
  if (auto* set = from.get_if<sattr3>()) convert(*set, to.createhow3_u.obj_attributes);
  if (auto* verf = from.get_if<createverf3>()) convert(*verf, to.createhow3_u.verf);
}
STRUCT(CREATE3args, 2, where, how)
STRUCT(CREATE3resok, 3, obj, obj_attributes, dir_wcc)
STRUCT(CREATE3resfail, 1, dir_wcc)
RESULT(CREATE)

STRUCT(MKDIR3args, 2, where, attributes)
STRUCT(MKDIR3resok, 3, obj, obj_attributes, dir_wcc)
STRUCT(MKDIR3resfail, 1, dir_wcc)
RESULT(MKDIR)

STRUCT(symlinkdata3, 2, symlink_attributes, symlink_data)
STRUCT(SYMLINK3args, 2, where, symlink)
STRUCT(SYMLINK3resok, 3, obj, obj_attributes, dir_wcc)
STRUCT(SYMLINK3resfail, 1, dir_wcc)
RESULT(SYMLINK)

STRUCT(devicedata3, 2, dev_attributes, spec)
void convert(const mknoddata3& from, ::mknoddata3& to) {
  convert(from.tag, to.type);
  if (auto* device = from.get_if<devicedata3>()) convert(*device, to.mknoddata3_u.device);
  if (auto* pipe = from.get_if<pipedata3>()) {
    convert(pipe->pipe_attributes, to.mknoddata3_u.pipe_attributes);
  }
}
STRUCT(MKNOD3args, 2, where, what)
STRUCT(MKNOD3resok, 3, obj, obj_attributes, dir_wcc)
STRUCT(MKNOD3resfail, 1, dir_wcc)
RESULT(MKNOD)

STRUCT(REMOVE3args, 1, object)
STRUCT(REMOVE3resok, 1, dir_wcc)
STRUCT(REMOVE3resfail, 1, dir_wcc)
RESULT(REMOVE)

STRUCT(RMDIR3args, 1, object)
STRUCT(RMDIR3resok, 1, dir_wcc)
STRUCT(RMDIR3resfail, 1, dir_wcc)
RESULT(RMDIR)

STRUCT(RENAME3args, 2, from, to)
STRUCT(RENAME3resok, 2, fromdir_wcc, todir_wcc)
STRUCT(RENAME3resfail, 2, fromdir_wcc, todir_wcc)
RESULT(RENAME)

STRUCT(LINK3args, 2, file, link)
STRUCT(LINK3resok, 2, file_attributes, linkdir_wcc)
STRUCT(LINK3resfail, 2, file_attributes, linkdir_wcc)
RESULT(LINK)

template <class Ours, class Entry>
void convert_list(const Chain<Ours>& from, Entry*& to) {
  Entry** next = &to;
  for (const Ours& entry : from.items) {
    *next = new_node<Entry>();
    convert(entry, **next);
    next = &(*next)->nextentry;
  }
  *next = nullptr;
}

STRUCT(READDIR3args, 4, dir, cookie, cookieverf, count)
STRUCT(entry3, 3, fileid, name, cookie)
void convert(const dirlist3& from, ::dirlist3& to) {
  convert_list(from.entries, to.entries);
  convert(from.eof, to.eof);
}
STRUCT(READDIR3resok, 3, dir_attributes, cookieverf, reply)
STRUCT(READDIR3resfail, 1, dir_attributes)
RESULT(READDIR)

STRUCT(READDIRPLUS3args, 5, dir, cookie, cookieverf, dircount, maxcount)
STRUCT(entryplus3, 5, fileid, name, cookie, name_attributes, name_handle)
void convert(const dirlistplus3& from, ::dirlistplus3& to) {
  convert_list(from.entries, to.entries);
  convert(from.eof, to.eof);
}
STRUCT(READDIRPLUS3resok, 3, dir_attributes, cookieverf, reply)
STRUCT(READDIRPLUS3resfail, 1, dir_attributes)
RESULT(READDIRPLUS)

STRUCT(FSSTAT3args, 1, fsroot)
STRUCT(FSSTAT3resok, 8, obj_attributes, tbytes, fbytes, abytes, tfiles, ffiles, afiles, invarsec)
STRUCT(FSSTAT3resfail, 1, obj_attributes)
RESULT(FSSTAT)

STRUCT(FSINFO3args, 1, fsroot)
STRUCT(FSINFO3resok, 11, obj_attributes, rtmax, rtpref, rtmult, wtmax, wtpref, wtmult, dtpref,
       maxfilesize, time_delta, properties)
STRUCT(FSINFO3resfail, 1, obj_attributes)
RESULT(FSINFO)

STRUCT(PATHCONF3args, 1, object)
STRUCT(PATHCONF3resok, 7, obj_attributes, linkmax, name_max, no_trunc, chown_restricted,
       case_insensitive, case_preserving)
STRUCT(PATHCONF3resfail, 1, obj_attributes)
RESULT(PATHCONF)

STRUCT(COMMIT3args, 3, file, offset, count)
STRUCT(COMMIT3resok, 2, file_wcc, verf)
STRUCT(COMMIT3resfail, 1, file_wcc)
RESULT(COMMIT)

namespace test {
namespace {

#define BOTH_WAYS(proc, seed)                                                         \
  TEST(Nfs3AgainstRpcgen, proc) {                                                     \
    check_against_reference<proc##3args, ::proc##3args>(&xdr_##proc##3args, seed);    \
    check_against_reference<proc##3res, ::proc##3res>(&xdr_##proc##3res, 100 + seed); \
  }

BOTH_WAYS(GETATTR, 1)
BOTH_WAYS(SETATTR, 2)
BOTH_WAYS(LOOKUP, 3)
BOTH_WAYS(ACCESS, 4)
BOTH_WAYS(READLINK, 5)
BOTH_WAYS(READ, 6)
BOTH_WAYS(WRITE, 7)
BOTH_WAYS(CREATE, 8)
BOTH_WAYS(MKDIR, 9)
BOTH_WAYS(SYMLINK, 10)
BOTH_WAYS(MKNOD, 11)
BOTH_WAYS(REMOVE, 12)
BOTH_WAYS(RMDIR, 13)
BOTH_WAYS(RENAME, 14)
BOTH_WAYS(LINK, 15)
BOTH_WAYS(READDIR, 16)
BOTH_WAYS(READDIRPLUS, 17)
BOTH_WAYS(FSSTAT, 18)
BOTH_WAYS(FSINFO, 19)
BOTH_WAYS(PATHCONF, 20)
BOTH_WAYS(COMMIT, 21)

// What a READDIR reply takes can be told entry by entry, exactly.
TEST(Nfs3, ReaddirplusSizeIsTheSumOfItsEntries) {
  Generator generator(22);
  for (int round = 0; round < 50; ++round) {
    READDIRPLUS3resok ok;
    ok.dir_attributes = generator.make<post_op_attr>();
    // Status, attributes, verifier, end of list, eof.
    std::size_t expected = 4 + encoded_size(ok.dir_attributes) + 8 + 4 + 4;
    ok.reply.entries = generator.make<Chain<entryplus3>>();
    for (const auto& entry : ok.reply.entries.items) expected += 4 + encoded_size(entry);
    EXPECT_EQ(encoded(READDIRPLUS3res(ok)).size(), expected);
  }
}

}  // namespace
}  // namespace test
}  // namespace selvage::xdr
