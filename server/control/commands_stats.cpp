// The commands that list clients and counters.
#include "server/control/commands.h"
#include "server/exporter/families.h"
#include "server/printable.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

namespace selvage::server::control {
namespace {

namespace proto = selvage::control;

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

proto::Stats::Sample& add(proto::Stats& stats, std::string name, const Labels& labels,
                          double value) {
  auto& sample = *stats.add_samples();
  sample.set_name(std::move(name));
  sample.set_value(value);
  for (const auto& label : labels) (*sample.mutable_labels())[label.name] = label.value;
  return sample;
}

/// The upper bound of the bucket that holds the given share of the values.
double quantile(const prometheus::ClientMetric::Histogram& histogram, double share) {
  const double wanted = share * static_cast<double>(histogram.sample_count);
  for (const auto& bucket : histogram.bucket) {
    if (bucket.cumulative_count > 0 && static_cast<double>(bucket.cumulative_count) >= wanted) {
      return bucket.upper_bound;
    }
  }
  return histogram.bucket.empty() || histogram.sample_count == 0
             ? 0
             : histogram.bucket.back().upper_bound;
}

void add_metric(proto::Stats& stats, const prometheus::MetricFamily& family,
                const prometheus::ClientMetric& metric) {
  switch (family.type) {
    case prometheus::MetricType::Histogram: {
      const auto& histogram = metric.histogram;
      add(stats, family.name + "_count", metric.label, static_cast<double>(histogram.sample_count));
      add(stats, family.name + "_sum", metric.label, histogram.sample_sum);
      for (const auto& [text, share] : {std::pair{"0.5", 0.5}, std::pair{"0.99", 0.99}}) {
        add(stats, family.name, metric.label, quantile(histogram, share))
            .mutable_labels()
            ->insert({"quantile", text});
      }
      return;
    }
    case prometheus::MetricType::Counter:
      add(stats, family.name, metric.label, metric.counter.value);
      return;
    default:
      add(stats, family.name, metric.label, metric.gauge.value);
      return;
  }
}

bool is_of_export(const prometheus::ClientMetric& metric, const std::string& name) {
  for (const auto& label : metric.label) {
    if (label.name == "export") return label.value == name;
  }
  return false;
}

std::string text_of(const rpc::ClientTable::Row& row) {
  return row.others ? "others" : row.address.to_string();
}

void fill(proto::Clients::Client& client, const rpc::ClientCounters& counters) {
  client.set_connections(counters.connections.load());
  client.set_requests(counters.requests.get());
  client.set_received_bytes(counters.bytes_received.get());
  client.set_sent_bytes(counters.bytes_sent.get());
  const auto last = counters.last_request.load(std::memory_order_relaxed);
  if (last == std::chrono::steady_clock::time_point{}) return;
  const auto idle = std::chrono::steady_clock::now() - last;
  client.set_idle_seconds(
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(idle).count()));
}

void fill(proto::Clients::Nfs4& row, const nfs4::state::ClientInfo& info) {
  row.set_id(hexadecimal(info.client));
  row.set_owner(printable(info.owner));
  row.set_implementation(printable(info.implementation));
  row.set_version("4." + std::to_string(info.minorversion));
  row.set_confirmed(info.confirmed);
  row.set_expired(info.expired);
  row.set_revoked(info.revoked);
  row.set_sessions(info.sessions);
  row.set_opens(info.opens);
  row.set_locks(info.locks);
  row.set_last_seen_seconds(static_cast<std::uint64_t>(info.since_renewal.count()));
}

}  // namespace

Reply Commands::clients() const {
  struct Found {
    const rpc::ClientCounters* counters = nullptr;
    std::vector<nfs4::state::ClientInfo> nfs4;
  };
  const auto rows = insight_.rpc.clients().rows();
  std::map<std::string, Found> by_address;
  for (const auto& row : rows) by_address[text_of(row)].counters = row.counters.get();
  for (auto& info : insight_.nfs4.state.clients()) {
    by_address[info.principal.machine].nfs4.push_back(std::move(info));
  }
  Reply reply;
  auto& all = *reply.mutable_clients();
  for (const auto& [address, found] : by_address) {
    auto& client = *all.add_clients();
    client.set_address(address);
    std::set<std::string> versions;
    for (const auto& info : found.nfs4) {
      fill(*client.add_nfs4(), info);
      versions.insert("4." + std::to_string(info.minorversion));
    }
    if (found.counters != nullptr) {
      fill(client, *found.counters);
      const auto used = found.counters->nfs_versions.load();
      if ((used & 1U << 3U) != 0) versions.insert("3");
      if ((used & 1U << 4U) != 0 && found.nfs4.empty()) versions.insert("4");
    }
    for (const auto& version : versions) client.add_versions(version);
  }
  return reply;
}

Reply Commands::client_stats(const std::string& address) const {
  Reply reply;
  auto& stats = *reply.mutable_stats();
  bool found = address.empty();
  for (const auto& row : insight_.rpc.clients().rows()) {
    const auto client = text_of(row);
    if (!address.empty() && client != address) continue;
    found = true;
    const Labels labels{{"client", client}};
    const auto& counters = *row.counters;
    const auto value = [](const auto& counter) { return static_cast<double>(counter.get()); };
    add(stats, "selvage_client_connections", labels,
        static_cast<double>(counters.connections.load()));
    add(stats, "selvage_client_requests_total", labels, value(counters.requests));
    add(stats, "selvage_client_received_bytes_total", labels, value(counters.bytes_received));
    add(stats, "selvage_client_sent_bytes_total", labels, value(counters.bytes_sent));
  }
  if (!found) return error(Error::not_found, address + ": no such client");
  return reply;
}

Reply Commands::stats(const proto::StatsRequest& request) const {
  if (request.clients()) return client_stats(request.client_address());
  const std::string& path = request.export_();
  const auto table = insight_.exports.get();
  Reply reply;
  auto& stats = *reply.mutable_stats();
  const Export* wanted = table->by_path(path);
  if (!path.empty() && wanted == nullptr) return error(Error::not_found, path + ": not exported");
  for (const auto& family : Collector(insight_).Collect()) {
    for (const auto& metric : family.metric) {
      if (wanted == nullptr || is_of_export(metric, wanted->name))
        add_metric(stats, family, metric);
    }
  }
  return reply;
}

}  // namespace selvage::server::control
