// Coroutines of several workers that wait for one event: no condition variables, one post per
// worker however many wait on it.
#pragma once

#include "storage/parked.h"
#include "storage/worker.h"

#include <memory>
#include <optional>
#include <vector>

namespace selvage::storage {

/// One waiting coroutine. Shared by the coroutine and by whoever will resume it; derive from it to
/// hand a value over (written before resume_all(), read after wait()).
class Suspended {
 public:
  explicit Suspended(Worker& worker) : worker_(worker) {}
  virtual ~Suspended() = default;
  Suspended(const Suspended&) = delete;
  Suspended& operator=(const Suspended&) = delete;

  Worker& worker() const { return worker_; }

  /// Returns once resumed, at once if that was before. Once, on the worker's own thread.
  Awaitable<> wait();

 private:
  template <class T>
  friend void resume_all(const std::vector<std::shared_ptr<T>>& waiting);
  static void post_resume(const std::vector<std::shared_ptr<Suspended>>& waiting);
  void resume();

  Worker& worker_;
  bool resumed_ = false;  // This and the coroutine: the worker's own thread only.
  std::optional<Parked> coroutine_;
};

/// Resumes each on its own worker. Any thread; each at most once.
template <class T>
void resume_all(const std::vector<std::shared_ptr<T>>& waiting) {
  Suspended::post_resume({waiting.begin(), waiting.end()});
}

}  // namespace selvage::storage
