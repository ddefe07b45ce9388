#include "server/exporter/collector.h"

#include "server/exporter/data_metrics.h"
#include "server/exporter/families.h"
#include "server/nfs4/op_table.h"

#include <chrono>
#include <string>
#include <string_view>

namespace selvage::server {
namespace {

const auto start_time = std::chrono::system_clock::now();

void add_process(Families& families) {
  const std::chrono::duration<double> since_epoch = start_time.time_since_epoch();
  families.gauge("build_info", "The version that runs.", 1, {{"version", SELVAGE_VERSION}});
  families.gauge("start_time_seconds", "When the process started, seconds since 1970.",
                 since_epoch.count());
}

void add_procedures(Families& families, const rpc::ProgramTable& programs) {
  for (const auto& entry : programs.entries()) {
    for (std::size_t i = 0; i < entry.counters.size(); ++i) {
      if (entry.program.procedures[i].handler == nullptr) continue;
      const auto& counters = entry.counters[i];
      const Labels labels{{"program", std::string(entry.program.name)},
                          {"procedure", std::string(entry.program.procedures[i].name)}};
      families.counter("rpc_calls_total", "RPC calls by procedure; NULL apart.",
                       static_cast<double>(counters.calls.get()), labels);
      families.counter("rpc_call_errors_total", "Of those: answered with an RPC error.",
                       static_cast<double>(counters.errors.get()), labels);
      if (counters.calls.get() == 0) continue;
      families.histogram("rpc_call_duration_seconds",
                         "Time from the complete call to its ready reply.", counters.latency,
                         labels);
    }
  }
}

std::string_view operation_name(std::uint32_t number) {
  for (std::uint32_t minor = 0; minor <= 2; ++minor) {
    const auto* row = nfs4::find_operation(number, minor);
    if (row != nullptr && row->run != nullptr) return row->name;
  }
  return {};
}

void add_operations(Families& families, const nfs4::Service& service) {
  for (std::uint32_t number = 0; number < service.operations.size(); ++number) {
    const auto name = operation_name(number);
    const auto& counters = service.operations[number];
    if (name.empty()) continue;
    const Labels labels{{"operation", std::string(name)}};
    families.counter("nfs4_operations_total", "NFSv4 operations.",
                     static_cast<double>(counters.calls.get()), labels);
    families.counter("nfs4_operation_errors_total", "Of those: not answered with NFS4_OK.",
                     static_cast<double>(counters.errors.get()), labels);
    if (counters.calls.get() == 0) continue;
    families.histogram("nfs4_operation_duration_seconds", "Time that NFSv4 operations took.",
                       counters.latency, labels);
  }
}

void add_front_end(Families& families, const rpc::Server& rpc) {
  const auto& counters = rpc.counters();
  const auto gauges = rpc.gauges();
  const auto counter = [&](std::string_view name, std::string_view help, const rpc::Counter& from) {
    families.counter(name, help, static_cast<double>(from.get()));
  };
  const auto gauge = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    families.gauge(name, help, static_cast<double>(value));
  };
  gauge("connections", "Connections open.", counters.connections_open.get());
  gauge("connections_limit", "How many there may be.", gauges.connections_limit);
  counter("connections_accepted_total", "Connections accepted.", counters.connections_accepted);
  counter("connections_refused_total", "Connections closed at once, over the limit.",
          counters.connections_refused);
  counter("accept_errors_total", "Failures of accept(2).", counters.accept_errors);
  for (std::size_t i = 0; i < rpc::close_reasons; ++i) {
    const auto reason = to_string(static_cast<rpc::CloseReason>(i));
    families.counter("connections_closed_total", "Connections closed, by reason.",
                     static_cast<double>(counters.connections_closed[i].get()),
                     {{"reason", std::string(reason)}});
  }
  gauge("requests_in_flight", "Requests being served.", gauges.in_flight);
  gauge("requests_in_flight_limit", "Above it sockets are not read.", gauges.in_flight_limit);
  counter("requests_total", "Calls received.", counters.requests);
  counter("requests_dropped_total", "Calls not started, their connection being dead.",
          counters.requests_dropped);
  counter("null_calls_total", "Calls of procedure NULL.", counters.null_calls);
  counter("requests_rejected_total", "Calls that the RPC layer answered with an error.",
          counters.rpc_errors);
  counter("handler_exceptions_total", "Calls that failed for want of memory, or by a bug.",
          counters.handler_exceptions);
  counter("replies_total", "Replies that the kernel has taken.", counters.replies);
  counter("reply_writes_total", "System calls that sent them.", counters.reply_writes);
  counter("receives_total", "System calls that received bytes.", counters.receives);
  counter("receive_waits_total", "Times reading stopped for want of memory or permits.",
          counters.receive_waits);
  counter("received_bytes_total", "Bytes received.", counters.bytes_received);
  counter("steered_payloads_total", "Payloads received aligned as in the file.",
          counters.steered_payloads);
  counter("overread_bytes_total", "Payload bytes copied into place.", counters.overread_bytes);
  counter("head_copied_bytes_total", "Bytes around payloads, copied.", counters.head_bytes_copied);
  counter("reassembled_records_total", "Records received into plain memory.",
          counters.reassembled_records);
  counter("reassembled_bytes_total", "Bytes of those.", counters.reassembled_bytes);
  counter("duplicates_answered_total", "Retries answered from the duplicate request cache.",
          counters.drc_hits);
  counter("duplicates_held_back_total", "Retries that waited for the first copy.",
          counters.drc_waits);
  counter("duplicates_dropped_total", "Retries dropped: too many waited.", counters.drc_drops);
  gauge("duplicate_cache_entries", "Replies kept for retries.", gauges.duplicates.entries);
  gauge("duplicate_cache_bytes", "Memory of those.", gauges.duplicates.bytes);
  gauge("duplicate_cache_bytes_limit", "The oldest go above it.", gauges.duplicates.bytes_limit);
}

void add_runtime(Families& families, storage::Runtime& runtime) {
  const auto buffers = runtime.buffers().gauges();
  const auto gauge = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    families.gauge(name, help, static_cast<double>(value));
  };
  gauge("workers", "Worker threads.", runtime.size());
  gauge("io_uring_active", "1: data goes through io_uring.", runtime.io_uring_active() ? 1 : 0);
  gauge("buffer_bytes", "Payload memory in use.", buffers.bytes_used);
  gauge("buffer_bytes_limit", "Payload memory in all.", buffers.bytes_limit);
  gauge("buffer_bytes_peak", "The most that was in use.", buffers.bytes_peak);
  families.counter("buffer_waits_total", "Requests that waited for payload memory.",
                   static_cast<double>(buffers.waits));
  families.counter("ring_submits_total", "io_uring_enter calls that submitted.",
                   static_cast<double>(runtime.ring_submits()));
  families.counter("pool_calls_total", "Calls run on the blocking pool.",
                   static_cast<double>(runtime.pool().calls()));
}

