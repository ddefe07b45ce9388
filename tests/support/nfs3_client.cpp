#include "tests/support/nfs3_client.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>
#include <stdexcept>

namespace selvage::tests {
namespace {

constexpr std::uint32_t mount_program = 100005;

std::uint32_t get_u32(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value = value << 8 | static_cast<std::uint8_t>(bytes.at(at + i));
  }
  return value;
}

/// Every client of a test process starts elsewhere, so that no two of them share xids.
std::uint32_t first_xid() {
  static std::atomic<std::uint32_t> next{std::random_device{}()};
  return next.fetch_add(1u << 20);
}

/// libnfs takes char* for what it only reads while encoding.
char* mutable_data(std::string_view data) {
  return const_cast<char*>(data.data());
}

nfs_fh3 wire(const Bytes& handle) {
  nfs_fh3 fh{};
  fh.data.data_len = static_cast<u_int>(handle.size());
  fh.data.data_val = mutable_data(handle);
  return fh;
}

diropargs3 wire(const Bytes& directory, const std::string& name) {
  diropargs3 where{};
  where.dir = wire(directory);
  where.name = mutable_data(name);
  return where;
}

template <std::size_t N>
void put_verifier(char (&to)[N], std::uint64_t value) {
  const Bytes bytes = XdrWriter{}.u64(value).bytes();
  std::memcpy(to, bytes.data(), N);
}

}  // namespace

XdrWriter& XdrWriter::u32(std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes_.push_back(static_cast<char>(value >> shift & 0xff));
  }
  return *this;
}

XdrWriter& XdrWriter::u64(std::uint64_t value) {
  u32(static_cast<std::uint32_t>(value >> 32));
  return u32(static_cast<std::uint32_t>(value));
}

XdrWriter& XdrWriter::opaque(std::string_view data) {
  u32(static_cast<std::uint32_t>(data.size()));
  return fixed(data);
}

XdrWriter& XdrWriter::fixed(std::string_view data) {
  bytes_.append(data);
  bytes_.append((4 - data.size() % 4) % 4, '\0');
  return *this;
}

Bytes call_message(std::uint32_t xid, std::uint32_t program, std::uint32_t version,
                   std::uint32_t procedure, const Identity& identity, std::string_view arguments) {
  XdrWriter message;
  message.u32(xid).u32(0).u32(2).u32(program).u32(version).u32(procedure);
  if (identity.none) {
    message.u32(0).u32(0);
  } else {
    XdrWriter body;
    body.u32(0).opaque("test").u32(identity.uid).u32(identity.gid);
    body.u32(static_cast<std::uint32_t>(identity.groups.size()));
    for (const std::uint32_t group : identity.groups) body.u32(group);
    message.u32(1).opaque(body.bytes());
  }
  message.u32(0).u32(0);
  return message.bytes() + Bytes(arguments);
}

RpcConnection::RpcConnection(std::uint16_t port, const std::string& address,
                             const std::string& source_address) {
  sockaddr_storage to{};
  socklen_t size = 0;
  if (address.find(':') != std::string::npos) {
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&to);
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    if (inet_pton(AF_INET6, address.c_str(), &in6->sin6_addr) != 1) {
      throw std::runtime_error("bad address");
    }
    size = sizeof *in6;
  } else {
    auto* in = reinterpret_cast<sockaddr_in*>(&to);
    in->sin_family = AF_INET;
    in->sin_port = htons(port);
    if (inet_pton(AF_INET, address.c_str(), &in->sin_addr) != 1) {
      throw std::runtime_error("bad address");
    }
    size = sizeof *in;
  }
  fd_ = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) throw std::runtime_error("socket");
  if (!source_address.empty()) {
    sockaddr_in from{};
    from.sin_family = AF_INET;
    const auto colon = source_address.find(':');
    inet_pton(AF_INET, source_address.substr(0, colon).c_str(), &from.sin_addr);
    if (colon != std::string::npos) {
      from.sin_port =
          htons(static_cast<std::uint16_t>(std::stoi(source_address.substr(colon + 1))));
      const int reuse = 1;
      setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
    }
    if (bind(fd_, reinterpret_cast<sockaddr*>(&from), sizeof from) != 0) {
      throw std::runtime_error("bind");
    }
  }
  if (connect(fd_, reinterpret_cast<sockaddr*>(&to), size) != 0) {
    throw std::runtime_error(std::string("connect: ") + std::strerror(errno));
  }
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

RpcConnection::~RpcConnection() {
  if (fd_ >= 0) close(fd_);
}

