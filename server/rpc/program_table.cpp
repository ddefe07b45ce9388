#include "server/rpc/program_table.h"

#include <algorithm>

namespace selvage::server::rpc {

ProgramTable::ProgramTable(std::span<const Program> programs) {
  entries_.reserve(programs.size());
  for (const Program& program : programs) {
    std::vector<ProcedureCounters> counters(program.procedures.size());
    entries_.push_back(Entry{program, std::move(counters)});
  }
}

ProgramTable::Entry* ProgramTable::find(std::uint32_t number, std::uint32_t version) {
  for (Entry& entry : entries_) {
    if (entry.program.number == number && entry.program.version == version) return &entry;
  }
  return nullptr;
}

std::optional<ProgramTable::Versions> ProgramTable::versions(std::uint32_t number) const {
  std::optional<Versions> found;
  for (const Entry& entry : entries_) {
    const std::uint32_t version = entry.program.version;
    if (entry.program.number != number) continue;
    if (!found) found = Versions{version, version};
    found->low = std::min(found->low, version);
    found->high = std::max(found->high, version);
  }
  return found;
}

Opening ProgramTable::inspect(std::span<const std::byte> start) {
  Opening opening;
  xdr::CallHeader header;
  xdr::Source source(start);
  opening.status = xdr::decode_call(source, header);
  if (opening.status != xdr::CallStatus::ok) return opening;
  opening.arguments = source.position();
  const Entry* entry = find(header.prog, header.vers);
  if (entry == nullptr) return opening;
  opening.null_call = header.proc == 0;
  if (entry->program.find_payload != nullptr && header.proc < entry->program.procedures.size()) {
    opening.may_carry_payload = true;
    opening.place = entry->program.find_payload(header.proc, start.subspan(opening.arguments));
  }
  return opening;
}

}  // namespace selvage::server::rpc
