// Which file an OPEN means: found or made, with the right to it checked.
#pragma once

#include "server/nfs4/attribute_set.h"
#include "server/nfs4/compound.h"
#include "xdr/nfs4_ops.h"

#include <memory>
#include <optional>

namespace selvage::server::nfs4 {

struct OpenedFile {
  Object object;
  xdr::change_info4 directory;
  /// Of a file that the OPEN has made: its attributes, and its hold if it has one already.
  std::optional<storage::Attributes> attributes;
  std::shared_ptr<void> hold;
  AttributeSet attributes_set;
  /// What is left to be set once the open has its share reservation: UNCHECKED4 of a file that is
  /// there takes nothing but the size zero (RFC 7530, 16.16.3).
  storage::SetAttributes on_open;
};

/// By claim: a name in the current directory, or the current file itself. Changes the file system
/// only by making the file.
Awaitable<Outcome<OpenedFile>> open_file(Compound& compound, const xdr::OPEN4args& args);

}  // namespace selvage::server::nfs4
