#include "server/exporter/data_metrics.h"

#include "server/data_counter_values.h"
#include "storage/counters.h"

#include <algorithm>
#include <array>

namespace selvage::server {
namespace {

using counter_values::combined;
using counter_values::indexed;
using counter_values::plain;
using storage::CombinerCounters;
using storage::DataCounters;

struct DataMetric {
  std::string_view name;
  std::string_view help;
  std::uint64_t (*value)(const DataCounters&);
  std::string_view label = {};  ///< Besides `export`.
  std::string_view label_value = {};
};

constexpr std::string_view asked_help = "WRITEs by the stability that was asked for.";
constexpr std::string_view committed_help = "WRITEs by the stability that was answered.";
constexpr std::string_view pages_help =
    "Edge pages written, whole or before they were whole (edges=assemble).";

constexpr std::array data_metrics{
    DataMetric{"writes_total", "WRITEs.", plain<&DataCounters::writes>},
    DataMetric{"write_bytes_total", "Payload bytes written.", plain<&DataCounters::write_bytes>},
    DataMetric{"write_errors_total", "WRITEs answered with an error.",
               plain<&DataCounters::write_errors>},
    DataMetric{"short_writes_total", "WRITEs of which only the beginning was written.",
               plain<&DataCounters::short_writes>},
    DataMetric{"writes_asked_total", asked_help, indexed<&DataCounters::stable_asked, 0>,
               "stability", "unstable"},
    DataMetric{"writes_asked_total", asked_help, indexed<&DataCounters::stable_asked, 1>,
               "stability", "data_sync"},
    DataMetric{"writes_asked_total", asked_help, indexed<&DataCounters::stable_asked, 2>,
               "stability", "file_sync"},
    DataMetric{"writes_committed_total", committed_help, indexed<&DataCounters::stable_reached, 0>,
               "stability", "unstable"},
    DataMetric{"writes_committed_total", committed_help, indexed<&DataCounters::stable_reached, 1>,
               "stability", "data_sync"},
    DataMetric{"writes_committed_total", committed_help, indexed<&DataCounters::stable_reached, 2>,
               "stability", "file_sync"},
    DataMetric{"reads_total", "READs.", plain<&DataCounters::reads>},
    DataMetric{"read_bytes_total", "Bytes read for clients.", plain<&DataCounters::read_bytes>},
    DataMetric{"read_errors_total", "READs answered with an error.",
               plain<&DataCounters::read_errors>},
    DataMetric{"commits_total", "COMMITs.", plain<&DataCounters::commits>},
    DataMetric{"syncs_total", "fsync and fdatasync calls on data.", plain<&DataCounters::syncs>},
    DataMetric{"syncs_shared_total", "WRITEs and COMMITs served by another's sync.",
               plain<&DataCounters::syncs_shared>},
    DataMetric{"sync_errors_total", "Syncs of data that failed.",
               plain<&DataCounters::sync_errors>},
    DataMetric{"verifier_changes_total", "Changes of the write verifier: data may have been lost.",
               plain<&DataCounters::verifier_changes>},
    DataMetric{"boundary_pages_asked_total", "Boundary pages asked about (edges=pagecache).",
               plain<&DataCounters::boundary_asked>},
    DataMetric{"boundary_pages_completed_total", "Boundary pages completed by a WRITE.",
               plain<&DataCounters::boundary_completed>},
    DataMetric{"boundary_pages_dropped_total", "Boundary pages dropped from the page cache.",
               plain<&DataCounters::boundary_dropped>},
    DataMetric{"boundary_pages_drop_failed_total", "Boundary pages that stayed in the page cache.",
               plain<&DataCounters::boundary_drop_failed>},
    DataMetric{"boundary_pages_orphaned_total", "Boundary pages whose neighbour never came.",
               plain<&DataCounters::boundary_orphaned>},
    DataMetric{"batches_total", "Batches of WRITEs written together (edges=assemble).",
               combined<&CombinerCounters::batches>},
    DataMetric{"batches_together_total",
               "Batches that started while another of the file was in flight.",
               combined<&CombinerCounters::batches_together>},
    DataMetric{"batch_writes_total", "WRITEs in batches.",
               combined<&CombinerCounters::batch_writes>},
    DataMetric{"batch_runs_total", "O_DIRECT writes issued for batches.",
               combined<&CombinerCounters::runs>},
    DataMetric{"batch_run_pieces_total", "Memory segments in those writes.",
               combined<&CombinerCounters::run_pieces>},
    DataMetric{"batch_tails_total", "Buffered writes at the end of a file.",
               combined<&CombinerCounters::tails>},
    DataMetric{"batch_held_back_total", "WRITEs held back from a batch, once for each batch.",
               combined<&CombinerCounters::held_back>},
    DataMetric{"batch_waits_total", "Requests that waited for one more batch.",
               combined<&CombinerCounters::waits>},
    DataMetric{"batch_barriers_total", "Requests that waited for a file without I/O in flight.",
               combined<&CombinerCounters::barriers>},
    DataMetric{"edge_pages_written_total", pages_help, combined<&CombinerCounters::pages_whole>,
               "state", "whole"},
    DataMetric{"edge_pages_written_total", pages_help, combined<&CombinerCounters::pages_partial>,
               "state", "partial"},
    DataMetric{"edge_pages_read_total", "Edge pages read from the device to be merged.",
               combined<&CombinerCounters::pages_read>},
    DataMetric{"leases_taken_total", "Write leases taken on files.",
               plain<&DataCounters::leases_held>},
    DataMetric{"leases_refused_total", "Leases refused: somebody else had the file open.",
               plain<&DataCounters::leases_refused>},
    DataMetric{"leases_broken_total", "Leases given up: somebody else opened the file.",
               plain<&DataCounters::leases_broken>},
    DataMetric{"leases_late_total", "Leases given up after the kernel had let the opener in.",
               plain<&DataCounters::leases_late>},
    DataMetric{"direct_fallbacks_total", "WRITEs and READs that could not go O_DIRECT.",
               plain<&DataCounters::direct_fallbacks>},
    DataMetric{"bounce_copies_total", "Payloads copied to be aligned.",
               plain<&DataCounters::bounce_copies>},
    DataMetric{"files_opened_total", "Files opened.", plain<&DataCounters::files_opened>},
    DataMetric{"files_closed_total", "Files closed.", plain<&DataCounters::files_closed>},
    DataMetric{"close_errors_total", "Files whose close failed.",
               plain<&DataCounters::close_errors>},
};

void add_gauges(Families& families, const Labels& labels, const storage::DataGauges& gauges) {
  const auto gauge = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    families.gauge(name, help, static_cast<double>(value), labels);
  };
  gauge("open_files", "Files open for data.", gauges.open_files);
  gauge("open_files_limit", "How many files may be open for data.", gauges.open_files_limit);
  gauge("edge_bytes", "Memory of edge pages (edges=assemble).", gauges.edge_bytes);
  gauge("edge_bytes_limit", "Above it edge pages are written out.", gauges.edge_bytes_limit);
  gauge("boundary_pages", "Boundary pages in play (edges=pagecache).", gauges.boundary_pages);
  gauge("boundary_pages_in_flight", "Boundary pages with a writer in flight.",
        gauges.boundary_pages_in_flight);
  gauge("boundary_pages_limit", "How many boundary pages are tracked at most.",
        gauges.boundary_pages_limit);
}

}  // namespace

