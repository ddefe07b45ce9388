#include "tests/support/fault_device.h"

#include "storage/parked.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

namespace selvage::storage {
namespace {

class Gate final : public Hold {
 public:
  // Returns 0, or the errno that the operation shall fail with.
  Awaitable<int> pass() {
    Held held;
    auto enter = [this, &held](Parked coroutine) { this->enter(held, std::move(coroutine)); };
    co_await park(enter);
    co_return held.error;
  }

  bool wait_held(std::size_t count, std::chrono::seconds timeout) override {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, timeout, [&] { return arrived_ >= count; });
  }
  void release() override { open(0); }
  void release_with_error(int error) override { open(error); }

 private:
  struct Held {
    int error = 0;
    std::optional<Parked> coroutine;
  };

  void enter(Held& held, Parked coroutine) {
    const std::lock_guard lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    if (open_) {
      std::move(coroutine).resume();
      return;
    }
    held.coroutine.emplace(std::move(coroutine));
    held_.push_back(&held);
  }

  void open(int error) {
    const std::lock_guard lock(mutex_);
    open_ = true;
    for (Held* held : held_) {
      held->error = error;
      Parked coroutine = std::move(*held->coroutine);
      std::move(coroutine).resume();
    }
    held_.clear();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  std::size_t arrived_ = 0;
  std::vector<Held*> held_;
};

struct Effect {
  int error_before = 0;
  int error_after = 0;
  std::optional<std::uint64_t> bytes{};
  std::shared_ptr<Gate> before{};
  std::shared_ptr<Gate> after{};
};

struct Rule {
  OpKind kind;
  When when;
  Effect effect;
};

}  // namespace

struct FaultScript::Impl {
  mutable std::mutex mutex;
  std::vector<Rule> rules;
  std::vector<Op> seen;

  Effect arrive(const Op& op) {
    const std::lock_guard lock(mutex);
    seen.push_back(op);
    for (Rule& rule : rules) {
      if (rule.kind != op.kind || (rule.when.matches && !rule.when.matches(op))) continue;
      if (rule.when.skip > 0) {
        --rule.when.skip;
        continue;
      }
      if (rule.when.times == 0) continue;
      --rule.when.times;
      return rule.effect;
    }
    return {};
  }

  void add(OpKind kind, When when, Effect effect) {
    const std::lock_guard lock(mutex);
    rules.push_back({kind, std::move(when), std::move(effect)});
  }
};

namespace {

std::uint64_t total(std::span<const iovec> segments) {
  std::uint64_t sum = 0;
  for (const iovec& each : segments) sum += each.iov_len;
  return sum;
}

std::vector<iovec> first_bytes(std::span<const iovec> segments, std::uint64_t bytes) {
  std::vector<iovec> cut;
  for (iovec each : segments) {
    each.iov_len = std::min<std::uint64_t>(each.iov_len, bytes);
    bytes -= each.iov_len;
    if (each.iov_len > 0) cut.push_back(each);
  }
  return cut;
}

class FaultDevice final : public IoDevice {
 public:
  FaultDevice(FaultScript::Impl& script, std::unique_ptr<IoDevice> inner)
      : script_(script), inner_(std::move(inner)) {}

  Awaitable<Result<std::size_t>> readv(int fd, std::span<const iovec> segments,
                                       std::uint64_t offset, int rwf_flags) override {
    const Op op{OpKind::readv, fd, offset, total(segments), rwf_flags};
    return transfer(op, segments);
  }

  Awaitable<Result<std::size_t>> writev(int fd, std::span<const iovec> segments,
                                        std::uint64_t offset, int rwf_flags) override {
    const Op op{OpKind::writev, fd, offset, total(segments), rwf_flags};
    return transfer(op, segments);
  }

  Awaitable<Result<>> sync(int fd, SyncKind kind, std::uint64_t offset,
                           std::uint64_t length) override {
    const Op op{OpKind::sync, fd, offset, length, static_cast<int>(kind)};
    return change(op);
  }

