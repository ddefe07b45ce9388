// Where the verifier of an EXCLUSIVE create is kept (RFC 1813 3.3.8): in the file's times.
#pragma once

#include <cstdint>
#include <ctime>

namespace selvage::storage {

struct ExclusiveTimes {
  timespec atime;
  timespec mtime;
};

/// All 64 bits of the verifier as two times: 31 bits of each half are seconds, the last one is half
/// a second. That survives every file system that keeps times from 1970 to 2038 to at least half a
/// second, XFS without bigtime included. The client sets the real times next.
constexpr ExclusiveTimes exclusive_times(std::uint64_t verifier) {
  constexpr auto to_time = [](std::uint32_t half) {
    timespec time{};
    time.tv_sec = static_cast<time_t>(half >> 1U);
    time.tv_nsec = (half & 1U) != 0 ? 500'000'000 : 0;
    return time;
  };
  return {to_time(static_cast<std::uint32_t>(verifier >> 32U)),
          to_time(static_cast<std::uint32_t>(verifier))};
}

}  // namespace selvage::storage