bool RpcConnection::send_bytes(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool RpcConnection::send_record(std::string_view message, std::size_t fragment) {
  if (fragment == 0) fragment = std::max<std::size_t>(message.size(), 1);
  Bytes out;
  do {
    const std::string_view part = message.substr(0, fragment);
    message.remove_prefix(part.size());
    const std::uint32_t last = message.empty() ? 0x80000000u : 0;
    out += XdrWriter{}.u32(last | static_cast<std::uint32_t>(part.size())).bytes();
    out += part;
  } while (!message.empty());
  return send_bytes(out);
}

bool RpcConnection::receive_exactly(char* to, std::size_t size, int timeout_ms) {
  while (size > 0) {
    pollfd poll_fd{fd_, POLLIN, 0};
    const int ready = poll(&poll_fd, 1, timeout_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t n = recv(fd_, to, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

std::optional<Bytes> RpcConnection::receive_record(int timeout_ms) {
  Bytes record;
  for (bool last = false; !last;) {
    Bytes mark(4, '\0');
    if (!receive_exactly(mark.data(), mark.size(), timeout_ms)) return std::nullopt;
    const std::uint32_t value = get_u32(mark, 0);
    last = (value & 0x80000000u) != 0;
    const std::size_t size = value & 0x7fffffffu;
    const std::size_t before = record.size();
    record.resize(before + size);
    if (!receive_exactly(record.data() + before, size, timeout_ms)) return std::nullopt;
  }
  return record;
}

std::optional<RpcReply> RpcConnection::receive_reply(int timeout_ms) {
  const std::optional<Bytes> record = receive_record(timeout_ms);
  if (!record) return std::nullopt;
  RpcReply reply;
  reply.xid = get_u32(*record, 0);
  if (get_u32(*record, 4) != 1) throw std::runtime_error("not a reply");
  reply.accepted = get_u32(*record, 8) == 0;
  std::size_t at = 12;
  if (reply.accepted) {
    const std::size_t verifier = get_u32(*record, 16);
    at = 20 + (verifier + 3) / 4 * 4;
  }
  reply.status = get_u32(*record, at);
  reply.results = record->substr(at + 4);
  return reply;
}

bool RpcConnection::closed_by_peer(int timeout_ms) {
  pollfd poll_fd{fd_, POLLIN, 0};
  if (poll(&poll_fd, 1, timeout_ms) <= 0) return false;
  char byte = 0;
  return recv(fd_, &byte, 1, MSG_PEEK) <= 0;
}

void RpcConnection::cut() {
  const linger now{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(fd_);
  fd_ = -1;
}

Bytes bytes_of(const nfs_fh3& handle) {
  return {handle.data.data_val, handle.data.data_len};
}

const fattr3* attributes_of(const post_op_attr& attributes) {
  return attributes.attributes_follow != 0 ? &attributes.post_op_attr_u.attributes : nullptr;
}

const fattr3* after_of(const wcc_data& wcc) {
  return wcc.before.attributes_follow != 0 ? nullptr : attributes_of(wcc.after);
}

sattr3 Sattr::wire() const {
  sattr3 set{};
  if (mode) {
    set.mode.set_it = 1;
    set.mode.set_mode3_u.mode = *mode;
  }
  if (uid) {
    set.uid.set_it = 1;
    set.uid.set_uid3_u.uid = *uid;
  }
  if (gid) {
    set.gid.set_it = 1;
    set.gid.set_gid3_u.gid = *gid;
  }
  if (size) {
    set.size.set_it = 1;
    set.size.set_size3_u.size = *size;
  }
  if (atime_now) set.atime.set_it = SET_TO_SERVER_TIME;
  if (mtime_now) set.mtime.set_it = SET_TO_SERVER_TIME;
  if (atime) {
    set.atime.set_it = SET_TO_CLIENT_TIME;
    set.atime.set_atime_u.atime = *atime;
  }
  if (mtime) {
    set.mtime.set_it = SET_TO_CLIENT_TIME;
    set.mtime.set_mtime_u.mtime = *mtime;
  }
  return set;
}

Nfs3Client::Nfs3Client(std::uint16_t port, Identity identity, const std::string& source_address)
    : connection_(port, "127.0.0.1", source_address),
      identity_(std::move(identity)),
      xid_(first_xid()) {}

void Nfs3Client::fail(const char* what, std::uint32_t value) {
  throw std::runtime_error(std::string(what) + " " + std::to_string(value));
}

RpcReply Nfs3Client::raw(std::uint32_t procedure, std::string_view arguments, std::uint32_t program,
                         std::uint32_t version) {
  const std::uint32_t xid = next_xid();
  const Bytes message = call_message(xid, program, version, procedure, identity_, arguments);
  if (!connection_.send_record(message)) fail("cannot send procedure", procedure);
  std::optional<RpcReply> reply = connection_.receive_reply();
  if (!reply) fail("no reply to procedure", procedure);
  if (reply->xid != xid) fail("reply to another call", reply->xid);
  return std::move(*reply);
}

std::pair<std::uint32_t, Bytes> Nfs3Client::mnt(const std::string& path) {
  const Bytes arguments = XdrWriter{}.opaque(path).bytes();
  const RpcReply reply = raw(1, arguments, mount_program, 3);
  if (!reply.accepted || reply.status != 0) fail("MNT: RPC status", reply.status);
  const std::uint32_t status = get_u32(reply.results, 0);
  if (status != 0) return {status, {}};
  return {0, reply.results.substr(8, get_u32(reply.results, 4))};
}

Answer<GETATTR3res> Nfs3Client::getattr(const Bytes& object) {
  GETATTR3args args{};
  args.object = wire(object);
  return call(args);
}

Answer<SETATTR3res> Nfs3Client::setattr(const Bytes& object, const Sattr& set,
                                        std::optional<nfstime3> guard) {
  SETATTR3args args{};
  args.object = wire(object);
  args.new_attributes = set.wire();
  if (guard) {
    args.guard.check = 1;
    args.guard.sattrguard3_u.obj_ctime = *guard;
  }
  return call(args);
}

Answer<LOOKUP3res> Nfs3Client::lookup(const Bytes& directory, const std::string& name) {
  LOOKUP3args args{};
  args.what = wire(directory, name);
  return call(args);
}

Answer<ACCESS3res> Nfs3Client::access(const Bytes& object, std::uint32_t bits) {
  ACCESS3args args{};
  args.object = wire(object);
  args.access = bits;
  return call(args);
}

Answer<READLINK3res> Nfs3Client::readlink(const Bytes& object) {
  READLINK3args args{};
  args.symlink = wire(object);
  return call(args);
}

Answer<READ3res> Nfs3Client::read(const Bytes& file, std::uint64_t offset, std::uint32_t count) {
  READ3args args{};
  args.file = wire(file);
  args.offset = offset;
  args.count = count;
  return call(args);
}

Answer<WRITE3res> Nfs3Client::write(const Bytes& file, std::uint64_t offset, std::string_view data,
                                    stable_how stable) {
  WRITE3args args{};
  args.file = wire(file);
  args.offset = offset;
  args.count = static_cast<count3>(data.size());
  args.stable = stable;
  args.data.data_len = static_cast<u_int>(data.size());
  args.data.data_val = mutable_data(data);
  return call(args, data.size() + 4096);
}

Answer<COMMIT3res> Nfs3Client::commit(const Bytes& file, std::uint64_t offset,
                                      std::uint32_t count) {
  COMMIT3args args{};
  args.file = wire(file);
  args.offset = offset;
  args.count = count;
  return call(args);
}

Answer<CREATE3res> Nfs3Client::create(const Bytes& directory, const std::string& name,
                                      createmode3 mode, const Sattr& set) {
  CREATE3args args{};
  args.where = wire(directory, name);
  args.how.mode = mode;
  args.how.createhow3_u.obj_attributes = set.wire();
  return call(args);
}

Answer<CREATE3res> Nfs3Client::create_exclusive(const Bytes& directory, const std::string& name,
                                                std::uint64_t verifier) {
  CREATE3args args{};
  args.where = wire(directory, name);
  args.how.mode = EXCLUSIVE;
  put_verifier(args.how.createhow3_u.verf, verifier);
  return call(args);
}

Answer<MKDIR3res> Nfs3Client::mkdir(const Bytes& directory, const std::string& name,
                                    const Sattr& set) {
  MKDIR3args args{};
  args.where = wire(directory, name);
  args.attributes = set.wire();
  return call(args);
}

Answer<SYMLINK3res> Nfs3Client::symlink(const Bytes& directory, const std::string& name,
                                        const std::string& target, const Sattr& set) {
  SYMLINK3args args{};
  args.where = wire(directory, name);
  args.symlink.symlink_attributes = set.wire();
  args.symlink.symlink_data = mutable_data(target);
  return call(args, target.size() + 4096);
}

Answer<MKNOD3res> Nfs3Client::mknod(const Bytes& directory, const std::string& name, ftype3 type,
                                    const Sattr& set, std::uint32_t major, std::uint32_t minor) {
  MKNOD3args args{};
  args.where = wire(directory, name);
  args.what.type = type;
  if (type == NF3CHR || type == NF3BLK) {
    args.what.mknoddata3_u.chr_device.dev_attributes = set.wire();
    args.what.mknoddata3_u.chr_device.spec = {major, minor};
  } else {
    args.what.mknoddata3_u.pipe_attributes = set.wire();
  }
  return call(args);
}

Answer<REMOVE3res> Nfs3Client::remove(const Bytes& directory, const std::string& name) {
  REMOVE3args args{};
  args.object = wire(directory, name);
  return call(args);
}

Answer<RMDIR3res> Nfs3Client::rmdir(const Bytes& directory, const std::string& name) {
  RMDIR3args args{};
  args.object = wire(directory, name);
  return call(args);
}

Answer<RENAME3res> Nfs3Client::rename(const Bytes& from, const std::string& from_name,
                                      const Bytes& to, const std::string& to_name) {
  RENAME3args args{};
  args.from = wire(from, from_name);
  args.to = wire(to, to_name);
  return call(args);
}

Answer<LINK3res> Nfs3Client::link(const Bytes& file, const Bytes& directory,
                                  const std::string& name) {
  LINK3args args{};
  args.file = wire(file);
  args.link = wire(directory, name);
  return call(args);
}

Answer<READDIR3res> Nfs3Client::readdir(const Bytes& directory, std::uint64_t cookie,
                                        std::uint32_t count, std::uint64_t verifier) {
  READDIR3args args{};
  args.dir = wire(directory);
  args.cookie = cookie;
  args.count = count;
  put_verifier(args.cookieverf, verifier);
  return call(args);
}

Answer<READDIRPLUS3res> Nfs3Client::readdirplus(const Bytes& directory, std::uint64_t cookie,
                                                std::uint32_t dircount, std::uint32_t maxcount,
                                                std::uint64_t verifier) {
  READDIRPLUS3args args{};
  args.dir = wire(directory);
  args.cookie = cookie;
  args.dircount = dircount;
  args.maxcount = maxcount;
  put_verifier(args.cookieverf, verifier);
  return call(args);
}

Answer<FSSTAT3res> Nfs3Client::fsstat(const Bytes& object) {
  FSSTAT3args args{};
  args.fsroot = wire(object);
  return call(args);
}

Answer<FSINFO3res> Nfs3Client::fsinfo(const Bytes& object) {
  FSINFO3args args{};
  args.fsroot = wire(object);
  return call(args);
}

Answer<PATHCONF3res> Nfs3Client::pathconf(const Bytes& object) {
  PATHCONF3args args{};
  args.object = wire(object);
  return call(args);
}

Bytes Nfs3Client::root(const std::string& path) {
  auto [status, handle] = mnt(path);
  if (status != 0) fail("MNT", status);
  return std::move(handle);
}

Bytes Nfs3Client::look(const Bytes& directory, const std::string& name) {
  const auto answer = lookup(directory, name);
  if (answer.status() != NFS3_OK) fail("LOOKUP", answer.status());
  return bytes_of(answer->LOOKUP3res_u.resok.object);
}

Bytes Nfs3Client::make_file(const Bytes& directory, const std::string& name, std::uint32_t mode) {
  Sattr set;
  set.mode = mode;
  const auto answer = create(directory, name, GUARDED, set);
  if (answer.status() != NFS3_OK) fail("CREATE", answer.status());
  return bytes_of(answer->CREATE3res_u.resok.obj.post_op_fh3_u.handle);
}

Bytes Nfs3Client::make_directory(const Bytes& directory, const std::string& name,
                                 std::uint32_t mode) {
  Sattr set;
  set.mode = mode;
  const auto answer = mkdir(directory, name, set);
  if (answer.status() != NFS3_OK) fail("MKDIR", answer.status());
  return bytes_of(answer->MKDIR3res_u.resok.obj.post_op_fh3_u.handle);
}

Bytes Nfs3Client::read_all(const Bytes& file) {
  Bytes all;
  while (true) {
    const auto answer = read(file, all.size(), 1u << 20);
    if (answer.status() != NFS3_OK) fail("READ", answer.status());
    const READ3resok& ok = answer->READ3res_u.resok;
    all.append(ok.data.data_val, ok.data.data_len);
    if (ok.eof != 0) return all;
    if (ok.data.data_len == 0) fail("READ: neither data nor end", 0);
  }
}

Bytes write_arguments(const Bytes& file, std::uint64_t offset, std::uint32_t count,
                      std::uint32_t stable, std::string_view data) {
  return XdrWriter{}.opaque(file).u64(offset).u32(count).u32(stable).opaque(data).bytes();
}

}  // namespace selvage::tests
