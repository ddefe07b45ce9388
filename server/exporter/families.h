// Families of metrics in the making. Private to server/exporter.
#pragma once

#include "storage/counters.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace selvage::server {

using Labels = std::vector<prometheus::ClientMetric::Label>;

/// Collects samples by family, in the order in which families first came. One thread.
class Families {
 public:
  /// `name` as in the exposition, with its unit and `_total` (Prometheus' naming guide), but for
  /// the prefix "selvage_".
  void counter(std::string_view name, std::string_view help, double value, Labels labels = {});
  void gauge(std::string_view name, std::string_view help, double value, Labels labels = {});
  /// In seconds; every bucket from 1 us to 34 s.
  void histogram(std::string_view name, std::string_view help, const storage::Histogram& values,
                 Labels labels = {});

  std::vector<prometheus::MetricFamily> take() { return std::move(families_); }

 private:
  prometheus::ClientMetric& add(std::string_view name, std::string_view help,
                                prometheus::MetricType type, Labels labels);

  std::vector<prometheus::MetricFamily> families_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace selvage::server
