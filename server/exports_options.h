// One option list of exports(5): what stands between the parentheses, or after a '-'.
#pragma once

#include "server/config.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace selvage::server {

/// What a list of options says for one security flavour.
struct ExportsAccess {
  bool read_only = true;
  bool secure = true;
  bool root_squash = true;
  bool all_squash = false;
};

/// What the options have said so far.
struct ExportsOptions {
  ExportsAccess common;
  std::optional<ExportsAccess> sys;  ///< After sec=: what holds for AUTH_SYS.
  bool flavours_given = false;       ///< sec= was there at all.
  bool for_sys = true;               ///< Options that follow hold for AUTH_SYS.
  std::uint32_t anonuid = 65534;
  std::uint32_t anongid = 65534;
  bool mountpoint = false;      ///< Serve only if something is mounted there.
  std::string mountpoint_path;  ///< Of mountpoint=PATH; else the export's own.

  /// What an AUTH_SYS client may do; the client is not set.
  AccessRule rule() const;
};

/// Applies a list, separated by commas. `notice` is called with a sentence for each option that
/// does nothing here. The reason if an option is refused.
std::optional<std::string> apply_exports_options(
    std::string_view list, ExportsOptions& to,
    const std::function<void(const std::string&)>& notice);

}  // namespace selvage::server
