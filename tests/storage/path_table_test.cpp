// Where the kernel does not open by handle, descriptors stand in.
#include "storage/local/path_table.h"

#include "tests/support/temp_dir.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <vector>

namespace selvage::storage {
namespace {

ObjectId id_of(std::uint8_t number) {
  const std::array<std::uint8_t, 1> bytes{number};
  return ObjectId(1, bytes);
}

TEST(PathTable, KeepsThoseUsedLastAndThePinned) {
  const TempDir folder;
  const UniqueFd directory(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY));
  PathTable table(3);
  table.add(id_of(0), directory.get(), true);
  for (std::uint8_t i = 1; i <= 2; ++i) table.add(id_of(i), directory.get());
  EXPECT_NE(table.find(id_of(1)), nullptr);
  table.add(id_of(3), directory.get());  // In the place of 2.
  EXPECT_EQ(table.find(id_of(2)), nullptr);
  for (std::uint8_t i = 4; i < 20; ++i) table.add(id_of(i), directory.get());
  EXPECT_NE(table.find(id_of(0)), nullptr);
  EXPECT_EQ(table.find(id_of(1)), nullptr);
  table.remove(id_of(19));
  EXPECT_EQ(table.find(id_of(19)), nullptr);
}

TEST(PathTable, HoldsNoFileOpenForData) {
  const TempDir folder;
  const UniqueFd data(::open((folder / "f").c_str(), O_RDWR | O_CREAT, 0600));
  PathTable table(3);
  table.add(id_of(1), data.get());
  const auto known = table.find(id_of(1));
  ASSERT_NE(known, nullptr);
  EXPECT_NE(::fcntl(known->get(), F_GETFL) & O_PATH, 0);
  struct stat given{};
  struct stat kept{};
  ASSERT_EQ(::fstat(data.get(), &given), 0);
  ASSERT_EQ(::fstat(known->get(), &kept), 0);
  EXPECT_EQ(given.st_ino, kept.st_ino);
}

}  // namespace
}  // namespace selvage::storage
