// A synchronous NFSv3 caller for tests. Arguments and results go through libnfs's XDR, not ours, so
// that both sides of the wire do not share a mistake; RPC records are built by hand, so that a test
// can send what no proper client sends.
#pragma once

#include <nfsc/libnfs-zdr.h>
// The generated headers of libnfs need libnfs-zdr.h before them.
#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace selvage::tests {

/// Octets. std::string since that is what tests compare and libnfs takes.
using Bytes = std::string;

/// Big-endian XDR by hand: what is to be sent byte for byte.
class XdrWriter {
 public:
  XdrWriter& u32(std::uint32_t value);
  XdrWriter& u64(std::uint64_t value);
  XdrWriter& opaque(std::string_view data);  ///< Length, data, zero padding.
  XdrWriter& fixed(std::string_view data);   ///< Data and padding, no length.
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

/// Who calls.
struct Identity {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;
  bool none = false;  ///< AUTH_NONE instead of AUTH_SYS.
};

/// One call message without its record mark.
Bytes call_message(std::uint32_t xid, std::uint32_t program, std::uint32_t version,
                   std::uint32_t procedure, const Identity& identity, std::string_view arguments);

/// A reply message taken apart.
struct RpcReply {
  std::uint32_t xid = 0;
  bool accepted = false;
  std::uint32_t status = 0;  ///< accept_stat if accepted, else reject_stat.
  Bytes results;             ///< What follows the status.
};

/// A blocking TCP connection that carries RPC records. Throws std::runtime_error on what a test
/// cannot go on from.
class RpcConnection {
 public:
  /// `source_address`: IPv4, or IPv4 ':' port.
  explicit RpcConnection(std::uint16_t port, const std::string& address = "127.0.0.1",
                         const std::string& source_address = "");
  ~RpcConnection();
  RpcConnection(const RpcConnection&) = delete;
  RpcConnection& operator=(const RpcConnection&) = delete;

  /// As they are, without a record mark. False if the peer has closed.
  bool send_bytes(std::string_view bytes);

  /// As one record; in fragments of `fragment` bytes if that is not 0.
  bool send_record(std::string_view message, std::size_t fragment = 0);

  /// The next record; nullopt if the peer closed or nothing came in time.
  std::optional<Bytes> receive_record(int timeout_ms = 60000);
  std::optional<RpcReply> receive_reply(int timeout_ms = 60000);

  /// True once the peer has closed, having sent nothing more.
  bool closed_by_peer(int timeout_ms = 60000);

  /// Closes with RST, so that nothing that is still to come can be delivered.
  void cut();

 private:
  bool receive_exactly(char* to, std::size_t size, int timeout_ms);
  int fd_ = -1;
};

/// A decoded result; owns the memory that libnfs's pointers lead to.
template <class T>
class Answer {
 public:
  Answer() : memory_(std::make_unique<Memory>()) {}
  const T* operator->() const { return &memory_->value; }
  const T& operator*() const { return memory_->value; }
  nfsstat3 status() const { return memory_->value.status; }

  /// False if the bytes are no such result, or more than one.
  bool decode(Bytes results, std::uint32_t (*decoder)(ZDR*, T*)) {
    memory_->results = std::move(results);
    libnfs_zdrmem_create(&memory_->zdr, memory_->results.data(),
                         static_cast<std::uint32_t>(memory_->results.size()), ZDR_DECODE);
    return decoder(&memory_->zdr, &memory_->value) != 0 &&
           static_cast<std::size_t>(memory_->zdr.pos) == memory_->results.size();
  }

 private:
  struct Memory {
    Bytes results;
    ZDR zdr{};
    T value{};
    ~Memory() { libnfs_zdr_destroy(&zdr); }
  };
  std::unique_ptr<Memory> memory_;
};

/// What belongs to each procedure's arguments.
template <class Args>
struct Nfs3Procedure;

#define SELVAGE_TEST_NFS3_PROCEDURE(name, procedure_number)   \
  template <>                                                 \
  struct Nfs3Procedure<name##3args> {                         \
    static constexpr std::uint32_t number = procedure_number; \
    using Results = name##3res;                               \
    static std::uint32_t encode(ZDR* z, name##3args * v) {    \
      return zdr_##name##3args(z, v);                         \
    }                                                         \
    static std::uint32_t decode(ZDR* z, Results* v) {         \
      return zdr_##name##3res(z, v);                          \
    }                                                         \
  }
