#include "server/nfs4/attribute_set.h"

namespace selvage::server::nfs4 {
namespace {

const AttributeSet settable{
    FATTR4_SIZE,           FATTR4_MODE, FATTR4_OWNER, FATTR4_OWNER_GROUP, FATTR4_TIME_ACCESS_SET,
    FATTR4_TIME_MODIFY_SET};

AttributeSet all_of(std::uint32_t minor) {
  AttributeSet set{FATTR4_SUPPORTED_ATTRS,
                   FATTR4_TYPE,
                   FATTR4_FH_EXPIRE_TYPE,
                   FATTR4_CHANGE,
                   FATTR4_SIZE,
                   FATTR4_LINK_SUPPORT,
                   FATTR4_SYMLINK_SUPPORT,
                   FATTR4_NAMED_ATTR,
                   FATTR4_FSID,
                   FATTR4_UNIQUE_HANDLES,
                   FATTR4_LEASE_TIME,
                   FATTR4_RDATTR_ERROR,
                   FATTR4_CANSETTIME,
                   FATTR4_CASE_INSENSITIVE,
                   FATTR4_CASE_PRESERVING,
                   FATTR4_CHOWN_RESTRICTED,
                   FATTR4_FILEHANDLE,
                   FATTR4_FILEID,
                   FATTR4_FILES_AVAIL,
                   FATTR4_FILES_FREE,
                   FATTR4_FILES_TOTAL,
                   FATTR4_HOMOGENEOUS,
                   FATTR4_MAXFILESIZE,
                   FATTR4_MAXLINK,
                   FATTR4_MAXNAME,
                   FATTR4_MAXREAD,
                   FATTR4_MAXWRITE,
                   FATTR4_MODE,
                   FATTR4_NO_TRUNC,
                   FATTR4_NUMLINKS,
                   FATTR4_OWNER,
                   FATTR4_OWNER_GROUP,
                   FATTR4_RAWDEV,
                   FATTR4_SPACE_AVAIL,
                   FATTR4_SPACE_FREE,
                   FATTR4_SPACE_TOTAL,
                   FATTR4_SPACE_USED,
                   FATTR4_TIME_ACCESS,
                   FATTR4_TIME_ACCESS_SET,
                   FATTR4_TIME_DELTA,
                   FATTR4_TIME_METADATA,
                   FATTR4_TIME_MODIFY,
                   FATTR4_TIME_MODIFY_SET,
                   FATTR4_MOUNTED_ON_FILEID};
  if (minor >= 1) set.add(FATTR4_SUPPATTR_EXCLCREAT);
  if (minor >= 2) {
    set.add(FATTR4_CHANGE_ATTR_TYPE);
    set.add(FATTR4_MODE_UMASK);
  }
  return set;
}

AttributeSet settable_of(std::uint32_t minor) {
  AttributeSet set = settable;
  if (minor >= 2) set.add(FATTR4_MODE_UMASK);
  return set;
}

/// By minor version.
template <AttributeSet (*Make)(std::uint32_t)>
const AttributeSet& made_once(std::uint32_t minor) {
  static const AttributeSet sets[] = {Make(0), Make(1), Make(2)};
  return sets[minor < 2 ? minor : 2];
}

AttributeSet exclusive_of(std::uint32_t minor) {
  return settable_of(minor) - AttributeSet{FATTR4_TIME_ACCESS_SET, FATTR4_TIME_MODIFY_SET};
}

}  // namespace

AttributeSet::AttributeSet(const xdr::bitmap4& wire) {
  for (std::size_t word = 0; word < wire.items.size(); ++word) {
    if (word >= words) {
      unknown_ = unknown_ || wire.items[word] != 0;
      continue;
    }
    for (std::size_t bit = 0; bit < 32; ++bit) {
      if ((wire.items[word] >> bit & 1U) != 0) bits_.set(word * 32 + bit);
    }
  }
}

xdr::bitmap4 AttributeSet::wire() const {
  xdr::bitmap4 wire;
  for (std::size_t bit = 0; bit < bits_.size(); ++bit) {
    if (!bits_.test(bit)) continue;
    wire.items.resize(bit / 32 + 1);
    wire.items[bit / 32] |= std::uint32_t{1} << bit % 32;
  }
  return wire;
}

const AttributeSet& supported_attributes(std::uint32_t minor) {
  return made_once<all_of>(minor);
}

const AttributeSet& writable_attributes(std::uint32_t minor) {
  return made_once<settable_of>(minor);
}

const AttributeSet& exclusive_create_attributes(std::uint32_t minor) {
  return made_once<exclusive_of>(minor);
}

}  // namespace selvage::server::nfs4
