#include "storage/local/data_path.h"

#include "storage/aligned_memory.h"
#include "storage/local/held_files.h"
#include "storage/local/janitor.h"
#include "storage/local/open_file_table.h"
#include "storage/local/read_engine.h"
#include "storage/local/write_engine.h"
#include "storage/offsets.h"
#include "storage/probes.h"
#include "storage/write_plan.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace selvage::storage {
namespace {

std::size_t index_of(Stability stability) {
  return static_cast<std::size_t>(stability);
}

}  // namespace

struct DataPath::Impl {
  Impl(const ObjectOpener& opener, const ExportOptions& options, DataCounters& counters,
       Runtime& runtime)
      : context(opener, options, counters, runtime.worker(0)),
        table(context),
        reads(context),
        writes(make_split_engine(context)),
        janitor(context, table, runtime.worker(0)) {
    auto gone = [this](const ObjectId& id) -> Awaitable<> {
      co_await table.forget(context.background, id);
    };
    context.opener.held().start(context.background, std::move(gone));
  }
  ~Impl() { context.opener.held().abandon(); }

  Awaitable<Result<std::shared_ptr<OpenFile>>> open(Caller caller, const ObjectId& id, OpenFor use,
                                                    Right right);
  std::shared_ptr<OpenFile> find_open(Caller caller, const ObjectId& id, OpenFor use, Right right);
  Awaitable<Result<ReadResult>> read(Caller caller, const ObjectId& id, std::uint64_t offset,
                                     std::uint32_t count, ReadMemory memory);
  Awaitable<Result<WriteResult>> write(Caller caller, const ObjectId& id, WriteRequest request);
  Awaitable<Result<CommitResult>> commit(Caller caller, const ObjectId& id, std::uint64_t offset,
                                         std::uint32_t count);
  Awaitable<Result<WriteResult>> assemble(Worker& worker, OpenFile& file, WriteCombiner& combiner,
                                          const WriteRequest& request);
  Awaitable<> write_out_oldest(Worker& worker);

  DataContext context;
  std::atomic<bool> writing_out_oldest{false};
  OpenFileTable table;
  ReadEngine reads;
  std::unique_ptr<WriteEngine> writes;
  Janitor janitor;
};

DataPath::DataPath(const ObjectOpener& opener, const ExportOptions& options, DataCounters& counters,
                   Runtime& runtime)
    : impl_(std::make_unique<Impl>(opener, options, counters, runtime)) {}
DataPath::~DataPath() = default;

FileTable& DataPath::files() {
  return impl_->table;
}

/// open() where there is nothing to wait for, which is the rule; null otherwise.
std::shared_ptr<OpenFile> DataPath::Impl::find_open(Caller caller, const ObjectId& id, OpenFor use,
                                                    Right right) {
  if (right == Right::write && context.options.read_only) return nullptr;
  auto file = table.find_open(id, use);
  if (!file || !file->known_to_allow(caller.credentials, right)) return nullptr;
  return file;
}

Awaitable<Result<std::shared_ptr<OpenFile>>> DataPath::Impl::open(Caller caller, const ObjectId& id,
                                                                  OpenFor use, Right right) {
  if (right == Right::write && context.options.read_only) co_return errno_code(EROFS);
  for (;;) {
    auto file = co_await table.open_file(caller.worker, id, use);
    if (file.has_error()) co_return file;
    const auto allowed = co_await (*file)->authorise(caller, right);
    if (allowed.has_error()) co_return allowed.error();
    if (!(*file)->stale()) co_return file;
  }
}

KernelLocks& DataPath::locks() {
  return impl_->context.locks;
}

Awaitable<Result<std::shared_ptr<OpenFile>>> DataPath::open(Caller caller, const ObjectId& id,
                                                            OpenFor use, Right right) {
  co_return co_await impl_->open(caller, id, use, right);
}

namespace {

/// The file left edge mode `assemble` before it came to the request: leave_assembly() waits for the
/// end of that, then the file is to be opened again.
template <class T>
bool left_assembly(const Result<T>& result) {
  return result.has_error() && result.error() == errno_code(ECANCELED);
}

}  // namespace

Awaitable<Result<ReadResult>> DataPath::Impl::read(Caller caller, const ObjectId& id,
                                                   std::uint64_t offset, std::uint32_t count,
                                                   ReadMemory memory) {
  for (;;) {
    Result<std::shared_ptr<OpenFile>> file = find_open(caller, id, OpenFor::reading, Right::read);
    if (!*file) file = co_await open(caller, id, OpenFor::reading, Right::read);
    if (file.has_error()) co_return file.error();
    auto result = co_await reads.read(caller.worker, **file, offset, count, memory);
    if (!left_assembly(result)) co_return result;
    co_await (*file)->leave_assembly(caller.worker, false);
  }
}

Awaitable<Result<ReadResult>> DataPath::read(Caller caller, ObjectId id, std::uint64_t offset,
                                             std::uint32_t count, ReadMemory memory) {
  DataCounters& counters = impl_->context.counters;
  counters.reads.add();
  const auto began = std::chrono::steady_clock::now();
  auto result = co_await impl_->read(caller, id, offset, count, memory);
  counters.read_latency.add(std::chrono::steady_clock::now() - began);
  if (result.has_value()) {
    counters.read_bytes.add(result->data.size());
  } else {
    counters.read_errors.add();
  }
  co_return result;
}

