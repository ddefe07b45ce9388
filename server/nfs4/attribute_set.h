// Attribute numbers (RFC 7530, 5; RFC 8881, 5; RFC 7862, 12; RFC 8275) and sets of them.
#pragma once

#include "xdr/nfs4_types.h"

#include <bitset>
#include <cstdint>
#include <initializer_list>

namespace selvage::server::nfs4 {

enum Attribute : std::uint32_t {
  FATTR4_SUPPORTED_ATTRS = 0,
  FATTR4_TYPE = 1,
  FATTR4_FH_EXPIRE_TYPE = 2,
  FATTR4_CHANGE = 3,
  FATTR4_SIZE = 4,
  FATTR4_LINK_SUPPORT = 5,
  FATTR4_SYMLINK_SUPPORT = 6,
  FATTR4_NAMED_ATTR = 7,
  FATTR4_FSID = 8,
  FATTR4_UNIQUE_HANDLES = 9,
  FATTR4_LEASE_TIME = 10,
  FATTR4_RDATTR_ERROR = 11,
  FATTR4_CANSETTIME = 15,
  FATTR4_CASE_INSENSITIVE = 16,
  FATTR4_CASE_PRESERVING = 17,
  FATTR4_CHOWN_RESTRICTED = 18,
  FATTR4_FILEHANDLE = 19,
  FATTR4_FILEID = 20,
  FATTR4_FILES_AVAIL = 21,
  FATTR4_FILES_FREE = 22,
  FATTR4_FILES_TOTAL = 23,
  FATTR4_HOMOGENEOUS = 26,
  FATTR4_MAXFILESIZE = 27,
  FATTR4_MAXLINK = 28,
  FATTR4_MAXNAME = 29,
  FATTR4_MAXREAD = 30,
  FATTR4_MAXWRITE = 31,
  FATTR4_MODE = 33,
  FATTR4_NO_TRUNC = 34,
  FATTR4_NUMLINKS = 35,
  FATTR4_OWNER = 36,
  FATTR4_OWNER_GROUP = 37,
  FATTR4_RAWDEV = 41,
  FATTR4_SPACE_AVAIL = 42,
  FATTR4_SPACE_FREE = 43,
  FATTR4_SPACE_TOTAL = 44,
  FATTR4_SPACE_USED = 45,
  FATTR4_TIME_ACCESS = 47,
  FATTR4_TIME_ACCESS_SET = 48,
  FATTR4_TIME_DELTA = 51,
  FATTR4_TIME_METADATA = 52,
  FATTR4_TIME_MODIFY = 53,
  FATTR4_TIME_MODIFY_SET = 54,
  FATTR4_MOUNTED_ON_FILEID = 55,
  FATTR4_MODE_SET_MASKED = 74,
  FATTR4_SUPPATTR_EXCLCREAT = 75,
  FATTR4_CHANGE_ATTR_TYPE = 79,
  FATTR4_MODE_UMASK = 81,
};

/// A set of attributes that can hold every one this server knows.
class AttributeSet {
 public:
  static constexpr std::uint32_t words = 3;

  AttributeSet() = default;
  AttributeSet(std::initializer_list<Attribute> attributes) {
    for (const Attribute attribute : attributes) bits_.set(attribute);
  }
  /// What it names beyond our words is `unknown()`.
  explicit AttributeSet(const xdr::bitmap4& wire);
  /// As many words as needed.
  xdr::bitmap4 wire() const;

  bool has(Attribute attribute) const { return bits_.test(attribute); }
  void add(Attribute attribute) { bits_.set(attribute); }
  void remove(Attribute attribute) { bits_.reset(attribute); }
  bool any() const { return bits_.any(); }
  bool unknown() const { return unknown_; }
  bool any_of(const AttributeSet& other) const { return (bits_ & other.bits_).any(); }
  /// Every attribute of this set is in `other`.
  bool within(const AttributeSet& other) const {
    return !unknown_ && (bits_ & ~other.bits_).none();
  }

  friend AttributeSet operator&(AttributeSet a, const AttributeSet& b) {
    a.bits_ &= b.bits_;
    a.unknown_ = false;
    return a;
  }
  friend AttributeSet operator-(AttributeSet a, const AttributeSet& b) {
    a.bits_ &= ~b.bits_;
    return a;
  }

 private:
  std::bitset<std::size_t{words} * 32> bits_;
  bool unknown_ = false;
};

/// supported_attrs of a minor version.
const AttributeSet& supported_attributes(std::uint32_t minor);
/// What SETATTR, CREATE and OPEN may set.
const AttributeSet& writable_attributes(std::uint32_t minor);
/// suppattr_exclcreat: the verifier of an exclusive create is kept in the times.
const AttributeSet& exclusive_create_attributes(std::uint32_t minor);

}  // namespace selvage::server::nfs4
