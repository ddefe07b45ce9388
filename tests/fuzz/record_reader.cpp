// The record reader over any stream, cut into any chunks: it must neither crash nor hang, and what
// it reads must not depend on the chunks.
#include "server/rpc/record_reader.h"

#include "tests/support/record_harness.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

using selvage::server::rpc::ReadStatus;
using selvage::testing::RecordHarness;

namespace {

selvage::storage::BufferPool& pool() {
  static selvage::storage::BufferPool buffers(16 << 20);
  return buffers;
}

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  const std::span<const std::byte> cuts = bytes.first(4);
  const std::span<const std::byte> stream = bytes.subspan(4);
  // Small limits, so that short inputs reach them.
  selvage::server::rpc::RecordReader::Limits limits;
  limits.max_record = 16384;
  limits.small_record = 2048;

  RecordHarness whole(pool(), limits, 64);
  whole.feed(stream);
  whole.finish();
  require(whole.end.has_value() || whole.large.waits() > 0);

  RecordHarness pieces(pool(), limits, 64);
  std::size_t turn = 0;
  for (std::span<const std::byte> rest = stream; !rest.empty() && !pieces.end;) {
    const std::size_t cut = std::to_integer<std::size_t>(cuts[turn++ % cuts.size()]) + 1;
    const std::size_t count = std::min(cut, rest.size());
    pieces.feed(rest.first(count));
    rest = rest.subspan(count);
  }
  pieces.finish();
  require(pieces.end == whole.end);
  require(pieces.records.size() == whole.records.size());
  for (std::size_t i = 0; i < whole.records.size(); ++i) {
    require(RecordHarness::joined(pieces.records[i]) == RecordHarness::joined(whole.records[i]));
    require(pieces.records[i].payload.size() == whole.records[i].payload.size());
    const auto address = reinterpret_cast<std::uintptr_t>(pieces.records[i].payload.data());
    const auto other = reinterpret_cast<std::uintptr_t>(whole.records[i].payload.data());
    require(address % 4096 == other % 4096);
  }
  return 0;
}
