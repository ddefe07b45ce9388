// A small bounded map that knows which of its entries was used longest ago. Used by the table of
// open files and the duplicate request cache.
#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>

namespace selvage::cache {

/// At most `capacity` entries. What may be evicted says the caller, each time, by a predicate, so
/// that entries in use are skipped. An entry that is skipped counts as used then (it is), which
/// keeps a search among many pinned ones short. Pointers to values stay valid until their entry is
/// erased. Not thread-safe.
template <class Key, class Value, class Hash = std::hash<Key>>
class Lru {
 public:
  using Item = std::pair<const Key, Value>;

  struct Inserted {
    Value* value = nullptr;  ///< The entry of that key; null if there is no room for it.
    bool added = false;      ///< False if the key was there before: its value is untouched.
    std::optional<std::pair<Key, Value>> evicted;  ///< What had to go.
  };

  /// How many pinned entries an eviction looks at before it gives up.
  static constexpr std::size_t max_probes = 64;

  explicit Lru(std::size_t capacity) : capacity_(capacity) {}

  std::size_t size() const { return map_.size(); }
  std::size_t capacity() const { return capacity_; }
  bool full() const { return size() >= capacity_; }

  /// The value of `key`, null if there is none; the entry becomes the youngest.
  Value* find(const Key& key) {
    const auto found = map_.find(key);
    if (found == map_.end()) return nullptr;
    items_.splice(items_.end(), items_, found->second);
    return &found->second->second;
  }

  /// The same, leaving its age as it is.
  const Value* peek(const Key& key) const {
    const auto found = map_.find(key);
    return found == map_.end() ? nullptr : &found->second->second;
  }

  /// Adds an entry as the youngest, unless the key is there (then that entry becomes the youngest).
  /// If full, evicts the oldest entry for which `may_evict(key, value)` holds; if there is none
  /// among those looked at, nothing is changed.
  template <class MayEvict>
  Inserted insert(Key key, Value value, MayEvict may_evict) {
    Inserted result;
    result.value = find(key);
    if (result.value != nullptr) return result;
    if (full()) {
      Item* oldest = oldest_if(may_evict);
      if (oldest == nullptr) return result;
      result.evicted = extract(oldest->first);
    }
    items_.emplace_back(std::move(key), std::move(value));
    const auto item = std::prev(items_.end());
    map_.emplace(item->first, item);
    result.value = &item->second;
    result.added = true;
    return result;
  }

  /// The oldest entry for which `predicate(key, value)` holds, null if there is none among the
  /// max_probes oldest. Those passed over become the youngest.
  template <class Predicate>
  Item* oldest_if(Predicate predicate) {
    const std::size_t probes = size() < max_probes ? size() : max_probes;
    for (std::size_t i = 0; i < probes; ++i) {
      Item& item = items_.front();
      if (predicate(std::as_const(item.first), std::as_const(item.second))) return &item;
      items_.splice(items_.end(), items_, items_.begin());
    }
    return nullptr;
  }

  bool erase(const Key& key) { return extract(key).has_value(); }

  /// Takes an entry out.
  std::optional<std::pair<Key, Value>> extract(const Key& key) {
    const auto found = map_.find(key);
    if (found == map_.end()) return std::nullopt;
    const auto item = found->second;
    map_.erase(found);
    std::optional<std::pair<Key, Value>> taken(std::in_place, item->first, std::move(item->second));
    items_.erase(item);
    return taken;
  }

  /// Calls f(key, value) for each entry, oldest first. `f` must not change the map.
  template <class F>
  void for_each(F f) {
    for (Item& item : items_) f(item.first, item.second);
  }

  void clear() {
    map_.clear();
    items_.clear();
  }

 private:
  using Items = std::list<Item>;

  std::size_t capacity_;
  Items items_;  // Oldest first.
  std::unordered_map<Key, typename Items::iterator, Hash> map_;
};

}  // namespace selvage::cache
