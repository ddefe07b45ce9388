#include "storage/local/held_files.h"

#include "storage/local/object.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <cerrno>
#include <utility>

namespace selvage::storage {

class HeldFiles::Holder {
 public:
  Holder(std::shared_ptr<HeldFiles> files, const ObjectId& id)
      : files_(std::move(files)), id_(id) {}
  ~Holder() { files_->release(id_); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

 private:
  std::shared_ptr<HeldFiles> files_;
  const ObjectId id_;
};

void HeldFiles::start(Worker& worker, Gone gone) {
  const std::lock_guard lock(mutex_);
  worker_ = &worker;
  gone_ = std::move(gone);
}

Result<std::shared_ptr<void>> HeldFiles::hold(const ObjectId& id, UniqueFd fd) {
  auto kept = std::make_shared<const UniqueFd>(std::move(fd));
  auto holder = std::make_shared<Holder>(shared_from_this(), id);
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || worker_ == nullptr) return errno_code(ESHUTDOWN);
    Entry& entry = files_[id];
    if (!entry.fd) entry.fd = kept;
    ++entry.holders;
  }
  // From here on a REMOVE leaves the file alone; one before may have thrown its data away. So the
  // links are counted now.
  const auto attributes = attributes_of(kept->get());
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(id);
  if (found == files_.end()) return errno_code(ESHUTDOWN);
  if (attributes.has_value() && attributes->nlink != 0) found->second.had_link = true;
  if (!found->second.had_link) return errno_code(ESTALE);
  return std::shared_ptr<void>(std::move(holder));
}

bool HeldFiles::usable(const ObjectId& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(id);
  return found != files_.end() && found->second.had_link;
}

bool HeldFiles::held(const ObjectId& id) const {
  const std::lock_guard lock(mutex_);
  return files_.contains(id);
}

std::shared_ptr<const UniqueFd> HeldFiles::descriptor(const ObjectId& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(id);
  return found == files_.end() ? nullptr : found->second.fd;
}

void HeldFiles::release(const ObjectId& id) {
  std::shared_ptr<const UniqueFd> fd;
  {
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(id);
    if (found == files_.end() || --found->second.holders != 0) return;
    fd = std::move(found->second.fd);
    files_.erase(found);
  }
  // A file that has a name: nothing comes of closing it. Whoever takes the last name from now on
  // sees that nobody holds it.
  const auto attributes = attributes_of(fd->get());
  if (attributes.has_value() && attributes->nlink != 0) return;
  Worker* worker = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    released_.push_back({id, std::move(fd)});
    if (std::exchange(looking_, true)) return;
    worker = worker_;
  }
  // Closing the last descriptor of a file without links frees its space, which can take long.
  boost::asio::co_spawn(worker->context, look_after(shared_from_this()), boost::asio::detached);
}

Awaitable<> HeldFiles::look_after(std::shared_ptr<HeldFiles> self) {
  Worker& worker = *self->worker_;
  std::vector<std::shared_ptr<Suspended>> stoppers;
  for (;;) {
    std::vector<Released> released;
    {
      const std::lock_guard lock(self->mutex_);
      released.swap(self->released_);
      if (released.empty()) {
        self->looking_ = false;
        stoppers.swap(self->stoppers_);
        break;
      }
    }
    for (const Released& one : released) co_await self->gone_(one.id);
    auto let_go = [&] { released.clear(); };
    co_await worker.pool.run(let_go);
  }
  resume_all(stoppers);
}

Awaitable<> HeldFiles::stop(Worker& worker) {
  std::shared_ptr<Suspended> ended;
  std::unordered_map<ObjectId, Entry, ObjectIdHash> files;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    files.swap(files_);
    if (looking_) {
      ended = std::make_shared<Suspended>(worker);
      stoppers_.push_back(ended);
    }
  }
  if (ended) co_await ended->wait();
  auto let_go = [&] { files.clear(); };
  co_await worker.pool.run(let_go);
}

void HeldFiles::abandon() {
  std::unordered_map<ObjectId, Entry, ObjectIdHash> files;
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  files.swap(files_);
}

}  // namespace selvage::storage
