// A file in edge mode `assemble` (DESIGN 4): one O_DIRECT description under a write lease, driven
// by a WriteCombiner. Private to storage/local.
#pragma once

#include "storage/local/descriptors.h"
#include "storage/local/lease.h"
#include "storage/write_combiner.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

namespace selvage::storage {

/// The server is the file's only opener as long as the lease holds. Its own work (late write-out,
/// room allocated ahead, trimming) moves no time that a client sees: on XFS because the description
/// is an invisible one, elsewhere because times are put back and ctime is shown as it was.
class AssembledFile final : public CombinedFile {
 public:
  /// Opens the file and takes the lease; `broken` is called when somebody else opens it. Blocks.
  /// EAGAIN: somebody else has it open. EOPNOTSUPP: no O_DIRECT, or no leases, here.
  static Result<std::shared_ptr<AssembledFile>> open(DataContext& context, const ObjectId& id,
                                                     LeaseBreaks::Callback broken);
  AssembledFile(DataContext& context, std::shared_ptr<const Descriptors> open, bool invisible);
  ~AssembledFile() override;

  const std::shared_ptr<const Descriptors>& descriptors() const { return open_; }
  /// Size on disk when it was opened, bytes.
  std::uint64_t size_at_open() const { return size_at_open_; }

  Awaitable<Result<std::size_t>> read(Worker& worker, std::span<const iovec> to,
                                      std::uint64_t offset) override;
  Awaitable<Result<std::size_t>> write(Worker& worker, std::span<const iovec> from,
                                       std::uint64_t offset) override;
  Awaitable<Result<std::size_t>> write_tail(Worker& worker, std::span<const std::byte> from,
                                            std::uint64_t offset) override;
  Awaitable<Result<>> sync(Worker& worker, SyncKind kind) override;
  Awaitable<> grow(Worker& worker, std::uint64_t size, std::uint64_t end,
                   std::uint64_t bytes) override;
  Awaitable<Result<Attributes>> finish(Worker& worker, Did did) override;

  /// What statx(2) says now, with what the server's own work did to it taken back.
  Attributes shown(Attributes attributes) const;

  /// No operation on the description moves a time.
  bool invisible() const { return invisible_; }

  /// give_up() has come so far that others may change the file.
  bool given_up() const { return given_up_.load(std::memory_order_acquire); }

  /// Takes back room allocated ahead, and gives up the description and with it the lease; the
  /// descriptor's number stays valid for statx(2). Nothing of the file is in flight. Blocks.
  Result<> give_up(const ObjectId& id);

  /// After an attribute was set on purpose: that is what is shown from now on.
  void attributes_set();

 private:
  Result<Attributes> stamp(Did did);
  void free_ahead();

  DataContext& context_;
  const std::shared_ptr<const Descriptors> open_;
  const int fd_;
  const bool invisible_;
  std::shared_ptr<LeaseBreaks> breaks_;
  bool leased_ = false;
  std::atomic<bool> given_up_{false};
  std::atomic<std::int64_t> broken_at_{0};  // Seconds, monotonic; 0: nobody has asked for it.
  std::uint64_t size_at_open_ = 0;

  // Of growing, the leader's alone.
  unsigned growths_ = 0;
  std::uint64_t grown_from_ = 0;  // The file's size once,
  std::uint64_t written_ = 0;     // and what was written since.
  std::uint64_t allocated_end_ = 0;
  std::uint64_t step_ = 0;

  mutable std::mutex mutex_;           // Of what follows.
  Attributes last_;                    // As the last operation of a client left them.
  std::optional<timespec> own_ctime_;  // What our own work made of ctime since.
};

}  // namespace selvage::storage
