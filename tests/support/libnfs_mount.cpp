#include "tests/support/libnfs_mount.h"

#include <nfsc/libnfs.h>

#include <fcntl.h>

#include <algorithm>
#include <stdexcept>

namespace selvage::tests {

LibnfsMount::LibnfsMount(std::uint16_t port, const std::string& path) : nfs_(nfs_init_context()) {
  if (nfs_ == nullptr) throw std::runtime_error("nfs_init_context");
  const std::string ports = std::to_string(port);
  const std::string url =
      "nfs://127.0.0.1" + path + "?version=3&nfsport=" + ports + "&mountport=" + ports;
  nfs_url* parsed = nfs_parse_url_dir(nfs_, url.c_str());
  if (parsed == nullptr) throw std::runtime_error(std::string("url: ") + nfs_get_error(nfs_));
  const int status = nfs_mount(nfs_, parsed->server, parsed->path);
  nfs_destroy_url(parsed);
  if (status < 0) {
    const std::string reason = nfs_get_error(nfs_);
    nfs_destroy_context(nfs_);
    throw std::runtime_error("mount " + path + ": " + reason);
  }
}

LibnfsMount::~LibnfsMount() {
  nfs_destroy_context(nfs_);
}

int LibnfsMount::check(int status, const char* what) {
  if (status < 0) throw std::runtime_error(std::string(what) + ": " + nfs_get_error(nfs_));
  return status;
}

LibnfsMount::File LibnfsMount::open(const std::string& path, int flags, int mode) {
  nfsfh* handle = nullptr;
  if ((flags & O_CREAT) != 0) {
    check(nfs_create(nfs_, path.c_str(), flags, mode, &handle), "create");
  } else {
    check(nfs_open(nfs_, path.c_str(), flags, &handle), "open");
  }
  return {*this, handle};
}

LibnfsMount::File::File(File&& other) noexcept : mount_(other.mount_), handle_(other.handle_) {
  other.handle_ = nullptr;
}

LibnfsMount::File::~File() {
  if (handle_ != nullptr) nfs_close(mount_->nfs_, handle_);
}

void LibnfsMount::File::write(std::uint64_t offset, std::string_view data) {
  while (!data.empty()) {
    const int n =
        mount_->check(nfs_pwrite(mount_->nfs_, handle_, offset, data.size(), data.data()), "write");
    if (n == 0) throw std::runtime_error("write: nothing written");
    offset += static_cast<std::uint64_t>(n);
    data.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string LibnfsMount::File::read(std::uint64_t offset, std::size_t count) {
  std::string data(count, '\0');
  std::size_t done = 0;
  while (done < count) {
    const int n = mount_->check(
        nfs_pread(mount_->nfs_, handle_, offset + done, count - done, data.data() + done), "read");
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  data.resize(done);
  return data;
}

void LibnfsMount::File::fsync() {
  mount_->check(nfs_fsync(mount_->nfs_, handle_), "fsync");
}

}  // namespace selvage::tests
