#include "storage/write_verifier.h"

#include <sys/random.h>

#include <cerrno>
#include <ctime>

namespace selvage::storage {
namespace {

std::uint64_t random_value() {
  std::uint64_t value = 0;
  if (::getrandom(&value, sizeof value, 0) == sizeof value) return value;
  // Only before the kernel's generator is ready; another value than the last is all it takes.
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

WriteVerifier::WriteVerifier(DataCounters& counters)
    : counters_(counters), value_(random_value()) {}

void WriteVerifier::failed(const ErrorCode& error) {
  if (error == errno_code(EAGAIN) || error == errno_code(ESTALE)) return;
  counters_.verifier_changes.add();
  const std::uint64_t before = get();
  std::uint64_t after = random_value();
  if (after == before) ++after;
  value_.store(after, std::memory_order_release);
}

}  // namespace selvage::storage