void add_state(Families& families, const nfs4::Service& service) {
  const auto counts = service.state.counts();
  const auto gauge = [&](std::string_view name, std::string_view help, std::size_t value) {
    families.gauge(name, help, static_cast<double>(value));
  };
  gauge("nfs4_clients", "NFSv4 clients known.", counts.clients);
  gauge("nfs4_clients_expired", "Of those: kept though their lease has expired.",
        counts.expired_clients);
  gauge("nfs4_sessions", "NFSv4 sessions.", counts.sessions);
  gauge("nfs4_open_owners", "NFSv4 open owners.", counts.open_owners);
  gauge("nfs4_lock_owners", "NFSv4 lock owners.", counts.lock_owners);
  gauge("nfs4_opens", "NFSv4 opens.", counts.opens);
  gauge("nfs4_locks", "NFSv4 byte-range locks.", counts.locks);
  gauge("nfs4_files", "Files with opens or locks.", counts.files);
  gauge("nfs4_revoked_stateids", "Stateids whose state was taken away.", counts.revoked);
  gauge("nfs4_state_bytes", "Memory of NFSv4 clients, opens and locks, estimated.",
        counts.state_bytes);
  gauge("nfs4_state_bytes_limit", "New state is refused above it.",
        service.state.options().max_state_bytes);
  gauge("nfs4_reply_cache_bytes", "Replies cached in sessions.", counts.reply_cache_bytes);
  gauge("nfs4_reply_cache_bytes_limit", "How much may be cached.",
        service.state.options().max_reply_cache_bytes);
  families.counter("nfs4_clients_revoked_total", "Clients whose state was taken away.",
                   static_cast<double>(counts.clients_revoked));
  gauge("nfs4_grace", "1: the grace period after a start.", service.state.in_grace() ? 1 : 0);
}

}  // namespace

std::vector<prometheus::MetricFamily> Collector::Collect() const {
  Families families;
  add_process(families);
  add_data_metrics(families, *insight_.exports.get());
  add_procedures(families, insight_.rpc.programs());
  add_operations(families, insight_.nfs4);
  add_front_end(families, insight_.rpc);
  add_runtime(families, insight_.runtime);
  add_state(families, insight_.nfs4);
  return families.take();
}

}  // namespace selvage::server
