// Metrics of the data path, by export. Private to server/exporter.
#pragma once

#include "server/exporter/families.h"
#include "server/exports.h"

namespace selvage::server {

void add_data_metrics(Families& families, const ExportTable& exports);

}  // namespace selvage::server
