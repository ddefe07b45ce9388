#include "server/service_manager.h"

#include <systemd/sd-daemon.h>

#include <cstdint>
#include <ctime>

namespace selvage::server::service_manager {

void ready(const std::string& status) {
  ::sd_notify(0, ("READY=1\nSTATUS=" + status).c_str());
}

void reloading() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto usec = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000U +
                    static_cast<std::uint64_t>(now.tv_nsec) / 1'000U;
  ::sd_notify(0, ("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(usec) +
                  "\nSTATUS=Reading the configuration again")
                     .c_str());
}

void stopping(const std::string& status) {
  ::sd_notify(0, ("STOPPING=1\nSTATUS=" + status).c_str());
}

void status(const std::string& text) {
  ::sd_notify(0, ("STATUS=" + text).c_str());
}

std::vector<int> take_sockets() {
  std::vector<int> sockets;
  const int count = ::sd_listen_fds(1);
  for (int i = 0; i < count; ++i) sockets.push_back(SD_LISTEN_FDS_START + i);
  return sockets;
}

std::chrono::microseconds watchdog_interval() {
  std::uint64_t usec = 0;
  if (::sd_watchdog_enabled(0, &usec) <= 0) return std::chrono::microseconds(0);
  return std::chrono::microseconds(usec);
}

void feed_watchdog() {
  ::sd_notify(0, "WATCHDOG=1");
}

}  // namespace selvage::server::service_manager
