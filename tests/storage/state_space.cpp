// ALLOCATE, DEALLOCATE and SEEK do what fallocate(2) and lseek(2) do locally; READ into memory of
// its own.
#include "tests/storage/state_fixture.h"

namespace selvage::storage {
namespace {

class StateSpace : public StateTest {
 protected:
  /// A file made behind the server's back, to compare with.
  UniqueFd twin(const Bytes& bytes, mode_t mode = 0644) {
    UniqueFd fd(::open(path_of("twin").c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
    EXPECT_TRUE(fd);
    EXPECT_EQ(::pwrite(fd.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    EXPECT_EQ(::fchmod(fd.get(), mode), 0);
    return fd;
  }
  static Bytes content_of(int fd) {
    Bytes bytes(1 << 21);
    const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), 0);
    EXPECT_GE(got, 0);
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }
  static struct stat status(int fd) {
    struct stat status{};
    EXPECT_EQ(::fstat(fd, &status), 0);
    return status;
  }
  static bool later(const timespec& a, const timespec& b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
  }
};

constexpr int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

TEST_P(StateSpace, AllocateMakesRoomAndMovesTheEnd) {
  const ObjectId id = make("f");
  const Bytes bytes = pattern(10'000, 1);
  const UniqueFd local = twin(bytes);
  ASSERT_EQ(errno_of(write(id, 0, bytes)), 0);
  const auto before = getattr(id);
  const auto after = allocate(id, 5000, 1'000'001);
  ASSERT_EQ(errno_of(after), 0);
  ASSERT_EQ(::fallocate(local.get(), 0, 5000, 1'000'001), 0);
  EXPECT_EQ(after->size, 1'005'001U);
  EXPECT_EQ(after->size, static_cast<std::uint64_t>(status(local.get()).st_size));
  EXPECT_GE(after->used, 1'005'001U);
  EXPECT_TRUE(later(after->mtime, before->mtime));
  EXPECT_TRUE(later(after->ctime, before->ctime));
  const auto now = getattr(id);
  EXPECT_EQ(now->size, after->size);
  EXPECT_TRUE(same_time(now->mtime, after->mtime));
  EXPECT_TRUE(same_time(now->ctime, after->ctime));
  EXPECT_EQ(content(id, 1 << 21), content_of(local.get()));
  // The file goes on from its new end.
  ASSERT_EQ(errno_of(write(id, 1'005'001, bytes)), 0);
  ASSERT_EQ(::pwrite(local.get(), bytes.data(), bytes.size(), 1'005'001), 10'000);
  EXPECT_EQ(content(id, 1 << 21), content_of(local.get()));
  // Inside the file nothing but the times changes.
  const auto inside = allocate(id, 0, 4096);
  ASSERT_EQ(errno_of(inside), 0);
  EXPECT_EQ(inside->size, 1'015'001U);
  EXPECT_TRUE(later(inside->mtime, after->mtime));
  EXPECT_EQ(content(id, 1 << 21), content_of(local.get()));
}

TEST_P(StateSpace, DeallocateMakesAHole) {
  const ObjectId id = make("f");
  const Bytes bytes = pattern(1 << 20, 2);
  const UniqueFd local = twin(bytes);
  for (std::size_t at = 0; at < bytes.size();) {  // Records with ends inside of pages.
    const std::size_t length = std::min<std::size_t>(47'008, bytes.size() - at);
    const Bytes part(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
    ASSERT_EQ(errno_of(write(id, at, part)), 0);
    at += length;
  }
  ASSERT_EQ(errno_of(commit(id)), 0);
  const auto before = getattr(id);
  ASSERT_EQ(::fallocate(local.get(), punch, 5000, 500'000), 0);
  const auto after = deallocate(id, 5000, 500'000);
  ASSERT_EQ(errno_of(after), 0);
  EXPECT_EQ(after->size, bytes.size());
  EXPECT_TRUE(later(after->mtime, before->mtime));
  EXPECT_TRUE(later(after->ctime, before->ctime));
  EXPECT_EQ(content(id, 1 << 21), content_of(local.get()));
  EXPECT_LE(after->used + 490'000, before->used);
  // WRITEs into the hole, its ends in pages that it has cleared in part.
  const Bytes again = pattern(6000, 3);
  for (const off_t at : {off_t{2000}, off_t{60'000}, off_t{503'000}}) {
    ASSERT_EQ(errno_of(write(id, static_cast<std::uint64_t>(at), again)), 0);
    ASSERT_EQ(::pwrite(local.get(), again.data(), again.size(), at), 6000);
  }
  EXPECT_EQ(content(id, 1 << 21), content_of(local.get()));
  // Over the end of the file, and beyond: the size stays.
  for (const off_t at : {off_t{1'000'000}, off_t{1} << 30}) {
    const auto past = deallocate(id, static_cast<std::uint64_t>(at), 1 << 20);
    ASSERT_EQ(errno_of(past), 0);
    EXPECT_EQ(past->size, bytes.size());
    ASSERT_EQ(::fallocate(local.get(), punch, at, 1 << 20), 0);
  }
  ASSERT_EQ(errno_of(commit(id)), 0);
  EXPECT_EQ(content(id, 1 << 21), content_of(local.get()));
}

TEST_P(StateSpace, TheyAreDurableOnReturn) {
  const ObjectId id = make("f");
  ASSERT_EQ(errno_of(write(id, 0, pattern(10'000, 1))), 0);
  ASSERT_EQ(errno_of(commit(id)), 0);
  faults.reset_seen();
  ASSERT_EQ(errno_of(allocate(id, 0, 100'000)), 0);
  EXPECT_EQ(faults.seen(OpKind::sync), 1U);
  ASSERT_EQ(errno_of(deallocate(id, 0, 100'000)), 0);
  EXPECT_EQ(faults.seen(OpKind::sync), 2U);
  for (const Op& op : faults.log()) {
    if (op.kind == OpKind::sync) EXPECT_EQ(op.flags, static_cast<int>(SyncKind::all));
  }
  faults.fail(OpKind::sync, EIO, {.times = 1});
  EXPECT_EQ(errno_of(deallocate(id, 0, 100'000)), EIO);
  EXPECT_EQ(errno_of(deallocate(id, 0, 100'000)), 0);
}

TEST_P(StateSpace, TheyClearSetIdBitsAsLocally) {
  const ObjectId id = make("f", 0644, alice);
  ASSERT_EQ(errno_of(write(id, 0, pattern(10'000, 1), Stability::unstable, alice)), 0);
  SetAttributes set;
  set.mode = 06777;
  const UniqueFd local = twin(pattern(10'000, 1), 06777);
  ASSERT_EQ(::fchown(local.get(), 1001, 1001), 0);
  for (const bool allocates : {true, false}) {
    ASSERT_EQ(errno_of(setattr(alice, id, set)), 0);
    ASSERT_EQ(::fchmod(local.get(), 06777), 0);
    const auto done =
        allocates ? allocate(id, 0, 100'000, alice) : deallocate(id, 0, 100'000, alice);
    ASSERT_EQ(errno_of(done), 0);
    std::thread as_alice([&] {
      const ScopedIdentity identity(alice);
      ASSERT_EQ(::fallocate(local.get(), allocates ? 0 : punch, 0, 100'000), 0);
    });
    as_alice.join();
    EXPECT_EQ(done->mode, status(local.get()).st_mode & 07777U) << allocates;
  }
}

TEST_P(StateSpace, WhoMayWriteMayAllocate) {
  const ObjectId id = make("f", 0644, alice);
  const ObjectId own = make("own", 0444, alice);
  const ObjectId open = make("open", 0666, alice);
  for (const bool allocates : {true, false}) {
    const auto change = [&](const ObjectId& file, const Credentials& who) {
      return errno_of(allocates ? allocate(file, 0, 4096, who) : deallocate(file, 0, 4096, who));
    };
    EXPECT_EQ(change(id, bob), EACCES);
    EXPECT_EQ(change(id, alice), 0);
    EXPECT_EQ(change(own, alice), 0) << "the owner may, as with WRITE";
    EXPECT_EQ(change(open, bob), 0);
  }
  const ObjectId secret = make("secret", 0600, alice);
  ASSERT_EQ(errno_of(write(secret, 0, pattern(100, 1))), 0);
  EXPECT_EQ(errno_of(seek(secret, 0, SeekTo::data, bob)), EACCES);
  EXPECT_EQ(errno_of(seek(secret, 0, SeekTo::data, alice)), 0);
}

TEST_P(StateSpace, WhatTheyRefuse) {
  const ObjectId id = make("f");
  ASSERT_EQ(errno_of(write(id, 0, pattern(10'000, 1))), 0);
  const auto limits = call(root_user, [&](Caller c) { return fs->limits(c, root); });
  for (const bool allocates : {true, false}) {
    const auto change = [&](const ObjectId& file, std::uint64_t offset, std::uint64_t length) {
      return errno_of(allocates ? allocate(file, offset, length)
                                : deallocate(file, offset, length));
    };
    EXPECT_EQ(change(id, 0, 0), EINVAL);
    EXPECT_EQ(change(id, limits->max_file_size, 1), EFBIG);
    EXPECT_EQ(change(id, 1, limits->max_file_size), EFBIG);
    EXPECT_EQ(change(id, ~std::uint64_t{0}, ~std::uint64_t{0}), EFBIG);
    EXPECT_EQ(change(id, 4096, ~std::uint64_t{0}), EFBIG);
    EXPECT_EQ(change(root, 0, 1), EISDIR);
    EXPECT_EQ(change(ObjectId(), 0, 1), ESTALE);
  }
  if (GetParam().xfs) {
    EXPECT_EQ(errno_of(allocate(id, 0, std::uint64_t{1} << 30)), ENOSPC);
    EXPECT_EQ(content(id, 1 << 20), pattern(10'000, 1));
  }
  EXPECT_EQ(getattr(id)->size, 10'000U);
  EXPECT_EQ(errno_of(seek(root, 0, SeekTo::data)), EISDIR);
  EXPECT_EQ(errno_of(seek(ObjectId(), 0, SeekTo::data)), ESTALE);
  options.read_only = true;
  reopen();
  EXPECT_EQ(errno_of(allocate(id, 0, 4096)), EROFS);
  EXPECT_EQ(errno_of(deallocate(id, 0, 4096)), EROFS);
  EXPECT_EQ(seek(id, 0, SeekTo::hole)->offset, 10'000U);
}

TEST_P(StateSpace, SeekFindsWhatLseekFinds) {
  const ObjectId id = make("f");
  // Data, a hole, data whose ends may be in memory only, a hole up to the end.
  ASSERT_EQ(errno_of(write(id, 0, pattern(70'000, 1))), 0);
  ASSERT_EQ(errno_of(write(id, 1'000'000, pattern(3000, 2))), 0);
  ASSERT_EQ(errno_of(set_size(id, 2'000'000)), 0);
  ASSERT_EQ(errno_of(write(id, 500'100, pattern(1000, 3))), 0);
  std::vector<std::uint64_t> offsets{0,         4095,      65'536,    69'999,    70'000,
                                     71'000,    200'000,   500'100,   500'600,   501'100,
                                     999'999,   1'000'000, 1'002'999, 1'003'000, 1'500'000,
                                     1'999'999, 2'000'000, 2'000'001};
  std::vector<Result<SeekResult>> data;
  std::vector<Result<SeekResult>> holes;
  for (const std::uint64_t offset : offsets) {
    data.push_back(seek(id, offset, SeekTo::data));
    holes.push_back(seek(id, offset, SeekTo::hole));
  }
  // Now only: in edge mode assemble a local opener changes how the file is written.
  const UniqueFd local(::open(path_of("f").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(local);
  for (std::size_t n = 0; n < offsets.size(); ++n) {
    const auto offset = static_cast<off_t>(offsets[n]);
    if (offset >= 2'000'000) {
      EXPECT_EQ(errno_of(data[n]), ENXIO) << offset;
      EXPECT_EQ(errno_of(holes[n]), ENXIO) << offset;
      continue;
    }
    ASSERT_EQ(errno_of(data[n]), 0) << offset;
    ASSERT_EQ(errno_of(holes[n]), 0) << offset;
    const off_t to_data = ::lseek(local.get(), offset, SEEK_DATA);
    EXPECT_EQ(data[n]->found, to_data >= 0) << offset;
    EXPECT_EQ(data[n]->eof, to_data < 0) << offset;
    if (to_data >= 0) EXPECT_EQ(data[n]->offset, static_cast<std::uint64_t>(to_data)) << offset;
    if (to_data < 0) EXPECT_EQ(data[n]->offset, 2'000'000U) << offset;
    const off_t to_hole = ::lseek(local.get(), offset, SEEK_HOLE);
    EXPECT_TRUE(holes[n]->found);
    EXPECT_EQ(holes[n]->offset, static_cast<std::uint64_t>(to_hole)) << offset;
    EXPECT_EQ(holes[n]->eof, to_hole == 2'000'000) << offset;
  }
  // What the test is about was there to be found.
  EXPECT_LE(data[6]->offset, 500'100U);
  EXPECT_GT(data[6]->offset, 200'000U);
  EXPECT_FALSE(data[14]->found);
  EXPECT_EQ(errno_of(seek(id, ~std::uint64_t{0}, SeekTo::data)), ENXIO);
}

TEST_P(StateSpace, AFileWithoutHolesHasOneAtItsEnd) {
  const ObjectId id = make("f");
  EXPECT_EQ(errno_of(seek(id, 0, SeekTo::hole)), ENXIO) << "0 is the end of an empty file";
  ASSERT_EQ(errno_of(write(id, 0, pattern(5000, 1))), 0);
  const auto hole = seek(id, 10, SeekTo::hole);
  ASSERT_EQ(errno_of(hole), 0);
  EXPECT_TRUE(hole->found);
  EXPECT_TRUE(hole->eof);
  EXPECT_EQ(hole->offset, 5000U);
  const auto data = seek(id, 10, SeekTo::data);
  ASSERT_EQ(errno_of(data), 0);
  EXPECT_TRUE(data->found);
  EXPECT_FALSE(data->eof);
  EXPECT_EQ(data->offset, 10U);
}

TEST_P(StateSpace, AReadNeedsNoRoomInThePoolIfItSaysSo) {
  const ObjectId id = make("f");
  const Bytes bytes = pattern(100'000, 1);
  ASSERT_EQ(errno_of(write(id, 0, bytes)), 0);
  Worker& worker = runtime->worker(0);
  std::vector<Buffer> all;
  for (std::size_t size = 4 << 20; size >= 4096;) {
    Buffer some = worker.buffers.try_acquire(size);
    if (some)
      all.push_back(std::move(some));
    else
      size /= 2;
  }
  for (const std::uint64_t offset : {0U, 4096U, 5001U, 95'000U}) {
    const auto got = read(id, offset, 10'000, ReadMemory::heap);
    ASSERT_EQ(errno_of(got), 0);
    const auto end = std::min<std::uint64_t>(offset + 10'000, bytes.size());
    const Bytes expected(bytes.begin() + static_cast<std::ptrdiff_t>(offset),
                         bytes.begin() + static_cast<std::ptrdiff_t>(end));
    EXPECT_EQ(bytes_of(*got), expected) << offset;
    EXPECT_EQ(got->eof, end == bytes.size());
    EXPECT_FALSE(got->buffer);
    EXPECT_TRUE(got->heap);
  }
  const auto past = read(id, 200'001, 10, ReadMemory::heap);
  ASSERT_EQ(errno_of(past), 0);
  EXPECT_TRUE(past->data.empty() && past->eof);
}

INSTANTIATE_TEST_SUITE_P(Places, StateSpace, all_places, place_name);

}  // namespace
}  // namespace selvage::storage
