// Owners as text: RFC 7530, 5.9.
#include "server/nfs4/owner_names.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

namespace selvage::server::nfs4 {
namespace {

class OwnerNamesTest : public ::testing::Test {
 protected:
  NameService service() {
    NameService made;
    made.name = [this](OwnerKind kind, std::uint32_t id) -> std::optional<std::string> {
      ++asked;
      for (const auto& [name, number] : names) {
        if (name.first == kind && number == id) return name.second;
      }
      return std::nullopt;
    };
    made.id = [this](OwnerKind kind, const std::string& name) -> std::optional<std::uint32_t> {
      ++asked;
      const auto found = names.find({kind, name});
      if (found == names.end()) return std::nullopt;
      return found->second;
    };
    return made;
  }

  std::map<std::pair<OwnerKind, std::string>, std::uint32_t> names{
      {{OwnerKind::user, "alice"}, 1000},
      {{OwnerKind::group, "staff"}, 1000},
      {{OwnerKind::user, "17"}, 18},
      {{OwnerKind::user, "who@else"}, 19},
      {{OwnerKind::user, "nobody"}, 65534}};
  int asked = 0;
};

TEST_F(OwnerNamesTest, WithoutADomainNumbers) {
  OwnerNames owners("", service());
  EXPECT_FALSE(owners.has_domain());
  EXPECT_EQ(owners.known_text(OwnerKind::user, 1000), "1000");
  EXPECT_EQ(owners.text(OwnerKind::group, 4294967294U), "4294967294");
  EXPECT_EQ(*owners.id(OwnerKind::user, "1000"), 1000U);
  EXPECT_EQ(*owners.id(OwnerKind::user, "0"), 0U);
  EXPECT_EQ(owners.id(OwnerKind::user, "").status(), xdr::NFS4ERR_INVAL);
  for (const char* wrong : {"alice", "alice@", "@", "alice@example.org", "4294967295", "4294967296",
                            "-1", "+1", "1 ", "0x1"}) {
    EXPECT_EQ(owners.id(OwnerKind::user, wrong).status(), xdr::NFS4ERR_BADOWNER) << wrong;
  }
  EXPECT_EQ(asked, 0);
}

TEST_F(OwnerNamesTest, WithADomainNames) {
  OwnerNames owners("example.org", service());
  EXPECT_EQ(owners.known_text(OwnerKind::user, 1000), std::nullopt);
  EXPECT_EQ(owners.text(OwnerKind::user, 1000), "alice@example.org");
  EXPECT_EQ(owners.known_text(OwnerKind::user, 1000), "alice@example.org");
  EXPECT_EQ(owners.text(OwnerKind::group, 1000), "staff@example.org");
  EXPECT_EQ(*owners.id(OwnerKind::user, "alice@example.org"), 1000U);
  EXPECT_EQ(*owners.id(OwnerKind::user, "alice@EXAMPLE.org"), 1000U);
  EXPECT_EQ(*owners.id(OwnerKind::group, "staff@example.org"), 1000U);
  EXPECT_EQ(*owners.id(OwnerKind::user, "1000"), 1000U);
  for (const std::string& wrong :
       {std::string("alice"), std::string("alice@"), std::string("alice@example.com"),
        std::string("@example.org"), std::string("staff@example.org"),
        std::string("alice\0@example.org", 18), std::string(300, 'a') + "@example.org"}) {
    EXPECT_EQ(owners.id(OwnerKind::user, wrong).status(), xdr::NFS4ERR_BADOWNER) << wrong;
  }
}

// What has no name, or one that would be taken for something else, is sent as a number.
TEST_F(OwnerNamesTest, NamesThatAreNone) {
  OwnerNames owners("example.org", service());
  EXPECT_EQ(owners.text(OwnerKind::user, 7), "7");
  EXPECT_EQ(owners.known_text(OwnerKind::user, 7), "7");
  EXPECT_EQ(owners.text(OwnerKind::user, 18), "18");
  EXPECT_EQ(owners.text(OwnerKind::user, 19), "19");
}

TEST_F(OwnerNamesTest, IsAskedOnceAndRemembersWithinBounds) {
  OwnerNames owners("example.org", service());
  for (int i = 0; i < 3; ++i) {
    owners.text(OwnerKind::user, 1000);
    owners.text(OwnerKind::user, 7);
    EXPECT_TRUE(owners.id(OwnerKind::user, "alice@example.org"));
    EXPECT_FALSE(owners.id(OwnerKind::user, "bob@example.org"));
  }
  EXPECT_EQ(asked, 4);
  for (std::uint32_t id = 100'000; id < 100'000 + OwnerNames::remembered; ++id) {
    owners.text(OwnerKind::user, id);
  }
  EXPECT_EQ(owners.known_text(OwnerKind::user, 1000), std::nullopt);
}

TEST(NameService, TheMachines) {
  const NameService machine = NameService::of_the_machine();
  EXPECT_EQ(machine.name(OwnerKind::user, 0), "root");
  EXPECT_EQ(machine.id(OwnerKind::user, "root"), 0U);
  EXPECT_EQ(machine.name(OwnerKind::group, 0), "root");
  EXPECT_EQ(machine.id(OwnerKind::group, "root"), 0U);
  EXPECT_EQ(machine.id(OwnerKind::user, "no such user here"), std::nullopt);
  EXPECT_EQ(machine.name(OwnerKind::user, 4123456789U), std::nullopt);
}

}  // namespace
}  // namespace selvage::server::nfs4
