#include "server/mount3/path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace selvage::server::mount3 {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(MountPath, Normalised) {
  EXPECT_EQ(normalised("/"), "/");
  EXPECT_EQ(normalised("///"), "/");
  EXPECT_EQ(normalised("/srv/data"), "/srv/data");
  EXPECT_EQ(normalised("/srv/data/"), "/srv/data");
  EXPECT_EQ(normalised("//srv///data//"), "/srv/data");
  EXPECT_EQ(normalised("/./srv/./data/."), "/srv/data");
  EXPECT_EQ(normalised("/srv/.../..data"), "/srv/.../..data");
}

TEST(MountPath, DotDotStaysBelowTheTop) {
  EXPECT_EQ(normalised("/srv/data/.."), "/srv");
  EXPECT_EQ(normalised("/srv/../etc/passwd"), "/etc/passwd");
  EXPECT_EQ(normalised("/.."), "/");
  EXPECT_EQ(normalised("/../../../etc"), "/etc");
  EXPECT_EQ(normalised("/srv/../.."), "/");
}

TEST(MountPath, RefusesWhatIsNoPath) {
  EXPECT_EQ(normalised(""), std::nullopt);
  EXPECT_EQ(normalised("srv"), std::nullopt);
  EXPECT_EQ(normalised("./srv"), std::nullopt);
  EXPECT_EQ(normalised(std::string_view("/srv\0/data", 10)), std::nullopt);
}

TEST(MountPath, Names) {
  EXPECT_THAT(names_of(""), IsEmpty());
  EXPECT_THAT(names_of("/"), IsEmpty());
  EXPECT_THAT(names_of("a"), ElementsAre("a"));
  EXPECT_THAT(names_of("a/b//c/"), ElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace selvage::server::mount3