void add_data_metrics(Families& families, const ExportTable& exports) {
  for (const auto& one : exports.all()) {
    const Labels labels{{"export", one->name}};
    const auto& counters = one->filesystem->counters();
    const auto& options = one->config.storage;
    const bool read_only = std::ranges::all_of(one->config.rules, &AccessRule::read_only);
    families.gauge("export_info", "How an export is served.", 1,
                   {{"export", one->name},
                    {"access", read_only ? "ro" : "rw"},
                    {"read", std::string(to_string(options.read))},
                    {"write", std::string(to_string(options.write))},
                    {"edges", std::string(to_string(options.edges))}});
    for (std::size_t i = 0; i < storage::plan_reasons; ++i) {
      const auto reason = to_string(static_cast<storage::PlanReason>(i));
      families.counter("writes_planned_total", "WRITEs by the reason of their plan.",
                       static_cast<double>(counters.writes_by_reason[i].get()),
                       {{"export", one->name}, {"reason", std::string(reason)}});
    }
    for (const DataMetric& metric : data_metrics) {
      Labels own = labels;
      if (!metric.label.empty()) {
        own.push_back({std::string(metric.label), std::string(metric.label_value)});
      }
      families.counter(metric.name, metric.help, static_cast<double>(metric.value(counters)),
                       std::move(own));
    }
    families.histogram("write_duration_seconds", "Time that WRITEs took.", counters.write_latency,
                       labels);
    families.histogram("read_duration_seconds", "Time that READs took.", counters.read_latency,
                       labels);
    families.histogram("commit_duration_seconds", "Time that COMMITs took.",
                       counters.commit_latency, labels);
    add_gauges(families, labels, one->filesystem->gauges());
  }
}

}  // namespace selvage::server
