// The grace period (RFC 8881, 8.4.2; RFC 7530, 9.6.2): after a restart only clients on record may
// take locks, and only those that they held. Pure: no clock, no I/O.
#pragma once

#include "server/nfs4/state/recovery_store.h"
#include "server/nfs4/state/types.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace selvage::server::nfs4::state {

/// Skipped if nobody is on record. Over as soon as all have said that they have reclaimed, which
/// clients of minor version 0 cannot; else after the grace time, or up to three lease times later
/// while reclaims go on: each client can hold up the others for one lease time from its coming
/// back. Both bounds grow with the clients that have come back, which all take their time of the
/// same server: by half a second for each, and a second.
class Grace {
 public:
  enum class Phase {
    active,
    ending,  ///< Nothing is granted until the end is durable: the old records are being removed.
    over
  };

  Grace(const Options& options, Clock::time_point now, const std::vector<ClientRecord>& earlier);

  Phase phase() const { return phase_; }
  bool over() const { return phase_ == Phase::over; }

  /// Whether a client of this name may reclaim now.
  bool may_reclaim(bool has_sessions, std::string_view owner) const;
  /// A client of this name has come back or tries to reclaim: if it is on record, reclaims go on.
  void heard(bool has_sessions, std::string_view owner, Clock::time_point now);
  /// RECLAIM_COMPLETE.
  void complete(bool has_sessions, std::string_view owner, Clock::time_point now);
  /// Its state has been given away: it must not reclaim.
  void forget(bool has_sessions, std::string_view owner);

  /// Whether it is time for end().
  bool due(Clock::time_point now) const;
  void end() { phase_ = Phase::ending; }
  void ended() { phase_ = Phase::over; }

 private:
  using Name = std::pair<bool, std::string>;
  struct Progress {
    bool complete = false;
    std::optional<Clock::time_point> back;
  };

  /// What the bound of one client has grown by.
  Clock::duration patience() const { return back_ * std::chrono::milliseconds(500); }

  Phase phase_ = Phase::active;
  Clock::time_point until_;
  Clock::time_point last_heard_;
  Clock::duration lease_;
  std::map<Name, Progress> on_record_;
  std::size_t incomplete_ = 0;
  std::int64_t back_ = 0;  // Clients of on_record_ that have come back; ever.
};

}  // namespace selvage::server::nfs4::state
