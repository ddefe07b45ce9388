#include "server/metrics.h"

#include "server/data_counter_values.h"
#include "server/nfs4/op_table.h"
#include "storage/counters.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace selvage::server {
namespace {

using counter_values::combined;
using counter_values::indexed;
using counter_values::plain;
using storage::CombinerCounters;
using storage::DataCounters;

constexpr std::size_t name_width = 34;
constexpr std::size_t line_width = 110;

std::string left(std::string_view text, std::size_t width) {
  std::string padded(text);
  if (padded.size() < width) padded.append(width - padded.size(), ' ');
  return padded;
}

std::string right(std::string_view text, std::size_t width) {
  std::string padded;
  if (text.size() < width) padded.append(width - text.size(), ' ');
  return padded.append(text);
}

std::string row(std::string_view name, std::uint64_t value) {
  return "  " + left(name, name_width) + right(std::to_string(value), 14) + "\n";
}

struct DataRow {
  std::string_view name;
  std::uint64_t (*value)(const DataCounters&);
};

constexpr std::array data_rows{
    DataRow{"writes", plain<&DataCounters::writes>},
    DataRow{"write_bytes", plain<&DataCounters::write_bytes>},
    DataRow{"write_errors", plain<&DataCounters::write_errors>},
    DataRow{"short_writes", plain<&DataCounters::short_writes>},
    DataRow{"asked_unstable", indexed<&DataCounters::stable_asked, 0>},
    DataRow{"asked_data_sync", indexed<&DataCounters::stable_asked, 1>},
    DataRow{"asked_file_sync", indexed<&DataCounters::stable_asked, 2>},
    DataRow{"reached_unstable", indexed<&DataCounters::stable_reached, 0>},
    DataRow{"reached_data_sync", indexed<&DataCounters::stable_reached, 1>},
    DataRow{"reached_file_sync", indexed<&DataCounters::stable_reached, 2>},
    DataRow{"commits", plain<&DataCounters::commits>},
    DataRow{"syncs", plain<&DataCounters::syncs>},
    DataRow{"syncs_shared", plain<&DataCounters::syncs_shared>},
    DataRow{"sync_errors", plain<&DataCounters::sync_errors>},
    DataRow{"verifier_changes", plain<&DataCounters::verifier_changes>},
    DataRow{"boundary_asked", plain<&DataCounters::boundary_asked>},
    DataRow{"boundary_completed", plain<&DataCounters::boundary_completed>},
    DataRow{"boundary_dropped", plain<&DataCounters::boundary_dropped>},
    DataRow{"boundary_drop_failed", plain<&DataCounters::boundary_drop_failed>},
    DataRow{"boundary_orphaned", plain<&DataCounters::boundary_orphaned>},
    DataRow{"assemble_batches", combined<&CombinerCounters::batches>},
    DataRow{"assemble_batches_together", combined<&CombinerCounters::batches_together>},
    DataRow{"assemble_batch_writes", combined<&CombinerCounters::batch_writes>},
    DataRow{"assemble_runs", combined<&CombinerCounters::runs>},
    DataRow{"assemble_run_pieces", combined<&CombinerCounters::run_pieces>},
    DataRow{"assemble_pages_whole", combined<&CombinerCounters::pages_whole>},
    DataRow{"assemble_pages_read", combined<&CombinerCounters::pages_read>},
    DataRow{"assemble_pages_partial", combined<&CombinerCounters::pages_partial>},
    DataRow{"assemble_tails", combined<&CombinerCounters::tails>},
    DataRow{"assemble_held_back", combined<&CombinerCounters::held_back>},
    DataRow{"assemble_waits", combined<&CombinerCounters::waits>},
    DataRow{"assemble_barriers", combined<&CombinerCounters::barriers>},
    DataRow{"leases_held", plain<&DataCounters::leases_held>},
    DataRow{"leases_refused", plain<&DataCounters::leases_refused>},
    DataRow{"leases_broken", plain<&DataCounters::leases_broken>},
    DataRow{"leases_late", plain<&DataCounters::leases_late>},
    DataRow{"direct_fallbacks", plain<&DataCounters::direct_fallbacks>},
    DataRow{"bounce_copies", plain<&DataCounters::bounce_copies>},
    DataRow{"reads", plain<&DataCounters::reads>},
    DataRow{"read_bytes", plain<&DataCounters::read_bytes>},
    DataRow{"read_errors", plain<&DataCounters::read_errors>},
    DataRow{"files_opened", plain<&DataCounters::files_opened>},
    DataRow{"files_closed", plain<&DataCounters::files_closed>},
    DataRow{"close_errors", plain<&DataCounters::close_errors>},
};

using Exports = std::vector<const Export*>;

/// The exports of one block of columns, from `first` on: as many as fit into a line.
Exports columns_from(const ExportTable& table, std::size_t first) {
  Exports columns;
  std::size_t width = name_width + 2;
  for (std::size_t i = first; i < table.all().size(); ++i) {
    const Export& one = *table.all()[i];
    width += std::max<std::size_t>(one.name.size() + 2, 16);
    if (!columns.empty() && width > line_width) break;
    columns.push_back(&one);
  }
  return columns;
}

template <class Value>
std::string export_row(std::string_view name, const Exports& columns, Value value) {
  std::string line = "  " + left(name, name_width);
  for (const Export* one : columns) {
    const auto width = std::max<std::size_t>(one->name.size() + 2, 16);
    line += right(value(*one), width);
  }
  return line + "\n";
}

std::string data_block(const Exports& columns) {
  std::string text = export_row("export", columns, [](const Export& one) { return one.name; });
  for (std::size_t reason = 0; reason < storage::plan_reasons; ++reason) {
    const auto name = "writes_" + std::string(to_string(static_cast<storage::PlanReason>(reason)));
    text += export_row(name, columns, [&](const Export& one) {
      return std::to_string(one.filesystem->counters().writes_by_reason[reason].get());
    });
  }
  for (const auto& data : data_rows) {
    text += export_row(data.name, columns, [&](const Export& one) {
      return std::to_string(data.value(one.filesystem->counters()));
    });
  }
  return text;
}

/// The upper end of the bucket that holds the given share of the values, in microseconds.
std::uint64_t quantile(const rpc::Histogram& histogram, double share) {
  std::uint64_t total = 0;
  for (const auto& bucket : histogram.counts) total += bucket.get();
  const auto wanted = static_cast<double>(total) * share;
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < rpc::Histogram::buckets; ++i) {
    below += histogram.counts[i].get();
    if (below > 0 && static_cast<double>(below) >= wanted) return std::uint64_t{1} << i;
  }
  return 0;
}

