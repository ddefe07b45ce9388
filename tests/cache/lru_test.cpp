#include "cache/lru.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace selvage::cache {
namespace {

const auto any = [](const auto&, const auto&) { return true; };
const auto none = [](const auto&, const auto&) { return false; };

std::vector<int> keys(Lru<int, std::string>& lru) {
  std::vector<int> result;
  lru.for_each([&](int key, const std::string&) { result.push_back(key); });
  return result;
}

TEST(Lru, EvictsTheOldest) {
  Lru<int, std::string> lru(2);
  EXPECT_TRUE(lru.insert(1, "one", any).added);
  EXPECT_TRUE(lru.insert(2, "two", any).added);
  const auto inserted = lru.insert(3, "three", any);
  EXPECT_TRUE(inserted.added);
  ASSERT_TRUE(inserted.evicted);
  EXPECT_EQ(inserted.evicted->first, 1);
  EXPECT_EQ(inserted.evicted->second, "one");
  EXPECT_EQ(keys(lru), (std::vector{2, 3}));
}

TEST(Lru, FindMakesYoungerPeekDoesNot) {
  Lru<int, std::string> lru(3);
  for (int i = 1; i <= 3; ++i) lru.insert(i, std::to_string(i), any);
  ASSERT_NE(lru.find(1), nullptr);
  EXPECT_EQ(*lru.find(1), "1");
  ASSERT_NE(lru.peek(2), nullptr);
  EXPECT_EQ(*lru.peek(2), "2");
  EXPECT_EQ(keys(lru), (std::vector{2, 3, 1}));
  EXPECT_EQ(lru.find(9), nullptr);
  EXPECT_EQ(lru.peek(9), nullptr);
}

TEST(Lru, InsertOfAKnownKeyLeavesItsValue) {
  Lru<int, std::string> lru(2);
  lru.insert(1, "one", any);
  lru.insert(2, "two", any);
  const auto again = lru.insert(1, "other", any);
  EXPECT_FALSE(again.added);
  EXPECT_FALSE(again.evicted);
  ASSERT_NE(again.value, nullptr);
  EXPECT_EQ(*again.value, "one");
  EXPECT_EQ(keys(lru), (std::vector{2, 1}));
}

TEST(Lru, SkipsPinnedEntries) {
  Lru<int, std::string> lru(3);
  for (int i = 1; i <= 3; ++i) lru.insert(i, std::to_string(i), any);
  const auto inserted = lru.insert(
      4, "4", [](int key, const std::string& value) { return key == 2 && value == "2"; });
  ASSERT_TRUE(inserted.evicted);
  EXPECT_EQ(inserted.evicted->first, 2);
  EXPECT_EQ(keys(lru), (std::vector{3, 1, 4}));
}

TEST(Lru, FullOfPinnedEntriesTakesNothing) {
  Lru<int, std::string> lru(2);
  lru.insert(1, "one", any);
  lru.insert(2, "two", any);
  const auto inserted = lru.insert(3, "three", none);
  EXPECT_EQ(inserted.value, nullptr);
  EXPECT_FALSE(inserted.added);
  EXPECT_FALSE(inserted.evicted);
  EXPECT_EQ(keys(lru), (std::vector{1, 2}));
  EXPECT_EQ(lru.oldest_if(none), nullptr);
}

TEST(Lru, SearchAmongPinnedEntriesIsShortButGetsAround) {
  constexpr int count = 1000;
  Lru<int, std::string> lru(count);
  for (int i = 0; i < count; ++i) lru.insert(i, "", any);
  int looked_at = 0;
  const auto last_only = [&](int key, const std::string&) {
    ++looked_at;
    return key == count - 1;
  };
  EXPECT_EQ(lru.oldest_if(last_only), nullptr);
  EXPECT_EQ(looked_at, 64);
  int searches = 1;
  while (lru.oldest_if(last_only) == nullptr) ASSERT_LT(++searches, 17);
}

TEST(Lru, ErasesAndExtractsMoveOnlyValues) {
  Lru<std::string, std::unique_ptr<int>> lru(2);
  lru.insert("a", std::make_unique<int>(7), any);
  lru.insert("b", std::make_unique<int>(8), any);
  const auto taken = lru.extract("a");
  ASSERT_TRUE(taken);
  EXPECT_EQ(*taken->second, 7);
  EXPECT_FALSE(lru.extract("a"));
  EXPECT_TRUE(lru.erase("b"));
  EXPECT_FALSE(lru.erase("b"));
  EXPECT_EQ(lru.size(), 0u);
  EXPECT_TRUE(lru.insert("a", nullptr, any).added);
  lru.clear();
  EXPECT_EQ(lru.find("a"), nullptr);
}

TEST(Lru, CapacityZeroHoldsNothing) {
  Lru<int, int> lru(0);
  EXPECT_EQ(lru.insert(1, 1, any).value, nullptr);
  EXPECT_EQ(lru.size(), 0u);
}

}  // namespace
}  // namespace selvage::cache
