#include "server/nfs4/attributes.h"

#include "xdr/stream.h"
#include "xdr/types.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace selvage::server::nfs4 {
namespace {

constexpr std::uint32_t fh4_persistent = 0;
constexpr std::uint32_t change_type_is_time_metadata = 3;
constexpr std::uint32_t set_to_server_time = 0;
constexpr std::uint32_t set_to_client_time = 1;

void put_owner(xdr::Sink& sink, std::uint32_t id, const std::optional<std::string>& name) {
  const std::string text = name ? *name : std::to_string(id);
  sink.put(static_cast<std::uint32_t>(text.size()));
  sink.put_opaque(std::as_bytes(std::span(text)));
}

// One attribute after the other, in ascending order.
class Encoder {
 public:
  Encoder(const AttributeSet& wanted, const Facts& facts)
      : wanted_(wanted & supported_attributes(facts.minor) -
                             AttributeSet{FATTR4_TIME_ACCESS_SET, FATTR4_TIME_MODIFY_SET}),
        facts_(facts) {}

  xdr::fattr4 encode() {
    of_the_server_low();
    of_the_object();
    xdr::fattr4 wire;
    wire.attrmask = wanted_.wire();
    const auto bytes = sink_.head();
    const auto to = wire.attr_vals.resize(bytes.size());
    std::ranges::copy(bytes, std::as_writable_bytes(to).begin());
    return wire;
  }

 private:
  bool has(Attribute attribute) const { return wanted_.has(attribute); }
  template <class T>
  void put(Attribute attribute, T value) {
    if (has(attribute)) sink_.put(value);
  }
  void put(Attribute attribute, const AttributeSet& set) {
    if (has(attribute)) xdr::encode(sink_, set.wire());
  }
  void put(Attribute attribute, const timespec& time) {
    if (has(attribute)) xdr::encode(sink_, to_nfstime4(time));
  }

  // 0 to 19
  void of_the_server_low() {
    const storage::Attributes& object = facts_.attributes;
    put(FATTR4_SUPPORTED_ATTRS, supported_attributes(facts_.minor));
    put(FATTR4_TYPE, static_cast<std::uint32_t>(to_ftype4(object.type)));
    put(FATTR4_FH_EXPIRE_TYPE, fh4_persistent);
    put(FATTR4_CHANGE, change_of(object));
    put(FATTR4_SIZE, object.size);
    put(FATTR4_LINK_SUPPORT, true);
    put(FATTR4_SYMLINK_SUPPORT, true);
    put(FATTR4_NAMED_ATTR, false);
    if (has(FATTR4_FSID)) xdr::encode(sink_, facts_.fsid);
    put(FATTR4_UNIQUE_HANDLES, true);
    put(FATTR4_LEASE_TIME, facts_.lease_seconds);
    put(FATTR4_RDATTR_ERROR, static_cast<std::uint32_t>(facts_.rdattr_error));
    put(FATTR4_CANSETTIME, true);
    put(FATTR4_CASE_INSENSITIVE, false);
    put(FATTR4_CASE_PRESERVING, true);
    put(FATTR4_CHOWN_RESTRICTED, true);
    if (has(FATTR4_FILEHANDLE)) xdr::encode(sink_, facts_.handle);
  }

