// The descriptors of one open file. Private to storage/local.
#pragma once

#include "storage/io_mode.h"
#include "storage/local/data_context.h"

namespace selvage::storage {

/// One generation of a file's descriptors. Immutable; closes them, and looks at the results: a
/// failed close counts as lost data.
struct Descriptors {
  explicit Descriptors(DataContext& data_context) : context(data_context) {}
  ~Descriptors();
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  DataContext& context;
  int buffered = -1;  ///< Carries the file's write-back errors: all syncs go here.
  int direct = -1;    ///< O_DIRECT; -1 where the file does not do it. In edge mode `assemble` it is
                      ///< the same descriptor as `buffered`: there is only one.
  bool writable = false;
  DirectAlignment alignment;
};

}  // namespace selvage::storage
