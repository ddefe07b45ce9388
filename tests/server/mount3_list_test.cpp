#include "server/mount3/mount_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace selvage::server::mount3 {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Entry = MountList::Entry;

TEST(MountList, AddsOnceAndRemoves) {
  MountList list;
  list.add({"10.0.0.1", "/a"});
  list.add({"10.0.0.2", "/a"});
  list.add({"10.0.0.1", "/b"});
  list.add({"10.0.0.1", "/a"});
  EXPECT_THAT(list.entries(), ElementsAre(Entry{"10.0.0.2", "/a"}, Entry{"10.0.0.1", "/b"},
                                          Entry{"10.0.0.1", "/a"}));
  list.remove({"10.0.0.1", "/b"});
  list.remove({"10.0.0.9", "/a"});
  EXPECT_THAT(list.entries(), ElementsAre(Entry{"10.0.0.2", "/a"}, Entry{"10.0.0.1", "/a"}));
}

TEST(MountList, RemovesAllOfOneClient) {
  MountList list;
  list.add({"10.0.0.1", "/a"});
  list.add({"10.0.0.2", "/a"});
  list.add({"10.0.0.1", "/b"});
  list.remove_client("10.0.0.1");
  EXPECT_THAT(list.entries(), ElementsAre(Entry{"10.0.0.2", "/a"}));
  list.remove_client("10.0.0.2");
  EXPECT_THAT(list.entries(), IsEmpty());
}

TEST(MountList, IsBoundedAndForgetsTheOldest) {
  MountList list;
  for (std::size_t i = 0; i < MountList::max_entries + 3; ++i) {
    list.add({"10.0.0.1", "/" + std::to_string(i)});
  }
  const auto entries = list.entries();
  ASSERT_EQ(entries.size(), MountList::max_entries);
  EXPECT_EQ(entries.front().path, "/3");
  EXPECT_EQ(entries.back().path, "/" + std::to_string(MountList::max_entries + 2));
}

}  // namespace
}  // namespace selvage::server::mount3
