#include "server/client_rule.h"

#include <gtest/gtest.h>

namespace selvage::server {
namespace {

bool matches(const char* rule, const char* client) {
  const auto parsed = ClientRule::parse(rule);
  if (!parsed) ADD_FAILURE() << parsed.error();
  return parsed && parsed->matches(boost::asio::ip::make_address(client));
}

TEST(ClientRule, EverybodyMatchesBothFamilies) {
  EXPECT_TRUE(matches("*", "192.0.2.1"));
  EXPECT_TRUE(matches("*", "2001:db8::1"));
}

TEST(ClientRule, SingleAddress) {
  EXPECT_TRUE(matches("192.0.2.1", "192.0.2.1"));
  EXPECT_FALSE(matches("192.0.2.1", "192.0.2.2"));
  EXPECT_FALSE(matches("192.0.2.1", "2001:db8::1"));
  EXPECT_TRUE(matches("2001:db8::1", "2001:db8::1"));
  EXPECT_FALSE(matches("2001:db8::1", "2001:db8::2"));
}

TEST(ClientRule, NetworksMatchUpToTheirLastBit) {
  EXPECT_TRUE(matches("10.0.0.0/8", "10.255.255.255"));
  EXPECT_FALSE(matches("10.0.0.0/8", "11.0.0.0"));
  EXPECT_FALSE(matches("10.0.0.0/8", "9.255.255.255"));
  EXPECT_TRUE(matches("192.0.2.128/25", "192.0.2.128"));
  EXPECT_FALSE(matches("192.0.2.128/25", "192.0.2.127"));
  EXPECT_TRUE(matches("192.0.2.6/31", "192.0.2.7"));
  EXPECT_FALSE(matches("192.0.2.6/31", "192.0.2.8"));
  EXPECT_TRUE(matches("2001:db8:8000::/33", "2001:db8:ffff::1"));
  EXPECT_FALSE(matches("2001:db8:8000::/33", "2001:db8:7fff::1"));
}

TEST(ClientRule, PrefixZeroIsAWholeFamily) {
  EXPECT_TRUE(matches("0.0.0.0/0", "255.255.255.255"));
  EXPECT_FALSE(matches("0.0.0.0/0", "::1"));
  EXPECT_TRUE(matches("::/0", "::1"));
  EXPECT_FALSE(matches("::/0", "127.0.0.1"));
}

TEST(ClientRule, MappedAddressesAreIPv4) {
  EXPECT_TRUE(matches("10.0.0.0/8", "::ffff:10.1.2.3"));
  EXPECT_TRUE(matches("::ffff:10.0.0.0/104", "10.1.2.3"));
  EXPECT_FALSE(matches("::ffff:10.0.0.0/104", "11.1.2.3"));
  EXPECT_TRUE(matches("::ffff:10.1.2.3", "10.1.2.3"));
}

TEST(ClientRule, ScopeOfTheClientDoesNotMatter) {
  EXPECT_TRUE(matches("fe80::/10", "fe80::1%1"));
}

TEST(ClientRule, RefusesWhatIsNoRule) {
  for (const char* bad : {"",
                          "10.0.0",
                          "10.0.0.0/",
                          "10.0.0.0/x",
                          "10.0.0.0/8x",
                          "10.0.0.0/33",
                          "10.0.0.0/-1",
                          "10.0.0.0/99999999999",
                          "::/129",
                          "fe80::1%lo",
                          "* ",
                          "10.0.0.1/8",
                          "@",
                          "a/8",
                          "-a",
                          "10.0.0.0/255.0.0.0",
                          "a b",
                          "2001:db8::1/64",
                          "::ffff:10.0.0.0/95",
                          "/8",
                          "10.0.0.0/8/8"}) {
    EXPECT_FALSE(ClientRule::parse(bad)) << bad;
  }
}

TEST(ClientRule, SaysWhichNetworkWasMeant) {
  const auto v4 = ClientRule::parse("10.1.2.3/20");
  ASSERT_FALSE(v4);
  EXPECT_NE(v4.error().find("10.1.0.0/20"), std::string::npos) << v4.error();
  const auto v6 = ClientRule::parse("2001:db8::1/64");
  ASSERT_FALSE(v6);
  EXPECT_NE(v6.error().find("2001:db8::/64"), std::string::npos) << v6.error();
}

TEST(ClientRule, TextCanBeParsedAgain) {
  for (const char* text : {"*", "192.0.2.1", "10.0.0.0/8", "0.0.0.0/0", "2001:db8::/32", "::1",
                           "10.0.0.1/32", "host.example.org", "*.example.org", "@trusted"}) {
    const auto rule = ClientRule::parse(text);
    ASSERT_TRUE(rule) << text;
    EXPECT_EQ(rule->text(), text);
    EXPECT_EQ(*ClientRule::parse(rule->text()), *rule);
  }
}

TEST(ClientRule, NamesMatchWhatIsKnownOfTheClient) {
  const auto client = boost::asio::ip::make_address("192.0.2.1");
  ClientNames names;
  names.names = {"Box.Lab.Example.Org", "alias"};
  names.hosts = {"box.example.org"};
  names.netgroups = {"trusted"};
  const auto matches_named = [&](const char* text) {
    const auto rule = ClientRule::parse(text);
    if (!rule) ADD_FAILURE() << rule.error();
    EXPECT_TRUE(rule->needs_names()) << text;
    EXPECT_FALSE(rule->matches(client)) << text << ": nothing is known";
    return rule->matches(client, &names);
  };
  EXPECT_TRUE(matches_named("BOX.example.org"));
  EXPECT_FALSE(matches_named("box.lab.example.org"));  // Not one of those resolved to it.
  EXPECT_TRUE(matches_named("*.example.org"));         // Dots are matched too.
  EXPECT_TRUE(matches_named("box.l[a-c]b.*"));
  EXPECT_TRUE(matches_named("ali?s"));
  EXPECT_FALSE(matches_named("*.example.com"));
  EXPECT_FALSE(matches_named("example*"));
  EXPECT_TRUE(matches_named("@trusted"));
  EXPECT_FALSE(matches_named("@others"));
}

TEST(ClientRule, KindsInOrderOfPrecedence) {
  using Kind = ClientRule::Kind;
  EXPECT_EQ(ClientRule::parse("192.0.2.1")->kind(), Kind::host);
  EXPECT_EQ(ClientRule::parse("host")->kind(), Kind::host);
  EXPECT_EQ(ClientRule::parse("192.0.2.1/32")->kind(), Kind::network);
  EXPECT_EQ(ClientRule::parse("h*")->kind(), Kind::wildcard);
  EXPECT_EQ(ClientRule::parse("@g")->kind(), Kind::netgroup);
  EXPECT_EQ(ClientRule::parse("*")->kind(), Kind::everybody);
  EXPECT_LT(Kind::host, Kind::network);
  EXPECT_LT(Kind::network, Kind::wildcard);
  EXPECT_LT(Kind::wildcard, Kind::netgroup);
  EXPECT_LT(Kind::netgroup, Kind::everybody);
}

TEST(ClientRule, AsExportsHasIt) {
  const auto text = [](const char* rule) {
    const auto parsed = ClientRule::parse_exports(rule);
    return parsed ? parsed->text() : "refused";
  };
  EXPECT_EQ(text(""), "*");
  EXPECT_EQ(text("10.1.2.3/8"), "10.0.0.0/8");
  EXPECT_EQ(text("10.1.2.3/255.255.0.0"), "10.1.0.0/16");
  EXPECT_EQ(text("10.1.2.3/0"), "0.0.0.0/0");
  EXPECT_EQ(text("2001:db8::1/32"), "2001:db8::/32");
  EXPECT_EQ(text("10.1.2.3/255.0.255.0"), "refused");
  EXPECT_EQ(text("10.1.2.3/0.0.0.0"), "refused");
  EXPECT_EQ(text("10.1.2.3/33"), "refused");
  EXPECT_EQ(text("2001:db8::/255.0.0.0"), "refused");
}

}  // namespace
}  // namespace selvage::server
