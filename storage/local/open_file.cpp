#include "storage/local/open_file.h"

#include "storage/local/held_files.h"
#include "storage/write_plan.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <utility>

namespace selvage::storage {
namespace {

constexpr std::uint64_t whole_file = std::numeric_limits<std::uint64_t>::max();

/// Without O_NOATIME where we do not own the file and lack CAP_FOWNER.
Result<UniqueFd> open_data(const ObjectOpener& opener, const ObjectId& id, int flags) {
  auto fd = opener.open_handle(id, flags | O_NOATIME);
  if (fd.has_error() && fd.error() == errno_code(EPERM)) fd = opener.open_handle(id, flags);
  return fd;
}

Result<std::shared_ptr<const Descriptors>> open_descriptors(DataContext& context,
                                                            const ObjectId& id, OpenFor use) {
  // By O_PATH first: opening a device or a fifo for data has side effects, or waits.
  const auto path = context.opener.open_path(id);
  if (path.has_error()) return path.error();
  struct statx status{};
  if (::statx(path->get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_DIOALIGN, &status) != 0) {
    return errno_code(errno);
  }
  if (S_ISDIR(status.stx_mode)) return errno_code(EISDIR);
  if (!S_ISREG(status.stx_mode)) return errno_code(EINVAL);

  auto descriptors = std::make_shared<Descriptors>(context);
  descriptors->writable = use == OpenFor::writing;
  const int flags = descriptors->writable ? O_RDWR : O_RDONLY;
  auto buffered = open_data(context.opener, id, flags);
  if (buffered.has_error()) return buffered.error();
  descriptors->buffered = buffered->release();

  const DataModes modes = context.modes.get();
  if (modes.read != IoMode::direct && modes.write != IoMode::direct) {
    return descriptors;
  }
  if ((status.stx_mask & STATX_DIOALIGN) == 0 || status.stx_dio_offset_align == 0) {
    // Some file systems (btrfs) accept O_DIRECT, state no alignment, and then silently go through
    // the page cache: that is no direct I/O.
    context.notice(Fallback::no_direct,
                   "the file system states no O_DIRECT alignment: data goes "
                   "through the page cache");
    return descriptors;
  }
  auto direct = open_data(context.opener, id, flags | O_DIRECT);
  if (direct.has_value()) {
    descriptors->direct = direct->release();
    descriptors->alignment.offset = status.stx_dio_offset_align;
    descriptors->alignment.memory = status.stx_dio_mem_align;
  } else if (direct.error() == errno_code(EINVAL)) {
    context.notice(Fallback::direct_refused,
                   "the file system refuses O_DIRECT: data goes through "
                   "the page cache");
  } else {
    return direct.error();
  }
  return descriptors;
}

}  // namespace

Descriptors::~Descriptors() {
  for (const int fd : {direct == buffered ? -1 : direct, buffered}) {
    if (fd < 0 || ::close(fd) == 0) continue;
    context.counters.close_errors.add();
    context.verifier.failed(errno_code(errno));
  }
}

/// Whatever happens to the coroutine that opens, those who wait for it go on.
class OpenFile::Opening {
 public:
  Opening(OpenFile& file, OpenFor use) : file_(file), use_(use) {}
  ~Opening() { file_.opened(use_, std::move(result)); }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;
  Result<Opened> result = errno_code(ENOMEM);

