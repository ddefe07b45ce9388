#include "tests/support/rpc_test_program.h"

#include "xdr/rpc.h"

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

namespace selvage::testing {

namespace rpc = server::rpc;
using rpc::Awaitable;
using rpc::Call;
using rpc::Reply;

namespace {

constexpr std::size_t page = 4096;

TestService& service_of(void* service) {
  return *static_cast<TestService*>(service);
}

Awaitable<Reply> echo(void*, Call& call) {
  Reply reply;
  for (std::uint32_t word = 0; call.arguments.remaining() >= 4;) {
    if (!call.arguments.get(word)) throw std::logic_error("short source");
    reply.results.put(word);
  }
  co_return reply;
}

Awaitable<Reply> hold(void* service, Call& call) {
  Reply reply;
  std::uint32_t tag = 0;
  if (!call.arguments.get(tag)) {
    reply.status = Reply::Status::garbage_args;
    co_return reply;
  }
  co_await service_of(service).hold(tag);
  reply.results.put(tag);
  co_return reply;
}

Awaitable<Reply> change(void* service, Call& call) {
  Reply reply;
  std::uint32_t tag = 0;
  if (!call.arguments.get(tag)) {
    reply.status = Reply::Status::garbage_args;
    co_return reply;
  }
  const unsigned executions = service_of(service).executed(tag);
  if (tag % 10 != 0) co_await service_of(service).hold(tag);
  reply.results.put(tag);
  reply.results.put(std::uint32_t{executions});
  reply.cacheable = tag < 1000;
  co_return reply;
}

Reply write_reply(TestService& service, Call& call, std::uint64_t& offset) {
  Reply reply;
  std::uint32_t handle_length = 0;
  std::uint32_t count = 0;
  std::uint32_t stable = 0;
  std::span<const std::byte> handle;
  std::span<const std::byte> data;
  xdr::Source& source = call.arguments;
  if (!source.get(handle_length) || handle_length > 64 ||
      !source.view_opaque(handle_length, handle) || !source.get(offset) || !source.get(count) ||
      !source.get(stable) || !source.view_payload(8 << 20, data) || source.remaining() != 0) {
    reply.status = Reply::Status::garbage_args;
    return reply;
  }
  const auto tag = static_cast<std::uint32_t>(offset);
  reply.results.put(std::uint32_t{service.executed(tag)});
  reply.results.put(
      static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(data.data()) % page));
  reply.results.put(static_cast<std::uint32_t>(offset % page));
  reply.results.put(sum_of(data));
  return reply;
}

Awaitable<Reply> write(void* service, Call& call) {
  std::uint64_t offset = 0;
  co_return write_reply(service_of(service), call, offset);
}

Awaitable<Reply> keep(void* service, Call& call) {
  std::uint64_t offset = 0;
  Reply reply = write_reply(service_of(service), call, offset);
  co_await service_of(service).hold(static_cast<std::uint32_t>(offset));
  co_return reply;
}

Awaitable<Reply> raise(void*, Call&) {
  throw std::runtime_error("a handler's failure");
  co_return Reply();
}

Awaitable<Reply> garbage(void*, Call&) {
  Reply reply;
  reply.status = Reply::Status::garbage_args;
  co_return reply;
}

Awaitable<Reply> weak(void*, Call&) {
  Reply reply;
  reply.status = Reply::Status::auth_too_weak;
  co_return reply;
}

Awaitable<Reply> read(void*, Call& call) {
  Reply reply;
  std::uint32_t length = 0;
  if (!call.arguments.get(length)) {
    reply.status = Reply::Status::garbage_args;
    co_return reply;
  }
  storage::Result<storage::Buffer> buffer =
      co_await call.worker.buffers.acquire(std::max<std::size_t>(length, 1));
  if (!buffer) {
    reply.status = Reply::Status::system_err;
    co_return reply;
  }
  reply.payload_owner = std::move(*buffer);
  const Bytes bytes = pattern(length);
  if (length > 0) std::memcpy(reply.payload_owner.data(), bytes.data(), length);
  reply.results.put_payload(
      std::span<const std::byte>(reply.payload_owner.data(), std::size_t{length}));
  reply.results.put(std::uint32_t{0x7a11});
  co_return reply;
}

Awaitable<Reply> who(void*, Call& call) {
  Reply reply;
  const xdr::AuthSys* auth = call.auth_sys;
  reply.results.put(std::uint32_t{auth != nullptr});
  reply.results.put(auth ? auth->uid : 0);
  reply.results.put(auth ? auth->gid : 0);
  reply.results.put(auth ? static_cast<std::uint32_t>(auth->gids.items.size()) : 0);
  co_return reply;
}

constexpr std::array<rpc::Procedure, 13> procedures{{
    {"NULL", nullptr, false},
    {"ECHO", echo, false},
    {"HOLD", hold, false},
    {"WRITE", write, true},
    {"THROW", raise, false},
    {"GARBAGE", garbage, false},
    {"WEAK", weak, false},
    {"MISSING", nullptr, false},
    {"CHANGE", change, true},
    {"READ", read, false},
    {"WHO", who, false},
    {"KEEP", keep, false},
    {"HELD_WRITE", keep, true},
}};

}  // namespace