std::string procedures_block(const rpc::Server& rpc) {
  std::string text = "  " + left("procedure", name_width) + right("calls", 14) +
                     right("errors", 10) + right("p50 us <", 12) + right("p99 us <", 12) + "\n";
  for (const auto& entry : rpc.programs().entries()) {
    for (std::size_t i = 0; i < entry.counters.size(); ++i) {
      const auto& counters = entry.counters[i];
      if (counters.calls.get() == 0) continue;
      const auto name =
          std::string(entry.program.name) + "." + std::string(entry.program.procedures[i].name);
      text += "  " + left(name, name_width) + right(std::to_string(counters.calls.get()), 14) +
              right(std::to_string(counters.errors.get()), 10) +
              right(std::to_string(quantile(counters.latency, 0.5)), 12) +
              right(std::to_string(quantile(counters.latency, 0.99)), 12) + "\n";
    }
  }
  return text;
}

// The operations of COMPOUNDs, and what the clients hold.
std::string nfs4_block(const nfs4::Service& nfs4) {
  std::string text;
  for (const auto& operation : nfs4::operation_counts(nfs4)) {
    text += "  " + left("NFSv4.COMPOUND." + std::string(operation.name), name_width) +
            right(std::to_string(operation.calls), 14) +
            right(std::to_string(operation.errors), 10) + "\n";
  }
  const auto counts = nfs4.state.counts();
  text += row("nfs4_clients", counts.clients);
  text += row("nfs4_clients_expired", counts.expired_clients);
  text += row("nfs4_clients_revoked", counts.clients_revoked);
  text += row("nfs4_sessions", counts.sessions);
  text += row("nfs4_opens", counts.opens);
  text += row("nfs4_locks", counts.locks);
  text += row("nfs4_files_open", counts.files);
  text += row("nfs4_reply_cache_bytes", counts.reply_cache_bytes);
  return text;
}

std::string front_end_block(const rpc::Counters& counters, storage::Runtime& runtime) {
  const auto buffers = runtime.buffers().gauges();
  std::string text;
  text += row("connections_open", counters.connections_open.get());
  text += row("connections_accepted", counters.connections_accepted.get());
  text += row("connections_refused", counters.connections_refused.get());
  text += row("accept_errors", counters.accept_errors.get());
  for (std::size_t i = 0; i < rpc::close_reasons; ++i) {
    const auto reason = to_string(static_cast<rpc::CloseReason>(i));
    text += row("closed_" + std::string(reason), counters.connections_closed[i].get());
  }
  text += row("requests", counters.requests.get());
  text += row("requests_dropped", counters.requests_dropped.get());
  text += row("rpc_errors", counters.rpc_errors.get());
  text += row("handler_exceptions", counters.handler_exceptions.get());
  text += row("replies", counters.replies.get());
  text += row("reply_writes", counters.reply_writes.get());
  text += row("receives", counters.receives.get());
  text += row("receive_waits", counters.receive_waits.get());
  text += row("bytes_received", counters.bytes_received.get());
  text += row("steered_payloads", counters.steered_payloads.get());
  text += row("overread_bytes", counters.overread_bytes.get());
  text += row("head_bytes_copied", counters.head_bytes_copied.get());
  text += row("reassembled_records", counters.reassembled_records.get());
  text += row("duplicates_answered", counters.drc_hits.get());
  text += row("duplicates_held_back", counters.drc_waits.get());
  text += row("duplicates_dropped", counters.drc_drops.get());
  text += row("buffer_bytes_limit", buffers.bytes_limit);
  text += row("buffer_bytes_used", buffers.bytes_used);
  text += row("buffer_bytes_peak", buffers.bytes_peak);
  text += row("buffer_waits", buffers.waits);
  text += row("ring_submits", runtime.ring_submits());
  text += row("pool_calls", runtime.pool().calls());
  return text;
}

}  // namespace

std::string counters_table(const ExportTable& exports, const rpc::Server& rpc,
                           storage::Runtime& runtime, const nfs4::Service& nfs4) {
  std::string text = "counters of selvaged " SELVAGE_VERSION "\n";
  for (std::size_t first = 0; first < exports.all().size();) {
    const auto columns = columns_from(exports, first);
    text += data_block(columns);
    first += columns.size();
  }
  text += procedures_block(rpc);
  text += nfs4_block(nfs4);
  text += front_end_block(rpc.counters(), runtime);
  return text;
}

}  // namespace selvage::server
