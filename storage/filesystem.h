// One exported file system behind one interface, in terms of no protocol.
//
// Every operation is judged by the kernel under the caller's identity. Operations that change a
// name or an attribute are durable when they return (unless the export says sync=no). Objects are
// named by ObjectId; one that is gone gives ESTALE, never ENOENT.
#pragma once

#include "storage/aligned_memory.h"
#include "storage/attributes.h"
#include "storage/buffer_pool.h"
#include "storage/counters.h"
#include "storage/credentials.h"
#include "storage/io_device.h"
#include "storage/object_id.h"
#include "storage/worker.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace selvage::storage {

/// Who calls, and on which worker. Valid for the length of the call.
struct Caller {
  Worker& worker;
  const Credentials& credentials;
};

/// Same values as RFC 1813 stable_how.
enum class Stability : std::uint8_t { unstable = 0, data_sync = 1, file_sync = 2 };

struct Node {
  ObjectId id;
  Attributes attributes;
};

struct LookupResult {
  Node node;
  Attributes directory;
};

/// `directory_before` and the like: as the operation found the directory. Not atomic with the
/// change.
struct CreateResult {
  Node node;
  Attributes directory;
  Attributes directory_before;
  std::shared_ptr<void> hold;  ///< CreateRequest::hold
};

struct RemoveResult {
  Attributes directory;
  Attributes directory_before;
};

struct LinkResult {
  Attributes file;
  Attributes directory;
  Attributes directory_before;
};

struct RenameResult {
  Attributes from;
  Attributes to;
  Attributes from_before;
  Attributes to_before;
};

struct ReadlinkResult {
  std::string target;
  Attributes attributes;
};

struct AccessResult {
  bool read, write, execute;  ///< As faccessat2(2) says; execute is search for a directory.
  Attributes attributes;
};

enum class CreateMode : std::uint8_t { unchecked, guarded, exclusive };

struct CreateRequest {
  CreateMode mode = CreateMode::unchecked;
  SetAttributes attributes;    ///< Not with exclusive.
  std::uint64_t verifier = 0;  ///< With exclusive: all 64 bits are kept with the file.
  /// Not with exclusive: a file that the call makes is held at once, as by FileSystem::hold().
  bool hold = false;
};

struct MknodRequest {
  FileType type = FileType::fifo;  ///< block, character, socket or fifo.
  SetAttributes attributes;
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
};

struct DirectoryEntry {
  std::uint64_t fileid = 0;
  std::string name;
  std::uint64_t cookie = 0;  ///< The file system's own: where the next READDIR goes on.
  std::optional<Node> node;  ///< Only if asked for and to be had.
};

/// Called on a pool thread for each entry; false if the entry no longer fits (it is then not
/// consumed, and the listing ends without end-of-directory).
using EntrySink = std::function<bool(DirectoryEntry&&)>;

struct ReaddirResult {
  bool end = false;  ///< No entries after the last one given to the sink.
  Attributes directory;
};

struct FileSystemUsage {
  std::uint64_t total_bytes, free_bytes, available_bytes;
  std::uint64_t total_files, free_files, available_files;
};

struct FileSystemLimits {
  std::uint64_t max_file_size;
  std::uint32_t max_name;  ///< Bytes.
  std::uint32_t max_links;
};

struct WriteRequest {
  std::uint64_t offset = 0;
  /// The payload. O_DIRECT-able without a copy where its address is congruent with `offset` modulo
  /// the page size; elsewhere the engine copies it once.
  std::span<const std::byte> data;
  Stability stability = Stability::unstable;
};

struct WriteResult {
  std::size_t count = 0;  ///< Bytes written, contiguous from the offset.
  Stability committed = Stability::unstable;
  std::uint64_t verifier = 0;
  Attributes after;
};

/// Where a READ's data lies.
enum class ReadMemory : std::uint8_t {
  pool,  ///< The buffer pool; waits for room there. The caller holds nothing of the pool.
  heap,  ///< Plain memory, for callers who hold a buffer of the pool already: two that wait for a
         ///< second one could wait for each other. The caller bounds how many there are.
};