  // 20 to 81
  void of_the_object() {
    const storage::Attributes& object = facts_.attributes;
    const storage::FileSystemUsage usage = facts_.usage.value_or(storage::FileSystemUsage{});
    const storage::FileSystemLimits limits = facts_.limits.value_or(storage::FileSystemLimits{});
    put(FATTR4_FILEID, object.fileid);
    put(FATTR4_FILES_AVAIL, usage.available_files);
    put(FATTR4_FILES_FREE, usage.free_files);
    put(FATTR4_FILES_TOTAL, usage.total_files);
    put(FATTR4_HOMOGENEOUS, true);
    put(FATTR4_MAXFILESIZE, std::min(limits.max_file_size, max_offset));
    put(FATTR4_MAXLINK, limits.max_links);
    put(FATTR4_MAXNAME, limits.max_name);
    put(FATTR4_MAXREAD, std::uint64_t{max_io_bytes});
    put(FATTR4_MAXWRITE, std::uint64_t{max_io_bytes});
    put(FATTR4_MODE, object.mode);
    put(FATTR4_NO_TRUNC, true);
    put(FATTR4_NUMLINKS, object.nlink);
    if (has(FATTR4_OWNER)) put_owner(sink_, object.uid, facts_.owner);
    if (has(FATTR4_OWNER_GROUP)) put_owner(sink_, object.gid, facts_.group);
    if (has(FATTR4_RAWDEV)) {
      xdr::encode(sink_, xdr::specdata4{object.rdev_major, object.rdev_minor});
    }
    put(FATTR4_SPACE_AVAIL, usage.available_bytes);
    put(FATTR4_SPACE_FREE, usage.free_bytes);
    put(FATTR4_SPACE_TOTAL, usage.total_bytes);
    put(FATTR4_SPACE_USED, object.used);
    put(FATTR4_TIME_ACCESS, object.atime);
    put(FATTR4_TIME_DELTA, timespec{0, 1});
    put(FATTR4_TIME_METADATA, object.ctime);
    put(FATTR4_TIME_MODIFY, object.mtime);
    put(FATTR4_MOUNTED_ON_FILEID, facts_.mounted_on_fileid);
    put(FATTR4_SUPPATTR_EXCLCREAT, exclusive_create_attributes(facts_.minor));
    put(FATTR4_CHANGE_ATTR_TYPE, change_type_is_time_metadata);
    if (has(FATTR4_MODE_UMASK)) wanted_.remove(FATTR4_MODE_UMASK);  // Set only.
  }

  AttributeSet wanted_;
  const Facts& facts_;
  xdr::Sink sink_;
};

class Decoder {
 public:
  Decoder(const xdr::fattr4& wire, const AttributeSet& given, OwnerNames& owners)
      : source_(std::as_bytes(wire.attr_vals.bytes())), owners_(owners) {
    wanted_.given = given;
  }

  // In ascending order.
  Outcome<NewAttributes> decode() {
    xdr::nfsstat4 status = size();
    if (status == xdr::NFS4_OK) status = mode();
    if (status == xdr::NFS4_OK) status = owner(FATTR4_OWNER, OwnerKind::user, wanted_.set.uid);
    if (status == xdr::NFS4_OK) {
      status = owner(FATTR4_OWNER_GROUP, OwnerKind::group, wanted_.set.gid);
    }
    if (status == xdr::NFS4_OK) status = time(FATTR4_TIME_ACCESS_SET, wanted_.set.atime);
    if (status == xdr::NFS4_OK) status = time(FATTR4_TIME_MODIFY_SET, wanted_.set.mtime);
    if (status == xdr::NFS4_OK) status = mode_umask();
    if (status != xdr::NFS4_OK) return status;
    if (source_.remaining() != 0) return xdr::NFS4ERR_BADXDR;
    return wanted_;
  }

 private:
  xdr::nfsstat4 size() {
    if (!wanted_.given.has(FATTR4_SIZE)) return xdr::NFS4_OK;
    std::uint64_t size = 0;
    if (!source_.get(size)) return xdr::NFS4ERR_BADXDR;
    wanted_.set.size = size;
    return size > max_offset ? xdr::NFS4ERR_FBIG : xdr::NFS4_OK;
  }

  xdr::nfsstat4 mode() {
    if (!wanted_.given.has(FATTR4_MODE)) return xdr::NFS4_OK;
    std::uint32_t mode = 0;
    if (!source_.get(mode)) return xdr::NFS4ERR_BADXDR;
    if (mode > 07777) return xdr::NFS4ERR_INVAL;
    wanted_.set.mode = mode;
    return xdr::NFS4_OK;
  }

  xdr::nfsstat4 owner(Attribute which, OwnerKind kind, std::optional<std::uint32_t>& id) {
    if (!wanted_.given.has(which)) return xdr::NFS4_OK;
    std::uint32_t length = 0;
    std::span<const std::byte> view;
    if (!source_.get(length) || length > xdr::nfs4_name_max || !source_.view_opaque(length, view)) {
      return xdr::NFS4ERR_BADXDR;
    }
    const auto owner = owners_.id(kind, {reinterpret_cast<const char*>(view.data()), view.size()});
    if (!owner) return owner.status();
    id = *owner;
    return xdr::NFS4_OK;
  }

