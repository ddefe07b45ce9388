// Every operation that this server carries out, by number: one row says all that the engine needs
// to know of it (RFC 7530, 16; RFC 8881, 17; RFC 7862, 13).
#pragma once

#include "server/nfs4/compound.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace selvage::server::nfs4 {

enum class Session : std::uint8_t {
  inside,   ///< After SEQUENCE, in minor version 1 and later.
  opens,    ///< SEQUENCE itself: the first operation.
  optional  ///< Alone in its COMPOUND, or after SEQUENCE.
};

struct OperationRow {
  std::string_view name;  ///< As in the RFCs and in metrics: "WRITE".
  std::uint8_t first_minor = 0;
  std::uint8_t last_minor = 0;  ///< Below first_minor: there is none.
  bool needs_current = false;   ///< NFS4ERR_NOFILEHANDLE without a current filehandle.
  bool needs_saved = false;     ///< The same for the saved one.
  bool changes = false;         ///< Done twice it could do harm, or it is refused on a dead slot.
  Session session = Session::inside;
  /// Bytes that its result takes at most, where that must be known before something changes.
  std::size_t result_bytes = 0;
  /// Decodes the arguments, carries it out, encodes the result (status and body). nullptr: the
  /// minor version defines it and this server does not support it.
  Awaitable<xdr::nfsstat4> (*run)(Compound& compound) = nullptr;
};

/// nullptr: OP_ILLEGAL in that minor version.
const OperationRow* find_operation(std::uint32_t number, std::uint32_t minor);

/// Encodes the result of an operation that was not carried out.
void put_status(Compound& compound, std::uint32_t number, xdr::nfsstat4 status);

struct OperationCount {
  std::string_view name;  ///< "ILLEGAL" for numbers that are none.
  std::uint64_t calls = 0;
  std::uint64_t errors = 0;
};
/// Every operation that was ever asked for, by number. Any thread.
std::vector<OperationCount> operation_counts(const Service& service);

inline constexpr std::uint32_t last_operation = xdr::OP_REMOVEXATTR;

}  // namespace selvage::server::nfs4
