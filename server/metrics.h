// All counters as one table for people (DESIGN 10).
#pragma once

#include "server/exports.h"
#include "server/nfs4/service.h"
#include "server/rpc/server.h"
#include "storage/worker.h"

#include <string>

namespace selvage::server {

/// A row per counter, its name first; for the data path a column per export. Ends with a newline.
/// Any thread. Values are taken one by one: sums may be off by what is in progress.
std::string counters_table(const ExportTable& exports, const rpc::Server& rpc,
                           storage::Runtime& runtime, const nfs4::Service& nfs4);

}  // namespace selvage::server
