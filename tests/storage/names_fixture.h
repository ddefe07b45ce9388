// An exported temporary directory and short ways to call its operations, for names_*.cpp.
#pragma once

#include "storage/local/local_filesystem.h"
#include "tests/support/fault_device.h"
#include "tests/support/run_on.h"
#include "tests/support/temp_dir.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace selvage::storage {

inline const Credentials root_user{0, 0, {}};
inline const Credentials alice{1001, 1001, {}};
inline const Credentials bob{1002, 1002, {}};
inline const Credentials carol{1003, 1003, {2000, 2001}};  ///< In two more groups.

inline void PrintTo(const Errc& error, std::ostream* out) {
  *out << make_error_code(error).message();
}

/// 0, or the errno of a failure; -1 for one that is no errno.
template <class T>
int errno_of(const Result<T>& result) {
  if (result) return 0;
  if (result.error().category() != boost::system::system_category()) return -1;
  return result.error().value();
}

template <class T>
bool is(const Result<T>& result, Errc error) {
  return !result && result.error() == make_error_code(error);
}

/// XFS on a sparse file, mounted for as long as this lives; or not, where that cannot be done.
class XfsMount {
 public:
  XfsMount() {
    const std::string quiet = " >/dev/null 2>&1";
    const std::string image = dir_ / "image";
    const std::string point = dir_ / "mnt";
    ::mkdir(point.c_str(), 0755);
    const std::string make = "truncate -s 512M " + image + " && mkfs.xfs -q " + image + quiet;
    const std::string mount = "mount -o loop " + image + " " + point + quiet;
    mounted_ = std::system(make.c_str()) == 0 && std::system(mount.c_str()) == 0;
  }
  ~XfsMount() {
    if (!mounted_) return;
    const std::string unmount = "umount " + dir_ / "mnt";
    if (std::system(unmount.c_str()) != 0) std::abort();
  }
  bool mounted() const { return mounted_; }
  std::string path() const { return dir_ / "mnt"; }

 private:
  TempDir dir_;
  bool mounted_ = false;
};

