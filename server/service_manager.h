// What systemd is told, and what it hands over: sd_notify(3), sd_listen_fds(3). Without systemd
// ($NOTIFY_SOCKET, $LISTEN_FDS) nothing of it does anything. Any thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace selvage::server::service_manager {

/// Serving; also the end of a reload.
void ready(const std::string& status);
/// A reload begins (RELOADING=1 with MONOTONIC_USEC, sd_notify(3)).
void reloading();
void stopping(const std::string& status);
void status(const std::string& text);

/// The listening sockets of the unit's .socket, close-on-exec; the caller owns them. Once, before
/// threads exist: the environment is cleared.
std::vector<int> take_sockets();

/// How often feed_watchdog() is expected; 0: not.
std::chrono::microseconds watchdog_interval();
void feed_watchdog();

}  // namespace selvage::server::service_manager
