// The programs that are served, looked up by number and version, with their counters.
#pragma once

#include "server/rpc/counters.h"
#include "server/rpc/program.h"
#include "xdr/rpc.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace selvage::server::rpc {

/// What the first bytes of a record tell.
struct Opening {
  xdr::CallStatus status = xdr::CallStatus::truncated;
  bool null_call = false;          ///< Procedure 0 of a served program and version.
  bool may_carry_payload = false;  ///< `place` may still be found in more bytes.
  std::size_t arguments = 0;       ///< Where the arguments begin, if status is ok.
  std::optional<PayloadPlace> place;
};

/// Immutable after construction but for the counters. Any thread.
class ProgramTable {
 public:
  struct Entry {
    Program program;
    std::vector<ProcedureCounters> counters;  ///< One for each procedure of the table.
  };
  struct Versions {
    std::uint32_t low;
    std::uint32_t high;
  };

  explicit ProgramTable(std::span<const Program> programs);

  /// nullptr if it is not served.
  Entry* find(std::uint32_t number, std::uint32_t version);
  /// The lowest and highest version served; nullopt if the program is not served at all.
  std::optional<Versions> versions(std::uint32_t number) const;

  /// `start`: the first bytes of a record without its mark, 4-byte aligned.
  Opening inspect(std::span<const std::byte> start);

  std::span<const Entry> entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace selvage::server::rpc
