// Replies of calls that changed something, for clients that send a call again because they did not
// see the answer (RFC 1813, 4.5; DESIGN 5). Without it a late first copy of a WRITE would undo what
// was written after its retry had been answered.
#pragma once

#include "server/rpc/counters.h"
#include "storage/io_device.h"
#include "storage/parked.h"

#include <boost/container/small_vector.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_set>

namespace selvage::server::rpc {

/// Any thread; outlives its tickets. Memory only: it is lost with the process.
///
/// Bounds: calls in progress are bounded by the caller (each is a request in flight), finished ones
/// by Options; the oldest finished one goes first.
class DuplicateRequestCache {
 public:
  struct Options {
    std::size_t max_entries = 262'144;               ///< Finished ones.
    std::size_t max_bytes = std::size_t{128} << 20;  ///< Of finished ones, all told.
    std::chrono::milliseconds expiry{120'000};       ///< Since they were finished.
    std::size_t max_waiters = 16;                    ///< Retries held back for one call.
  };

  /// Which call it is. The port is not part of it: a retry may come from another.
  struct Key {
    std::array<std::uint8_t, 16> client{};  ///< IPv6 address, or IPv4-mapped.
    std::uint32_t xid = 0;
    std::uint32_t program = 0;
    std::uint32_t version = 0;
    std::uint32_t procedure = 0;
    std::uint64_t checksum = 0;  ///< checksum() of the start and end of the call, and its length.
    friend bool operator==(const Key&, const Key&) = default;
  };

  /// A whole reply without record mark. That of a WRITE needs no allocation.
  using Bytes = boost::container::small_vector<std::byte, 160>;
  /// nullptr: none will come.
  using Answer = std::shared_ptr<const Bytes>;

 private:
  struct Entry;
  struct Shard;

 public:
  /// The right and the duty to execute a call. Destroyed without finish(): as if it never came.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&&) noexcept = default;
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket();
    explicit operator bool() const { return entry_ != nullptr; }

    /// Answers all retries that wait, and with `keep` those to come. Returns the answer, to be
    /// sent from where it is kept.
    Answer finish(Bytes answer, bool keep);

   private:
    friend class DuplicateRequestCache;
    Ticket(DuplicateRequestCache* cache, std::shared_ptr<Entry> entry)
        : cache_(cache), entry_(std::move(entry)) {}
    DuplicateRequestCache* cache_ = nullptr;
    std::shared_ptr<Entry> entry_;
  };

  /// What to do with a call: exactly one of the three is set; none of them: drop it, too many
  /// retries of it are waiting.
  struct Decision {
    Ticket execute;
    Answer answer;                 ///< It has been executed: send this.
    std::shared_ptr<Entry> first;  ///< It is being executed: release its memory, then wait().
  };

  DuplicateRequestCache(Options options, Counters& counters);
  ~DuplicateRequestCache();
  DuplicateRequestCache(const DuplicateRequestCache&) = delete;
  DuplicateRequestCache& operator=(const DuplicateRequestCache&) = delete;

  Decision begin(const Key& key);

  /// The answer to the first copy, as soon as there is one; nullptr if there will be none, or too
  /// many wait. Resumes on the caller's executor.
  storage::Awaitable<Answer> wait(std::shared_ptr<Entry> first);

  /// SipHash under a key of this process.
  std::uint64_t checksum(std::span<const std::byte> bytes) const;

  struct Gauges {
    std::size_t entries = 0;  ///< Finished calls held now.
    std::size_t bytes = 0;    ///< Of those.
    std::size_t bytes_limit = 0;
  };
  Gauges gauges() const;

  /// Sends all waiters and later ones away.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t shards = 16;
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const Key& key) const {
      return static_cast<std::size_t>(key.checksum ^ (std::uint64_t{key.xid} << 17));
    }
    std::size_t operator()(const std::shared_ptr<Entry>& entry) const;
  };
  struct Equal;

  Shard& shard_of(const Key& key) const;
  void finish(const std::shared_ptr<Entry>& entry, Bytes answer, bool keep);
  void evict(Shard& shard, Clock::time_point now);

  const Options options_;
  Counters& counters_;
  std::array<unsigned char, 16> hash_key_;
  std::unique_ptr<std::array<Shard, shards>> shards_;
};

}  // namespace selvage::server::rpc