Awaitable<Result<WriteResult>> DataPath::Impl::write(Caller caller, const ObjectId& id,
                                                     WriteRequest request) {
  // Before any byte is in the page cache: if it gets lost from there, this is no longer the
  // verifier that a COMMIT will answer.
  WriteResult result;
  result.verifier = context.verifier.get();
  Result<std::shared_ptr<OpenFile>> file = find_open(caller, id, OpenFor::writing, Right::write);
  if (!*file) file = co_await open(caller, id, OpenFor::writing, Right::write);
  if (file.has_error()) co_return file.error();
  if (request.offset > max_offset || request.data.size() > max_offset - request.offset) {
    co_return errno_code(EFBIG);
  }
  if (const auto error = (*file)->take_kept_error()) co_return *error;
  request.stability = std::max(request.stability, context.modes.get().stable_floor);
  while (!request.data.empty()) {
    const auto way = (*file)->way();
    if (way.combiner) {
      auto assembled = co_await assemble(caller.worker, **file, *way.combiner, request);
      if (!left_assembly(assembled)) co_return assembled;
      co_await (*file)->leave_assembly(caller.worker, false);
    } else if (!way.stale) {
      break;
    }
    file = co_await open(caller, id, OpenFor::writing, Right::write);
    if (file.has_error()) co_return file.error();
  }
  if (!request.data.empty()) {
    const auto count = co_await writes->write(caller.worker, **file, request);
    if (count.has_error()) co_return count.error();
    result.count = *count;
  }
  const auto after = (*file)->attributes_after();
  if (after.has_error()) co_return after.error();
  result.committed = request.stability;
  result.after = *after;
  co_return result;
}

Awaitable<Result<WriteResult>> DataPath::Impl::assemble(Worker& worker, OpenFile& file,
                                                        WriteCombiner& combiner,
                                                        const WriteRequest& request) {
  const WritePolicy policy{IoMode::direct, EdgeMode::assemble, 1};
  const auto address = reinterpret_cast<std::uintptr_t>(request.data.data());
  const WritePlan plan =
      plan_write(request.offset, request.data.size(), address, file.alignment(), policy);
  context.counters.writes_by_reason[static_cast<std::size_t>(plan.reason)].add();
  SELVAGE_PROBE(write_plan, file.key(), request.offset, request.data.size(),
                static_cast<unsigned>(plan.reason), static_cast<unsigned>(plan.bounce), &combiner);
  std::span<const std::byte> data = request.data;
  std::optional<AlignedMemory> copy;
  if (plan.bounce) {
    const std::uint64_t shift = request.offset % plan.page_size;
    copy.emplace(shift + data.size(), plan.page_size);
    std::copy(data.begin(), data.end(), copy->data() + shift);
    data = {copy->data() + shift, data.size()};
    context.counters.bounce_copies.add();
  }
  auto result =
      co_await combiner.write(worker, request.offset, data, request.stability, file.has_set_id());
  if (result.has_error()) co_return result;
  if (request.stability == Stability::unstable) file.wrote_unsynced();
  const auto after = file.observe(result->after);
  if (after.has_error()) co_return after.error();
  if (context.edge_budget.pressed()) co_await write_out_oldest(worker);
  if (context.edge_budget.over()) {
    const auto done = co_await combiner.write_out(worker, false);
    if (done.has_error() && done.error() != errno_code(ECANCELED)) file.keep_error(done.error());
  }
  co_return result;
}

/// The pages of the file that has left one alone for longest. One WRITE at a time does this.
Awaitable<> DataPath::Impl::write_out_oldest(Worker& worker) {
  if (writing_out_oldest.exchange(true)) co_return;
  const auto let_go = [](std::atomic<bool>* flag) { flag->store(false); };
  const std::unique_ptr<std::atomic<bool>, decltype(let_go)> turn_taken(&writing_out_oldest,
                                                                        let_go);
  std::shared_ptr<OpenFile> oldest;
  std::shared_ptr<WriteCombiner> combiner;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const auto& file : table.files()) {
    auto of_file = file->combiner();
    const auto turn = of_file ? of_file->oldest_page() : std::nullopt;
    if (!turn || *turn >= least) continue;
    least = *turn;
    oldest = file;
    combiner = std::move(of_file);
  }
  if (oldest) {
    const auto done = co_await combiner->write_out(worker, false);
    if (done.has_error() && done.error() != errno_code(ECANCELED)) oldest->keep_error(done.error());
  }
}

Awaitable<Result<WriteResult>> DataPath::write(Caller caller, ObjectId id, WriteRequest request) {
  DataCounters& counters = impl_->context.counters;
  counters.writes.add();
  counters.stable_asked[index_of(request.stability)].add();
  const auto began = std::chrono::steady_clock::now();
  const auto result = co_await impl_->write(caller, id, request);
  counters.write_latency.add(std::chrono::steady_clock::now() - began);
  if (result.has_value()) {
    counters.write_bytes.add(result->count);
    counters.stable_reached[index_of(result->committed)].add();
    if (result->count < request.data.size()) counters.short_writes.add();
  } else {
    counters.write_errors.add();
  }
  co_return result;
}

