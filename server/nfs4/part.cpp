#include "server/nfs4/part.h"

#include "server/log.h"
#include "server/memory_budget.h"
#include "server/nfs4/program.h"
#include "server/nfs4/records.h"
#include "server/nfs4/state/recovery_store.h"
#include "server/nfs4/state/state.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <utility>

namespace selvage::server::nfs4 {
namespace {

constexpr std::chrono::seconds tick_interval{1};

state::Options state_options(const Config& config) {
  state::Options options;
  options.lease_time = std::chrono::seconds(config.lease_time);
  options.grace_time = std::chrono::seconds(config.grace_time);
  if (config.memory_limit) {
    const MemoryBudget budget = memory_budget(*config.memory_limit);
    options.max_reply_cache_bytes =
        std::min(options.max_reply_cache_bytes, budget.session_reply_bytes);
    options.max_state_bytes = std::min(options.max_state_bytes, budget.state_bytes);
    options.max_clients = std::min(options.max_clients, budget.max_clients);
  }
  return options;
}

}  // namespace

struct Part::Impl {
  Impl(state::Options options, std::unique_ptr<state::RecoveryStore> store)
      : state(std::move(options), std::move(store)) {}

  // Lives on until its own timer has been cancelled and has returned.
  storage::Awaitable<> keep_time(storage::Worker& worker);

  state::State state;
  std::optional<Service> service;
  std::optional<boost::asio::steady_timer> timer;
  bool stopping = false;  // The first worker's.
  std::future<void> clock;
  storage::Worker* worker = nullptr;
};

storage::Awaitable<> Part::Impl::keep_time(storage::Worker& on) {
  while (!stopping) {
    state.tick();
    if (state.records_pending()) {
      auto write = [this] { return state.write_records(); };
      const auto written = co_await on.pool.run(write);
      if (!written) {
        log::error("NFSv4 client records could not be written: " + written.error().message());
      }
    }
    if (stopping) break;
    timer->expires_after(tick_interval);
    boost::system::error_code cancelled;
    co_await timer->async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, cancelled));
  }
}

Part::Part(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Part::~Part() {
  stop();
}

Parsed<std::unique_ptr<Part>> Part::make(const Config& config,
                                         std::shared_ptr<const ExportTable> exports,
                                         const storage::HandleCodec& handles,
                                         storage::Runtime& runtime) {
  auto store = state::RecoveryStore::open(config.state_dir);
  if (!store && store.error() == storage::errno_code(EBUSY)) {
    return ConfigError{"state directory " + config.state_dir + ": another selvaged is using it"};
  }
  if (!store) {
    return ConfigError{"state directory " + config.state_dir +
                       ": records of NFSv4 clients: " + store.error().message()};
  }
  auto impl = std::make_unique<Impl>(state_options(config), std::move(*store));
  storage::Worker& worker = runtime.worker(0);
  impl->worker = &worker;
  auto names = boost::asio::co_spawn(worker.context, Namespace::make(std::move(exports), worker),
                                     boost::asio::use_future)
                   .get();
  Options options;
  options.lease_seconds = config.lease_time;
  options.domain = config.nfs4_domain;
  impl->service.emplace(std::move(names), handles, impl->state, options);
  impl->timer.emplace(worker.context);
  impl->clock =
      boost::asio::co_spawn(worker.context, impl->keep_time(worker), boost::asio::use_future);
  return std::unique_ptr<Part>(new Part(std::move(impl)));
}

rpc::Program Part::program() {
  return nfs4::program(*impl_->service);
}

std::function<void(std::uint64_t)> Part::connection_closed() {
  return [&state = impl_->state](std::uint64_t connection) { state.connection_lost(connection); };
}

void Part::replace(std::shared_ptr<const ExportTable> exports) {
  storage::Worker& worker = *impl_->worker;
  auto names = boost::asio::co_spawn(worker.context, Namespace::make(std::move(exports), worker),
                                     boost::asio::use_future)
                   .get();
  impl_->service->replace(std::move(names));
}

void Part::drop_export(std::uint32_t id) {
  impl_->state.drop_export(id);
}

const Service& Part::service() const {
  return *impl_->service;
}

bool Part::evict(std::uint64_t client) {
  Service& service = *impl_->service;
  if (service.state.revoke_client(client) != xdr::NFS4_OK) return false;
  auto& worker = *impl_->worker;
  boost::asio::co_spawn(worker.context, apply_changed_locks(service, service.names(), worker),
                        boost::asio::use_future)
      .get();
  // After a restart it must not reclaim what others may have got by then.
  const auto written = service.state.write_records();
  if (!written) {
    log::error("NFSv4 client records could not be written: " + written.error().message());
  }
  return true;
}

void Part::lengthen_lease(std::uint32_t seconds) {
  // Nobody is told of it before it holds.
  impl_->state.lengthen_lease(std::chrono::seconds(seconds));
  impl_->service->lease_seconds.store(seconds);
}

void Part::end_grace() {
  impl_->state.end_grace();
}

void Part::stop() {
  if (!impl_->clock.valid()) return;
  boost::asio::post(impl_->worker->context, [impl = impl_.get()] {
    impl->stopping = true;
    impl->timer->cancel();
  });
  impl_->clock.get();
}

}  // namespace selvage::server::nfs4
