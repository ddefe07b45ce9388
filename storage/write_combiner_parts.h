// What the source files of WriteCombiner share. Private to them.
#pragma once

#include "storage/write_combiner.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace selvage::storage {

struct WriteCombiner::Request final : Suspended {
  enum class Kind : std::uint8_t { write, commit, write_out, exclusive };
  Request(Worker& worker, Kind what) : Suspended(worker), kind(what) {}

  std::uint64_t end() const { return offset + length; }
  bool wants_sync() const { return stability != Stability::unstable; }

  const Kind kind;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::span<const std::byte> data;
  Stability stability = Stability::unstable;
  bool write_through = false;
  std::uint64_t before = ~std::uint64_t{0};  // write_out: only pages dirty before that batch.
  Work work;                                 // exclusive
  bool retires = false;                      // The combiner ends with it,
  bool discard = false;                      // and what it holds is of no use any more.

  WaitCredit* waits = nullptr;  // Of those that may wait for the neighbours of partial pages.
  unsigned waited = 0;          // Batches that it was in and that did not write its partial pages,
  Clock::time_point waits_since;  // the first of them.
  bool gave_up = false;           // Its time to wait was over.
  unsigned held = 0;              // Batches that it was held back from.
  std::uint64_t batch = 0;        // The first it was in.
  // The answer.
  ErrorCode error;
  std::uint64_t verifier = 0;
  Attributes after;
};

struct WriteCombiner::Batch {
  struct Failure {
    std::uint64_t begin, end;  // Of the file, bytes.
    ErrorCode error;
    bool tried;  // A write failed: what is on disk is unknown. Otherwise nothing was written.
  };
  Requests requests;
  Requests waiting;
  std::uint64_t number = 0;
  Clock::time_point planned;
  Clock::time_point quiet_since;  // Until then nothing new had come.
  BatchPlan plan;
  std::vector<Failure> failures;
  std::uint64_t written_end = 0;  // What the writes that succeeded made the size at least.

  void fail(std::uint64_t begin, std::uint64_t end, const ErrorCode& error, bool tried) {
    failures.push_back({begin, end, error, tried});
  }
  const Failure* failure_in(std::uint64_t begin, std::uint64_t end) const {
    const auto hit = [&](const Failure& f) { return f.begin < end && begin < f.end; };
    const auto found = std::ranges::find_if(failures, hit);
    return found == failures.end() ? nullptr : &*found;
  }
};

}  // namespace selvage::storage
