#include "storage/local/read_engine.h"

#include "storage/read_plan.h"
#include "storage/rwf.h"

#include <cerrno>
#include <new>

namespace selvage::storage {
namespace {

// A file that grows just between the read and the look at its size is read again, this often.
constexpr int growth_retries = 8;

// For O_DIRECT on any device, and for vectors of whole pages.
constexpr std::size_t heap_alignment = 4096;

/// Makes `result` own at least `length` bytes; returns where they are.
Awaitable<Result<std::span<std::byte>>> make_room(Worker& worker, ReadResult& result,
                                                  std::size_t length, ReadMemory memory) {
  if (memory == ReadMemory::heap) {
    result.heap.reset();
    try {
      result.heap = std::make_unique<AlignedMemory>(length, heap_alignment);
    } catch (const std::bad_alloc&) {
      co_return errno_code(ENOMEM);
    }
    co_return std::span<std::byte>(result.heap->data(), length);
  }
  result.buffer = Buffer();  // Never wait for room while holding some.
  auto buffer = co_await worker.buffers.acquire(length);
  if (buffer.has_error()) co_return buffer.error();
  result.buffer = std::move(*buffer);
  co_return std::span<std::byte>(result.buffer.data(), result.buffer.size());
}

}  // namespace

Awaitable<Result<ReadResult>> ReadEngine::read(Worker& worker, OpenFile& file, std::uint64_t offset,
                                               std::uint32_t count, ReadMemory memory) {
  ReadResult result;
  std::span<std::byte> room;
  // The same way for plan and read: meanwhile the file may leave edge mode `assemble`, or enter it.
  const OpenFile::Way way = file.way();
  if (way.stale) co_return errno_code(ECANCELED);
  auto size_known = file.attributes_after();
  if (size_known.has_error()) co_return size_known.error();
  // An assembled file has one description, and that is O_DIRECT.
  const IoMode mode = way.combiner ? IoMode::direct : context_.modes.get().read;
  for (int tries = 0; tries < growth_retries; ++tries) {
    const ReadPlan plan = plan_read(offset, count, file.alignment(), mode, size_known->size);
    if (plan.fallback) context_.counters.direct_fallbacks.add();
    std::size_t read = 0;
    if (plan.length > 0) {
      if (room.size() < plan.length) {
        const auto made = co_await make_room(worker, result, plan.length, memory);
        if (made.has_error()) co_return made.error();
        room = *made;
      }
      const iovec into{room.data(), plan.length};
      const auto fetched = co_await fetch(worker, way, plan.mode, into, plan.offset);
      if (fetched.has_error() && fetched.error() == errno_code(EINVAL) &&
          plan.mode == IoMode::direct) {
        file.direct_refused();
        continue;
      }
      if (fetched.has_error()) co_return fetched.error();
      read = *fetched;
    }
    auto after = file.attributes_after();
    if (after.has_error()) co_return after.error();
    const ReadSlice slice = slice_read(plan, read, after->size);
    if (slice.again) {
      size_known = after;
      continue;
    }
    if (slice.length > 0) result.data = room.subspan(slice.begin, slice.length);
    result.eof = slice.eof;
    result.after = *after;
    co_return result;
  }
  co_return errno_code(EAGAIN);
}

Awaitable<Result<std::size_t>> ReadEngine::fetch(Worker& worker, const OpenFile::Way& way,
                                                 IoMode mode, const iovec& into,
                                                 std::uint64_t offset) {
  if (way.combiner) {
    const std::span<std::byte> to(static_cast<std::byte*>(into.iov_base), into.iov_len);
    co_return co_await way.combiner->read(worker, to, offset);
  }
  const auto& open = way.descriptors;
  const std::span<const iovec> parts(&into, 1);
  if (mode == IoMode::direct) {
    co_return co_await worker.device.readv(open->direct, parts, offset, 0);
  }
  if (mode == IoMode::dontcache && !no_dontcache_.load(std::memory_order_relaxed)) {
    const auto read = co_await worker.device.readv(open->buffered, parts, offset, rwf_dontcache);
    if (read.has_value() || read.error() != errno_code(EOPNOTSUPP)) co_return read;
    no_dontcache_.store(true, std::memory_order_relaxed);
    context_.notice(Fallback::no_dontcache, no_dontcache_message);
  }
  co_return co_await worker.device.readv(open->buffered, parts, offset, 0);
}

}  // namespace selvage::storage
