// nfs-records: a load meter and verifier for NFS servers.
//
// Many connections write fixed-size records into one shared file and, if asked, read them back and
// compare every byte. The file's content depends only on the byte's offset and --seed, so a byte
// that is lost, stale, zeroed or misplaced is found, and a misplaced one is traced to the offset it
// belongs to. Each connection stands for one client: it has its own TCP connection and, in
// NFSv4.0, its own client ID and open. NFSv3 and NFSv4.0 are spoken directly (ONC RPC over TCP with
// AUTH_SYS), with no NFS library in between: every WRITE goes out as one call with just the
// stability asked for, and its latency is the time from queueing the call to having its reply.
//
// One JSON object goes to standard output. Exit status: 0 all well, 1 the server answered with
// errors or the data is wrong, 2 the test could not be run.

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

const char* const kUsage = R"(usage: nfs-records [options]
where:
  --url nfs://HOST[:PORT]/EXPORT/FILE[?version=V&nfsport=P&mountport=P&uid=U&gid=G]
  --host H            server (127.0.0.1)
  --port P            NFS port (2049; 0: ask the port mapper)
  --mountport P       MOUNT port, NFSv3 only (0: ask the port mapper)
  --export PATH       what is mounted (NFSv3) or walked to from the root (NFSv4)
  --file NAME         path of the shared file below the export (nfs-records.dat)
  --version 3|4       NFSv3 or NFSv4.0 (3)
  --uid U, --gid G    AUTH_SYS identity (0, 0)
  --resvport          connect from a port below 1024
  --server HOST:PORT:/EXPORT  (repeatable, NFSv3) one of several servers that the file is striped over:
                      stripe unit I lies in the file of that name on server I modulo their number, at its
                      own offset. A record that crosses a stripe is two WRITEs, and counts as done with
                      the second. Instead of --host, --port, --mountport and --export.
  --stripe-unit B     bytes (1 MiB); at least --record
load:
  --connections W     clients, one TCP connection each (8), or one to each server
  --share I/N         be part I (from 0) of N processes that write one file, each with W clients; goes
                      with --overwrite, since none of them may make the file anew
  --depth D           calls in flight on each connection, 1 to 1024 (1)
  --threads T         threads that drive the connections (1)
  --record R          bytes in a record (47008)
  --records N         records for each connection (1000)
  --pieces P          send each record as P WRITEs, cut at odd places (1); with --depth 1 one after
                      the other, with --depth P at once
  --pattern interleaved   connection c has the records c, c+W, c+2W, ... (default)
            sequential    connection c has N records in a row
            random        all records once, in shuffled order, dealt out in turn
            overlap       interleaved, but records start --stride apart and so overlap
  --stride S          distance between record starts for overlap (3/4 of R)
  --base B            offset of the first record in the file (0)
  --stable unstable|data_sync|file_sync   what each WRITE asks for (unstable)
  --commit-every N    with unstable: each connection sends a COMMIT after every N of its WRITEs,
                      besides the one that follows its last (0: only that one)
  --seed S            which content to write or expect (1)
what to do:
  --no-write          leave the file as it is, only read
  --overwrite         write over the file that is there; without it the file is made anew
  --read              read the records back, timed
  --verify            read the records back, timed, and compare every byte
  --remove            remove the file at the end
  --timeout S         give up after S seconds without any reply (60)
)";

[[noreturn]] void die(const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::fputs("nfs-records: ", stderr);
  std::vfprintf(stderr, format, args);
  std::fputc('\n', stderr);
  va_end(args);
  std::exit(2);
}

uint64_t now_ns() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return uint64_t(ts.tv_sec) * 1000000000u + uint64_t(ts.tv_nsec);
}

