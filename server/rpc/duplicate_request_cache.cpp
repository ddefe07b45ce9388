#include "server/rpc/duplicate_request_cache.h"

#include <sodium.h>

#include <bit>
#include <stdexcept>
#include <utility>
#include <vector>

namespace selvage::server::rpc {

namespace {
/// What an entry costs, about: itself, its places in set and queue. Answers too long to be in it
/// come on top.
constexpr std::size_t entry_bytes = 400;
}  // namespace

struct DuplicateRequestCache::Entry {
  enum class State : std::uint8_t { in_progress, finished, gone };

  explicit Entry(const Key& k) : key(k) {}
  std::size_t bytes() const { return entry_bytes + answer.size(); }
  /// The bytes live as long as the entry, and change no more.
  static Answer answer_of(const std::shared_ptr<Entry>& entry) {
    return entry->answer.empty() ? nullptr : Answer(entry, &entry->answer);
  }

  const Key key;
  // Under the shard's mutex:
  State state = State::in_progress;
  Bytes answer;  ///< Empty: none.
  Clock::time_point finished_at{};
  std::vector<storage::Parked> waiters;
};

std::size_t DuplicateRequestCache::Hash::operator()(const std::shared_ptr<Entry>& entry) const {
  return (*this)(entry->key);
}

struct DuplicateRequestCache::Equal {
  using is_transparent = void;
  static const Key& key(const Key& key) { return key; }
  static const Key& key(const std::shared_ptr<Entry>& entry) { return entry->key; }
  bool operator()(const auto& a, const auto& b) const { return key(a) == key(b); }
};

struct DuplicateRequestCache::Shard {
  mutable std::mutex mutex;
  std::unordered_set<std::shared_ptr<Entry>, Hash, Equal> entries;
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
  if (entry_) finish({}, false);
}

DuplicateRequestCache::Answer DuplicateRequestCache::Ticket::finish(Bytes answer, bool keep) {
  const std::shared_ptr<Entry> entry = std::exchange(entry_, nullptr);
  cache_->finish(entry, std::move(answer), keep);
  return Entry::answer_of(entry);
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
  const auto found = shard.entries.find(key);
  if (found == shard.entries.end()) {
    decision.execute = Ticket(this, *shard.entries.insert(std::make_shared<Entry>(key)).first);
    return decision;
  }
  const std::shared_ptr<Entry>& entry = *found;
  if (entry->state == Entry::State::finished) {
    counters_.drc_hits.add();
    decision.answer = Entry::answer_of(entry);
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
  co_return Entry::answer_of(first);
}

void DuplicateRequestCache::finish(const std::shared_ptr<Entry>& entry, Bytes answer, bool keep) {
  std::vector<storage::Parked> waiters;
  {
    Shard& shard = shard_of(entry->key);
    const std::lock_guard lock(shard.mutex);
    entry->answer = std::move(answer);
    waiters.swap(entry->waiters);
    if (keep && !entry->answer.empty()) {
      entry->state = Entry::State::finished;
      entry->finished_at = Clock::now();
      shard.bytes += entry->bytes();
      shard.finished.push_back(entry);
      evict(shard, entry->finished_at);
    } else {
      entry->state = Entry::State::gone;
      shard.entries.erase(entry);
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
    shard.entries.erase(oldest);
    shard.finished.pop_front();
  }
}

DuplicateRequestCache::Gauges DuplicateRequestCache::gauges() const {
  Gauges gauges;
  gauges.bytes_limit = options_.max_bytes;
  for (const Shard& shard : *shards_) {
    const std::lock_guard lock(shard.mutex);
    gauges.entries += shard.finished.size();
    gauges.bytes += shard.bytes;
  }
  return gauges;
}

void DuplicateRequestCache::stop() {
  for (Shard& shard : *shards_) {
    std::vector<storage::Parked> waiters;
    {
      const std::lock_guard lock(shard.mutex);
      shard.stopped = true;
      for (const auto& entry : shard.entries) {
        for (storage::Parked& waiter : entry->waiters) waiters.push_back(std::move(waiter));
        entry->waiters.clear();
      }
    }
    for (storage::Parked& waiter : waiters) std::move(waiter).resume();
  }
}

}  // namespace selvage::server::rpc
