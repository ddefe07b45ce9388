#include "server/nfs4/state/grace.h"

namespace selvage::server::nfs4::state {

Grace::Grace(const Options& options, Clock::time_point now,
             const std::vector<ClientRecord>& earlier)
    : until_(now + options.grace_time), last_heard_(now), lease_(options.lease_time) {
  for (const ClientRecord& record : earlier) {
    on_record_.emplace(Name{record.has_sessions, record.owner}, Progress{});
  }
  incomplete_ = on_record_.size();
  if (on_record_.empty()) phase_ = Phase::over;
}

bool Grace::may_reclaim(bool has_sessions, std::string_view owner) const {
  return phase_ == Phase::active && on_record_.contains({has_sessions, std::string(owner)});
}

void Grace::heard(bool has_sessions, std::string_view owner, Clock::time_point now) {
  const auto found = on_record_.find({has_sessions, std::string(owner)});
  if (found == on_record_.end()) return;
  auto& back = found->second.back;
  if (!back) {
    back = now;
    ++back_;
  }
  if (now - *back <= lease_ + patience()) last_heard_ = now;
}

void Grace::complete(bool has_sessions, std::string_view owner, Clock::time_point now) {
  const auto found = on_record_.find({has_sessions, std::string(owner)});
  if (found == on_record_.end() || found->second.complete) return;
  found->second.complete = true;
  last_heard_ = now;
  --incomplete_;
}

void Grace::forget(bool has_sessions, std::string_view owner) {
  const auto found = on_record_.find({has_sessions, std::string(owner)});
  if (found == on_record_.end()) return;
  if (!found->second.complete) --incomplete_;
  on_record_.erase(found);
}

bool Grace::due(Clock::time_point now) const {
  if (phase_ != Phase::active) return false;
  if (incomplete_ == 0) return true;
  if (now < until_) return false;
  // Nobody heard of for longer than this: nobody is reclaiming any more.
  const Clock::duration pause = lease_ / 2;
  return now - last_heard_ > pause || now >= until_ + 3 * lease_ + 2 * patience();
}

}  // namespace selvage::server::nfs4::state
