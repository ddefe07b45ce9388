// The device and the file system below a WriteCombiner, simulated: who drives it chooses when each
// operation takes effect and when it completes.
#pragma once

#include "storage/write_combiner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace selvage::storage {

constexpr std::uint32_t page_size = 64;

using Bytes = std::vector<std::byte>;

/// Bytes, a size, and what of both is durable. One thread.
class SimulatedFile final : public CombinedFile {
 public:
  SimulatedFile(std::mt19937_64& random, double fault_rate)
      : random_(random), fault_rate_(fault_rate) {}

  Awaitable<Result<std::size_t>> read(Worker& worker, std::span<const iovec> to,
                                      std::uint64_t offset) override {
    EXPECT_EQ(offset % page_size, 0U);
    EXPECT_FALSE(tail_in_flight_);
    ++reads;
    std::size_t got = 0;
    const bool failed = co_await op(worker, [&, offset] {
      EXPECT_EQ(to.size(), 1U);
      got = offset < bytes.size() ? std::min<std::size_t>(to[0].iov_len, bytes.size() - offset) : 0;
      if (got != 0) std::memcpy(to[0].iov_base, bytes.data() + offset, got);
    });
    if (failed) co_return errno_code(EIO);
    co_return got;
  }

  Awaitable<Result<std::size_t>> write(Worker& worker, std::span<const iovec> from,
                                       std::uint64_t offset) override {
    std::size_t length = 0;
    for (const iovec& piece : from) length += piece.iov_len;
    EXPECT_EQ(offset % page_size, 0U);
    EXPECT_EQ(length % page_size, 0U);
    EXPECT_FALSE(tail_in_flight_);
    for (const auto& [begin, end] : writing_) {
      EXPECT_FALSE(begin < offset + length && offset < end) << "two writes of one page at once";
    }
    writing_.emplace_back(offset, offset + length);
    ++writes;
    const std::size_t part = short_writes && random_() % 8 == 0
                                 ? random_() % (length / page_size) * page_size + page_size
                                 : length;
    const bool failed = co_await op(worker, [&, offset, part] {
      std::size_t at = offset;
      std::size_t left = part;
      for (const iovec& piece : from) {
        const std::size_t n = std::min(left, piece.iov_len);
        put(at, {static_cast<const std::byte*>(piece.iov_base), n});
        at += n;
        left -= n;
      }
    });
    std::erase(writing_, std::pair<std::uint64_t, std::uint64_t>(offset, offset + length));
    if (failed) co_return errno_code(EIO);
    co_return part;
  }

  Awaitable<Result<std::size_t>> write_tail(Worker& worker, std::span<const std::byte> from,
                                            std::uint64_t offset) override {
    EXPECT_TRUE(pending.empty()) << "a tail is written with other I/O in flight";
    EXPECT_TRUE(writing_.empty());
    tail_in_flight_ = true;
    ++tails;
    const bool failed = co_await op(worker, [&, offset] { put(offset, from); });
    tail_in_flight_ = false;
    if (failed) co_return errno_code(EIO);
    co_return from.size();
  }

  Awaitable<Result<>> sync(Worker& worker, SyncKind) override {
    ++syncs;
    const std::size_t covered = unsynced_.size();
    const Bytes content = bytes;
    const bool failed = co_await op(worker, [&, covered, content] {
      durable = content;
      unsynced_.erase(unsynced_.begin(), unsynced_.begin() + static_cast<std::ptrdiff_t>(covered));
    });
    if (failed) co_return errno_code(EIO);
    co_return Result<>();
  }

  Awaitable<> grow(Worker&, std::uint64_t size, std::uint64_t end, std::uint64_t written) override {
    EXPECT_LT(size, end);
    EXPECT_GT(written, 0U);
    co_return;
  }

  Awaitable<Result<Attributes>> finish(Worker&, Did) override {
    Attributes attributes;
    attributes.size = bytes.size();
    co_return attributes;
  }

  Awaitable<Result<std::uint64_t>> truncate(Worker& worker, std::uint64_t size) {
    EXPECT_TRUE(pending.empty()) << "a truncate with I/O in flight";
    const bool failed = co_await op(worker, [&, size] { bytes.resize(size); });
    if (failed) co_return errno_code(EIO);
    durable = bytes;  // SETATTR is durable before its reply.
    unsynced_.clear();
    co_return size;
  }

  // What is there after power was lost: all that was synced, and any of the rest. Sizes are logged
  // in their order, and data beyond the size that is found is not to be seen.
  Bytes crash() {
    std::size_t size = durable.size();
    std::size_t logged = random_() % (unsynced_.size() + 1);
    Bytes left = durable;
    for (const auto& [offset, data] : unsynced_) {
      if (logged > 0) {
        --logged;
        size = std::max(size, offset + data.size());
      }
      if (random_() % 2 == 0) continue;
      if (left.size() < offset + data.size()) left.resize(offset + data.size());
      std::ranges::copy(data, left.begin() + static_cast<std::ptrdiff_t>(offset));
    }
    left.resize(size);
    return left;
  }

  /// Takes one step of a pending operation, chosen at random: its effect, then its completion.
  void step() { step(random_() % pending.size()); }
  void step(std::size_t i) {
    auto& one = pending[i];
    if (!one.done) {
      one.done = true;
      one.failed = std::uniform_real_distribution<>()(random_) < fault_rate_;
      if (!one.failed) one.effect();
      return;
    }
    *one.result = one.failed;
    const std::vector<std::shared_ptr<Suspended>> waiting{one.turn};
    pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i));
    resume_all(waiting);
  }

  struct Pending {
    std::function<void()> effect;
    std::shared_ptr<Suspended> turn;
    bool* result;
    bool done = false;
    bool failed = false;
  };
  std::vector<Pending> pending;
  Bytes bytes;
  Bytes durable;
  bool short_writes = false;
  int reads = 0, writes = 0, tails = 0, syncs = 0;

 private:
  Awaitable<bool> op(Worker& worker, std::function<void()> effect) {
    bool failed = false;
    auto turn = std::make_shared<Suspended>(worker);
    pending.push_back({std::move(effect), turn, &failed});
    co_await turn->wait();
    co_return failed;
  }

  void put(std::uint64_t offset, std::span<const std::byte> data) {
    if (bytes.size() < offset + data.size()) bytes.resize(offset + data.size());
    std::ranges::copy(data, bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    unsynced_.emplace_back(offset, Bytes(data.begin(), data.end()));
  }

  std::mt19937_64& random_;
  const double fault_rate_;
  bool tail_in_flight_ = false;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> writing_;
  std::vector<std::pair<std::uint64_t, Bytes>> unsynced_;
};

/// For the worker that a simulation's own io_context stands for.
inline Runtime::Options simulation_options() {
  Runtime::Options options;
  options.workers = 1;
  options.pool_threads = 1;
  options.buffer_bytes = 1 << 22;
  return options;
}

}  // namespace selvage::storage
