// nfs-metadata: how many names a server makes, looks at and removes in a second.
//
// Each connection stands for one client: it has a thread, a TCP connection, a directory and, in
// NFSv4.1, a session of its own, and sends one call after the other. What is sent is what a Linux
// client sends for a file that is made and closed, looked at, and removed: in NFSv3 CREATE,
// LOOKUP, REMOVE; in NFSv4.1 OPEN and CLOSE (two COMPOUNDs), LOOKUP with GETATTR, REMOVE. Like
// nfs-records it has nothing of selvage in it.
//
// One JSON object goes to standard output. Exit status: 0 all well, 1 the server answered with
// errors, 2 the test could not be run.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

const char* const kUsage =
    "usage: nfs-metadata --port P --export PATH [--host ADDR] [--version 3|4] [--connections C]\n"
    "                    [--files N]\n"
    "4 is NFSv4.1; N files for each connection (500), C connections (1); NFS and MOUNT on port "
    "P.\n";

struct Options {
  std::string host = "127.0.0.1";
  unsigned port = 0;
  std::string path;
  unsigned version = 3;
  unsigned connections = 1;
  unsigned files = 500;
};

// ---------------------------------------------------------------------------------------------
// XDR and RPC

class Out {
 public:
  Out& u32(std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes_.push_back(char(value >> shift));
    return *this;
  }
  Out& u64(std::uint64_t value) {
    return u32(std::uint32_t(value >> 32)).u32(std::uint32_t(value));
  }
  Out& fixed(const std::string& data) {
    bytes_ += data;
    while (bytes_.size() % 4 != 0) bytes_.push_back('\0');
    return *this;
  }
  Out& opaque(const std::string& data) { return u32(std::uint32_t(data.size())).fixed(data); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class In {
 public:
  explicit In(std::string bytes) : bytes_(std::move(bytes)) {}
  std::uint32_t u32() {
    std::uint32_t value = 0;
    for (const char byte : fixed(4)) value = value << 8 | static_cast<unsigned char>(byte);
    return value;
  }
  std::uint64_t u64() {
    const std::uint64_t high = u32();
    return high << 32 | u32();
  }
  std::string fixed(std::size_t size) {
    const std::size_t padded = (size + 3) / 4 * 4;
    if (padded > bytes_.size() - at_) throw std::runtime_error("a reply ends too early");
    at_ += padded;
    return bytes_.substr(at_ - padded, size);
  }
  std::string opaque() { return fixed(u32()); }
  void skip_bitmap() { fixed(std::size_t{4} * u32()); }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

void require(bool good, const std::string& what) {
  if (!good) throw std::runtime_error(what);
}

class Connection {
 public:
  explicit Connection(const Options& o) {
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(std::uint16_t(o.port));
    require(inet_pton(AF_INET, o.host.c_str(), &to.sin_addr) == 1, "--host: not an IPv4 address");
    require(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0, "connect");
    const int one = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    Out credential;
    credential.u32(0).opaque("nfs-metadata").u32(0).u32(0).u32(0);
    credential_ = credential.bytes();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { close(fd_); }

  In call(std::uint32_t program, std::uint32_t version, std::uint32_t procedure, const Out& args) {
    Out message;
    message.u32(++xid_).u32(0).u32(2).u32(program).u32(version).u32(procedure);
    message.u32(1).opaque(credential_).u32(0).u32(0).fixed(args.bytes());
    Out record;
    record.u32(0x80000000U | std::uint32_t(message.bytes().size())).fixed(message.bytes());
    std::size_t sent = 0;
    while (sent < record.bytes().size()) {
      const ssize_t n = send(fd_, record.bytes().data() + sent, record.bytes().size() - sent, 0);
      require(n > 0, "send");
      sent += std::size_t(n);
    }
    In reply(receive());
    require(reply.u32() == xid_ && reply.u32() == 1 && reply.u32() == 0, "a call was denied");
    reply.u32();
    reply.opaque();
    require(reply.u32() == 0, "a call was not accepted");
    return reply;
  }

 private:
  // The one reply that is on its way, without its mark: mostly a single system call.
  std::string receive() {
    std::array<char, 16384> bytes;
    std::size_t have = 0;
    std::size_t want = 4;
    while (have < want) {
      const ssize_t n = recv(fd_, bytes.data() + have, bytes.size() - have, 0);
      require(n > 0, "receive");
      have += std::size_t(n);
      if (have < 4 || want > 4) continue;
      const std::uint32_t mark = In({bytes.data(), 4}).u32();
      require((mark & 0x80000000U) != 0, "a reply in several fragments");
      want = 4 + std::size_t{mark & 0x7fffffffU};
      require(want <= bytes.size(), "a reply that is too long");
    }
    return {bytes.data() + 4, want - 4};
  }

  int fd_ = -1;
  // The server would take a call with an xid of an earlier run for its repetition.
  std::uint32_t xid_ = std::random_device{}();
  std::string credential_;
};

// ---------------------------------------------------------------------------------------------
// The two protocols: a directory of one's own, and names in it

class Client {
 public:
  virtual ~Client() = default;
  virtual void make_directory(const std::string& name) = 0;
  virtual void remove_directory(const std::string& name) = 0;
  virtual void create(const std::string& name) = 0;
  virtual void look(const std::string& name) = 0;
  virtual void remove(const std::string& name) = 0;
};

class V3 final : public Client {
 public:
  explicit V3(const Options& o) : connection_(o) {
    In reply = connection_.call(100005, 3, 1, Out().opaque(o.path));
    require(reply.u32() == 0, "MOUNT");
    root_ = reply.opaque();
  }
  void make_directory(const std::string& name) override {
    Out args = in(root_, name);
    In reply = run(9, args.u32(0).u32(0).u32(0).u32(0).u32(0).u32(0), "MKDIR");
    require(reply.u32() == 1, "MKDIR without a handle");
    directory_ = reply.opaque();
  }
  void remove_directory(const std::string& name) override { run(13, in(root_, name), "RMDIR"); }
  void create(const std::string& name) override {
    Out args = in(directory_, name);
    run(8, args.u32(1).u32(1).u32(0644).u32(0).u32(0).u32(0).u32(0).u32(0), "CREATE");
  }
  void look(const std::string& name) override { run(3, in(directory_, name), "LOOKUP"); }
  void remove(const std::string& name) override { run(12, in(directory_, name), "REMOVE"); }

 private:
  static Out in(const std::string& directory, const std::string& name) {
    return Out().opaque(directory).opaque(name);
  }
  In run(std::uint32_t procedure, const Out& args, const std::string& what) {
    In reply = connection_.call(100003, 3, procedure, args);
    const std::uint32_t status = reply.u32();
    require(status == 0, what + ": status " + std::to_string(status));
    return reply;
  }

  Connection connection_;
  std::string root_;
  std::string directory_;
};

class V41 final : public Client {
 public:
  V41(const Options& o, unsigned number) : connection_(o) {
    const std::string verifier(8, char('a' + number % 26));
    owner_ = "nfs-metadata " + std::to_string(getpid()) + " " + std::to_string(number);
    Out exchange;
    exchange.u32(42).fixed(verifier).opaque(owner_).u32(0).u32(0).u32(0);
    In known = compound(1, exchange, "EXCHANGE_ID");
    known.u32();
    known.u32();
    client_ = known.u64();
    Out create;
    create.u32(43).u64(client_).u32(known.u32()).u32(0);
    for (int channel = 0; channel < 2; ++channel) {
      create.u32(0).u32(65536).u32(65536).u32(4096).u32(16).u32(1).u32(0);
    }
    create.u32(0x40000000).u32(1).u32(0);
    In made = compound(1, create, "CREATE_SESSION");
    made.u32();
    made.u32();
    session_ = made.fixed(16);
    run(1, Out().u32(58).u32(0), "RECLAIM_COMPLETE");
    Out walk;
    walk.u32(24);
    std::uint32_t operations = 2;
    for (std::size_t at = 1; at < o.path.size(); ++operations) {
      const std::size_t end = std::min(o.path.find('/', at), o.path.size());
      walk.u32(15).opaque(o.path.substr(at, end - at));
      at = end + 1;
    }
    root_ = handle(run(operations, walk.u32(10), "LOOKUP of the export"), operations);
  }
  void make_directory(const std::string& name) override {
    Out args = in(root_);
    args.u32(6).u32(2).opaque(name).u32(0).u32(0).u32(10);
    In reply = run(3, args, "CREATE of a directory");
    skip_results(reply, 1);
    reply.fixed(4 + 4 + 20);
    reply.skip_bitmap();
    reply.fixed(8);
    directory_ = reply.opaque();
  }
  void remove_directory(const std::string& name) override {
    run(2, in(root_).u32(28).opaque(name), "REMOVE of a directory");
  }
  void create(const std::string& name) override {
    Out open = in(directory_);
    open.u32(18).u32(0).u32(3).u32(0).u64(client_).opaque(owner_).u32(1).u32(0);
    open.u32(2).u32(0).u32(2).opaque(Out().u32(0644).bytes()).u32(0).opaque(name);
    open.u32(10).u32(9).u32(1).u32(0x0010011a);
    In reply = run(4, open, "OPEN");
    skip_results(reply, 1);
    reply.fixed(8);
    const std::string stateid = reply.fixed(16);
    reply.fixed(20 + 4);
    reply.skip_bitmap();
    require(reply.u32() == 0, "a delegation that nobody asked for");
    reply.fixed(8);
    run(2, in(reply.opaque()).u32(4).u32(0).fixed(stateid), "CLOSE");
  }
  void look(const std::string& name) override {
    run(4, in(directory_).u32(15).opaque(name).u32(10).u32(9).u32(1).u32(0x0010011a), "LOOKUP");
  }
  void remove(const std::string& name) override {
    run(2, in(directory_).u32(28).opaque(name), "REMOVE");
  }

 private:
  static Out in(const std::string& handle) { return Out().u32(22).opaque(handle); }
  // After SEQUENCE's result: that of PUTFH and the like.
  static void skip_results(In& reply, int count) {
    reply.fixed(std::size_t{8} * std::size_t(count));
  }
  static std::string handle(In reply, std::uint32_t operations) {
    skip_results(reply, int(operations) - 1);
    reply.fixed(8);
    return reply.opaque();
  }
  In compound(std::uint32_t operations, const Out& body, const std::string& what) {
    Out args;
    args.u32(0).u32(1).u32(operations).fixed(body.bytes());
    In reply = connection_.call(100003, 4, 1, args);
    const std::uint32_t status = reply.u32();
    require(status == 0, what + ": status " + std::to_string(status));
    reply.opaque();
    reply.u32();
    return reply;
  }
  In run(std::uint32_t operations, const Out& body, const std::string& what) {
    Out all;
    all.u32(53).fixed(session_).u32(++sequence_).u32(0).u32(0).u32(0).fixed(body.bytes());
    In reply = compound(operations + 1, all, what);
    reply.fixed(4 + 4 + 16 + 20);
    return reply;
  }

  Connection connection_;
  std::string owner_;
  std::uint64_t client_ = 0;
  std::string session_;
  std::uint32_t sequence_ = 0;
  std::string root_;
  std::string directory_;
};

// ---------------------------------------------------------------------------------------------

using Step = void (Client::*)(const std::string&);

/// All connections at once; operations in a second.
double rate(const Options& o, std::vector<std::unique_ptr<Client>>& clients, Step step) {
  std::latch ready(std::ptrdiff_t(clients.size()) + 1);
  std::vector<std::string> errors(clients.size());
  std::vector<std::thread> threads;
  for (std::size_t c = 0; c < clients.size(); ++c) {
    threads.emplace_back([&, c] {
      ready.arrive_and_wait();
      try {
        for (unsigned i = 0; i < o.files; ++i) (*clients[c].*step)("file-" + std::to_string(i));
      } catch (const std::exception& error) {
        errors[c] = error.what();
      }
    });
  }
  ready.arrive_and_wait();
  const auto began = std::chrono::steady_clock::now();
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  for (const std::string& error : errors) require(error.empty(), error);
  return double(clients.size()) * o.files / seconds.count();
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    const auto number = [&] { return unsigned(std::stoul(value)); };
    if (name == "--host") {
      o.host = value;
    } else if (name == "--port") {
      o.port = number();
    } else if (name == "--export") {
      o.path = value;
    } else if (name == "--version") {
      o.version = number();
    } else if (name == "--connections") {
      o.connections = number();
    } else if (name == "--files") {
      o.files = number();
    } else {
      throw std::invalid_argument(name);
    }
  }
  const bool good = argc % 2 == 1 && o.port != 0 && !o.path.empty() && o.path[0] == '/' &&
                    (o.version == 3 || o.version == 4) && o.connections > 0 && o.files > 0;
  if (!good) throw std::invalid_argument("options");
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  try {
    o = parse(argc, argv);
  } catch (const std::exception&) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  try {
    std::vector<std::unique_ptr<Client>> clients;
    for (unsigned c = 0; c < o.connections; ++c) {
      if (o.version == 3) {
        clients.push_back(std::make_unique<V3>(o));
      } else {
        clients.push_back(std::make_unique<V41>(o, c));
      }
      clients.back()->make_directory("metadata-" + std::to_string(c));
    }
    const double create = rate(o, clients, &Client::create);
    const double look = rate(o, clients, &Client::look);
    const double remove = rate(o, clients, &Client::remove);
    for (unsigned c = 0; c < o.connections; ++c) {
      clients[c]->remove_directory("metadata-" + std::to_string(c));
    }
    std::printf(
        "{\"version\": %u, \"connections\": %u, \"files\": %u, \"create\": %.0f, "
        "\"stat\": %.0f, \"remove\": %.0f}\n",
        o.version, o.connections, o.files, create, look, remove);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nfs-metadata: %s\n", error.what());
    return 1;
  }
  return 0;
}
