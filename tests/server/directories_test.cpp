// Names of clients and groups of users: what is asked when, and what is remembered.
#include "server/client_directory.h"
#include "server/group_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <vector>

namespace selvage::server {
namespace {

namespace ip = boost::asio::ip;
using ::testing::ElementsAre;

/// A name service of the test's own, with a count of questions.
struct FakeNames {
  std::map<std::string, std::vector<std::string>> reverse;
  std::map<std::string, std::vector<std::string>> forward;
  std::map<std::string, std::vector<std::string>> netgroups;
  std::atomic<bool> down{false};
  std::atomic<int> questions{0};

  Resolver resolver() {
    Resolver made;
    made.names = [this](const ip::address& address) -> std::optional<std::vector<std::string>> {
      ++questions;
      if (down) return std::nullopt;
      return reverse[address.to_string()];
    };
    made.addresses = [this](const std::string& host) -> std::optional<std::vector<ip::address>> {
      ++questions;
      if (down) return std::nullopt;
      std::vector<ip::address> found;
      for (const auto& text : forward[host]) found.push_back(ip::make_address(text));
      return found;
    };
    made.in_netgroup = [this](const std::string& group, const std::string& host) {
      const auto& members = netgroups[group];
      return std::ranges::find(members, host) != members.end();
    };
    return made;
  }
};

void identify(ClientDirectory& directory, const std::string& client) {
  boost::asio::io_context context;
  boost::asio::co_spawn(context, directory.identify(ip::make_address(client)),
                        boost::asio::detached);
  context.run();
}

std::vector<ClientRule> rules(const std::vector<std::string>& texts) {
  std::vector<ClientRule> made;
  for (const auto& text : texts) made.push_back(*ClientRule::parse(text));
  return made;
}

class Directory : public ::testing::Test {
 protected:
  bool matches(const std::string& rule, const std::string& client) const {
    const auto address = ip::make_address(client);
    return ClientRule::parse(rule)->matches(address, directory_.find(address).get());
  }
  FakeNames names_;
  ClientDirectory directory_{names_.resolver()};
};

TEST_F(Directory, NobodyIsAskedWithoutRulesWithNames) {
  directory_.set_rules(rules({"10.0.0.0/8", "10.0.0.1", "*"}));
  EXPECT_FALSE(directory_.unknown(ip::make_address("10.0.0.1")));
  EXPECT_EQ(names_.questions, 0);
}

TEST_F(Directory, EachKindOfName) {
  names_.reverse["10.0.0.1"] = {"box.lab.org", "alias"};
  names_.forward["server.lab.org"] = {"10.0.0.1", "10.0.0.2"};
  names_.netgroups["full"] = {"box.lab.org"};
  names_.netgroups["short"] = {"box"};
  names_.netgroups["alias"] = {"alias"};
  const std::vector<std::string> all{"server.lab.org", "*.lab.org", "@full",    "@short",
                                     "@alias",         "@none",     "other.org"};
  directory_.set_rules(rules(all));
  EXPECT_TRUE(directory_.unknown(ip::make_address("10.0.0.1")));
  identify(directory_, "10.0.0.1");
  EXPECT_FALSE(directory_.unknown(ip::make_address("10.0.0.1")));
  for (const auto& rule : all) {
    EXPECT_EQ(matches(rule, "10.0.0.1"), rule != "@none" && rule != "other.org") << rule;
  }
  identify(directory_, "10.0.0.2");
  EXPECT_TRUE(matches("server.lab.org", "10.0.0.2"));
  EXPECT_FALSE(matches("*.lab.org", "10.0.0.2"));
}

TEST_F(Directory, WithoutANameTheAddressIsTheName) {
  names_.netgroups["g"] = {"10.0.0.9"};
  names_.netgroups["ten"] = {"10"};
  directory_.set_rules(rules({"10.0.*", "@g", "@ten"}));
  identify(directory_, "10.0.0.9");
  EXPECT_TRUE(matches("10.0.*", "10.0.0.9"));
  EXPECT_TRUE(matches("@g", "10.0.0.9"));
  EXPECT_FALSE(matches("@ten", "10.0.0.9"));
}

TEST_F(Directory, AskedOnceUntilTheRulesChange) {
  directory_.set_rules(rules({"*.lab.org"}));
  identify(directory_, "10.0.0.1");
  identify(directory_, "10.0.0.1");
  EXPECT_EQ(names_.questions, 1);
  names_.reverse["10.0.0.1"] = {"box.lab.org"};
  EXPECT_FALSE(matches("*.lab.org", "10.0.0.1"));
  directory_.set_rules(rules({"*.lab.org", "@g"}));  // Asks about those it knows.
  EXPECT_FALSE(directory_.unknown(ip::make_address("10.0.0.1")));
  EXPECT_TRUE(matches("*.lab.org", "10.0.0.1"));
}

TEST_F(Directory, WhatWasKnownHoldsWhileTheNameServerIsDown) {
  names_.reverse["10.0.0.1"] = {"box.lab.org"};
  directory_.set_rules(rules({"*.lab.org"}));
  identify(directory_, "10.0.0.1");
  names_.down = true;
  directory_.set_rules(rules({"*.lab.org", "@g"}));
  EXPECT_TRUE(matches("*.lab.org", "10.0.0.1"));
}

TEST_F(Directory, HostsThatCouldNotBeResolvedAreAskedAgain) {
  names_.forward["host"] = {"10.0.0.1"};
  names_.down = true;
  directory_.set_rules(rules({"host"}));
  identify(directory_, "10.0.0.2");
  names_.down = false;
  identify(directory_, "10.0.0.1");
  EXPECT_TRUE(matches("host", "10.0.0.1"));
}

TEST_F(Directory, Bounded) {
  directory_.set_rules(rules({"*.lab.org"}));
  for (unsigned i = 0; i <= ClientDirectory::max_clients; ++i) {  // No name service behind it.
    identify(directory_, ip::make_address_v4(0x0a000000U + i).to_string());
  }
  EXPECT_EQ(directory_.find(ip::make_address("10.0.0.0")), nullptr);
  EXPECT_NE(directory_.find(ip::make_address("10.0.0.1")), nullptr);
}

TEST(SystemResolver, KnowsThisMachine) {
  const Resolver system = Resolver::system();
  const auto addresses = system.addresses("localhost");
  ASSERT_TRUE(addresses);
  EXPECT_THAT(*addresses, ::testing::Contains(ip::make_address("127.0.0.1")));
  const auto names = system.names(ip::make_address("127.0.0.1"));
  ASSERT_TRUE(names);
  EXPECT_THAT(*names, ::testing::Contains("localhost"));
  EXPECT_FALSE(system.in_netgroup("no-such-group", "localhost"));
}

void learn(GroupDirectory& directory, uid_t user) {
  boost::asio::io_context context;
  boost::asio::co_spawn(context, directory.learn(user), boost::asio::detached);
  context.run();
}

TEST(Groups, AskedOnceAndOnlyIfWanted) {
  int questions = 0;
  GroupDirectory directory([&](uid_t user) -> std::optional<GroupDirectory::Groups> {
    ++questions;
    if (user == 7) return GroupDirectory::Groups{70, 71};
    return std::nullopt;
  });
  EXPECT_FALSE(directory.unknown(7));
  directory.use(true);
  EXPECT_TRUE(directory.unknown(7));
  learn(directory, 7);
  learn(directory, 7);
  learn(directory, 8);
  learn(directory, 8);
  EXPECT_EQ(questions, 2);
  ASSERT_NE(directory.find(7), nullptr);
  EXPECT_THAT(*directory.find(7), ElementsAre(70U, 71U));
  EXPECT_EQ(directory.find(8), nullptr);  // What the client sent counts.
  directory.use(true);
  EXPECT_TRUE(directory.unknown(7));
}

TEST(Groups, OfThisMachine) {
  GroupDirectory directory;
  directory.use(true);
  learn(directory, 0);
  ASSERT_NE(directory.find(0), nullptr);
  EXPECT_THAT(*directory.find(0), ::testing::Contains(0U));
  learn(directory, 3999999999U);
  EXPECT_EQ(directory.find(3999999999U), nullptr);
}

}  // namespace
}  // namespace selvage::server
