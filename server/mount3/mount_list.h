// Who has mounted what, for DUMP: a display only, nothing depends on it (RFC 1813, 5.2.2).
#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace selvage::server::mount3 {

/// Bounded: when full the oldest entry goes. Any thread.
class MountList {
 public:
  struct Entry {
    std::string client;  ///< Address.
    std::string path;    ///< Normalised.
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  static constexpr std::size_t max_entries = 512;

  /// An entry that is there already becomes the newest.
  void add(Entry entry);
  void remove(const Entry& entry);
  void remove_client(std::string_view client);
  std::vector<Entry> entries() const;  ///< Oldest first.

 private:
  mutable std::mutex mutex_;
  std::list<Entry> entries_;
};

}  // namespace selvage::server::mount3
