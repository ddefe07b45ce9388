// Everything that is counted and held, as Prometheus metrics (DESIGN 10).
#pragma once

#include "server/exports.h"
#include "server/nfs4/service.h"
#include "server/rpc/server.h"
#include "storage/worker.h"

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <vector>

namespace selvage::server {

/// What metrics and control look at. All of it outlives whoever holds this.
struct Insight {
  const CurrentExports& exports;
  const rpc::Server& rpc;
  storage::Runtime& runtime;
  const nfs4::Service& nfs4;
};

/// Reads counters when it is asked: nothing is added to any request. Any thread that is not a
/// worker's. Values are taken one by one: sums may be off by what is in progress.
///
/// Labels are bounded: exports by configuration; procedures, operations and reasons by their
/// tables.
class Collector final : public prometheus::Collectable {
 public:
  explicit Collector(const Insight& insight) : insight_(insight) {}
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const Insight insight_;
};

}  // namespace selvage::server