SELVAGE_TEST_NFS3_PROCEDURE(GETATTR, 1);
SELVAGE_TEST_NFS3_PROCEDURE(SETATTR, 2);
SELVAGE_TEST_NFS3_PROCEDURE(LOOKUP, 3);
SELVAGE_TEST_NFS3_PROCEDURE(ACCESS, 4);
SELVAGE_TEST_NFS3_PROCEDURE(READLINK, 5);
SELVAGE_TEST_NFS3_PROCEDURE(READ, 6);
SELVAGE_TEST_NFS3_PROCEDURE(WRITE, 7);
SELVAGE_TEST_NFS3_PROCEDURE(CREATE, 8);
SELVAGE_TEST_NFS3_PROCEDURE(MKDIR, 9);
SELVAGE_TEST_NFS3_PROCEDURE(SYMLINK, 10);
SELVAGE_TEST_NFS3_PROCEDURE(MKNOD, 11);
SELVAGE_TEST_NFS3_PROCEDURE(REMOVE, 12);
SELVAGE_TEST_NFS3_PROCEDURE(RMDIR, 13);
SELVAGE_TEST_NFS3_PROCEDURE(RENAME, 14);
SELVAGE_TEST_NFS3_PROCEDURE(LINK, 15);
SELVAGE_TEST_NFS3_PROCEDURE(READDIR, 16);
SELVAGE_TEST_NFS3_PROCEDURE(READDIRPLUS, 17);
SELVAGE_TEST_NFS3_PROCEDURE(FSSTAT, 18);
SELVAGE_TEST_NFS3_PROCEDURE(FSINFO, 19);
SELVAGE_TEST_NFS3_PROCEDURE(PATHCONF, 20);
SELVAGE_TEST_NFS3_PROCEDURE(COMMIT, 21);
#undef SELVAGE_TEST_NFS3_PROCEDURE

/// The arguments as libnfs encodes them. Pointers inside must lead to live memory.
template <class Args>
Bytes encode_arguments(Args arguments, std::size_t room = 4096) {
  Bytes buffer(room, '\0');
  ZDR zdr{};
  libnfs_zdrmem_create(&zdr, buffer.data(), static_cast<std::uint32_t>(room), ZDR_ENCODE);
  const bool encoded = Nfs3Procedure<Args>::encode(&zdr, &arguments) != 0;
  buffer.resize(encoded ? static_cast<std::size_t>(zdr.pos) : 0);
  libnfs_zdr_destroy(&zdr);
  return buffer;
}

Bytes bytes_of(const nfs_fh3& handle);
/// nullptr if they do not follow.
const fattr3* attributes_of(const post_op_attr& attributes);
/// The attributes after the operation; nullptr if absent, or if `before` is claimed.
const fattr3* after_of(const wcc_data& wcc);

/// Which attributes a call sets; the empty ones stay.
struct Sattr {
  std::optional<std::uint32_t> mode, uid, gid;
  std::optional<std::uint64_t> size;
  bool atime_now = false, mtime_now = false;
  std::optional<nfstime3> atime, mtime;
  sattr3 wire() const;
};

/// One client: a connection, an identity, and one function per procedure. Not thread-safe.
class Nfs3Client {
 public:
  explicit Nfs3Client(std::uint16_t port, Identity identity = {},
                      const std::string& source_address = "");

  RpcConnection& connection() { return connection_; }
  Identity& identity() { return identity_; }
  std::uint32_t next_xid() { return ++xid_; }

  /// Sends and waits. Throws if the connection breaks.
  RpcReply raw(std::uint32_t procedure, std::string_view arguments, std::uint32_t program = 100003,
               std::uint32_t version = 3);