double cpu_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& tv) { return double(tv.tv_sec) + double(tv.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// ---------------------------------------------------------------------------------------------
// Options

enum class Pattern { interleaved, sequential, random, overlap };

struct Server {
  std::string host;
  unsigned port = 0;
  std::string export_path;
};

struct Options {
  std::vector<Server> servers;  // striped over these, if any
  uint64_t stripe_unit = 1 << 20;
  unsigned share = 0, shares = 1;
  std::string host = "127.0.0.1";
  unsigned port = 2049;
  unsigned mount_port = 0;
  std::string export_path = "/";
  std::string file = "nfs-records.dat";
  unsigned version = 3;
  uint32_t uid = 0;
  uint32_t gid = 0;
  bool resvport = false;
  unsigned connections = 8;
  unsigned depth = 1;
  unsigned threads = 1;
  uint32_t record = 47008;
  uint64_t records = 1000;
  uint32_t pieces = 1;
  Pattern pattern = Pattern::interleaved;
  std::string pattern_name = "interleaved";
  uint64_t stride = 0;  // distance between the starts of neighbouring records
  uint64_t base = 0;
  uint32_t stable = 0;
  std::string stable_name = "unstable";
  uint64_t commit_every = 0;
  uint64_t seed = 1;
  bool write = true;
  bool overwrite = false;
  bool read = false;
  bool verify = false;
  bool remove = false;
  unsigned timeout_s = 60;

  bool whole_file() const { return servers.empty() && shares == 1; }  // this process writes all of it
  uint64_t calls() const { return records * pieces; }  // of each connection and pass
  // Where piece p of a record starts, from the start of the record.
  uint32_t piece_start(uint32_t p) const { return p == pieces ? record : uint32_t(uint64_t(record) * p / pieces) | (p != 0); }
  uint64_t total_clients() const { return uint64_t(connections) * shares; }  // of all processes
  uint64_t total_records() const { return total_clients() * records; }
  uint64_t record_offset(uint64_t k) const { return base + k * stride; }
  uint64_t file_size() const { return record_offset(total_records() - 1) + record; }
};

uint64_t number(const std::string& name, const std::string& text, uint64_t low, uint64_t high) {
  errno = 0;
  char* end = nullptr;
  uint64_t value = std::strtoull(text.c_str(), &end, 0);
  if (text.empty() || *end != '\0' || errno != 0 || text[0] == '-' || value < low || value > high)
    die("%s: '%s' is not a number from %llu to %llu", name.c_str(), text.c_str(),
        (unsigned long long)low, (unsigned long long)high);
  return value;
}

void parse_url(Options& o, const std::string& url) {
  const std::string scheme = "nfs://";
  if (url.compare(0, scheme.size(), scheme) != 0) die("--url: '%s' does not start with nfs://", url.c_str());
  std::string rest = url.substr(scheme.size());
  std::string query;
  if (auto mark = rest.find('?'); mark != std::string::npos) {
    query = rest.substr(mark + 1);
    rest.resize(mark);
  }
  auto slash = rest.find('/');
  if (slash == std::string::npos) die("--url: no path in '%s'", url.c_str());
  std::string authority = rest.substr(0, slash);
  std::string path = rest.substr(slash);
  if (!authority.empty() && authority[0] == '[') {  // [IPv6]:port
    auto close = authority.find(']');
    if (close == std::string::npos) die("--url: no ']' in '%s'", url.c_str());
    if (close + 1 < authority.size())
      o.port = unsigned(number("--url port", authority.substr(close + 2), 0, 65535));
    authority = authority.substr(1, close - 1);
  } else if (auto colon = authority.find(':'); colon != std::string::npos) {
    o.port = unsigned(number("--url port", authority.substr(colon + 1), 0, 65535));
    authority.resize(colon);
  }
  o.host = authority;
  auto last = path.rfind('/');
  o.export_path = last == 0 ? "/" : path.substr(0, last);
  if (last + 1 < path.size()) o.file = path.substr(last + 1);
  while (!query.empty()) {
    auto amp = query.find('&');
    std::string item = query.substr(0, amp);
    query = amp == std::string::npos ? "" : query.substr(amp + 1);
    auto equals = item.find('=');
    std::string key = item.substr(0, equals);
    std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
    if (key == "version") o.version = unsigned(number("version", value, 3, 4));
    else if (key == "nfsport") o.port = unsigned(number("nfsport", value, 0, 65535));
    else if (key == "mountport") o.mount_port = unsigned(number("mountport", value, 0, 65535));
    else if (key == "uid") o.uid = uint32_t(number("uid", value, 0, UINT32_MAX));
    else if (key == "gid") o.gid = uint32_t(number("gid", value, 0, UINT32_MAX));
    else die("--url: unknown parameter '%s'", key.c_str());
  }
}

Server parse_server(const std::string& text) {
  auto slash = text.find(":/");
  auto colon = slash == std::string::npos ? slash : text.rfind(':', slash - 1);
  if (slash == std::string::npos || slash == 0 || colon == std::string::npos)
    die("--server: '%s' is not HOST:PORT:/EXPORT", text.c_str());
  unsigned port = unsigned(number("--server", text.substr(colon + 1, slash - colon - 1), 1, 65535));
  return {text.substr(0, colon), port, text.substr(slash + 1)};
}

Options parse_options(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    std::string value;
    bool attached = false;
    if (auto equals = name.find('='); name.compare(0, 2, "--") == 0 && equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
      attached = true;
    }
    auto text = [&]() -> std::string {
      if (attached) return value;
      if (i + 1 >= argc) die("%s needs a value", name.c_str());
      return argv[++i];
    };
    auto num = [&](uint64_t low, uint64_t high) { return number(name, text(), low, high); };
    if (name == "--help" || name == "-h") { std::fputs(kUsage, stdout); std::exit(0); }
    else if (name == "--url") parse_url(o, text());
    else if (name == "--host") o.host = text();
    else if (name == "--port") o.port = unsigned(num(0, 65535));
    else if (name == "--mountport") o.mount_port = unsigned(num(0, 65535));
    else if (name == "--export") o.export_path = text();
    else if (name == "--file") o.file = text();
    else if (name == "--version") o.version = unsigned(num(3, 4));
    else if (name == "--uid") o.uid = uint32_t(num(0, UINT32_MAX));
    else if (name == "--gid") o.gid = uint32_t(num(0, UINT32_MAX));
    else if (name == "--resvport") o.resvport = true;
    else if (name == "--server") o.servers.push_back(parse_server(text()));
    else if (name == "--stripe-unit") o.stripe_unit = num(1, uint64_t(1) << 40);
    else if (name == "--share") {
      std::string share = text();
      auto mark = share.find('/');
      if (mark == std::string::npos) die("--share: '%s' is not I/N", share.c_str());
      o.shares = unsigned(number("--share", share.substr(mark + 1), 1, 4096));
      o.share = unsigned(number("--share", share.substr(0, mark), 0, o.shares - 1));
    }
    else if (name == "--connections") o.connections = unsigned(num(1, 65536));
    else if (name == "--depth") o.depth = unsigned(num(1, 1024));
    else if (name == "--threads") o.threads = unsigned(num(1, 1024));
    else if (name == "--record") o.record = uint32_t(num(1, 64u << 20));
    else if (name == "--records") o.records = num(1, uint64_t(1) << 40);
    else if (name == "--pieces") o.pieces = uint32_t(num(1, 16));
    else if (name == "--pattern") {
      o.pattern_name = text();
      if (o.pattern_name == "interleaved") o.pattern = Pattern::interleaved;
      else if (o.pattern_name == "sequential") o.pattern = Pattern::sequential;
      else if (o.pattern_name == "random") o.pattern = Pattern::random;
      else if (o.pattern_name == "overlap") o.pattern = Pattern::overlap;
      else die("--pattern: unknown pattern '%s'", o.pattern_name.c_str());
    }
    else if (name == "--stride") o.stride = num(1, uint64_t(1) << 40);
    else if (name == "--base") o.base = num(0, uint64_t(1) << 60);
    else if (name == "--stable") {
      o.stable_name = text();
      if (o.stable_name == "unstable") o.stable = 0;
      else if (o.stable_name == "data_sync") o.stable = 1;
      else if (o.stable_name == "file_sync") o.stable = 2;
      else die("--stable: unknown mode '%s'", o.stable_name.c_str());
    }
    else if (name == "--commit-every") o.commit_every = num(0, UINT64_MAX);
    else if (name == "--seed") o.seed = num(0, UINT64_MAX);
    else if (name == "--no-write") o.write = false;
    else if (name == "--overwrite") o.overwrite = true;
    else if (name == "--read") o.read = true;
    else if (name == "--verify") o.verify = true;
    else if (name == "--remove") o.remove = true;
    else if (name == "--timeout") o.timeout_s = unsigned(num(1, 86400));
    else die("unknown option '%s' (--help lists them)", argv[i]);
  }
  if (o.stride != 0 && o.pattern != Pattern::overlap) die("--stride goes with --pattern overlap only");
  if (o.pattern != Pattern::overlap) o.stride = o.record;
  else if (o.stride == 0) o.stride = std::max<uint64_t>(1, uint64_t(o.record) * 3 / 4);
  if (o.record < 2 * o.pieces) die("--pieces: the record is too short");
  if (o.stride > o.record) die("--stride: records that do not touch leave holes; use at most --record");
  if (!o.write && !o.read && !o.verify) die("nothing to do: --no-write without --read or --verify");
  if (o.shares > 1 && o.write && !o.overwrite) die("--share goes with --overwrite");
  if (!o.servers.empty() && (o.version != 3 || o.pieces != 1 || o.commit_every != 0 || o.remove))
    die("--server does not go with --version 4, --pieces, --commit-every or --remove");
  if (!o.servers.empty() && o.record > o.stripe_unit) die("--stripe-unit: shorter than a record");
  o.threads = std::min(o.threads, o.connections);
  return o;
}

// ---------------------------------------------------------------------------------------------
// Content. The 8-byte word at offset 8*i is mix((i + f(seed)) * kOdd), a one-to-one map, so no two
// places of a file hold the same word and a word found in a wrong place tells where it belongs.

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;

constexpr uint64_t inverse_of_odd(uint64_t a) {
  uint64_t x = a;
  for (int i = 0; i < 6; ++i) x *= 2 - a * x;
  return x;
}
constexpr uint64_t kOddInverse = inverse_of_odd(kOdd);
static_assert(kOdd * kOddInverse == 1);

constexpr uint64_t mix(uint64_t w) { return w ^ (w >> 32); }  // its own inverse
constexpr uint64_t seed_shift(uint64_t seed) { return (seed * 0xd1342543de82ef95u) >> 1 << 1; }
uint64_t word_at(uint64_t index, uint64_t seed) { return mix((index + seed_shift(seed)) * kOdd); }

void fill(uint8_t* out, uint64_t offset, size_t length, uint64_t seed) {
  while (length != 0 && offset % 8 != 0) {
    uint64_t w = word_at(offset / 8, seed);
    *out++ = uint8_t(w >> (8 * (offset % 8)));
    ++offset;
    --length;
  }
  uint64_t w = (offset / 8 + seed_shift(seed)) * kOdd;
  size_t words = length / 8;
  for (size_t i = 0; i < words; ++i) {
    uint64_t v = mix(w + i * kOdd);
    std::memcpy(out + 8 * i, &v, 8);
  }
  out += 8 * words;
  offset += 8 * words;
  for (size_t i = 0; i < length % 8; ++i) out[i] = uint8_t(word_at(offset / 8, seed) >> (8 * i));
}

// Says what stands at `found` (length bytes of which are known) instead of what belongs there.
std::string explain(const uint8_t* found, size_t length, uint64_t seed, uint64_t file_size) {
  size_t probe = std::min<size_t>(length, 16);
  if (std::all_of(found, found + probe, [](uint8_t b) { return b == 0; })) return "zeros";
  for (size_t at = 0; at + 8 <= probe; ++at) {
    uint64_t w;
    std::memcpy(&w, found + at, 8);
    uint64_t index = mix(w) * kOddInverse - seed_shift(seed);
    if (index <= file_size / 8 && index * 8 >= at)
      return "data of offset " + std::to_string(index * 8 - at);
  }
  return "foreign data";
}

// ---------------------------------------------------------------------------------------------
// XDR

struct Encoder {
  std::vector<uint8_t> bytes;
  void u32(uint32_t v) {
    uint8_t b[4] = {uint8_t(v >> 24), uint8_t(v >> 16), uint8_t(v >> 8), uint8_t(v)};
    bytes.insert(bytes.end(), b, b + 4);
  }
  void u64(uint64_t v) { u32(uint32_t(v >> 32)); u32(uint32_t(v)); }
  void fixed(std::string_view s) {
    bytes.insert(bytes.end(), s.begin(), s.end());
    bytes.resize((bytes.size() + 3) & ~size_t(3));
  }
  void opaque(std::string_view s) { u32(uint32_t(s.size())); fixed(s); }
};

struct Decoder {
  const uint8_t* at;
  const uint8_t* end;
  bool ok = true;
  bool need(size_t n) {
    if (ok && size_t(end - at) >= n) return true;
    ok = false;
    return false;
  }
  uint32_t u32() {
    if (!need(4)) return 0;
    uint32_t v = uint32_t(at[0]) << 24 | uint32_t(at[1]) << 16 | uint32_t(at[2]) << 8 | at[3];
    at += 4;
    return v;
  }
  uint64_t u64() { uint64_t high = u32(); return high << 32 | u32(); }
  std::string_view fixed(size_t n) {
    size_t padded = (n + 3) & ~size_t(3);
    if (!need(padded)) return {};
    std::string_view v(reinterpret_cast<const char*>(at), n);
    at += padded;
    return v;
  }
  std::string_view opaque() { return fixed(u32()); }
};

// ---------------------------------------------------------------------------------------------
// ONC RPC over TCP

constexpr uint32_t kProgPortmap = 100000, kProgNfs = 100003, kProgMount = 100005;

constexpr uint32_t kOk = 0, kNoEnt = 2, kDelay = 10008, kGrace = 10013;  // the same in v3 and v4
constexpr uint32_t kRpcFailed = 0xffffffff;                             // no NFS status to be had

std::string status_name(uint32_t status) {
  switch (status) {
    case 1: return "PERM";
    case 2: return "NOENT";
    case 5: return "IO";
    case 13: return "ACCES";
    case 17: return "EXIST";
    case 20: return "NOTDIR";
    case 22: return "INVAL";
    case 27: return "FBIG";
    case 28: return "NOSPC";
    case 30: return "ROFS";
    case 69: return "DQUOT";
    case 70: return "STALE";
    case 10001: return "BADHANDLE";
    case 10004: return "NOTSUPP";
    case 10006: return "SERVERFAULT";
    case 10008: return "DELAY";
    case 10011: return "EXPIRED";
    case 10012: return "LOCKED";
    case 10013: return "GRACE";
    case 10018: return "RESOURCE";
    case 10022: return "STALE_CLIENTID";
    case 10023: return "STALE_STATEID";
    case 10025: return "BAD_STATEID";
    case 10036: return "BADXDR";
    case kRpcFailed: return "RPC";
    default: return "status " + std::to_string(status);
  }
}

std::string auth_sys(const Options& o) {
  Encoder e;
  e.u32(0);
  e.opaque("nfs-records");
  e.u32(o.uid);
  e.u32(o.gid);
  e.u32(0);
  return std::string(e.bytes.begin(), e.bytes.end());
}

// Starts a call in `e`: room for the record mark, then the call header.
void begin_call(Encoder& e, uint32_t xid, uint32_t prog, uint32_t vers, uint32_t proc, std::string_view cred) {
  e.bytes.clear();
  e.u32(0);
  e.u32(xid);
  e.u32(0);  // CALL
  e.u32(2);  // RPC version
  e.u32(prog);
  e.u32(vers);
  e.u32(proc);
  e.u32(1);  // AUTH_SYS
  e.opaque(cred);
  e.u32(0);  // AUTH_NONE verifier
  e.u32(0);
}

// Fills in the record mark: the call ends after `extra` more bytes than are in `e`.
void end_call(Encoder& e, size_t extra = 0) {
  uint32_t mark = uint32_t(e.bytes.size() - 4 + extra) | 0x80000000u;
  for (int i = 0; i < 4; ++i) e.bytes[size_t(i)] = uint8_t(mark >> (24 - 8 * i));
}

// Reads a reply's header up to the results. True if the call was executed.
bool begin_reply(Decoder& d) {
  uint32_t type = d.u32();
  uint32_t reply = d.u32();
  if (!d.ok || type != 1 || reply != 0) return false;
  d.u32();
  d.opaque();
  return d.u32() == 0 && d.ok;
}

int tcp_connect(const Options& o, unsigned port) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int rc = getaddrinfo(o.host.c_str(), std::to_string(port).c_str(), &hints, &list); rc != 0)
    die("%s: %s", o.host.c_str(), gai_strerror(rc));
  int saved = ECONNREFUSED;
  for (addrinfo* a = list; a; a = a->ai_next) {
    // A reserved port may be held by a connection to the same address in TIME_WAIT: try others.
    for (unsigned local = 1023; local >= 512; --local) {
      int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (fd < 0) { saved = errno; break; }
      if (o.resvport) {
        sockaddr_storage from{};
        socklen_t size = a->ai_addrlen;
        from.ss_family = sa_family_t(a->ai_family);
        if (a->ai_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(&from)->sin6_port = htons(uint16_t(local));
        else reinterpret_cast<sockaddr_in*>(&from)->sin_port = htons(uint16_t(local));
        if (bind(fd, reinterpret_cast<sockaddr*>(&from), size) != 0) {
          saved = errno;
          close(fd);
          if (saved == EADDRINUSE) continue;
          break;
        }
      }
      if (connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        freeaddrinfo(list);
        return fd;
      }
      saved = errno;
      close(fd);
      if (!o.resvport || saved != EADDRNOTAVAIL) break;
    }
  }
  freeaddrinfo(list);
  die("connect to %s port %u: %s", o.host.c_str(), port, std::strerror(saved));
}

