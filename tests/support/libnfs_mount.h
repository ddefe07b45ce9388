// A mount by libnfs, a third party's client: paths, its own RPC, its own idea of UNSTABLE and
// COMMIT.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct nfs_context;
struct nfsfh;

namespace selvage::tests {

/// One NFSv3 connection as root. Throws std::runtime_error with libnfs's reason. Not thread-safe.
class LibnfsMount {
 public:
  LibnfsMount(std::uint16_t port, const std::string& path);
  ~LibnfsMount();
  LibnfsMount(const LibnfsMount&) = delete;
  LibnfsMount& operator=(const LibnfsMount&) = delete;

  nfs_context* context() { return nfs_; }

  class File {
   public:
    File(File&& other) noexcept;
    ~File();
    File& operator=(File&&) = delete;

    /// All of it, in as many calls as it takes.
    void write(std::uint64_t offset, std::string_view data);
    /// Short only at the end of the file.
    std::string read(std::uint64_t offset, std::size_t count);
    void fsync();

   private:
    friend class LibnfsMount;
    File(LibnfsMount& mount, nfsfh* handle) : mount_(&mount), handle_(handle) {}
    LibnfsMount* mount_;
    nfsfh* handle_;
  };

  /// `flags` as open(2): with O_SYNC each WRITE is FILE_SYNC, else UNSTABLE.
  File open(const std::string& path, int flags, int mode = 0644);

  /// Throws unless `status`, what a call of libnfs returned, is not negative.
  int check(int status, const char* what);

 private:
  nfs_context* nfs_;
};

}  // namespace selvage::tests