  Awaitable<Result<>> allocate(int fd, int mode, std::uint64_t offset,
                               std::uint64_t length) override {
    const Op op{OpKind::allocate, fd, offset, length, mode};
    return change(op);
  }

 private:
  // 0, or the errno to fail with instead of performing the operation.
  static Awaitable<int> before(const Effect& effect) {
    int error = 0;
    if (effect.before) error = co_await effect.before->pass();
    co_return error != 0 ? error : effect.error_before;
  }
  static Awaitable<int> after(const Effect& effect) {
    int error = 0;
    if (effect.after) error = co_await effect.after->pass();
    co_return error != 0 ? error : effect.error_after;
  }

  Awaitable<Result<std::size_t>> transfer(Op op, std::span<const iovec> segments) {
    const Effect effect = script_.arrive(op);
    const int not_performed = co_await before(effect);
    if (not_performed != 0) co_return errno_code(not_performed);
    std::vector<iovec> cut;
    if (effect.bytes) {
      cut = first_bytes(segments, *effect.bytes);
      segments = cut;
    }
    Result<std::size_t> result = std::size_t{0};
    if (!segments.empty()) {
      if (op.kind == OpKind::readv) {
        result = co_await inner_->readv(op.fd, segments, op.offset, op.flags);
      } else {
        result = co_await inner_->writev(op.fd, segments, op.offset, op.flags);
      }
    }
    const int lost = co_await after(effect);
    if (lost != 0) co_return errno_code(lost);
    co_return result;
  }

  Awaitable<Result<>> change(Op op) {
    const Effect effect = script_.arrive(op);
    const int not_performed = co_await before(effect);
    if (not_performed != 0) co_return errno_code(not_performed);
    Result<> result;
    if (op.kind == OpKind::sync) {
      result = co_await inner_->sync(op.fd, static_cast<SyncKind>(op.flags), op.offset, op.length);
    } else {
      result = co_await inner_->allocate(op.fd, op.flags, op.offset, op.length);
    }
    const int lost = co_await after(effect);
    if (lost != 0) co_return errno_code(lost);
    co_return result;
  }

  FaultScript::Impl& script_;
  std::unique_ptr<IoDevice> inner_;
};

}  // namespace

FaultScript::FaultScript() : impl_(std::make_unique<Impl>()) {}
FaultScript::~FaultScript() = default;

std::function<std::unique_ptr<IoDevice>(std::unique_ptr<IoDevice>)> FaultScript::wrapper() {
  return [this](std::unique_ptr<IoDevice> inner) {
    return std::make_unique<FaultDevice>(*impl_, std::move(inner));
  };
}

void FaultScript::fail(OpKind kind, int error, When when) {
  impl_->add(kind, std::move(when), {.error_before = error});
}

void FaultScript::fail_after(OpKind kind, int error, When when) {
  impl_->add(kind, std::move(when), {.error_after = error});
}

void FaultScript::shorten(OpKind kind, std::uint64_t bytes, When when) {
  impl_->add(kind, std::move(when), {.bytes = bytes});
}

std::shared_ptr<Hold> FaultScript::hold_before(OpKind kind, When when) {
  auto gate = std::make_shared<Gate>();
  impl_->add(kind, std::move(when), {.before = gate});
  return gate;
}

std::shared_ptr<Hold> FaultScript::hold_after(OpKind kind, When when) {
  auto gate = std::make_shared<Gate>();
  impl_->add(kind, std::move(when), {.after = gate});
  return gate;
}

void FaultScript::clear() {
  const std::lock_guard lock(impl_->mutex);
  impl_->rules.clear();
}

std::uint64_t FaultScript::seen(OpKind kind) const {
  const std::lock_guard lock(impl_->mutex);
  const auto same = [kind](const Op& op) { return op.kind == kind; };
  return static_cast<std::uint64_t>(std::count_if(impl_->seen.begin(), impl_->seen.end(), same));
}

std::vector<Op> FaultScript::log() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->seen;
}

void FaultScript::reset_seen() {
  const std::lock_guard lock(impl_->mutex);
  impl_->seen.clear();
}

}  // namespace selvage::storage
