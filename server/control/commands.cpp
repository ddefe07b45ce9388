#include "server/control/commands.h"

#include "server/endpoint.h"
#include "server/log.h"
#include "server/printable.h"
#include "server/server.h"

#include <unistd.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

namespace selvage::server::control {
namespace {

namespace proto = selvage::control;

constexpr std::uint32_t usual_edges = 100;
constexpr std::uint32_t most_edges = 10'000;

/// Of this process: statm(5).
std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  statm >> size >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void add_memory(proto::Status& status, std::string holder, std::uint64_t bytes,
                std::uint64_t limit) {
  auto& memory = *status.add_memory();
  memory.set_holder(std::move(holder));
  memory.set_bytes(bytes);
  memory.set_limit(limit);
}

Reply no_export(const std::string& path) {
  return error(Error::not_found, path + ": not exported");
}

storage::Awaitable<storage::Result<>> sync_one(storage::FileSystem& filesystem,
                                               storage::Worker& worker) {
  co_return co_await filesystem.sync(worker);
}

}  // namespace

Commands::Commands(const Insight& insight, nfs4::Part& nfs4,
                   std::vector<boost::asio::ip::tcp::endpoint> listening,
                   std::optional<boost::asio::ip::tcp::endpoint> metrics, Hooks hooks)
    : insight_(insight),
      nfs4_(nfs4),
      listening_(std::move(listening)),
      metrics_(std::move(metrics)),
      hooks_(std::move(hooks)) {}

Reply Commands::run(const Request& request) {
  switch (request.command_case()) {
    case Request::kStatus:
      return status();
    case Request::kExports:
      return exports();
    case Request::kClients:
      return clients();
    case Request::kStats:
      return stats(request.stats());
    case Request::kEdges:
      return edges(request.edges());
    case Request::kSync:
      return sync(request.sync().export_());
    case Request::kReload:
      return reload();
    case Request::kDrain:
      return drain();
    case Request::kEvict:
      return evict(request.evict().client());
    case Request::kLog: {
      const auto level = log::parse_level(request.log().level());
      if (!level) return error(Error::bad_request, "the level is error, warning, notice or info");
      log::set_threshold(*level);
      return done("logging " + request.log().level() + " and above");
    }
    case Request::kEndGrace:
      return end_grace();
    case Request::COMMAND_NOT_SET:
      break;
  }
  return error(Error::bad_request, "a command that this server does not know");
}

Reply Commands::status() const {
  Reply reply;
  auto& status = *reply.mutable_status();
  const auto table = insight_.exports.get();
  const auto rpc = insight_.rpc.gauges();
  const auto counts = insight_.nfs4.state.counts();
  const auto buffers = insight_.runtime.buffers().gauges();
  status.set_version(SELVAGE_VERSION);
  status.set_pid(static_cast<std::uint32_t>(::getpid()));
  const auto up = std::chrono::steady_clock::now() - began_;
  status.set_uptime_seconds(
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(up).count()));
  for (const auto& endpoint : listening_) status.add_listening(to_text(endpoint));
  if (metrics_) status.set_metrics("http://" + to_text(*metrics_) + "/metrics");
  status.set_exports(static_cast<std::uint32_t>(table->all().size()));
  status.set_workers(insight_.runtime.size());
  status.set_io_uring(insight_.runtime.io_uring_active());
  status.set_grace(insight_.nfs4.state.in_grace());
  status.set_connections(insight_.rpc.counters().connections_open.get());
  status.set_connections_limit(rpc.connections_limit);
  status.set_requests_in_flight(rpc.in_flight);
  status.set_requests_in_flight_limit(rpc.in_flight_limit);
  status.set_nfs4_clients(counts.clients);
  status.set_nfs4_opens(counts.opens);
  status.set_nfs4_locks(counts.locks);
  status.set_resident_bytes(resident_bytes());
  add_memory(status, "payloads of requests in flight", buffers.bytes_used, buffers.bytes_limit);
  add_memory(status, "replies kept for retries", rpc.duplicates.bytes, rpc.duplicates.bytes_limit);
  add_memory(status, "replies kept in NFSv4 sessions", counts.reply_cache_bytes,
             insight_.nfs4.state.options().max_reply_cache_bytes);
  add_memory(status, "NFSv4 clients, opens and locks", counts.state_bytes,
             insight_.nfs4.state.options().max_state_bytes);
  for (const auto& one : table->all()) {
    const auto gauges = one->filesystem->gauges();
    add_memory(status, "edge pages of " + one->name, gauges.edge_bytes, gauges.edge_bytes_limit);
  }
  std::ranges::sort(*status.mutable_memory(), std::ranges::greater(),
                    [](const auto& memory) { return memory.bytes(); });
  return reply;
}

