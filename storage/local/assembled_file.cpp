#include "storage/local/assembled_file.h"

#include "storage/durable_sync.h"
#include "storage/local/held_files.h"
#include "storage/local/invisible.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <utility>

namespace selvage::storage {
namespace {

// A file that has grown this often is likely to grow on.
constexpr unsigned growths_before_allocating = 3;
constexpr std::uint64_t first_step = std::uint64_t{1} << 20;
constexpr std::uint64_t largest_step = std::uint64_t{64} << 20;

std::int64_t monotonic_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

// How long the kernel keeps an opener waiting (proc_sys_fs(5)).
std::int64_t lease_break_seconds() {
  std::int64_t seconds = 45;
  std::ifstream("/proc/sys/fs/lease-break-time") >> seconds;
  return seconds;
}

Result<UniqueFd> open_only(DataContext& context, const ObjectId& id, bool& invisible) {
  constexpr int flags = O_RDWR | O_DIRECT;
  auto fd = open_invisible(context.opener.root_fd(), id, flags);
  invisible = fd.has_value();
  if (invisible) return fd;
  fd = context.opener.open_handle(id, flags | O_NOATIME);
  if (fd.has_error() && fd.error() == errno_code(EPERM)) {
    fd = context.opener.open_handle(id, flags);
  }
  return fd;
}

}  // namespace

Result<std::shared_ptr<AssembledFile>> AssembledFile::open(DataContext& context, const ObjectId& id,
                                                           LeaseBreaks::Callback broken) {
  const auto path = context.opener.open_path(id);
  if (path.has_error()) return path.error();
  struct statx status{};
  if (::statx(path->get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_DIOALIGN, &status) != 0) {
    return errno_code(errno);
  }
  if (S_ISDIR(status.stx_mode)) return errno_code(EISDIR);
  if (!S_ISREG(status.stx_mode)) return errno_code(EINVAL);
  if ((status.stx_mask & STATX_DIOALIGN) == 0 || status.stx_dio_offset_align == 0) {
    return errno_code(EOPNOTSUPP);
  }
  bool invisible = false;
  auto fd = open_only(context, id, invisible);
  if (fd.has_error()) return fd.error();

  auto descriptors = std::make_shared<Descriptors>(context);
  descriptors->buffered = descriptors->direct = fd->release();
  descriptors->writable = true;
  descriptors->alignment.offset = status.stx_dio_offset_align;
  descriptors->alignment.memory = status.stx_dio_mem_align;
  auto file = std::make_shared<AssembledFile>(context, descriptors, invisible);
  if (!context.modes.get().exclusive) {
    file->breaks_ = LeaseBreaks::instance();
    // Called under the dispatcher's mutex, and not any more once the file has forgotten it.
    auto noted = [raw = file.get(), broken = std::move(broken)] {
      std::int64_t none = 0;
      raw->broken_at_.compare_exchange_strong(none, monotonic_seconds());
      broken();
    };
    const auto leased = file->breaks_->take(file->fd_, std::move(noted));
    if (leased.has_error()) {
      const bool alone = leased.error() != errno_code(EAGAIN);
      return alone ? errno_code(EOPNOTSUPP) : leased.error();
    }
    file->leased_ = true;
  }
  // After the lease: before it, others might still have written.
  const auto now = attributes_of(file->fd_);
  if (now.has_error()) return now.error();
  if (now->nlink == 0 && !context.opener.held().usable(id)) return errno_code(ESTALE);
  file->last_ = *now;
  file->size_at_open_ = now->size;
  return file;
}

AssembledFile::AssembledFile(DataContext& context, std::shared_ptr<const Descriptors> open,
                             bool invisible)
    : context_(context), open_(std::move(open)), fd_(open_->direct), invisible_(invisible) {}

AssembledFile::~AssembledFile() {
  if (leased_) breaks_->forget(fd_);
}

Awaitable<Result<std::size_t>> AssembledFile::read(Worker& worker, std::span<const iovec> to,
                                                   std::uint64_t offset) {
  co_return co_await worker.device.readv(fd_, to, offset, 0);
}

Awaitable<Result<std::size_t>> AssembledFile::write(Worker& worker, std::span<const iovec> from,
                                                    std::uint64_t offset) {
  co_return co_await worker.device.writev(fd_, from, offset, 0);
}

Awaitable<Result<std::size_t>> AssembledFile::write_tail(Worker& worker,
                                                         std::span<const std::byte> from,
                                                         std::uint64_t offset) {
  // The flag belongs to the description, and so to every request on it: there is none now.
  const int flags = ::fcntl(fd_, F_GETFL);
  if (flags < 0 || ::fcntl(fd_, F_SETFL, flags & ~O_DIRECT) != 0) co_return errno_code(errno);
  const iovec piece{const_cast<std::byte*>(from.data()), from.size()};
  const std::span<const iovec> pieces(&piece, 1);
  const auto wrote = co_await worker.device.writev(fd_, pieces, offset, 0);
  if (::fcntl(fd_, F_SETFL, flags) != 0) co_return errno_code(errno);
  co_return wrote;
}

Awaitable<Result<>> AssembledFile::sync(Worker& worker, SyncKind kind) {
  co_return co_await sync_durably(worker, fd_, kind, 0, 0);
}

// Room ahead is for a file that grows without holes: of one that does not, a part of a striped file
// say, it would fill them. Judged by what it has lately grown: clients that lag fill theirs soon.
Awaitable<> AssembledFile::grow(Worker& worker, std::uint64_t size, std::uint64_t end,
                                std::uint64_t bytes) {
  if (growths_ == 0) grown_from_ = size;
  written_ += bytes;
  const std::uint64_t grown = end - grown_from_;
  const bool dense = written_ >= grown / 4 * 3;
  if (grown >= largest_step) {
    grown_from_ += grown / 2;
    written_ = std::min(written_, grown) / 2;
  }
  if (!dense) {
    growths_ = std::max(growths_, 1U);
    if (allocated_end_ > size) {
      auto work = [this] { free_ahead(); };
      co_await worker.pool.run(work);
      allocated_end_ = step_ = 0;
    }
    co_return;
  }
  if (++growths_ <= growths_before_allocating || end <= allocated_end_) co_return;
  step_ = std::clamp(step_ * 2, first_step, largest_step);
  // Only for speed: without room ahead the WRITEs allocate, or fail, by themselves.
  const auto allocated = co_await worker.device.allocate(fd_, FALLOC_FL_KEEP_SIZE, end, step_);
  if (allocated.has_value()) allocated_end_ = end + step_;
}

Result<Attributes> AssembledFile::stamp(Did did) {
  std::array<timespec, 2> times{};
  times[0].tv_nsec = UTIME_OMIT;
  times[1].tv_nsec = UTIME_NOW;
  bool set = did == Did::clients_work;
  if (did == Did::servers_work && !invisible_) {
    const std::lock_guard lock(mutex_);
    times[1] = last_.mtime;
    set = true;
  }
  if (set && ::futimens(fd_, times.data()) != 0) return errno_code(errno);
  return attributes_of(fd_);
}

Awaitable<Result<Attributes>> AssembledFile::finish(Worker& worker, Did did) {
  // Clients wait for this: changing to a thread of the pool and back takes longer than the call.
  auto now = stamp(did);
  if (now.has_error() && now.error() == errno_code(EPERM)) {
    // Without CAP_FOWNER: as the server, whose file it may be.
    auto as_server = [this, did] { return stamp(did); };
    now = co_await worker.pool.run(as_server);
  }
  if (now.has_error()) co_return now;
  {
    const std::lock_guard lock(mutex_);
    if (did == Did::clients_work) {
      last_ = *now;
      own_ctime_.reset();
    } else if (did == Did::servers_work && !invisible_) {
      own_ctime_ = now->ctime;
    }
  }
  co_return shown(*now);
}

Attributes AssembledFile::shown(Attributes attributes) const {
  const std::lock_guard lock(mutex_);
  if (own_ctime_ && same_time(attributes.ctime, *own_ctime_)) attributes.ctime = last_.ctime;
  return attributes;
}

void AssembledFile::attributes_set() {
  const auto now = attributes_of(fd_);
  if (now.has_error()) return;
  const std::lock_guard lock(mutex_);
  last_ = *now;
  own_ctime_.reset();
}

// Past the end only: the content does not change. XFS frees there by punching; ext4
// ignores that, and frees by setting the size that the file has.
void AssembledFile::free_ahead() {
  const auto now = attributes_of(fd_);
  if (now.has_error() || allocated_end_ <= now->size) return;
  const auto size = static_cast<off_t>(now->size);
  if (invisible_) {
    ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, size,
                static_cast<off_t>(allocated_end_) - size);
  } else {
    if (::ftruncate(fd_, size) == 0) (void)stamp(Did::servers_work);
  }
}

Result<> AssembledFile::give_up(const ObjectId& id) {
  free_ahead();
  bool late = false;
  if (leased_) {
    // F_GETLEASE cannot tell: it gives what the lease is to become while a break still waits.
    const std::int64_t broken_at = broken_at_.load();
    late = broken_at != 0 && monotonic_seconds() - broken_at >= lease_break_seconds();
    breaks_->forget(fd_);
    leased_ = false;
  }
  given_up_.store(true, std::memory_order_release);
  // The last reference to the description goes: with F_UNLCK alone, an exec of the file would
  // still fail.
  const auto path = context_.opener.open_handle(id, O_PATH);
  const UniqueFd null(path.has_error() ? ::open("/dev/null", O_RDONLY | O_CLOEXEC) : -1);
  const int other = path.has_value() ? path->get() : null.get();
  if (other < 0 || ::dup3(other, fd_, O_CLOEXEC) < 0) return errno_code(errno);
  if (late) return errno_code(ETIMEDOUT);
  return {};
}

}  // namespace selvage::storage
