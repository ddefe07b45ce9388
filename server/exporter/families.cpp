#include "server/exporter/families.h"

namespace selvage::server {
namespace {

// Those above have been waiting for a dead disk: their number is enough.
constexpr std::size_t shown_buckets = 26;

}  // namespace

prometheus::ClientMetric& Families::add(std::string_view name, std::string_view help,
                                        prometheus::MetricType type, Labels labels) {
  const auto [found, made] = by_name_.try_emplace(std::string(name), families_.size());
  if (made) {
    prometheus::MetricFamily family;
    family.name = "selvage_" + std::string(name);
    family.help = std::string(help);
    family.type = type;
    families_.push_back(std::move(family));
  }
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  return families_[found->second].metric.emplace_back(std::move(metric));
}

void Families::counter(std::string_view name, std::string_view help, double value, Labels labels) {
  add(name, help, prometheus::MetricType::Counter, std::move(labels)).counter.value = value;
}

void Families::gauge(std::string_view name, std::string_view help, double value, Labels labels) {
  add(name, help, prometheus::MetricType::Gauge, std::move(labels)).gauge.value = value;
}

void Families::histogram(std::string_view name, std::string_view help,
                         const storage::Histogram& values, Labels labels) {
  auto& histogram = add(name, help, prometheus::MetricType::Histogram, std::move(labels)).histogram;
  histogram.sample_sum = static_cast<double>(values.nanoseconds.get()) / 1e9;
  for (std::size_t i = 0; i < storage::Histogram::buckets; ++i) {
    histogram.sample_count += values.counts[i].get();
    if (i >= shown_buckets) continue;
    const double bound = static_cast<double>(std::uint64_t{1} << i) / 1e6;
    histogram.bucket.push_back({histogram.sample_count, bound});
  }
}

}  // namespace selvage::server
