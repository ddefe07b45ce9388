// ceilings: what bounds the server's speed and CPU from above, measured piece by piece.
//
// usage: ceilings uring  FILE RECORD COUNT DEPTH unstable|file_sync
//        ceilings engine DIR NAME RECORD COUNT DEPTH unstable|file_sync
//        ceilings sink   DIR
//
// uring:  bare io_uring, O_DIRECT: batches of DEPTH aligned records as long vectors, one fsync for
//         each batch (file_sync) or at the end.
// engine: storage as the server runs it, without a network: DEPTH WRITEs in flight.
// sink:   the whole front end on a free port, printed, until SIGTERM; it answers every WRITE and
//         COMMIT without looking at the payload.
// The first two write COUNT records of RECORD bytes, over what is there, and print one JSON object.
#include "server/config.h"
#include "server/mount3/program.h"
#include "server/nfs3/procedures.h"
#include "server/nfs3/program.h"
#include "server/rpc/server.h"
#include "server/server.h"
#include "storage/aligned_memory.h"
#include "storage/local/local_filesystem.h"
#include "storage/unique_fd.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include <fcntl.h>
#include <liburing.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace selvage {
namespace {

using std::chrono::steady_clock;
using storage::Awaitable;
constexpr std::size_t page = 4096;

struct Load {
  std::uint64_t record, count, depth;
  storage::Stability stability;
};

Load load_from(char** arguments) {
  const auto number = [](const char* text) { return std::strtoull(text, nullptr, 10); };
  const bool stable = std::string_view(arguments[3]) == "file_sync";
  return {number(arguments[0]), number(arguments[1]), std::max(number(arguments[2]), 1ULL),
          stable ? storage::Stability::file_sync : storage::Stability::unstable};
}

void require(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

/// Time and CPU of this process since it was made.
class Meter {
 public:
  void print(const Load& load) const {
    const std::chrono::duration<double> took = steady_clock::now() - began_;
    const double bytes = static_cast<double>(load.record * load.count);
    std::printf("{\"mib_per_s\": %.1f, \"cpu_s_per_gib\": %.3f}\n", bytes / 0x1p20 / took.count(),
                (cpu() - cpu_) / bytes * 0x1p30);
  }

 private:
  static double cpu() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  steady_clock::time_point began_ = steady_clock::now();
  double cpu_ = cpu();
};

void bare_uring(const char* path, const Load& load) {
  constexpr std::size_t longest = std::size_t{1} << 20;
  require(load.record % page == 0, "uring: records must be whole pages");
  const storage::UniqueFd fd(::open(path, O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0644));
  require(static_cast<bool>(fd), "uring: cannot open the file");
  const storage::AlignedMemory memory(load.record * load.depth, page);
  std::memset(memory.data(), 1, load.record * load.depth);
  io_uring ring{};
  require(io_uring_queue_init(256, &ring, IORING_SETUP_SINGLE_ISSUER) == 0, "uring: no io_uring");
  const auto submit_and_wait = [&](unsigned count) {
    require(io_uring_submit_and_wait(&ring, count) >= 0, "uring: submit");
    io_uring_cqe* cqe = nullptr;
    for (; count > 0; --count) {
      require(io_uring_wait_cqe(&ring, &cqe) == 0 && cqe->res >= 0, "uring: a request failed");
      io_uring_cqe_seen(&ring, cqe);
    }
  };
  const auto sync = [&] {
    io_uring_prep_fsync(io_uring_get_sqe(&ring), fd.get(), 0);
    submit_and_wait(1);
  };
  const bool stable = load.stability != storage::Stability::unstable;
  const Meter meter;
  for (std::uint64_t first = 0; first < load.count; first += load.depth) {
    const std::uint64_t records = std::min(load.depth, load.count - first);
    const std::uint64_t bytes = records * load.record;
    unsigned writes = 0;
    for (std::uint64_t at = 0; at < bytes; at += longest, ++writes) {
      io_uring_prep_write(io_uring_get_sqe(&ring), fd.get(), memory.data() + at,
                          static_cast<unsigned>(std::min(longest, bytes - at)),
                          first * load.record + at);
    }
    submit_and_wait(writes);
    if (stable) sync();
  }
  if (!stable) sync();
  meter.print(load);
  io_uring_queue_exit(&ring);
}

/// One client with one WRITE in flight: every `load.depth`th record from `first` on.
Awaitable<> write_records(storage::Worker& worker, storage::FileSystem& files,
                          storage::ObjectId file, const Load& load, std::uint64_t first) {
  const storage::Credentials credentials{0, 0, {}};
  const storage::Caller caller{worker, credentials};
  const storage::AlignedMemory memory(load.record + page, page);
  std::memset(memory.data(), static_cast<int>(first), load.record + page);
  for (std::uint64_t i = first; i < load.count; i += load.depth) {
    storage::WriteRequest request;
    request.offset = i * load.record;
    request.data = {memory.data() + request.offset % page, load.record};
    request.stability = load.stability;
    const auto done = co_await files.write(caller, file, request);
    require(done.has_value(), "engine: a WRITE failed");
  }
}

Awaitable<storage::ObjectId> create(storage::Worker& worker, storage::FileSystem& files,
                                    std::string name) {
  const storage::Credentials credentials{0, 0, {}};
  const storage::Caller caller{worker, credentials};
  storage::CreateRequest request;
  request.attributes.mode = 0644;
  const auto made = co_await files.create(caller, files.root(), std::move(name), request);
  require(made.has_value(), "engine: cannot make the file");
  co_return made->node.id;
}

Awaitable<> commit(storage::Worker& worker, storage::FileSystem& files, storage::ObjectId file) {
  const storage::Credentials credentials{0, 0, {}};
  const auto done = co_await files.commit({worker, credentials}, file, 0, 0);
  require(done.has_value(), "engine: COMMIT failed");
}

Awaitable<> close(storage::Worker& worker, storage::FileSystem& files) {
  const auto done = co_await files.close(worker);
  require(done.has_value(), "engine: close failed");
}

void engine(const std::string& folder, const std::string& name, const Load& load) {
  storage::Runtime runtime({});
  storage::ExportOptions options;
  options.edges = storage::EdgeMode::assemble;
  auto files = storage::LocalFileSystem::open(folder, options, runtime);
  require(files.has_value(), "engine: cannot open the directory");
  auto& first = runtime.worker(0);
  const auto on = [](storage::Worker& worker, Awaitable<> work) {
    return boost::asio::co_spawn(worker.context, std::move(work), boost::asio::use_future);
  };
  const storage::ObjectId file =
      boost::asio::co_spawn(first.context, create(first, **files, name), boost::asio::use_future)
          .get();
  const Meter meter;
  std::vector<std::future<void>> clients;
  for (std::uint64_t i = 0; i < load.depth; ++i) {
    auto& worker = runtime.worker(static_cast<unsigned>(i % runtime.size()));
    clients.push_back(on(worker, write_records(worker, **files, file, load, i)));
  }
  for (auto& client : clients) client.get();
  if (load.stability == storage::Stability::unstable) on(first, commit(first, **files, file)).get();
  meter.print(load);
  on(first, close(first, **files)).get();
  runtime.stop();
}

server::rpc::Awaitable<server::rpc::Reply> take_write(void* /*service*/, server::rpc::Call& call) {
  xdr::WRITE3args args;
  if (!server::rpc::decode_arguments(call, args)) co_return server::rpc::garbage_args();
  xdr::WRITE3resok ok;
  ok.count = args.count;
  ok.committed = args.stable;
  server::rpc::Reply reply;
  xdr::encode(reply.results, xdr::WRITE3res(ok));
  co_return reply;
}

server::rpc::Awaitable<server::rpc::Reply> take_commit(void* /*service*/,
                                                       server::rpc::Call& /*call*/) {
  server::rpc::Reply reply;
  xdr::encode(reply.results, xdr::COMMIT3res(xdr::COMMIT3resok()));
  co_return reply;
}

void sink(const std::string& folder) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  server::prepare_process();
  storage::Runtime runtime({});
  auto config = server::parse_export_argument(folder + ":squash=none");
  require(config.has_value(), "sink: bad directory");
  const auto open = [&](const server::ExportConfig& one)
      -> storage::Result<std::unique_ptr<storage::FileSystem>> {
    auto opened = storage::LocalFileSystem::open(one.path, one.storage, runtime);
    if (!opened) return opened.error();
    return std::unique_ptr<storage::FileSystem>(std::move(*opened));
  };
  auto exports = server::ExportTable::make({*config}, open);
  require(exports.has_value(), "sink: cannot export the directory");
  const server::CurrentExports current(*exports);
  const storage::HandleCodec handles{{}};
  server::nfs3::Service nfs3{current, handles};
  server::mount3::Service mount3{current, handles, {}};
  auto program = server::nfs3::program(nfs3);
  std::vector<server::rpc::Procedure> procedures(program.procedures.begin(),
                                                 program.procedures.end());
  procedures[xdr::NFSPROC3_WRITE].handler = take_write;
  procedures[xdr::NFSPROC3_COMMIT].handler = take_commit;
  program.procedures = procedures;
  const std::array programs{program, server::mount3::program_v3(mount3)};
  server::rpc::Server front(runtime, programs, {});
  const std::array<boost::asio::ip::address, 1> addresses{boost::asio::ip::address_v4::loopback()};
  require(front.listen(addresses, 0).has_value(), "sink: cannot listen");
  front.start();
  std::printf("%u\n", static_cast<unsigned>(front.port()));
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  front.drain(std::chrono::seconds(5));
  auto& worker = runtime.worker(0);
  auto& files = *(*exports)->all().front()->filesystem;
  boost::asio::co_spawn(worker.context, close(worker, files), boost::asio::use_future).get();
  runtime.stop();
}

}  // namespace
}  // namespace selvage

int main(int argc, char** argv) {
  using namespace selvage;
  const std::string_view mode = argc > 1 ? argv[1] : "";
  try {
    if (mode == "uring" && argc == 7) {
      bare_uring(argv[2], load_from(argv + 3));
    } else if (mode == "engine" && argc == 8) {
      engine(argv[2], argv[3], load_from(argv + 4));
    } else if (mode == "sink" && argc == 3) {
      sink(argv[2]);
    } else {
      std::fputs("usage: see the head of tests/bench/ceilings.cpp\n", stderr);
      return 2;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ceilings: %s\n", error.what());
    return 1;
  }
  return 0;
}