 private:
  OpenFile& file_;
  OpenFor use_;
};

OpenFile::OpenFile(DataContext& context, const ObjectId& id)
    : context_(context),
      id_(id),
      key_(context.next_file_key.fetch_add(1, std::memory_order_relaxed)),
      commit_(context.counters, context.verifier) {}

OpenFile::~OpenFile() {
  context_.tracker.forget(key_);
  if (descriptors_) context_.counters.files_closed.add();
}

Awaitable<Result<>> OpenFile::ensure_open(Worker& worker, OpenFor use) {
  for (;;) {
    std::shared_ptr<Opener> wait;
    {
      const std::lock_guard lock(mutex_);
      if (is_open_locked(use)) co_return Result<>();
      if (opening_) {
        wait = std::make_shared<Opener>(worker, use);
        openers_.push_back(wait);
      }
      opening_ = true;
    }
    if (!wait) break;
    co_await wait->wait();
    if (wait->result.has_error()) co_return wait->result;
  }
  Result<> done;
  {
    Opening opening(*this, use);
    const bool assemble = may_assemble();
    auto open = [this, use, assemble] { return open_now(use, assemble); };
    opening.result = co_await worker.pool.run(open);
    if (opening.result.has_error()) done = opening.result.error();
  }
  co_return done;
}

bool OpenFile::is_open(OpenFor use) const {
  const std::lock_guard lock(mutex_);
  return is_open_locked(use);
}

bool OpenFile::may_assemble() const {
  const DataModes modes = context_.modes.get();
  if (modes.edges != EdgeMode::assemble || modes.write != IoMode::direct) return false;
  const std::lock_guard lock(mutex_);
  // A second description of ours would break the lease.
  return (!descriptors_ || stale_) && !read_only_ &&
         lease_retry_ <= std::chrono::steady_clock::now();
}

Result<OpenFile::Opened> OpenFile::open_now(OpenFor use, bool assemble) {
  if (assemble) {
    auto broken = [weak = weak_from_this(), &context = context_] {
      auto file = weak.lock();
      if (!file) return;
      auto leave = [file, &context]() -> Awaitable<> {
        context.counters.leases_broken.add();
        co_await file->leave_assembly(context.background, false);
      };
      boost::asio::co_spawn(context.background.context, std::move(leave), boost::asio::detached);
    };
    auto assembled = AssembledFile::open(context_, id_, std::move(broken));
    if (assembled.has_value()) {
      context_.counters.leases_held.add();
      return Opened{(*assembled)->descriptors(), *assembled};
    }
    if (assembled.error() == errno_code(EAGAIN)) {
      context_.counters.leases_refused.add();
    } else if (assembled.error() == errno_code(EOPNOTSUPP)) {
      context_.notice(Fallback::no_lease,
                      "no O_DIRECT or no leases here: edges=assemble works as edges=pagecache");
    }
    const std::lock_guard lock(mutex_);
    lease_retry_ = std::chrono::steady_clock::now() +
                   std::chrono::seconds(context_.options.lease_retry_seconds);
  }
  auto descriptors = open_descriptors(context_, id_, use);
  if (descriptors.has_error()) return descriptors.error();
  return Opened{*descriptors, nullptr};
}

void OpenFile::opened(OpenFor use, Result<Opened> result) {
  std::vector<std::shared_ptr<Opener>> waiting;
  {
    const std::lock_guard lock(mutex_);
    opening_ = false;
    waiting.swap(openers_);
    if (result.has_value()) {
      if (!descriptors_) context_.counters.files_opened.add();
      auto before = std::exchange(descriptors_, result->descriptors);
      // Those of an assembled file that was given up are good for nothing but statx(2).
      read_only_ = stale_ ? nullptr : std::move(before);
      stale_ = false;
      assembled_ = result->assembled;
      combiner_.reset();
      if (assembled_) {
        combiner_ = std::make_shared<WriteCombiner>(
            assembled_, boundary_page_size(descriptors_->alignment), assembled_->size_at_open(),
            context_.edge_budget, context_.verifier, context_.counters, context_.counters.combiner,
            context_.waits_learned, WriteCombiner::Limits{});
      }
    }
  }
  for (const auto& one : waiting) {
    // What could not be opened for writing may still be opened for reading: those try themselves.
    const bool concerned = use == OpenFor::reading || one->use == OpenFor::writing;
    if (result.has_error() && concerned) one->result = result.error();
  }
  resume_all(waiting);
}

std::shared_ptr<const Descriptors> OpenFile::descriptors() const {
  const std::lock_guard lock(mutex_);
  return descriptors_;
}

Awaitable<Result<>> OpenFile::sync(Worker& worker, SyncKind kind, std::uint64_t offset,
                                   std::uint64_t length) {
  for (;;) {
    const auto assembling = combiner();
    if (!assembling) {
      if (!stale()) break;
      const auto reopened = co_await ensure_open(worker, OpenFor::reading);
      if (reopened.has_error()) co_return reopened;
      continue;
    }
    const std::uint64_t before = written();
    const auto done = co_await assembling->write_out(worker, true);
    if (done.has_error() && done.error() == errno_code(ECANCELED)) {
      co_await leave_assembly(worker, false);  // Is under way: waits for its end.
      continue;
    }
    if (done.has_value()) mark_synced(before);
    co_return done;
  }
  const auto open = descriptors();
  const std::uint64_t covered = written_.load(std::memory_order_acquire);
  const auto result = co_await commit_.sync(worker, open->buffered, kind, offset, length);
  if (result.has_error()) {
    // The kernel counts pages as clean that it could not write: nothing may be dropped, nor
    // believed to be on the device.
    drop_list_.clear();
    stuck_.clear();
    context_.tracker.forget(key_);
  } else if (offset == 0 && length == 0) {
    mark_synced(covered);
  }
  co_return result;
}

void OpenFile::mark_synced(std::uint64_t covered) {
  std::uint64_t before = synced_.load(std::memory_order_acquire);
  while (before < covered &&
         !synced_.compare_exchange_weak(before, covered, std::memory_order_acq_rel)) {
  }
}

Awaitable<Result<>> OpenFile::authorise(Caller caller, Right right) {
  const auto now = AccessCache::Time::clock::now();
  auto rights = access_.find(caller.credentials, now);
  if (!rights) {
    struct Judged {
      Attributes attributes;
      Rights rights;
    };
    const auto open = descriptors();
    const std::uint64_t generation = access_.generation();
    auto ask = [fd = open->buffered, &credentials = caller.credentials]() -> Result<Judged> {
      const auto attributes = attributes_of(fd);
      if (attributes.has_error()) return attributes.error();
      return Judged{*attributes, judge(fd, credentials, *attributes)};
    };
    const auto judged = co_await caller.worker.pool.run(ask);
    if (judged.has_error()) co_return judged.error();
    mode_.store(judged->attributes.mode, std::memory_order_relaxed);
    access_.remember(caller.credentials, judged->rights, judged->attributes, generation, now);
    rights = judged->rights;
  }
  const int refused = right == Right::read ? rights->read : rights->write;
  if (refused != 0) co_return errno_code(refused);
  co_return Result<>();
}

bool OpenFile::known_to_allow(const Credentials& credentials, Right right) {
  const auto rights = access_.find(credentials, AccessCache::Time::clock::now());
  return rights && (right == Right::read ? rights->read : rights->write) == 0;
}

Result<Attributes> OpenFile::attributes_after() {
  const auto attributes = attributes_of(descriptors()->buffered);
  if (attributes.has_error()) return attributes;
  return observe(shown(*attributes));
}

Result<Attributes> OpenFile::observe(Attributes attributes) {
  access_.observe(attributes);
  mode_.store(attributes.mode, std::memory_order_relaxed);
  if (attributes.nlink == 0 && !context_.opener.held().usable(id_)) return errno_code(ESTALE);
  return attributes;
}

DirectAlignment OpenFile::alignment() const {
  if (direct_refused_.load(std::memory_order_relaxed)) return {};
  return descriptors()->alignment;
}

std::uint32_t OpenFile::page_size() const {
  return boundary_page_size(descriptors()->alignment);
}

void OpenFile::direct_refused() {
  direct_refused_.store(true, std::memory_order_relaxed);
  context_.notice(Fallback::direct_refused,
                  "the file system refuses O_DIRECT: data goes through the page cache");
}

void OpenFile::keep_error(const ErrorCode& error) {
  const std::lock_guard lock(mutex_);
  if (!kept_error_) kept_error_ = error;
}

bool OpenFile::has_kept_error() const {
  const std::lock_guard lock(mutex_);
  return kept_error_.has_value();
}

std::optional<ErrorCode> OpenFile::take_kept_error() {
  const std::lock_guard lock(mutex_);
  return std::exchange(kept_error_, std::nullopt);
}

void OpenFile::drop(std::span<const cache::PageRun> runs) {
  const std::lock_guard lock(drop_mutex_);
  drop_locked(runs);
}

void OpenFile::drop_listed(std::uint64_t first, std::uint64_t last) {
  const std::lock_guard lock(drop_mutex_);
  drop_locked(not_in_play(drop_list_.take(first, last)));
}

void OpenFile::drop_locked(std::span<const cache::PageRun> runs) {
  const auto now = DropList::Time::clock::now();
  const std::uint64_t syncs = commit_.syncs();
  // A sync holds the pages that it writes back, for others too, until it is through: those that
  // did not leave because of it do so now.
  if (syncs != stuck_since_ && !stuck_.empty()) {
    stuck_since_ = syncs;
    const auto again = stuck_.take(0, whole_file);
    drop_counted(not_in_play(again), now);
  }
  if (!drop_counted(runs, now).stuck.empty()) stuck_since_ = syncs;
}

/// What stays goes to the lists.
DropOutcome OpenFile::drop_counted(std::span<const cache::PageRun> runs, DropList::Time since) {
  DropOutcome outcome = drop_clean(fd(), runs);
  context_.counters.boundary_dropped.add(outcome.dropped);
  context_.counters.boundary_drop_failed.add(outcome.failed);
  drop_list_.add(outcome.not_clean, since);
  stuck_.add(outcome.stuck, since);
  return outcome;
}

void OpenFile::write_back(DropList::Time time) {
  std::vector<cache::PageRun> dirty;
  {
    const std::lock_guard lock(drop_mutex_);
    // For the last time: what is inside a large folio stays for good.
    const auto again = stuck_.take(0, whole_file);
    drop_counted(not_in_play(again), time);
    stuck_.clear();

    const auto due = drop_list_.take_older(time);
    dirty = drop_counted(not_in_play(due), time).not_clean;
  }
  for (const cache::PageRun& run : dirty) start_write_back(fd(), run);
}

/// Pages in play again go when they are complete again.
std::vector<cache::PageRun> OpenFile::not_in_play(std::span<const cache::PageRun> runs) const {
  std::vector<cache::PageRun> idle;
  for (const cache::PageRun& run : runs) {
    const auto parts = context_.tracker.droppable(key_, page_size(), run);
    idle.insert(idle.end(), parts.begin(), parts.end());
  }
  return idle;
}

}  // namespace selvage::storage
