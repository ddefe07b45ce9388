// What the families of operations of LocalFileSystem share. Private to storage/local.
#pragma once

#include "storage/local/data_path.h"
#include "storage/local/local_filesystem.h"
#include "storage/local/object.h"

namespace selvage::storage {

struct LocalFileSystem::Impl {
  ExportOptions options;
  ObjectOpener opener;    ///< Handles to descriptors (names side).
  NameSync name_sync;     ///< Shared fsyncs of directories and objects (names side).
  DataCounters counters;
  DataPath data;          ///< File table, write and read engines, verifier (data side).
};

}  // namespace selvage::storage
