// MOUNT against rpcgen's code.
#include "xdr/mount3.h"

#include "reference.h"

#include "reference/mount.h"

#include <gtest/gtest.h>

namespace selvage::xdr {

void convert(const dirpath_args& from, ::dirpath& to) {
  convert(from.path, to);
}

void convert(const mountres3& from, ::mountres3& to) {
  convert(from.tag, to.fhs_status);
  if (auto* ok = from.get_if<mountres3_ok>()) {
    convert(ok->fhandle, to.mountres3_u.mountinfo.fhandle);
    convert(ok->auth_flavors, to.mountres3_u.mountinfo.auth_flavors);
  }
}

void convert(const fhstatus& from, ::fhstatus& to) {
  convert(from.tag, to.fhs_status);
  if (auto* handle = from.get_if<fhandle>()) convert(handle->bytes, to.fhstatus_u.fhs_fhandle);
}

void convert(const mountlist& from, ::mountlist& to) {
  ::mountlist* next = &to;
  for (const mountbody& entry : from.entries.items) {
    *next = new_node<::mountbody>();
    convert(entry.ml_hostname, (*next)->ml_hostname);
    convert(entry.ml_directory, (*next)->ml_directory);
    next = &(*next)->ml_next;
  }
  *next = nullptr;
}

void convert(const Chain<groupnode>& from, ::groups& to) {
  ::groups* next = &to;
  for (const groupnode& entry : from.items) {
    *next = new_node<::groupnode>();
    convert(entry.gr_name, (*next)->gr_name);
    next = &(*next)->gr_next;
  }
  *next = nullptr;
}

void convert(const exports& from, ::exports& to) {
  ::exports* next = &to;
  for (const exportnode& entry : from.entries.items) {
    *next = new_node<::exportnode>();
    convert(entry.ex_dir, (*next)->ex_dir);
    convert(entry.ex_groups, (*next)->ex_groups);
    next = &(*next)->ex_next;
  }
  *next = nullptr;
}

namespace test {
namespace {

TEST(Mount3AgainstRpcgen, MNT) {
  check_against_reference<dirpath_args, ::dirpath>(&xdr_dirpath, 1);
  check_against_reference<mountres3, ::mountres3>(&xdr_mountres3, 2);
}

TEST(Mount3AgainstRpcgen, MNTVersion1) {
  check_against_reference<fhstatus, ::fhstatus>(&xdr_fhstatus, 3);
}

TEST(Mount3AgainstRpcgen, DUMP) {
  check_against_reference<mountlist, ::mountlist>(&xdr_mountlist, 4);
}

TEST(Mount3AgainstRpcgen, EXPORT) {
  check_against_reference<exports, ::exports>(&xdr_exports, 5);
}

}  // namespace
}  // namespace test
}  // namespace selvage::xdr