Awaitable<Result<CommitResult>> DataPath::Impl::commit(Caller caller, const ObjectId& id,
                                                       std::uint64_t offset, std::uint32_t count) {
  // Not in the table is no reason to do nothing: its bytes may have been written back with an
  // error that only an fsync will tell.
  auto file = co_await open(caller, id, OpenFor::reading, Right::write);
  if (file.has_error()) co_return file.error();
  const bool all = count == 0 || offset > max_offset - count;
  while (const auto combiner = (*file)->combiner()) {
    const std::uint64_t covered = (*file)->written();
    auto committed = co_await combiner->commit(caller.worker, offset, all ? 0 : count);
    if (!left_assembly(committed)) {
      const auto kept_error = (*file)->take_kept_error();
      if (committed.has_error()) co_return committed;
      if (kept_error) co_return *kept_error;
      if (offset == 0 && all) (*file)->mark_synced(covered);
      const auto after = (*file)->observe(committed->after);
      if (after.has_error()) co_return after.error();
      co_return committed;
    }
    co_await (*file)->leave_assembly(caller.worker, false);
    file = co_await open(caller, id, OpenFor::reading, Right::write);
    if (file.has_error()) co_return file.error();
  }
  const auto synced = co_await writes->commit(caller.worker, **file,
                                              offset > max_offset ? 0 : offset, all ? 0 : count);
  const auto kept = (*file)->take_kept_error();
  if (synced.has_error()) co_return synced.error();
  if (kept) co_return *kept;
  CommitResult result;
  result.verifier = context.verifier.get();
  const auto after = (*file)->attributes_after();
  if (after.has_error()) co_return after.error();
  result.after = *after;
  co_return result;
}

Awaitable<Result<CommitResult>> DataPath::commit(Caller caller, ObjectId id, std::uint64_t offset,
                                                 std::uint32_t count) {
  DataCounters& counters = impl_->context.counters;
  counters.commits.add();
  const auto began = std::chrono::steady_clock::now();
  auto result = co_await impl_->commit(caller, id, offset, count);
  counters.commit_latency.add(std::chrono::steady_clock::now() - began);
  co_return result;
}

CurrentModes& DataPath::modes() {
  return impl_->context.modes;
}

Awaitable<> DataPath::reopen_files(Worker& worker) {
  return impl_->table.reopen(worker);
}

DataGauges DataPath::gauges() const {
  const DataContext& context = impl_->context;
  const auto boundary = context.tracker.gauges();
  DataGauges gauges;
  gauges.open_files = impl_->table.size();
  gauges.open_files_limit = context.options.max_open_files;
  gauges.edge_bytes = context.edge_budget.bytes();
  gauges.edge_bytes_limit = context.edge_budget.max_bytes();
  gauges.boundary_pages = boundary.pages;
  gauges.boundary_pages_in_flight = boundary.in_flight;
  gauges.boundary_pages_limit = context.options.max_boundary_pages;
  return gauges;
}

namespace {

std::string path_of(int fd) {
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : std::string();
}

}  // namespace

std::vector<FileEdges> DataPath::edges(std::size_t most) const {
  const auto tracked = impl_->context.tracker.pages_by_file();
  std::vector<std::pair<FileEdges, std::shared_ptr<OpenFile>>> found;
  for (const auto& file : impl_->table.files()) {
    FileEdges edges;
    edges.key = file->key();
    if (const auto combiner = file->combiner()) {
      const auto held = combiner->held();
      edges.assembled = true;
      edges.pages = held.pages;
      edges.dirty_bytes = held.dirty_bytes;
    } else if (const auto pages = tracked.find(file->key()); pages != tracked.end()) {
      edges.pages = pages->second.pages;
      edges.in_flight = pages->second.in_flight;
    }
    if (edges.pages > 0) found.emplace_back(std::move(edges), file);
  }
  std::ranges::sort(found, std::ranges::greater(), [](const auto& one) { return one.first.pages; });
  if (found.size() > most) found.resize(most);
  std::vector<FileEdges> all;
  for (auto& [edges, file] : found) {
    const auto open = file->descriptors();
    struct stat status{};
    if (open && ::fstat(open->buffered, &status) == 0) {
      edges.fileid = status.st_ino;
      edges.path = path_of(open->buffered);
    }
    all.push_back(std::move(edges));
  }
  return all;
}

Awaitable<Result<>> DataPath::sync(Worker& worker) {
  co_return co_await impl_->table.sync_all(worker);
}

Awaitable<Result<>> DataPath::close(Worker& worker) {
  co_await impl_->janitor.stop(worker);
  co_await impl_->context.opener.held().stop(worker);
  co_return co_await impl_->table.close_all(worker);
}

Awaitable<> DataPath::tend(Worker& worker, std::chrono::steady_clock::time_point now) {
  co_await impl_->janitor.tend(worker, now);
}

}  // namespace selvage::storage
