// XFS on an emulated 4Kn device in memory, for the length of a test program.
#pragma once

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace selvage::storage {

/// Needs root, loop devices and mkfs.xfs; ok() is false without. Mount, loop device and image are
/// let go of as soon as they are in use: the kernel removes them with the last descriptor, however
/// the program ends.
class XfsOn4kn {
 public:
  explicit XfsOn4kn(unsigned sector_size = 4096) {
    std::string image = "/dev/shm/selvage-test-XXXXXX";
    const int fd = ::mkstemp(image.data());
    if (fd < 0) return;
    const bool sized = ::ftruncate(fd, off_t{512} << 20) == 0;
    ::close(fd);
    std::string mount_point = "/tmp/selvage-test-XXXXXX";
    if (sized && ::mkdtemp(mount_point.data()) != nullptr) {
      const std::string loop =
          output("losetup -f --show --sector-size " + std::to_string(sector_size) +
                 " --direct-io=on " + image + " 2>/dev/null");
      if (!loop.empty()) {
        if (run("mkfs.xfs -q -f " + loop) && run("mount " + loop + " " + mount_point)) {
          root_ = ::open(mount_point.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
          ::umount2(mount_point.c_str(), MNT_DETACH);
        }
        run("losetup -d " + loop);
      }
      ::rmdir(mount_point.c_str());
    }
    ::unlink(image.c_str());
  }
  ~XfsOn4kn() {
    if (root_ >= 0) ::close(root_);
  }
  XfsOn4kn(const XfsOn4kn&) = delete;
  XfsOn4kn& operator=(const XfsOn4kn&) = delete;

  bool ok() const { return root_ >= 0; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(root_); }

 private:
  static bool run(const std::string& command) {
    return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
  }
  static std::string output(const std::string& command) {
    std::string text;
    std::FILE* pipe = ::popen(command.c_str(), "r");
    if (pipe == nullptr) return text;
    for (int c = std::fgetc(pipe); c != EOF && c != '\n'; c = std::fgetc(pipe)) {
      text += static_cast<char>(c);
    }
    ::pclose(pipe);
    return text;
  }
  int root_ = -1;
};

}  // namespace selvage::storage