void TestService::release(std::uint32_t tag) {
  const std::lock_guard lock(mutex_);
  released_[tag] = true;
  const auto [begin, end] = parked_.equal_range(tag);
  for (auto at = begin; at != end; ++at) std::move(at->second).resume();
  parked_.erase(begin, end);
}

bool TestService::wait_held(std::uint32_t tag, unsigned count) {
  std::unique_lock lock(mutex_);
  const auto enough = [&] { return held_[tag] >= count; };
  return changed_.wait_for(lock, std::chrono::seconds(20), enough);
}

unsigned TestService::executions(std::uint32_t tag) {
  const std::lock_guard lock(mutex_);
  return executions_[tag];
}

unsigned TestService::executed(std::uint32_t tag) {
  const std::lock_guard lock(mutex_);
  return ++executions_[tag];
}

Awaitable<> TestService::hold(std::uint32_t tag) {
  const unsigned now = ++held_now_;
  for (unsigned peak = held_peak_.load(); now > peak;) {
    if (held_peak_.compare_exchange_weak(peak, now)) break;
  }
  auto store = [this, tag](storage::Parked parked) {
    const std::lock_guard lock(mutex_);
    ++held_[tag];
    changed_.notify_all();
    if (released_[tag]) {
      std::move(parked).resume();
    } else {
      parked_.emplace(tag, std::move(parked));
    }
  };
  co_await storage::park(store);
  --held_now_;
}

std::vector<rpc::Program> test_programs(TestService& service) {
  const std::span<const rpc::Procedure> table(procedures);
  return {rpc::Program{test_program, 2, "TESTv2", table, find_test_payload, &service},
          rpc::Program{test_program, 4, "TESTv4", table, find_test_payload, &service}};
}

Message write_call(std::uint32_t xid, std::uint64_t offset, std::span<const std::byte> data,
                   std::uint32_t procedure) {
  Message message = call_sys(xid, test_program, 2, procedure, 1000, 1000);
  message.opaque(pattern(28, 7)).u64(offset).u32(static_cast<std::uint32_t>(data.size())).u32(2);
  message.opaque(data);
  return message;
}

std::uint32_t sum_of(std::span<const std::byte> data) {
  std::uint32_t sum = static_cast<std::uint32_t>(data.size());
  for (const std::byte byte : data) sum = sum * 31 + std::to_integer<unsigned>(byte);
  return sum;
}

TestServer::TestServer(rpc::Options options, storage::Runtime::Options runtime_options)
    : runtime(std::make_unique<storage::Runtime>(std::move(runtime_options))) {
  const std::vector<rpc::Program> programs = test_programs(service);
  server = std::make_unique<rpc::Server>(*runtime, programs, options);
  const std::array addresses{boost::asio::ip::make_address("127.0.0.1")};
  const storage::Result<> listening = server->listen(addresses, 0);
  if (!listening) throw std::runtime_error(listening.error().message());
  server->start();
}

TestServer::~TestServer() {
  server.reset();
  runtime->stop();
}

}  // namespace selvage::testing