// A call that waits for its answer, for setting up and tearing down.
struct BlockingCaller {
  const Options& o;
  int fd;
  uint32_t xid;
  Encoder e;
  std::vector<uint8_t> reply;

  BlockingCaller(const Options& options, int socket) : o(options), fd(socket), xid(std::random_device{}()) {}

  void begin(uint32_t prog, uint32_t vers, uint32_t proc) { begin_call(e, ++xid, prog, vers, proc, auth_sys(o)); }

  Decoder finish(const char* what) {
    end_call(e);
    for (size_t sent = 0; sent < e.bytes.size();) {
      ssize_t n = send(fd, e.bytes.data() + sent, e.bytes.size() - sent, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) die("%s: send: %s", what, std::strerror(errno));
      sent += size_t(n);
    }
    for (;;) {
      reply.clear();
      for (bool last = false; !last;) {
        uint8_t mark[4];
        receive(mark, 4, what);
        uint32_t m = uint32_t(mark[0]) << 24 | uint32_t(mark[1]) << 16 | uint32_t(mark[2]) << 8 | mark[3];
        last = m >> 31;
        size_t old = reply.size(), more = m & 0x7fffffffu;
        if (more > (64u << 20)) die("%s: reply of %zu bytes", what, more);
        reply.resize(old + more);
        receive(reply.data() + old, more, what);
      }
      Decoder d{reply.data(), reply.data() + reply.size()};
      if (d.u32() != xid) continue;
      if (!begin_reply(d)) die("%s: the server refused the RPC call", what);
      return d;
    }
  }

 private:
  void receive(uint8_t* to, size_t n, const char* what) {
    while (n != 0) {
      pollfd p{fd, POLLIN, 0};
      int ready = poll(&p, 1, int(o.timeout_s) * 1000);
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) die("%s: no answer in %u s", what, o.timeout_s);
      ssize_t got = recv(fd, to, n, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got == 0) die("%s: the server closed the connection", what);
      if (got < 0) die("%s: receive: %s", what, std::strerror(errno));
      to += got;
      n -= size_t(got);
    }
  }
};

unsigned ask_portmapper(const Options& o, uint32_t prog, uint32_t vers) {
  int fd = tcp_connect(o, 111);
  BlockingCaller c(o, fd);
  c.begin(kProgPortmap, 2, 3);
  c.e.u32(prog);
  c.e.u32(vers);
  c.e.u32(IPPROTO_TCP);
  c.e.u32(0);
  Decoder d = c.finish("PMAP GETPORT");
  unsigned port = d.u32();
  close(fd);
  if (!d.ok || port == 0) die("program %u version %u is not registered with the port mapper", prog, vers);
  return port;
}