struct ReadResult {
  Buffer buffer;                        ///< Owns the data, or
  std::unique_ptr<AlignedMemory> heap;  ///< this does.
  std::span<const std::byte> data;      ///< Inside one of them.
  bool eof = false;
  Attributes after;
};

struct CommitResult {
  std::uint64_t verifier = 0;
  Attributes after;
};

/// RFC 7862 data_content4.
enum class SeekTo : std::uint8_t { data, hole };

struct SeekResult {
  bool found = false;        ///< Never false for a hole: one begins at the end of every file.
  std::uint64_t offset = 0;  ///< Where it begins, bytes; the size of the file if none was found.
  bool eof = false;          ///< The offset is the end of the file.
};

/// What a file system's data path holds at this moment.
struct DataGauges {
  std::uint64_t open_files = 0;
  std::uint64_t open_files_limit = 0;
  std::uint64_t edge_bytes = 0;  ///< Of edge pages in memory (edge mode `assemble`).
  std::uint64_t edge_bytes_limit = 0;
  std::uint64_t boundary_pages = 0;            ///< In play (edge mode `pagecache`).
  std::uint64_t boundary_pages_in_flight = 0;  ///< Of those, with a writer in flight.
  std::uint64_t boundary_pages_limit = 0;
};

/// The boundary pages of one open file.
struct FileEdges {
  std::uint64_t key = 0;     ///< Names the open file in probes (probes.h).
  std::uint64_t fileid = 0;  ///< Inode number.
  std::string path;          ///< On this machine, as the kernel knows it now; empty: it does not.
  bool assembled = false;    ///< The pages are edge pages; otherwise pages of the page cache.
  std::uint64_t pages = 0;
  std::uint64_t dirty_bytes = 0;  ///< Assembled: not on disk yet.
  std::uint64_t in_flight = 0;    ///< Otherwise: pages with a writer in flight.
};