  xdr::nfsstat4 time(Attribute which, storage::SetTime& set) {
    if (!wanted_.given.has(which)) return xdr::NFS4_OK;
    std::uint32_t how = 0;
    if (!source_.get(how)) return xdr::NFS4ERR_BADXDR;
    if (how == set_to_server_time) {
      set.how = storage::SetTime::How::server_time;
      return xdr::NFS4_OK;
    }
    xdr::nfstime4 time;
    if (how != set_to_client_time || !xdr::decode(source_, time)) return xdr::NFS4ERR_BADXDR;
    if (time.nseconds >= 1'000'000'000) return xdr::NFS4ERR_INVAL;
    set.how = storage::SetTime::How::client_time;
    set.time.tv_sec = time.seconds;
    set.time.tv_nsec = time.nseconds;
    return xdr::NFS4_OK;
  }

  // RFC 8275: the mode as the program gave it, and its umask. A default ACL would take the place of
  // the umask; the kernel applies it to the mode that is left.
  xdr::nfsstat4 mode_umask() {
    if (!wanted_.given.has(FATTR4_MODE_UMASK)) return xdr::NFS4_OK;
    std::uint32_t mode = 0;
    std::uint32_t umask = 0;
    if (!source_.get(mode) || !source_.get(umask)) return xdr::NFS4ERR_BADXDR;
    if (wanted_.given.has(FATTR4_MODE)) return xdr::NFS4ERR_INVAL;
    wanted_.set.mode = mode & 07777U & ~(umask & 0777U);
    return xdr::NFS4_OK;
  }

  xdr::Source source_;
  OwnerNames& owners_;
  NewAttributes wanted_;
};

}  // namespace

const AttributeSet& usage_attributes() {
  static const AttributeSet set{FATTR4_FILES_AVAIL, FATTR4_FILES_FREE, FATTR4_FILES_TOTAL,
                                FATTR4_SPACE_AVAIL, FATTR4_SPACE_FREE, FATTR4_SPACE_TOTAL};
  return set;
}

const AttributeSet& limits_attributes() {
  static const AttributeSet set{FATTR4_MAXFILESIZE, FATTR4_MAXLINK, FATTR4_MAXNAME};
  return set;
}

xdr::fattr4 encode_attributes(const AttributeSet& wanted, const Facts& facts) {
  return Encoder(wanted, facts).encode();
}

xdr::changeid4 change_of(const storage::Attributes& attributes) {
  return static_cast<std::uint64_t>(attributes.ctime.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(attributes.ctime.tv_nsec);
}

Outcome<NewAttributes> decode_attributes(const xdr::fattr4& wire, std::uint32_t minor,
                                         OwnerNames& owners) {
  const AttributeSet given(wire.attrmask);
  if (!given.within(supported_attributes(minor))) return xdr::NFS4ERR_ATTRNOTSUPP;
  if (!given.within(writable_attributes(minor))) return xdr::NFS4ERR_INVAL;
  return Decoder(wire, given, owners).decode();
}

xdr::nfstime4 to_nfstime4(const timespec& time) {
  xdr::nfstime4 wire;
  wire.seconds = time.tv_sec;
  wire.nseconds = static_cast<std::uint32_t>(time.tv_nsec);
  return wire;
}

xdr::nfs_ftype4 to_ftype4(storage::FileType type) {
  switch (type) {
    case storage::FileType::regular:
      return xdr::NF4REG;
    case storage::FileType::directory:
      return xdr::NF4DIR;
    case storage::FileType::block:
      return xdr::NF4BLK;
    case storage::FileType::character:
      return xdr::NF4CHR;
    case storage::FileType::symlink:
      return xdr::NF4LNK;
    case storage::FileType::socket:
      return xdr::NF4SOCK;
    case storage::FileType::fifo:
      return xdr::NF4FIFO;
  }
  return xdr::NF4REG;
}

}  // namespace selvage::server::nfs4