Reply Commands::exports() const {
  Reply reply;
  auto& all = *reply.mutable_exports();
  const auto table = insight_.exports.get();
  for (const auto& one : table->all()) {
    const auto& counters = one->filesystem->counters();
    auto& row = *all.add_exports();
    row.set_path(one->name);
    row.set_description(describe(*one));
    row.set_open_files(one->filesystem->gauges().open_files);
    row.set_reads(counters.reads.get());
    row.set_read_bytes(counters.read_bytes.get());
    row.set_writes(counters.writes.get());
    row.set_write_bytes(counters.write_bytes.get());
    row.set_errors(counters.read_errors.get() + counters.write_errors.get() +
                   counters.sync_errors.get());
  }
  return reply;
}

Reply Commands::edges(const proto::EdgesRequest& request) const {
  const auto table = insight_.exports.get();
  const Export* wanted = table->by_path(request.export_());
  if (!request.export_().empty() && wanted == nullptr) return no_export(request.export_());
  const auto most = request.most() == 0 ? usual_edges : std::min(request.most(), most_edges);
  Reply reply;
  auto& all = *reply.mutable_edges();
  for (const auto& one : table->all()) {
    if (wanted != nullptr && one.get() != wanted) continue;
    for (const auto& file : one->filesystem->edges(most)) {
      auto& row = *all.add_files();
      row.set_export_(one->name);
      row.set_path(printable(file.path));
      row.set_fileid(file.fileid);
      row.set_key(file.key);
      row.set_assembled(file.assembled);
      row.set_pages(file.pages);
      row.set_dirty_bytes(file.dirty_bytes);
      row.set_in_flight(file.in_flight);
    }
  }
  return reply;
}

Reply Commands::sync(const std::string& path) {
  const auto table = insight_.exports.get();
  const Export* wanted = table->by_path(path);
  if (!path.empty() && wanted == nullptr) return no_export(path);
  auto& worker = insight_.runtime.worker(0);
  std::string failures;
  std::string synced;
  for (const auto& one : table->all()) {
    if (wanted != nullptr && one.get() != wanted) continue;
    const auto result = boost::asio::co_spawn(worker.context, sync_one(*one->filesystem, worker),
                                              boost::asio::use_future)
                            .get();
    auto& list = result ? synced : failures;
    list += (list.empty() ? "" : ", ") + one->name;
    if (!result) list += " (" + result.error().message() + ")";
  }
  if (!failures.empty()) return error(Error::failed, "not durable: " + failures);
  return done("durable: " + synced);
}

Reply Commands::reload() {
  if (!hooks_.reload) return error(Error::failed, "this server cannot reload");
  if (const auto refused = hooks_.reload()) return error(Error::failed, refused->message);
  return done("reloaded");
}

Reply Commands::drain() {
  if (!hooks_.drain) return error(Error::failed, "this server cannot be drained");
  log::notice("drain asked for over the control socket");
  hooks_.drain();
  return done("finishing what is in progress, then ending");
}

Reply Commands::evict(const std::string& client) {
  std::uint64_t id = 0;
  const char* end = client.data() + client.size();
  const auto parsed = std::from_chars(client.data(), end, id, 16);
  if (client.empty() || parsed.ec != std::errc() || parsed.ptr != end) {
    return error(Error::bad_request, "'" + client + "' is not the id of an NFSv4 client");
  }
  if (!nfs4_.evict(id)) {
    return error(Error::not_found, "there is no NFSv4 client " + client + " that holds anything");
  }
  log::notice("NFSv4 client " + client + " evicted over the control socket");
  return done("evicted " + client);
}

Reply Commands::end_grace() {
  if (!insight_.nfs4.state.in_grace()) return error(Error::failed, "there is no grace period now");
  nfs4_.end_grace();
  log::notice("grace period ended over the control socket");
  return done("grace period ended");
}

}  // namespace selvage::server::control
