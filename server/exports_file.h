// exports(5), read as nfs-utils reads it.
//
// Differences, each told in words: `async`, `refer=`, `replicas=`, flavours without sys and gss
// clients are refused; fsid=, crossmnt, nohide, subtree_check and the like are noted, as they do
// nothing here. nfs-utils leaves out a line that it cannot read; here the file is refused whole.
#pragma once

#include "server/config.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace selvage::server {

/// Paths in the order in which they are first named.
struct ListedExports {
  std::vector<ExportConfig> exports;
  std::vector<std::string> notices;  ///< Each "FILE:LINE: text".
};

inline constexpr std::size_t max_exports = 10'000;  ///< Entries: paths times clients.

/// Adds the entries of one text. `name` stands for the file in messages. The error is
/// "FILE:LINE: reason"; `to` is then of no use.
std::optional<ConfigError> parse_exports_text(std::string_view text, const std::string& name,
                                              ListedExports& to);

/// Each file, then the files of the folder FILE.d whose names end in ".exports", in the order of
/// versionsort(3). A folder that is not there is empty. Sorts the rules of each export.
Parsed<ListedExports> read_exports_files(std::span<const std::string> files);

}  // namespace selvage::server