std::vector<std::string> components(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t from = 0; from < path.size();) {
    size_t to = std::min(path.find('/', from), path.size());
    if (to > from) parts.push_back(path.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

// ---------------------------------------------------------------------------------------------
// NFSv4.0 compounds

enum Op4 : uint32_t {
  kClose = 4, kCommit4 = 5, kDelegReturn = 8, kGetAttr = 9, kGetFh = 10, kLookup4 = 15, kOpen = 18, kOpenConfirm = 20,
  kPutFh = 22, kPutRootFh = 24, kRead4 = 25, kRemove4 = 28, kRenew = 30, kSetClientId = 35,
  kSetClientIdConfirm = 36, kWrite4 = 38
};

void begin_compound(Encoder& e, uint32_t ops) {
  e.u32(0);  // empty tag
  e.u32(0);  // minor version
  e.u32(ops);
}

// Reads a compound's reply up to its first result; the status is that of the op that failed last.
uint32_t begin_compound_reply(Decoder& d) {
  uint32_t status = d.u32();
  d.opaque();
  d.u32();
  return d.ok ? status : kRpcFailed;
}

// Steps into the next result, which must be that of `op`.
bool next_result(Decoder& d, Op4 op) {
  uint32_t code = d.u32();
  uint32_t status = d.u32();
  return d.ok && code == op && status == kOk;
}

// ---------------------------------------------------------------------------------------------
// One client

enum class Kind : uint8_t { write, read, commit, renew };

// What one call is for.
struct Call {
  uint64_t record = 0;  // the how manieth of this client's
  uint64_t offset = 0;
  uint32_t length = 0;
};

struct Slot {
  uint64_t record = 0;
  Encoder head;               // record mark, RPC header and arguments up to the payload
  std::vector<uint8_t> data;  // payload of a WRITE, padded to four bytes
  size_t data_from = 0;       // where in `data` the call's payload starts (after a short write)
  size_t data_length = 0;     // payload and padding
  size_t sent = 0;
  uint64_t offset = 0;
  uint32_t length = 0;
  uint32_t xid = 0;
  uint64_t started = 0;
  Kind kind = Kind::write;
};

struct Tally {
  uint64_t ops = 0, bytes = 0, commits = 0, short_ops = 0, delays = 0, weaker = 0, verifier_changes = 0;
  uint64_t bad_records = 0, bad_bytes = 0;
  std::string first_bad;
  uint64_t first_bad_offset = UINT64_MAX;
  std::map<std::string, uint64_t> errors;
  std::vector<uint32_t> latency_us;

  void add(const Tally& t) {
    ops += t.ops;
    bytes += t.bytes;
    commits += t.commits;
    short_ops += t.short_ops;
    delays += t.delays;
    weaker += t.weaker;
    verifier_changes += t.verifier_changes;
    bad_records += t.bad_records;
    bad_bytes += t.bad_bytes;
    if (t.first_bad_offset < first_bad_offset) {
      first_bad_offset = t.first_bad_offset;
      first_bad = t.first_bad;
    }
    for (auto& [name, n] : t.errors) errors[name] += n;
    latency_us.insert(latency_us.end(), t.latency_us.begin(), t.latency_us.end());
  }
  uint64_t error_count() const {
    uint64_t n = 0;
    for (auto& [name, count] : errors) n += count;
    return n;
  }
};

class Stripes;

class Client {
 public:
  Client(const Options& options, unsigned index, unsigned nfs_port)
      : o(options), me(index), fd(tcp_connect(options, nfs_port)), setup(options, fd), cred(auth_sys(options)),
        generation(std::random_device{}()), slots(options.depth) {
    rx.resize(std::max<size_t>(size_t(2) * o.record + 8192, 256 << 10));
  }
  ~Client() { close(fd); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Options& o;
  unsigned me;
  int fd;
  BlockingCaller setup;
  std::string handle;  // the shared file's
  Tally tally;
  Stripes* stripes = nullptr;  // in a striped file: what has the connections to all servers
  std::deque<Call> assigned;   // and the calls it wants from this one
  const std::vector<uint64_t>* shuffled = nullptr;  // for Pattern::random: all records

  // --- Setting up: makes or finds the file, and in v4.0 opens it. ---

  void open_v3(const std::string& root, bool create, bool anew) {
    std::string dir = root;
    auto parts = components(o.file);
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      uint32_t status = lookup_v3(dir, parts[i], dir);
      if (status != kOk) die("LOOKUP of %s: %s", parts[i].c_str(), status_name(status).c_str());
    }
    directory = dir;
    leaf = parts.back();
    if (create && anew) remove_file(true);
    if (create) create_v3();
    uint32_t status = lookup_v3(dir, leaf, handle);
    if (status != kOk) die("LOOKUP of %s: %s", leaf.c_str(), status_name(status).c_str());
  }

  void open_v4(bool create, bool anew) {
    auto parts = components(o.export_path);
    auto below = components(o.file);
    parts.insert(parts.end(), below.begin(), below.end() - 1);
    leaf = below.back();
    set_client_id();
    walk_v4(parts);
    if (create && anew) remove_file(true);
    open_file_v4(create);
  }

  void close_v4() {
    compound(2);
    put_fh(setup.e, handle);
    setup.e.u32(kClose);
    setup.e.u32(++owner_seq);
    setup.e.fixed(stateid);
    uint32_t status;
    finish_compound("CLOSE", status);
    if (status != kOk) tally.errors["CLOSE " + status_name(status)]++;
  }

  void remove_file(bool may_lack) {
    uint32_t status;
    if (o.version == 3) {
      setup.begin(kProgNfs, 3, 12);
      setup.e.opaque(directory);
      setup.e.opaque(leaf);
      Decoder d = setup.finish("REMOVE");
      status = d.u32();
    } else {
      compound(2);
      put_fh(setup.e, directory);
      setup.e.u32(kRemove4);
      setup.e.opaque(leaf);
      finish_compound("REMOVE", status);
    }
    if (status != kOk && !(may_lack && status == kNoEnt)) die("REMOVE of %s: %s", leaf.c_str(), status_name(status).c_str());
  }

  uint64_t size_of_file() {
    if (o.version == 3) {
      setup.begin(kProgNfs, 3, 1);
      setup.e.opaque(handle);
      Decoder d = setup.finish("GETATTR");
      if (uint32_t status = d.u32(); status != kOk) die("GETATTR: %s", status_name(status).c_str());
      for (int i = 0; i < 5; ++i) d.u32();  // type, mode, links, uid, gid
      return d.u64();
    }
    compound(2);
    put_fh(setup.e, handle);
    setup.e.u32(kGetAttr);
    setup.e.u32(1);
    setup.e.u32(1u << 4);  // size
    uint32_t status;
    Decoder d = finish_compound("GETATTR", status);
    if (status != kOk || !next_result(d, kPutFh) || !next_result(d, kGetAttr)) die("GETATTR: %s", status_name(status).c_str());
    for (uint32_t words = d.u32(); words != 0 && d.ok; --words) d.u32();
    d.u32();  // length of the attributes
    return d.u64();
  }

  // --- A pass over this client's records. ---

  void start(Kind pass_kind, unsigned reader_shift) {
    pass = pass_kind;
    shift = reader_shift;
    next = 0;
    writes_done = 0;
    in_flight = 0;
    committed_at_end = false;
    renewing = false;
    have_verifier = false;
    tally = Tally{};
    tally.latency_us.reserve(o.calls());
    retries.clear();
    sendq.clear();
    rx_used = 0;
    free_slots.clear();
    for (unsigned i = o.depth; i-- > 0;) free_slots.push_back(i);
    last_heard = now_ns();
    int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    pump();
  }

  bool finished() const { return done && !renewing; }
  bool wants_write() const { return !sendq.empty(); }

  void stop_nonblocking() {
    int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
  }

  // Issues what can be issued and sends what can be sent.
  void pump() {
    uint64_t now = now_ns();
    while (!retries.empty() && retries.front().first <= now) {
      unsigned slot = retries.front().second;
      retries.pop_front();
      encode(slot);
    }
    while (more_calls() && !free_slots.empty()) {
      unsigned slot = take_slot();
      Slot& s = slots[slot];
      const Call call = next_call();
      s.kind = pass;
      s.record = call.record;
      s.offset = call.offset;
      s.length = call.length;
      s.data_from = 0;
      if (pass == Kind::write) {
        s.data.assign((size_t(s.length) + 3) & ~size_t(3), 0);  // Padding is zeros.
        fill(s.data.data(), s.offset, s.length, o.seed);
      }
      s.started = now_ns();
      encode(slot);
    }
    if (stripes && must_commit() && !committed_at_end && in_flight == 0 && all_issued()) commit();
    flush();
    done = all_issued() && in_flight == 0 && retries.empty() && sendq.empty() &&
           (!must_commit() || committed_at_end);
  }

  uint64_t record_number(uint64_t i, unsigned reader_shift) const {
    uint64_t c = (me + reader_shift) % o.total_clients();
    switch (o.pattern) {
      case Pattern::sequential: return c * o.records + i;
      case Pattern::random: return (*shuffled)[i * o.total_clients() + c];
      default: return i * o.total_clients() + c;
    }
  }

  // Called now and then: keeps the lease of a client that is done while others still work.
  void tick(uint64_t now) {
    if (!retries.empty()) pump();
    if (o.version == 4 && done && !renewing && now - last_heard > 10'000'000'000u) {
      renewing = true;
      unsigned slot = take_slot();
      slots[slot].kind = Kind::renew;
      encode(slot);
      flush();
    }
  }

  bool waiting(uint64_t now) const { return !done && now - last_heard > uint64_t(o.timeout_s) * 1'000'000'000u; }

  void on_readable() {
    for (;;) {
      ssize_t n = recv(fd, rx.data() + rx_used, rx.size() - rx_used, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      if (n < 0) throw std::runtime_error(std::string("receive: ") + std::strerror(errno));
      if (n == 0) throw std::runtime_error("the server closed the connection");
      rx_used += size_t(n);
      bool full = rx_used == rx.size();
      take_replies();
      if (!full) break;
    }
    pump();
  }

 private:
  std::string cred;
  std::string directory, leaf;
  // NFSv4.0 state
  uint64_t client_id = 0;
  std::string stateid;
  uint32_t owner_seq = 0;

  uint32_t generation;
  std::vector<Slot> slots;
  std::vector<unsigned> free_slots;
  std::deque<unsigned> sendq;
  std::deque<std::pair<uint64_t, unsigned>> retries;  // time to send again, slot
  std::vector<uint8_t> rx;
  size_t rx_used = 0;
  std::vector<uint8_t> expected;

  Kind pass = Kind::write;
  unsigned shift = 0;
  uint64_t next = 0, writes_done = 0;
  unsigned in_flight = 0;
  bool committed_at_end = false, renewing = false, done = false;
  bool have_verifier = false;
  char verifier[8] = {};
  uint64_t last_heard = 0;

  bool must_commit() const { return pass == Kind::write && o.stable == 0; }

  bool all_issued() const;
  bool more_calls() const { return stripes ? !assigned.empty() : next < o.calls(); }
  Call next_call() {
    if (stripes) {
      const Call call = assigned.front();
      assigned.pop_front();
      return call;
    }
    uint32_t piece = uint32_t(next % o.pieces);
    uint64_t record = next++ / o.pieces;
    return {record, o.record_offset(record_number(record, shift)) + o.piece_start(piece),
            o.piece_start(piece + 1) - o.piece_start(piece)};
  }

  // --- v3 set-up calls ---

  uint32_t lookup_v3(const std::string& dir, const std::string& name, std::string& out) {
    setup.begin(kProgNfs, 3, 3);
    setup.e.opaque(dir);
    setup.e.opaque(name);
    Decoder d = setup.finish("LOOKUP");
    uint32_t status = d.u32();
    if (status == kOk) out = std::string(d.opaque());
    return d.ok ? status : kRpcFailed;
  }

  void create_v3() {
    setup.begin(kProgNfs, 3, 8);
    setup.e.opaque(directory);
    setup.e.opaque(leaf);
    setup.e.u32(0);  // UNCHECKED
    setup.e.u32(1);
    setup.e.u32(0644);
    for (int i = 0; i < 5; ++i) setup.e.u32(0);  // uid, gid, size, atime, mtime: leave
    Decoder d = setup.finish("CREATE");
    if (uint32_t status = d.u32(); status != kOk) die("CREATE of %s: %s", leaf.c_str(), status_name(status).c_str());
  }

  // --- v4.0 set-up calls ---

  void compound(uint32_t ops) {
    setup.begin(kProgNfs, 4, 1);
    begin_compound(setup.e, ops);
  }
  Decoder finish_compound(const char* what, uint32_t& status) {
    Decoder d = setup.finish(what);
    status = begin_compound_reply(d);
    return d;
  }
  static void put_fh(Encoder& e, const std::string& fh) {
    e.u32(kPutFh);
    e.opaque(fh);
  }

  void set_client_id() {
    uint64_t boot = now_ns() ^ (uint64_t(getpid()) << 32);
    compound(1);
    setup.e.u32(kSetClientId);
    setup.e.u64(boot);
    setup.e.opaque("nfs-records " + std::to_string(getpid()) + "." + std::to_string(me) + "." + std::to_string(boot));
    setup.e.u32(0x40000000);  // a callback program nobody serves: no delegations wanted
    setup.e.opaque("tcp");
    setup.e.opaque("0.0.0.0.0.0");
    setup.e.u32(0);
    uint32_t status;
    Decoder d = finish_compound("SETCLIENTID", status);
    if (status != kOk || !next_result(d, kSetClientId)) die("SETCLIENTID: %s", status_name(status).c_str());
    client_id = d.u64();
    std::string confirm(d.fixed(8));
    compound(1);
    setup.e.u32(kSetClientIdConfirm);
    setup.e.u64(client_id);
    setup.e.fixed(confirm);
    finish_compound("SETCLIENTID_CONFIRM", status);
    if (status != kOk) die("SETCLIENTID_CONFIRM: %s", status_name(status).c_str());
  }

  void walk_v4(const std::vector<std::string>& parts) {
    compound(uint32_t(parts.size()) + 2);
    setup.e.u32(kPutRootFh);
    for (auto& part : parts) {
      setup.e.u32(kLookup4);
      setup.e.opaque(part);
    }
    setup.e.u32(kGetFh);
    uint32_t status;
    Decoder d = finish_compound("LOOKUP", status);
    bool good = status == kOk && next_result(d, kPutRootFh);
    for (size_t i = 0; good && i < parts.size(); ++i) good = next_result(d, kLookup4);
    if (!good || !next_result(d, kGetFh)) die("LOOKUP of %s: %s", o.export_path.c_str(), status_name(status).c_str());
    directory = std::string(d.opaque());
  }

  void open_file_v4(bool create) {
    uint32_t status = kOk;
    for (int attempt = 0;; ++attempt) {
      compound(3);
      put_fh(setup.e, directory);
      setup.e.u32(kOpen);
      setup.e.u32(++owner_seq);
      setup.e.u32(3);  // read and write
      setup.e.u32(0);  // deny nothing
      setup.e.u64(client_id);
      setup.e.opaque("owner " + std::to_string(me));
      setup.e.u32(create ? 1 : 0);
      if (create) {
        setup.e.u32(0);  // UNCHECKED
        setup.e.u32(2);  // attribute bitmap: mode
        setup.e.u32(0);
        setup.e.u32(1u << (33 - 32));
        setup.e.u32(4);
        setup.e.u32(0644);
      }
      setup.e.u32(0);  // CLAIM_NULL
      setup.e.opaque(leaf);
      setup.e.u32(kGetFh);
      Decoder d = finish_compound("OPEN", status);
      if ((status == kGrace || status == kDelay) && attempt < 120) {
        sleep(1);
        continue;
      }
      if (status != kOk || !next_result(d, kPutFh) || !next_result(d, kOpen))
        die("OPEN of %s: %s", leaf.c_str(), status_name(status).c_str());
      stateid = std::string(d.fixed(16));
      d.u32();  // change_info
      d.u64();
      d.u64();
      uint32_t flags = d.u32();
      for (uint32_t words = d.u32(); words != 0 && d.ok; --words) d.u32();
      uint32_t delegation = d.u32();
      std::string delegated;
      if (delegation == 1 || delegation == 2) {
        delegated = std::string(d.fixed(16));
        d.u32();                         // recall
        if (delegation == 2) {           // space limit: a size, or blocks and bytes per block
          d.u32();
          d.u64();
        }
        d.u32();  // the access control entry: type, flag, mask, who
        d.u32();
        d.u32();
        d.opaque();
      }
      if (!next_result(d, kGetFh)) die("GETFH after OPEN of %s failed", leaf.c_str());
      handle = std::string(d.opaque());
      if (flags & 2) confirm_open();
      if (!delegated.empty()) {
        compound(2);
        put_fh(setup.e, handle);
        setup.e.u32(kDelegReturn);
        setup.e.fixed(delegated);
        finish_compound("DELEGRETURN", status);
      }
      return;
    }
  }

  void confirm_open() {
    compound(2);
    put_fh(setup.e, handle);
    setup.e.u32(kOpenConfirm);
    setup.e.fixed(stateid);
    setup.e.u32(++owner_seq);
    uint32_t status;
    Decoder d = finish_compound("OPEN_CONFIRM", status);
    if (status != kOk || !next_result(d, kPutFh) || !next_result(d, kOpenConfirm))
      die("OPEN_CONFIRM: %s", status_name(status).c_str());
    stateid = std::string(d.fixed(16));
  }

  // --- Calls in flight ---

  unsigned take_slot() {
    unsigned slot = free_slots.back();
    free_slots.pop_back();
    ++in_flight;
    return slot;
  }
  void release(unsigned slot) {
    free_slots.push_back(slot);
    --in_flight;
  }

  // Encodes the slot's call under a new xid and queues it.
  void encode(unsigned slot) {
    Slot& s = slots[slot];
    s.xid = (++generation << 10) | slot;
    s.sent = 0;
    s.data_length = 0;
    Encoder& e = s.head;
    if (o.version == 3) {
      static constexpr uint32_t procedures[] = {7, 6, 21, 0};
      begin_call(e, s.xid, kProgNfs, 3, procedures[size_t(s.kind)], cred);
      if (s.kind != Kind::renew) e.opaque(handle);
    } else {
      begin_call(e, s.xid, kProgNfs, 4, 1, cred);
      begin_compound(e, s.kind == Kind::renew ? 1 : 2);
      if (s.kind != Kind::renew) put_fh(e, handle);
      static constexpr uint32_t ops[] = {kWrite4, kRead4, kCommit4, kRenew};
      e.u32(ops[size_t(s.kind)]);
      if (s.kind == Kind::write || s.kind == Kind::read) e.fixed(stateid);
      if (s.kind == Kind::renew) e.u64(client_id);
    }
    switch (s.kind) {
      case Kind::write:
        e.u64(s.offset);
        if (o.version == 3) e.u32(s.length);
        e.u32(o.stable);
        e.u32(s.length);
        s.data_length = (size_t(s.length) + 3) & ~size_t(3);
        s.data.resize(std::max(s.data.size(), s.data_from + s.data_length));
        break;
      case Kind::read:
        e.u64(s.offset);
        e.u32(s.length);
        break;
      case Kind::commit:
        e.u64(0);
        e.u32(0);
        break;
      case Kind::renew:
        break;
    }
    end_call(e, s.data_length);
    sendq.push_back(slot);
  }

  void flush() {
    while (!sendq.empty()) {
      iovec iov[64];
      int count = 0;
      for (size_t q = 0; q < sendq.size() && count + 2 <= 64; ++q) {
        Slot& s = slots[sendq[q]];
        size_t skip = s.sent;
        size_t head = s.head.bytes.size();
        if (skip < head) {
          iov[count++] = {s.head.bytes.data() + skip, head - skip};
          skip = head;
        }
        if (s.data_length > skip - head)
          iov[count++] = {s.data.data() + s.data_from + (skip - head), s.data_length - (skip - head)};
      }
      msghdr m{};
      m.msg_iov = iov;
      m.msg_iovlen = size_t(count);
      ssize_t n = sendmsg(fd, &m, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (n < 0) throw std::runtime_error(std::string("send: ") + std::strerror(errno));
      for (size_t left = size_t(n); left != 0;) {
        Slot& s = slots[sendq.front()];
        size_t take = std::min(left, s.head.bytes.size() + s.data_length - s.sent);
        s.sent += take;
        left -= take;
        if (s.sent == s.head.bytes.size() + s.data_length) sendq.pop_front();
      }
    }
  }

  // Takes whole replies out of the receive buffer, joining the fragments of one that has several.
  void take_replies() {
    size_t from = 0;
    for (;;) {
      size_t at = from, joined = 0;
      bool whole = false;
      while (rx_used - at >= 4) {
        const uint8_t* p = rx.data() + at;
        uint32_t mark = uint32_t(p[0]) << 24 | uint32_t(p[1]) << 16 | uint32_t(p[2]) << 8 | p[3];
        size_t length = mark & 0x7fffffffu;
        if (joined + length > rx.size() / 2 + 4096) throw std::runtime_error("a reply is far too long");
        if (rx_used - at - 4 < length) break;
        at += 4 + length;
        joined += length;
        if (mark >> 31) {
          whole = true;
          break;
        }
      }
      if (!whole) break;
      uint8_t* body = rx.data() + from + 4;
      size_t first = size_t(rx[from] & 0x7f) << 24 | size_t(rx[from + 1]) << 16 | size_t(rx[from + 2]) << 8 | rx[from + 3];
      if (joined != first) {
        size_t have = first, p = from + 4 + first;
        while (have < joined) {
          size_t length = size_t(rx[p] & 0x7f) << 24 | size_t(rx[p + 1]) << 16 | size_t(rx[p + 2]) << 8 | rx[p + 3];
          std::memmove(body + have, rx.data() + p + 4, length);
          have += length;
          p += 4 + length;
        }
      }
      take_reply(Decoder{body, body + joined});
      from = at;
    }
    if (from != 0) {
      std::memmove(rx.data(), rx.data() + from, rx_used - from);
      rx_used -= from;
    }
  }

  void take_reply(Decoder d) {
    uint32_t xid = d.u32();
    unsigned slot = xid & 1023;
    if (!d.ok || slot >= slots.size() || slots[slot].xid != xid) {
      tally.errors["unexpected reply"]++;
      return;
    }
    Slot& s = slots[slot];
    s.xid = 0;
    last_heard = now_ns();
    uint32_t status = kRpcFailed;
    if (begin_reply(d)) {
      if (o.version == 3) {
        status = d.u32();
        if (!d.ok) status = kRpcFailed;
      } else {
        status = begin_compound_reply(d);
        if (status == kOk) {
          static constexpr Op4 ops[] = {kWrite4, kRead4, kCommit4, kRenew};
          if ((s.kind != Kind::renew && !next_result(d, kPutFh)) || !next_result(d, ops[size_t(s.kind)])) status = kRpcFailed;
        }
      }
    }
    if (status == kDelay || status == kGrace) {
      tally.delays++;
      retries.emplace_back(last_heard + 20'000'000u, slot);
      return;
    }
    switch (s.kind) {
      case Kind::write: if (written(s, slot, d, status)) return; break;
      case Kind::read: if (was_read(s, slot, d, status)) return; break;
      case Kind::commit: committed(d, status); break;
      case Kind::renew:
        renewing = false;
        if (status != kOk) tally.errors["RENEW " + status_name(status)]++;
        break;
    }
    release(slot);
    if (s.kind == Kind::write) after_write();
    if (stripes && s.kind == pass) call_done(s.record);
  }
  void call_done(uint64_t record);

  // v3 results start with attributes of the file that may be there or not.
  static void skip_post_op(Decoder& d) { if (d.u32()) d.fixed(84); }
  static void skip_wcc(Decoder& d) {
    if (d.u32()) d.fixed(24);
    skip_post_op(d);
  }

  void note_latency(const Slot& s) {
    tally.latency_us.push_back(uint32_t(std::min<uint64_t>((last_heard - s.started) / 1000, UINT32_MAX)));
  }

  // True if the slot goes on with the rest of its record.
  bool written(Slot& s, unsigned slot, Decoder& d, uint32_t status) {
    if (status == kOk) {
      if (o.version == 3) skip_wcc(d);
      uint32_t count = d.u32();
      uint32_t level = d.u32();
      std::string_view verf = d.fixed(8);
      if (!d.ok || count > s.length || count == 0) {
        tally.errors["WRITE malformed reply"]++;
      } else {
        if (level < o.stable) tally.weaker++;
        check_verifier(verf);
        tally.bytes += count;
        if (count < s.length) {
          tally.short_ops++;
          s.offset += count;
          s.length -= count;
          s.data_from += count;
          encode(slot);
          return true;
        }
        tally.ops++;
        note_latency(s);
      }
    } else {
      tally.errors["WRITE " + status_name(status)]++;
    }
    ++writes_done;
    return false;
  }

  // A server that restarted may have lost unstable writes; its verifier tells.
  void check_verifier(std::string_view verf) {
    if (!have_verifier) {
      std::memcpy(verifier, verf.data(), 8);
      have_verifier = true;
    } else if (std::memcmp(verifier, verf.data(), 8) != 0) {
      std::memcpy(verifier, verf.data(), 8);
      tally.verifier_changes++;
    }
  }

  void after_write() {
    if (!must_commit() || stripes) return;  // With stripes, pump() knows which was the last.
    bool last = writes_done == o.calls();
    if (!last && (o.commit_every == 0 || writes_done % o.commit_every != 0)) return;
    commit();
    committed_at_end = last;
  }

  void commit() {
    committed_at_end = true;
    unsigned slot = take_slot();
    slots[slot].kind = Kind::commit;
    slots[slot].started = now_ns();
    encode(slot);
  }

  void committed(Decoder& d, uint32_t status) {
    if (status != kOk) {
      tally.errors["COMMIT " + status_name(status)]++;
      return;
    }
    if (o.version == 3) skip_wcc(d);
    std::string_view verf = d.fixed(8);
    if (!d.ok) tally.errors["COMMIT malformed reply"]++;
    else check_verifier(verf);
    tally.commits++;
  }

  bool was_read(Slot& s, unsigned slot, Decoder& d, uint32_t status) {
    if (status != kOk) {
      tally.errors["READ " + status_name(status)]++;
      return false;
    }
    if (o.version == 3) {
      skip_post_op(d);
      d.u32();  // count, which the length of the data repeats
    }
    bool eof = d.u32() != 0;
    std::string_view data = d.opaque();
    if (!d.ok || data.size() > s.length) {
      tally.errors["READ malformed reply"]++;
      return false;
    }
    if (o.verify) compare(s.offset, reinterpret_cast<const uint8_t*>(data.data()), data.size());
    tally.bytes += data.size();
    if (data.size() < s.length) {
      if (data.empty() || eof) {
        tally.errors["READ ends early"]++;
        return false;
      }
      tally.short_ops++;
      s.offset += data.size();
      s.length -= uint32_t(data.size());
      encode(slot);
      return true;
    }
    tally.ops++;
    note_latency(s);
    return false;
  }

  void compare(uint64_t offset, const uint8_t* data, size_t length) {
    expected.resize(length);
    fill(expected.data(), offset, length, o.seed);
    if (std::memcmp(expected.data(), data, length) == 0) return;
    tally.bad_records++;
    size_t first = length;
    for (size_t i = 0; i < length; ++i) {
      if (expected[i] == data[i]) continue;
      if (first == length) first = i;
      tally.bad_bytes++;
    }
    if (offset + first < tally.first_bad_offset) {
      tally.first_bad_offset = offset + first;
      tally.first_bad = explain(data + first, length - first, o.seed, o.file_size());
    }
  }
};

// One client of a striped file: its connections to all servers, on one thread.
class Stripes {
 public:
  Stripes(const Options& options, std::vector<Client*> connections)
      : o(options), members(std::move(connections)) {
    for (Client* c : members) c->stripes = this;
  }

  // Before the members start a pass.
  void start(unsigned reader_shift) {
    shift = reader_shift;
    next = 0;
    unfinished.clear();
    for (Client* c : members) c->assigned.clear();
    issue();
  }
  bool all_issued() const { return next == o.records; }
  void call_done(uint64_t record) {
    auto found = unfinished.find(record);
    if (found == unfinished.end() || --found->second != 0) return;
    unfinished.erase(found);
    issue();
  }

 private:
  void issue() {
    for (; next < o.records && unfinished.size() < o.depth; ++next) {
      uint64_t at = o.record_offset(members[0]->record_number(next, shift));
      const uint64_t end = at + o.record;
      unsigned calls = 0;
      for (; at < end; ++calls) {
        const uint64_t unit = at / o.stripe_unit;
        const uint64_t to = std::min(end, (unit + 1) * o.stripe_unit);
        members[size_t(unit % members.size())]->assigned.push_back({next, at, uint32_t(to - at)});
        at = to;
      }
      unfinished[next] = calls;
    }
  }

  const Options& o;
  const std::vector<Client*> members;
  unsigned shift = 0;
  uint64_t next = 0;
  std::map<uint64_t, unsigned> unfinished;  // record, calls still out
};

bool Client::all_issued() const {
  return stripes ? stripes->all_issued() && assigned.empty() : next == o.calls();
}
void Client::call_done(uint64_t record) { stripes->call_done(record); }

// ---------------------------------------------------------------------------------------------
// Passes

struct PassResult {
  Tally tally;
  double seconds = 0;
  double cpu = 0;
};

// Drives some clients until all of them are done. Errors of the connection end up in their tallies.
void drive(const std::vector<Client*>& mine) {
  int ep = epoll_create1(EPOLL_CLOEXEC);
  std::vector<bool> armed(mine.size(), false);
  std::vector<bool> dead(mine.size(), false);
  auto fail = [&](size_t i, const std::exception& e) {
    mine[i]->tally.errors[e.what()]++;
    epoll_ctl(ep, EPOLL_CTL_DEL, mine[i]->fd, nullptr);
    dead[i] = true;
  };
  for (size_t i = 0; i < mine.size(); ++i) {
    armed[i] = mine[i]->wants_write();
    epoll_event event{};
    event.events = EPOLLIN | (armed[i] ? uint32_t(EPOLLOUT) : 0u);
    event.data.u64 = i;
    epoll_ctl(ep, EPOLL_CTL_ADD, mine[i]->fd, &event);
  }
  uint64_t last_tick = now_ns();
  for (;;) {
    bool all = true;
    for (size_t i = 0; all && i < mine.size(); ++i) all = dead[i] || mine[i]->finished();
    if (all) break;
    epoll_event events[64];
    int n = epoll_wait(ep, events, 64, 20);
    for (int k = 0; k < n; ++k) {
      size_t i = size_t(events[k].data.u64);
      if (dead[i]) continue;
      try {
        if (events[k].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) mine[i]->on_readable();
        else mine[i]->pump();
      } catch (const std::exception& e) {
        fail(i, e);
      }
    }
    for (size_t i = 0; i < mine.size(); ++i) {
      if (dead[i]) continue;
      try {
        // Replies to other connections of a striped client may have brought work for this one.
        if (mine[i]->stripes && !mine[i]->finished()) mine[i]->pump();
      } catch (const std::exception& e) {
        fail(i, e);
        continue;
      }
      if (mine[i]->wants_write() != armed[i]) {
        armed[i] = !armed[i];
        epoll_event event{};
        event.events = EPOLLIN | (armed[i] ? uint32_t(EPOLLOUT) : 0u);
        event.data.u64 = i;
        epoll_ctl(ep, EPOLL_CTL_MOD, mine[i]->fd, &event);
      }
    }
    uint64_t now = now_ns();
    if (now - last_tick < 20'000'000u) continue;
    last_tick = now;
    for (size_t i = 0; i < mine.size(); ++i) {
      if (dead[i]) continue;
      try {
        mine[i]->tick(now);
        if (mine[i]->waiting(now)) throw std::runtime_error("no reply within the time limit");
      } catch (const std::exception& e) {
        fail(i, e);
      }
    }
  }
  close(ep);
}

// `clients`: those of one striped client, which `stripes` has, follow each other.
PassResult run_pass(const Options& o, Kind kind, std::vector<std::unique_ptr<Client>>& clients,
                    std::vector<std::unique_ptr<Stripes>>& stripes,
                    const std::vector<uint64_t>& order) {
  PassResult result;
  unsigned shift = kind == Kind::read ? 1 : 0;  // each client reads what its neighbour wrote
  double cpu = cpu_seconds();
  uint64_t start = now_ns();
  std::vector<std::thread> threads;
  const size_t together = std::max<size_t>(1, o.servers.size());
  for (auto& c : clients) c->shuffled = &order;
  for (auto& s : stripes) s->start(shift);
  for (unsigned t = 0; t < o.threads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<Client*> mine;
      for (size_t i = 0; i < clients.size(); ++i)
        if (i / together % o.threads == t) mine.push_back(clients[i].get());
      for (Client* c : mine) {
        try {
          c->start(kind, shift);
        } catch (const std::exception& e) {
          c->tally.errors[e.what()]++;
        }
      }
      drive(mine);
    });
  }
  for (auto& t : threads) t.join();
  result.seconds = double(now_ns() - start) * 1e-9;
  result.cpu = cpu_seconds() - cpu;
  for (auto& c : clients) {
    c->stop_nonblocking();
    result.tally.add(c->tally);
  }
  std::sort(result.tally.latency_us.begin(), result.tally.latency_us.end());
  return result;
}

uint64_t percentile(const std::vector<uint32_t>& sorted, double p) {
  if (sorted.empty()) return 0;
  size_t rank = size_t(p / 100.0 * double(sorted.size()));
  return sorted[std::min(rank, sorted.size() - 1)];
}

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (uint8_t(c) >= 0x20) out += c;
  }
  return out + "\"";
}

void print_pass(const char* name, const PassResult& r, bool verified) {
  const Tally& t = r.tally;
  std::printf(",\n \"%s\": {\"mib_per_s\": %.2f, \"ops_per_s\": %.1f, \"seconds\": %.4f, \"ops\": %llu, \"bytes\": %llu,\n"
              "  \"p50_us\": %llu, \"p99_us\": %llu, \"p99.9_us\": %llu, \"max_us\": %llu, \"client_cpu_s\": %.3f,\n"
              "  \"short\": %llu, \"delays\": %llu, \"errors\": %llu",
              name, double(t.bytes) / 1048576.0 / r.seconds, double(t.ops) / r.seconds, r.seconds,
              (unsigned long long)t.ops, (unsigned long long)t.bytes,
              (unsigned long long)percentile(t.latency_us, 50), (unsigned long long)percentile(t.latency_us, 99),
              (unsigned long long)percentile(t.latency_us, 99.9), (unsigned long long)percentile(t.latency_us, 100),
              r.cpu, (unsigned long long)t.short_ops, (unsigned long long)t.delays, (unsigned long long)t.error_count());
  if (!t.errors.empty()) {
    std::printf(", \"error_kinds\": {");
    bool first = true;
    for (auto& [kind, n] : t.errors) {
      std::printf("%s%s: %llu", first ? "" : ", ", quoted(kind).c_str(), (unsigned long long)n);
      first = false;
    }
    std::printf("}");
  }
  if (verified) {
    std::printf(",\n  \"bad_records\": %llu, \"bad_bytes\": %llu", (unsigned long long)t.bad_records,
                (unsigned long long)t.bad_bytes);
    if (t.bad_records != 0)
      std::printf(", \"first_bad_offset\": %llu, \"found_there\": %s", (unsigned long long)t.first_bad_offset,
                  quoted(t.first_bad).c_str());
  } else if (std::strcmp(name, "write") == 0) {
    std::printf(",\n  \"commits\": %llu, \"weaker_than_asked\": %llu, \"verifier_changes\": %llu",
                (unsigned long long)t.commits, (unsigned long long)t.weaker, (unsigned long long)t.verifier_changes);
  }
  std::printf("}");
}

std::string mount_v3(const Options& o) {
  unsigned port = o.mount_port != 0 ? o.mount_port : ask_portmapper(o, kProgMount, 3);
  int fd = tcp_connect(o, port);
  BlockingCaller c(o, fd);
  c.begin(kProgMount, 3, 1);
  c.e.opaque(o.export_path);
  Decoder d = c.finish("MNT");
  uint32_t status = d.u32();
  if (status != kOk) die("MNT of %s: %s", o.export_path.c_str(), status_name(status).c_str());
  std::string root(d.opaque());
  close(fd);
  return root;
}

}  // namespace

