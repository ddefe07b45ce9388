// Reload: another table of exports in place of the one before, while requests go on.
#include "server/log.h"
#include "server/printable.h"
#include "server/server_impl.h"
#include "server/service_manager.h"
#include "storage/local/local_filesystem.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <string_view>
#include <thread>
#include <utility>

namespace selvage::server {
namespace {

constexpr std::chrono::milliseconds removal_poll{5};

/// What the two say otherwise that a running server cannot take over; empty: nothing.
std::string takes_restart(const Config& now, const Config& wanted) {
  const auto changed = [&](std::string_view key) {
    const std::string place = wanted.place(key);
    return (place == key ? "" : place + ": ") + std::string(key) +
           " was changed: that takes a restart";
  };
  if (now.listen != wanted.listen) return changed("listen");
  if (now.port != wanted.port) return changed("port");
  if (now.state_dir != wanted.state_dir) return changed("state_dir");
  if (now.threads != wanted.threads) return changed("threads");
  if (now.nfs4_domain != wanted.nfs4_domain) return changed("nfs4_domain");
  if (now.metrics != wanted.metrics) return changed("metrics");
  if (now.control_socket != wanted.control_socket) return changed("control_socket");
  if (now.control_group != wanted.control_group) return changed("control_group");
  if (now.rpcbind != wanted.rpcbind) return changed("rpcbind");
  if (now.memory_limit != wanted.memory_limit) return changed("memory_limit");
  // Clients who have been told a longer one renew too late for a shorter one.
  if (now.lease_time > wanted.lease_time) return changed("lease_time") + " (it may become longer)";
  return {};
}

bool same_storage(const storage::ExportOptions& a, const storage::ExportOptions& b) {
  return a.read == b.read && a.write == b.write && a.edges == b.edges &&
         a.min_middle_pages == b.min_middle_pages && a.stable_floor == b.stable_floor &&
         a.exclusive == b.exclusive && a.sync == b.sync;
}

storage::Awaitable<> reopen_files(storage::LocalFileSystem& filesystem, storage::Worker& worker) {
  co_await filesystem.reopen_files(worker);
}

}  // namespace

std::optional<std::string> Server::Impl::replace_exports() {
  const std::lock_guard lock(reloading);
  if (stopped) return "the server is stopping";
  if (!load) return "there is no configuration to read again";
  auto wanted = load();
  if (!wanted) return wanted.error().message;
  if (auto reason = takes_restart(config, *wanted); !reason.empty()) return reason;
  const auto before = exports.get();
  for (const ExportConfig& one : wanted->exports) {
    for (const Removed& old : removed) {
      if (old.config.path == one.path && old.closing.valid()) {
        return one.origin + ": " + one.path + ": is still being closed";
      }
    }
  }
  auto made = open_exports(*wanted, before.get());
  if (!made) return made.error().message;

  // From here on nothing fails.
  const std::shared_ptr<const ExportTable> table = std::move(*made);
  set_directories(*table, before.get());
  nfs4->replace(table);
  exports.replace(table);
  for (const auto& one : table->all()) {
    const ExportConfig* old = nullptr;
    if (const Export* served = before->by_id(one->id)) old = &served->config;
    for (const Removed& gone : removed) {
      if (gone.id == one->id) old = &gone.config;
    }
    if (old != nullptr && !same_storage(old->storage, one->config.storage)) {
      change_modes(one->config, one->filesystem);
    }
  }
  std::erase_if(removed, [&](const Removed& one) { return table->by_id(one.id) != nullptr; });
  for (const auto& one : before->all()) {
    if (table->by_id(one->id) != nullptr) continue;
    removed.push_back({one->id, one->config, one->filesystem});
    log::notice("export " + one->config.path + " is removed");
  }
  for (const auto& one : table->all()) {
    const Export* old = before->by_id(one->id);
    if (old == nullptr || old->config.rules != one->config.rules ||
        !same_storage(old->config.storage, one->config.storage)) {
      log::info("export " + describe(*one));
    }
  }
  for (const std::string& notice : wanted->notices) log::info(notice);
  take_over(*wanted);
  config = std::move(*wanted);
  return std::nullopt;
}

void Server::Impl::take_over(const Config& wanted) {
  rpc->set_max_connections(connection_bound(wanted));
  if (wanted.lease_time != config.lease_time) nfs4->lengthen_lease(wanted.lease_time);
  // grace_time is for the next start.
}

void Server::Impl::change_modes(const ExportConfig& wanted,
                                std::shared_ptr<storage::FileSystem> filesystem) {
  auto* local = dynamic_cast<storage::LocalFileSystem*>(filesystem.get());
  if (local == nullptr) return;
  local->set_modes(wanted.storage);
  auto& worker = runtime.worker(0);
  auto done =
      boost::asio::co_spawn(worker.context, reopen_files(*local, worker), boost::asio::use_future);
  reopening.push_back({printable(wanted.path), std::move(filesystem), std::move(done)});
}

std::optional<std::string> Server::Impl::finish_reopening(std::chrono::milliseconds deadline) {
  const bool bounded = deadline != std::chrono::milliseconds::max();
  const auto end = std::chrono::steady_clock::now() + (bounded ? deadline : deadline.zero());
  std::string late;
  for (auto one = reopening.begin(); one != reopening.end();) {
    if (bounded && one->done.wait_until(end) != std::future_status::ready) {
      late += (late.empty() ? "" : "; ") + one->name + ": files of the mode before are still open";
      ++one;
      continue;
    }
    try {
      one->done.get();
    } catch (const std::exception& error) {
      // They go when they have been idle for a while.
      log::warning(one->name + ": files of the mode before stay open: " + error.what());
    }
    one = reopening.erase(one);
  }
  if (late.empty()) return std::nullopt;
  return late;
}

std::optional<std::string> Server::Impl::close_removed(std::chrono::milliseconds deadline) {
  const std::lock_guard lock(reloading);
  const auto end = std::chrono::steady_clock::now() + deadline;
  std::string amiss;
  const auto say = [&](const Removed& one, const char* what) {
    amiss += (amiss.empty() ? "" : "; ") + one.config.path + ": " + what;
  };
  for (auto one = removed.begin(); one != removed.end();) {
    if (!one->closing.valid()) {
      while (one->filesystem.use_count() != 1 && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(removal_poll);
      }
      if (one->filesystem.use_count() != 1) {
        say(*one, "requests on the removed export have not ended yet");
        ++one;
        continue;
      }
      nfs4->drop_export(one->id);
      one->closing = start_closing(*one->filesystem);
    }
    const Closed closed = finish_closing(one->closing, one->config.path, deadline);
    if (closed == Closed::not_yet) {
      say(*one, "its files are still being closed");
      ++one;
      continue;
    }
    if (closed == Closed::with_an_error) say(*one, "data may be lost, see the log");
    if (edge_shares) edge_shares->give_back(one->id);
    one = removed.erase(one);
  }
  if (amiss.empty()) return std::nullopt;
  log::warning(amiss);
  return amiss;
}

/// Those that were still being closed after the reload before, and are no more.
void Server::Impl::collect_closed() {
  const std::lock_guard lock(reloading);
  for (auto one = removed.begin(); one != removed.end();) {
    const bool ready = one->closing.valid() &&
                       one->closing.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    if (!ready) {
      ++one;
      continue;
    }
    finish_closing(one->closing, one->config.path, std::nullopt);
    if (edge_shares) edge_shares->give_back(one->id);
    one = removed.erase(one);
  }
}

std::optional<std::string> Server::Impl::reload() {
  service_manager::reloading();
  collect_closed();
  finish_reopening(std::chrono::milliseconds(0));
  auto refused = replace_exports();
  service_manager::ready(status() + (refused ? "; a reload was refused" : ""));
  if (refused) return "refused, all goes on as before: " + *refused;
  auto amiss = finish_reopening(reload_deadline);
  if (const auto removing = close_removed(reload_deadline)) {
    amiss = amiss ? *amiss + "; " + *removing : removing;
  }
  if (amiss) return "done, but " + *amiss;
  return std::nullopt;
}

std::optional<std::string> Server::reload() {
  return impl_->reload();
}

}  // namespace selvage::server