/// A byte range's lock as the kernel has it for local processes.
enum class KernelLock : std::uint8_t { none, shared, exclusive };

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual ObjectId root() const = 0;
  virtual const DataCounters& counters() const = 0;
  /// Any thread.
  virtual DataGauges gauges() const = 0;
  /// At most `most` open files with boundary pages, those with the most pages first. A few system
  /// calls for each: not on a worker.
  virtual std::vector<FileEdges> edges(std::size_t most) const = 0;

  virtual Awaitable<Result<Attributes>> getattr(Caller caller, ObjectId object) = 0;
  /// With a guard: Errc::not_sync, and nothing changed, unless ctime equals it.
  virtual Awaitable<Result<Attributes>> setattr(Caller caller, ObjectId object, SetAttributes set,
                                                std::optional<timespec> guard_ctime) = 0;
  virtual Awaitable<Result<AccessResult>> access(Caller caller, ObjectId object) = 0;
  virtual Awaitable<Result<LookupResult>> lookup(Caller caller, ObjectId directory,
                                                 std::string name) = 0;
  virtual Awaitable<Result<ReadlinkResult>> readlink(Caller caller, ObjectId object) = 0;
  virtual Awaitable<Result<CreateResult>> create(Caller caller, ObjectId directory,
                                                 std::string name, CreateRequest request) = 0;
  virtual Awaitable<Result<CreateResult>> mkdir(Caller caller, ObjectId directory, std::string name,
                                                SetAttributes attributes) = 0;
  virtual Awaitable<Result<CreateResult>> symlink(Caller caller, ObjectId directory,
                                                  std::string name, std::string target,
                                                  SetAttributes attributes) = 0;
  virtual Awaitable<Result<CreateResult>> mknod(Caller caller, ObjectId directory, std::string name,
                                                MknodRequest request) = 0;
  /// remove: anything but a directory.
  virtual Awaitable<Result<RemoveResult>> remove(Caller caller, ObjectId directory,
                                                 std::string name) = 0;
  virtual Awaitable<Result<RemoveResult>> rmdir(Caller caller, ObjectId directory,
                                                std::string name) = 0;
  virtual Awaitable<Result<RenameResult>> rename(Caller caller, ObjectId from,
                                                 std::string from_name, ObjectId to,
                                                 std::string to_name) = 0;
  virtual Awaitable<Result<LinkResult>> link(Caller caller, ObjectId file, ObjectId directory,
                                             std::string name) = 0;
  /// Entries after `cookie` (0: from the start), "." and ".." included. with_nodes: READDIRPLUS.
  virtual Awaitable<Result<ReaddirResult>> readdir(Caller caller, ObjectId directory,
                                                   std::uint64_t cookie, bool with_nodes,
                                                   EntrySink sink) = 0;
  virtual Awaitable<Result<FileSystemUsage>> usage(Caller caller, ObjectId object) = 0;
  virtual Awaitable<Result<FileSystemLimits>> limits(Caller caller, ObjectId object) = 0;

  /// At most count bytes (> 0 in the buffer only if there are any). eof is exact. ENOMEM.
  virtual Awaitable<Result<ReadResult>> read(Caller caller, ObjectId file, std::uint64_t offset,
                                             std::uint32_t count, ReadMemory memory) = 0;
  /// The payload memory must stay valid until this returns. EFBIG past 2^63-1.
  virtual Awaitable<Result<WriteResult>> write(Caller caller, ObjectId file,
                                               WriteRequest request) = 0;
  /// count 0: to the end of the file.
  virtual Awaitable<Result<CommitResult>> commit(Caller caller, ObjectId file, std::uint64_t offset,
                                                 std::uint32_t count) = 0;

  /// Keeps a regular file usable by its ObjectId, though it may lose its last link (nlink is 0
  /// then), for as long as the returned object lives (NFSv4 OPEN). Once the last one of a file
  /// without links is gone, the file is ESTALE and its space becomes free. May be released on any
  /// thread, which costs it a statx(2) and a close(2), and after close(). Costs a descriptor per
  /// file held; the caller bounds how many there are. EISDIR, EINVAL (neither regular file nor
  /// directory), ESTALE, EMFILE.
  virtual Awaitable<Result<std::shared_ptr<void>>> hold(Caller caller, ObjectId file) = 0;

  /// RFC 7862 15.1: [offset, offset + length) has room on the device; the file grows if it ends
  /// before. Judged like a WRITE; moves mtime and ctime; durable on return like setattr. EINVAL
  /// for length 0, EFBIG, ENOSPC, EROFS, EOPNOTSUPP.
  virtual Awaitable<Result<Attributes>> allocate(Caller caller, ObjectId file, std::uint64_t offset,
                                                 std::uint64_t length) = 0;
  /// RFC 7862 15.4: the same range becomes a hole, and reads as zeroes; the size stays.
  virtual Awaitable<Result<Attributes>> deallocate(Caller caller, ObjectId file,
                                                   std::uint64_t offset, std::uint64_t length) = 0;
  /// RFC 7862 15.11, lseek(2) SEEK_DATA and SEEK_HOLE: where the first data or hole at or after
  /// `offset` begins. Judged like a READ. ENXIO at or beyond the end of the file.
  virtual Awaitable<Result<SeekResult>> seek(Caller caller, ObjectId file, std::uint64_t offset,
                                             SeekTo what) = 0;

  /// Makes [offset, offset + length) (length 0: to the end of all files) of the kernel's lock on
  /// the file what is said, whatever it was before: the union of this server's byte-range locks,
  /// for local processes to see (an OFD lock, fcntl(2)). Nobody's permission is checked. The caller
  /// serialises the calls for one file and bounds the ranges. The locks last until taken back here,
  /// the file is forgotten, or close(). EAGAIN, and nothing changed: a local process has a lock in
  /// the way. EROFS for `exclusive` on a read-only export. Offsets beyond 2^63-1, which no local
  /// process can lock, are left out.
  virtual Awaitable<Result<>> lock_range(Worker& worker, ObjectId file, std::uint64_t offset,
                                         std::uint64_t length, KernelLock lock) = 0;

  /// Everything acknowledged so far, what memory holds included, is in the files and durable when
  /// this returns. Every file is tried; the first error is returned, and its file's clients will
  /// learn of it too.
  virtual Awaitable<Result<>> sync(Worker& worker) = 0;

  /// Syncs and closes every file; errors change the verifier and are returned (the first).
  virtual Awaitable<Result<>> close(Worker& worker) = 0;
};

}  // namespace selvage::storage