int main(int argc, char** argv) {
  Options o = parse_options(argc, argv);
  if (components(o.file).empty()) die("--file: no name");
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  std::vector<Options> of_server;
  for (const Server& server : o.servers) {
    Options with = o;
    with.host = server.host;
    with.port = with.mount_port = server.port;
    with.export_path = server.export_path;
    of_server.push_back(std::move(with));
  }
  if (of_server.empty()) {
    if (o.port == 0) o.port = ask_portmapper(o, kProgNfs, o.version);
    of_server.push_back(o);
  }
  std::vector<std::string> roots;
  for (const Options& with : of_server) roots.push_back(o.version == 3 ? mount_v3(with) : "");

  const size_t together = of_server.size();
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::unique_ptr<Stripes>> stripes;
  for (unsigned i = 0; i < o.connections; ++i) {
    std::vector<Client*> members;
    for (size_t s = 0; s < together; ++s) {
      clients.push_back(std::make_unique<Client>(of_server[s], o.share * o.connections + i, of_server[s].port));
      Client& client = *clients.back();
      members.push_back(&client);
      bool create = i == 0 && o.write;
      if (o.version == 3 && i != 0) client.handle = clients[s]->handle;
      else if (o.version == 3) client.open_v3(roots[s], create, !o.overwrite);
      else client.open_v4(create, !o.overwrite);
    }
    if (!o.servers.empty()) stripes.push_back(std::make_unique<Stripes>(o, std::move(members)));
  }

  std::vector<uint64_t> order;
  if (o.pattern == Pattern::random) {
    order.resize(o.total_records());
    for (uint64_t k = 0; k < order.size(); ++k) order[k] = k;
    std::mt19937_64 random(o.seed);
    std::shuffle(order.begin(), order.end(), random);
  }

  bool good = true;
  std::printf("{\"server\": %s, \"version\": %u, \"connections\": %u, \"depth\": %u, \"threads\": %u,\n"
              " \"record\": %u, \"records\": %llu, \"pattern\": %s, \"stable\": %s, \"overwrite\": %s",
              quoted(of_server[0].host + ":" + std::to_string(of_server[0].port)).c_str(), o.version, o.connections, o.depth, o.threads, o.record,
              (unsigned long long)o.total_records(), quoted(o.pattern_name).c_str(), quoted(o.stable_name).c_str(),
              o.overwrite ? "true" : "false");
  if (o.write) {
    PassResult r = run_pass(o, Kind::write, clients, stripes, order);
    print_pass("write", r, false);
    good = good && r.tally.error_count() == 0 && r.tally.weaker == 0 && r.tally.verifier_changes == 0;
    std::fflush(stdout);
  }
  if (good && (o.read || o.verify)) {
    PassResult r = run_pass(o, Kind::read, clients, stripes, order);
    print_pass("read", r, o.verify);
    good = good && r.tally.error_count() == 0 && r.tally.bad_records == 0;
  }
  if (good) {
    uint64_t size = clients[0]->size_of_file();
    bool right = o.overwrite || !o.write ? size >= o.file_size() : size == o.file_size();
    std::printf(",\n \"file_size\": %llu, \"expected_size\": %llu", (unsigned long long)size,
                (unsigned long long)o.file_size());
    good = right || !o.whole_file();
    if (o.version == 4)
      for (auto& c : clients) c->close_v4();
    if (o.remove) clients[0]->remove_file(false);
  }
  std::printf(",\n \"ok\": %s}\n", good ? "true" : "false");
  return good ? 0 : 1;
}