/// The export is the directory `path`, mode 0777. Everything in it is made as root unless said
/// otherwise.
class Names : public ::testing::Test {
 protected:
  static Runtime::Options runtime_options(FaultScript& faults) {
    Runtime::Options options;
    options.workers = 2;
    options.pool_threads = 8;
    options.buffer_bytes = std::uint64_t{4} << 20U;
    options.wrap_device = faults.wrapper();
    return options;
  }

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    old_umask_ = ::umask(0);
    export_path = base() + "/export";
    ASSERT_EQ(::mkdir(export_path.c_str(), 0777), 0);
    runtime = std::make_unique<Runtime>(runtime_options(faults));
    reopen();
  }
  void TearDown() override {
    if (!fs) return;
    auto close = [&] { return fs->close(runtime->worker(0)); };
    EXPECT_EQ(errno_of(run_on(runtime->worker(0), close)), 0);
    fs.reset();
    runtime.reset();
    ::umask(old_umask_);
    std::filesystem::remove_all(export_path);
  }

  /// The directory that the export is made in.
  virtual std::string base() { return temp.path(); }

  void reopen() {
    if (fs) {
      auto close = [&] { return fs->close(runtime->worker(0)); };
      EXPECT_EQ(errno_of(run_on(runtime->worker(0), close)), 0);
      fs.reset();
    }
    auto opened = LocalFileSystem::open(export_path, options, *runtime);
    ASSERT_EQ(errno_of(opened), 0);
    fs = std::move(*opened);
    root = fs->root();
  }

  std::string path_of(const std::string& name) const { return export_path + "/" + name; }

  template <class Op>
  auto call(const Credentials& who, Op op) {
    Worker& worker = runtime->worker(0);
    auto job = [&] { return op(Caller{worker, who}); };
    return run_on(worker, job);
  }

  Result<Attributes> getattr(const ObjectId& id) {
    return call(root_user, [&](Caller c) { return fs->getattr(c, id); });
  }
  Result<Attributes> setattr(const Credentials& who, const ObjectId& id, const SetAttributes& set,
                             std::optional<timespec> guard = std::nullopt) {
    return call(who, [&](Caller c) { return fs->setattr(c, id, set, guard); });
  }
  Result<AccessResult> access(const Credentials& who, const ObjectId& id) {
    return call(who, [&](Caller c) { return fs->access(c, id); });
  }
  Result<LookupResult> lookup(const Credentials& who, const ObjectId& dir,
                              const std::string& name) {
    return call(who, [&](Caller c) { return fs->lookup(c, dir, name); });
  }
  Result<ReadlinkResult> readlink(const Credentials& who, const ObjectId& id) {
    return call(who, [&](Caller c) { return fs->readlink(c, id); });
  }
  Result<CreateResult> create(const Credentials& who, const ObjectId& dir, const std::string& name,
                              const CreateRequest& request) {
    return call(who, [&](Caller c) { return fs->create(c, dir, name, request); });
  }
  Result<CreateResult> create(const Credentials& who, const ObjectId& dir, const std::string& name,
                              std::uint32_t mode = 0644, CreateMode how = CreateMode::guarded) {
    CreateRequest request;
    request.mode = how;
    request.attributes.mode = mode;
    return create(who, dir, name, request);
  }
  Result<CreateResult> create_exclusive(const Credentials& who, const std::string& name,
                                        std::uint64_t verifier) {
    CreateRequest request;
    request.mode = CreateMode::exclusive;
    request.verifier = verifier;
    return create(who, root, name, request);
  }
  Result<CreateResult> mkdir(const Credentials& who, const ObjectId& dir, const std::string& name,
                             std::uint32_t mode = 0755) {
    SetAttributes set;
    set.mode = mode;
    return mkdir(who, dir, name, set);
  }
  Result<CreateResult> mkdir(const Credentials& who, const ObjectId& dir, const std::string& name,
                             const SetAttributes& set) {
    return call(who, [&](Caller c) { return fs->mkdir(c, dir, name, set); });
  }
  Result<CreateResult> symlink(const Credentials& who, const ObjectId& dir, const std::string& name,
                               const std::string& target, const SetAttributes& set = {}) {
    return call(who, [&](Caller c) { return fs->symlink(c, dir, name, target, set); });
  }
  Result<CreateResult> mknod(const Credentials& who, const ObjectId& dir, const std::string& name,
                             const MknodRequest& request) {
    return call(who, [&](Caller c) { return fs->mknod(c, dir, name, request); });
  }
  Result<RemoveResult> remove(const Credentials& who, const ObjectId& dir,
                              const std::string& name) {
    return call(who, [&](Caller c) { return fs->remove(c, dir, name); });
  }
  Result<RemoveResult> rmdir(const Credentials& who, const ObjectId& dir, const std::string& name) {
    return call(who, [&](Caller c) { return fs->rmdir(c, dir, name); });
  }
  Result<RenameResult> rename(const Credentials& who, const ObjectId& from,
                              const std::string& from_name, const ObjectId& to,
                              const std::string& to_name) {
    return call(who, [&](Caller c) { return fs->rename(c, from, from_name, to, to_name); });
  }
  Result<LinkResult> link(const Credentials& who, const ObjectId& file, const ObjectId& dir,
                          const std::string& name) {
    return call(who, [&](Caller c) { return fs->link(c, file, dir, name); });
  }
  Result<ReaddirResult> readdir(const Credentials& who, const ObjectId& dir, std::uint64_t cookie,
                                bool with_nodes, const EntrySink& sink) {
    return call(who, [&](Caller c) { return fs->readdir(c, dir, cookie, with_nodes, sink); });
  }

  /// Made behind the server's back.
  void write_file(const std::string& name, const std::string& text) {
    std::ofstream(path_of(name)) << text;
  }

  TempDir temp;
  FaultScript faults;
  ExportOptions options;
  std::string export_path;
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<LocalFileSystem> fs;
  ObjectId root;

 private:
  mode_t old_umask_ = 0;
};

}  // namespace selvage::storage
