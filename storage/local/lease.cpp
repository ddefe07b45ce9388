#include "storage/local/lease.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <vector>

#include "storage/unique_fd.h"

namespace selvage::storage {
namespace {

int break_signal() {
  return SIGRTMIN + 4;
}

// SIGIO comes instead, without a descriptor, once the queue of real-time signals is full.
sigset_t lease_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, break_signal());
  ::sigaddset(&set, SIGIO);
  return set;
}

}  // namespace

void block_lease_signals() {
  const sigset_t set = lease_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

struct LeaseBreaks::Impl {
  UniqueFd signals;
  UniqueFd stop;
  std::mutex mutex;  // Held while callbacks run, so that forget() is final.
  std::unordered_map<int, Callback> leases;
  std::thread thread;

  void run() {
    std::array<pollfd, 2> wait{{{signals.get(), POLLIN, 0}, {stop.get(), POLLIN, 0}}};
    for (;;) {
      if (::poll(wait.data(), wait.size(), -1) < 0) continue;
      if (wait[1].revents != 0) return;
      std::array<signalfd_siginfo, 16> got{};
      const ssize_t n = ::read(signals.get(), got.data(), sizeof got);
      if (n <= 0) continue;
      const std::lock_guard lock(mutex);
      for (std::size_t i = 0; i < static_cast<std::size_t>(n) / sizeof(signalfd_siginfo); ++i) {
        if (got[i].ssi_signo == static_cast<std::uint32_t>(break_signal())) {
          const auto found = leases.find(got[i].ssi_fd);
          if (found != leases.end()) found->second();
        } else {
          look_at_all();
        }
      }
    }
  }

  void look_at_all() {
    for (const auto& [fd, broken] : leases) {
      if (!held(fd)) broken();
    }
  }
};

std::shared_ptr<LeaseBreaks> LeaseBreaks::instance() {
  static std::mutex mutex;
  static std::weak_ptr<LeaseBreaks> current;
  const std::lock_guard lock(mutex);
  auto breaks = current.lock();
  if (!breaks) {
    breaks = std::shared_ptr<LeaseBreaks>(new LeaseBreaks());
    current = breaks;
  }
  return breaks;
}

LeaseBreaks::LeaseBreaks() : impl_(std::make_unique<Impl>()) {
  block_lease_signals();
  const sigset_t set = lease_signals();
  impl_->signals = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  impl_->stop = UniqueFd(::eventfd(0, EFD_CLOEXEC));
  if (!impl_->signals || !impl_->stop) {
    throw std::system_error(errno, std::system_category(), "signalfd");
  }
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}

LeaseBreaks::~LeaseBreaks() {
  const std::uint64_t one = 1;
  while (::write(impl_->stop.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  impl_->thread.join();
}

Result<> LeaseBreaks::take(int fd, Callback broken) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->leases[fd] = std::move(broken);
  }
  // The process is the owner: a lease of a thread that ends has nobody to be told of its break.
  if (::fcntl(fd, F_SETSIG, break_signal()) != 0 || ::fcntl(fd, F_SETLEASE, F_WRLCK) != 0 ||
      ::fcntl(fd, F_SETOWN, ::getpid()) != 0) {
    const ErrorCode error = errno_code(errno);
    ::fcntl(fd, F_SETLEASE, F_UNLCK);
    forget(fd);
    return error;
  }
  return {};
}

void LeaseBreaks::forget(int fd) {
  const std::lock_guard lock(impl_->mutex);
  impl_->leases.erase(fd);
}

bool LeaseBreaks::held(int fd) {
  return ::fcntl(fd, F_GETLEASE) == F_WRLCK;
}

}  // namespace selvage::storage