  /// Throws unless the RPC is accepted and the results decode to the last byte.
  template <class Args>
  Answer<typename Nfs3Procedure<Args>::Results> call(const Args& arguments,
                                                     std::size_t room = 4096) {
    Answer<typename Nfs3Procedure<Args>::Results> answer;
    const Bytes encoded = encode_arguments(arguments, room);
    RpcReply reply = raw(Nfs3Procedure<Args>::number, encoded);
    if (!reply.accepted || reply.status != 0) fail("RPC status", reply.status);
    if (!answer.decode(std::move(reply.results), &Nfs3Procedure<Args>::decode)) {
      fail("results do not decode, procedure", Nfs3Procedure<Args>::number);
    }
    return answer;
  }

  /// MOUNT3 MNT: mountstat3 and, if that is 0, the root's handle.
  std::pair<std::uint32_t, Bytes> mnt(const std::string& path);

  Answer<GETATTR3res> getattr(const Bytes& object);
  Answer<SETATTR3res> setattr(const Bytes& object, const Sattr& set,
                              std::optional<nfstime3> guard = std::nullopt);
  Answer<LOOKUP3res> lookup(const Bytes& directory, const std::string& name);
  Answer<ACCESS3res> access(const Bytes& object, std::uint32_t bits = 0x3f);
  Answer<READLINK3res> readlink(const Bytes& object);
  Answer<READ3res> read(const Bytes& file, std::uint64_t offset, std::uint32_t count);
  Answer<WRITE3res> write(const Bytes& file, std::uint64_t offset, std::string_view data,
                          stable_how stable = FILE_SYNC);
  Answer<COMMIT3res> commit(const Bytes& file, std::uint64_t offset = 0, std::uint32_t count = 0);
  Answer<CREATE3res> create(const Bytes& directory, const std::string& name,
                            createmode3 mode = UNCHECKED, const Sattr& set = {});
  Answer<CREATE3res> create_exclusive(const Bytes& directory, const std::string& name,
                                      std::uint64_t verifier);
  Answer<MKDIR3res> mkdir(const Bytes& directory, const std::string& name, const Sattr& set = {});
  Answer<SYMLINK3res> symlink(const Bytes& directory, const std::string& name,
                              const std::string& target, const Sattr& set = {});
  Answer<MKNOD3res> mknod(const Bytes& directory, const std::string& name, ftype3 type,
                          const Sattr& set = {}, std::uint32_t major = 0, std::uint32_t minor = 0);
  Answer<REMOVE3res> remove(const Bytes& directory, const std::string& name);
  Answer<RMDIR3res> rmdir(const Bytes& directory, const std::string& name);
  Answer<RENAME3res> rename(const Bytes& from, const std::string& from_name, const Bytes& to,
                            const std::string& to_name);
  Answer<LINK3res> link(const Bytes& file, const Bytes& directory, const std::string& name);
  Answer<READDIR3res> readdir(const Bytes& directory, std::uint64_t cookie, std::uint32_t count,
                              std::uint64_t verifier = 0);
  Answer<READDIRPLUS3res> readdirplus(const Bytes& directory, std::uint64_t cookie,
                                      std::uint32_t dircount, std::uint32_t maxcount,
                                      std::uint64_t verifier = 0);
  Answer<FSSTAT3res> fsstat(const Bytes& object);
  Answer<FSINFO3res> fsinfo(const Bytes& object);
  Answer<PATHCONF3res> pathconf(const Bytes& object);

  /// Shortcuts that throw unless the call succeeds.
  Bytes root(const std::string& path);
  Bytes look(const Bytes& directory, const std::string& name);
  Bytes make_file(const Bytes& directory, const std::string& name, std::uint32_t mode = 0644);
  Bytes make_directory(const Bytes& directory, const std::string& name, std::uint32_t mode = 0755);
  Bytes read_all(const Bytes& file);

 private:
  [[noreturn]] static void fail(const char* what, std::uint32_t value);
  RpcConnection connection_;
  Identity identity_;
  std::uint32_t xid_;
};

/// The arguments of a WRITE with the payload length told apart from `count`.
Bytes write_arguments(const Bytes& file, std::uint64_t offset, std::uint32_t count,
                      std::uint32_t stable, std::string_view data);

}  // namespace selvage::tests
