#include "server/rpc/duplicate_request_cache.h"

#include <sodium.h>

#include <bit>
#include <stdexcept>
#include <utility>

namespace selvage::server::rpc {

namespace {
/// What an entry costs beside its answer, about: itself, its places in map and queue.
constexpr std::size_t entry_bytes = 320;
}  // namespace

struct DuplicateRequestCache::Entry {
  enum class State : std::uint8_t { in_progress, finished, gone };

  explicit Entry(const Key& k) : key(k) {}
  std::size_t bytes() const { return entry_bytes + (answer ? answer->size() : 0); }

  const Key key;
  // Under the shard's mutex:
  State state = State::in_progress;
  Answer answer;
  Clock::time_point finished_at{};
  std::vector<storage::Parked> waiters;
};

struct DuplicateRequestCache::Shard {
  mutable std::mutex mutex;
  std::unordered_map<Key, std::shared_ptr<Entry>, Hash> entries;
  std::deque<std::shared_ptr<Entry>> finished;  ///< Oldest first.
  std::size_t bytes = 0;                        ///< Of the finished ones.
  bool stopped = false;
};

DuplicateRequestCache::Ticket& DuplicateRequestCache::Ticket::operator=(Ticket&& other) noexcept {
  std::swap(cache_, other.cache_);
  std::swap(entry_, other.entry_);
  return *this;
}

DuplicateRequestCache::Ticket::~Ticket() {
  if (entry_) finish(nullptr, false);
}

void DuplicateRequestCache::Ticket::finish(Answer answer, bool keep) {
  const std::shared_ptr<Entry> entry = std::exchange(entry_, nullptr);
  cache_->finish(entry, std::move(answer), keep);
}

DuplicateRequestCache::DuplicateRequestCache(Options options, Counters& counters)
    : options_(options),
      counters_(counters),
      shards_(std::make_unique<std::array<Shard, shards>>()) {
  static_assert(crypto_shorthash_KEYBYTES == sizeof hash_key_);
  if (sodium_init() < 0) throw std::runtime_error("libsodium cannot be initialised");
  crypto_shorthash_keygen(hash_key_.data());
}

DuplicateRequestCache::~DuplicateRequestCache() {
  stop();
}

std::uint64_t DuplicateRequestCache::checksum(std::span<const std::byte> bytes) const {
  std::array<unsigned char, crypto_shorthash_BYTES> hash;
  crypto_shorthash(hash.data(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                   hash_key_.data());
  return std::bit_cast<std::uint64_t>(hash);
}

DuplicateRequestCache::Shard& DuplicateRequestCache::shard_of(const Key& key) const {
  return (*shards_)[Hash()(key) % shards];
}

DuplicateRequestCache::Decision DuplicateRequestCache::begin(const Key& key) {
  Decision decision;
  Shard& shard = shard_of(key);
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(shard.mutex);
  evict(shard, now);
  auto [at, inserted] = shard.entries.try_emplace(key);
  if (inserted) {
    at->second = std::make_shared<Entry>(key);
    decision.execute = Ticket(this, at->second);
    return decision;
  }
  const std::shared_ptr<Entry>& entry = at->second;
  if (entry->state == Entry::State::finished) {
    counters_.drc_hits.add();
    decision.answer = entry->answer;
  } else if (entry->waiters.size() < options_.max_waiters) {
    decision.first = entry;
  } else {
    counters_.drc_drops.add();
  }
  return decision;
}

storage::Awaitable<DuplicateRequestCache::Answer> DuplicateRequestCache::wait(
    std::shared_ptr<Entry> first) {
  Shard& shard = shard_of(first->key);
  auto store = [this, &shard, &first](storage::Parked parked) {
    {
      const std::lock_guard lock(shard.mutex);
      if (first->state == Entry::State::in_progress && !shard.stopped) {
        if (first->waiters.size() < options_.max_waiters) {
          counters_.drc_waits.add();
          first->waiters.push_back(std::move(parked));
          return;
        }
        counters_.drc_drops.add();
      }
    }
    std::move(parked).resume();
  };
  co_await storage::park(store);
  const std::lock_guard lock(shard.mutex);
  co_return first->answer;
}

void DuplicateRequestCache::finish(const std::shared_ptr<Entry>& entry, Answer answer, bool keep) {
  std::vector<storage::Parked> waiters;
  {
    Shard& shard = shard_of(entry->key);
    const std::lock_guard lock(shard.mutex);
    entry->answer = std::move(answer);
    waiters.swap(entry->waiters);
    if (keep && entry->answer) {
      entry->state = Entry::State::finished;
      entry->finished_at = Clock::now();
      shard.bytes += entry->bytes();
      shard.finished.push_back(entry);
      evict(shard, entry->finished_at);
    } else {
      entry->state = Entry::State::gone;
      shard.entries.erase(entry->key);
    }
  }
  for (storage::Parked& waiter : waiters) std::move(waiter).resume();
}

void DuplicateRequestCache::evict(Shard& shard, Clock::time_point now) {
  while (!shard.finished.empty()) {
    const std::shared_ptr<Entry>& oldest = shard.finished.front();
    if (shard.finished.size() <= options_.max_entries / shards &&
        shard.bytes <= options_.max_bytes / shards && now - oldest->finished_at < options_.expiry) {
      return;
    }
    shard.bytes -= oldest->bytes();
    shard.entries.erase(oldest->key);
    shard.finished.pop_front();
  }
}

std::size_t DuplicateRequestCache::finished() const {
  std::size_t count = 0;
  for (const Shard& shard : *shards_) {
    const std::lock_guard lock(shard.mutex);
    count += shard.finished.size();
  }
  return count;
}

void DuplicateRequestCache::stop() {
  for (Shard& shard : *shards_) {
    std::vector<storage::Parked> waiters;
    {
      const std::lock_guard lock(shard.mutex);
      shard.stopped = true;
      for (auto& [key, entry] : shard.entries) {
        for (storage::Parked& waiter : entry->waiters) waiters.push_back(std::move(waiter));
        entry->waiters.clear();
      }
    }
    for (storage::Parked& waiter : waiters) std::move(waiter).resume();
  }
}

}  // namespace selvage::server::rpc
