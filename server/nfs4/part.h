// NFSv4 as a part of the serving process: state, recovery records, name space, clock.
#pragma once

#include "server/config.h"
#include "server/exports.h"
#include "server/nfs4/service.h"
#include "server/rpc/program.h"
#include "storage/handle_codec.h"
#include "storage/worker.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace selvage::server::nfs4 {

/// Made and ended on one thread that is not a worker's. Outlives the RPC server; the runtime
/// outlives it.
class Part {
 public:
  /// Opens the recovery records in the state directory; the error names the file. Blocks.
  static Parsed<std::unique_ptr<Part>> make(const Config& config,
                                            std::shared_ptr<const ExportTable> exports,
                                            const storage::HandleCodec& handles,
                                            storage::Runtime& runtime);
  ~Part();
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  rpc::Program program();
  /// For rpc::Options.
  std::function<void(std::uint64_t)> connection_closed();
  const Service& service() const;

  /// Takes a client's opens and locks away, as for an administrator; the client is told so. What it
  /// had locked is free in the kernel when this returns. False: there is no such client. Blocks;
  /// not on a worker.
  bool evict(std::uint64_t client);
  void end_grace();
  /// @pre not shorter than the one before
  void lengthen_lease(std::uint32_t seconds);
  /// For COMPOUNDs to come. Blocks.
  void replace(std::shared_ptr<const ExportTable> exports);
  /// State::drop_export().
  void drop_export(std::uint32_t id);

  /// The clock stands still from here on. After the last request, before the runtime stops.
  void stop();

 private:
  struct Impl;
  explicit Part(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace selvage::server::nfs4
