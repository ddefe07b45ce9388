// READDIR and READDIRPLUS over the wire (RFC 1813 3.3.16, 3.3.17).
#include "tests/protocol/fixture.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <set>
#include <thread>

namespace selvage::tests {
namespace {

struct Entry {
  std::string name;
  std::uint64_t fileid;
  std::uint64_t cookie;
  bool has_attributes = false;
  Bytes handle;
};

/// libnfs does not align what it decodes.
template <class T>
T copy(const T* from) {
  T to;
  std::memcpy(&to, reinterpret_cast<const char*>(from), sizeof to);
  return to;
}

/// What encoded results take, without the status: what `count` and `maxcount` bound.
std::size_t encoded_bytes(Nfs3Client& client, std::uint32_t procedure, const XdrWriter& arguments) {
  return client.raw(procedure, arguments.bytes()).results.size() - 4;
}

class ReaddirTest : public ProtocolTest {
 protected:
  /// One reply's entries, and whether it was the last.
  static std::pair<std::vector<Entry>, bool> page(const READDIR3resok& ok) {
    std::vector<Entry> entries;
    for (const entry3* next = ok.reply.entries; next != nullptr;) {
      const entry3 e = copy(next);
      entries.push_back({e.name, e.fileid, e.cookie, false, {}});
      next = e.nextentry;
    }
    return {entries, ok.reply.eof != 0};
  }
  static std::pair<std::vector<Entry>, bool> page(const READDIRPLUS3resok& ok) {
    std::vector<Entry> entries;
    for (const entryplus3* next = ok.reply.entries; next != nullptr;) {
      const entryplus3 e = copy(next);
      Entry entry{e.name, e.fileid, e.cookie, attributes_of(e.name_attributes) != nullptr, {}};
      if (e.name_handle.handle_follows != 0) {
        entry.handle = bytes_of(e.name_handle.post_op_fh3_u.handle);
      }
      if (entry.has_attributes) {
        EXPECT_EQ(attributes_of(e.name_attributes)->fileid, e.fileid);
      }
      entries.push_back(std::move(entry));
      next = e.nextentry;
    }
    return {entries, ok.reply.eof != 0};
  }

  /// The whole directory in replies of `count` bytes.
  std::vector<Entry> list(const Bytes& directory, std::uint32_t count, bool plus = false) {
    std::vector<Entry> all;
    std::uint64_t cookie = 0;
    while (true) {
      std::pair<std::vector<Entry>, bool> got;
      if (plus) {
        const auto answer = root_->readdirplus(directory, cookie, count, count);
        EXPECT_STATUS(NFS3_OK, answer);
        if (answer.status() != NFS3_OK) return all;
        EXPECT_NE(attributes_of(RESOK(answer, READDIRPLUS).dir_attributes), nullptr);
        got = page(RESOK(answer, READDIRPLUS));
      } else {
        const auto answer = root_->readdir(directory, cookie, count);
        EXPECT_STATUS(NFS3_OK, answer);
        if (answer.status() != NFS3_OK) return all;
        EXPECT_NE(attributes_of(RESOK(answer, READDIR).dir_attributes), nullptr);
        got = page(RESOK(answer, READDIR));
      }
      all.insert(all.end(), got.first.begin(), got.first.end());
      if (got.second) return all;
      if (got.first.empty()) {
        ADD_FAILURE() << "neither entries nor the end";
        return all;
      }
      cookie = got.first.back().cookie;
    }
  }

  static std::set<std::string> names(const std::vector<Entry>& entries) {
    std::set<std::string> all;
    for (const Entry& entry : entries) {
      EXPECT_TRUE(all.insert(entry.name).second) << entry.name << " twice";
    }
    return all;
  }

  /// By the server's own file system, for speed.
  void make_local(const std::string& folder, const std::string& prefix, int count) const {
    for (int i = 0; i < count; ++i) {
      const std::string name = path("rw/" + folder + "/" + prefix + std::to_string(i));
      const int fd = open(name.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
      ASSERT_GE(fd, 0);
      close(fd);
    }
  }
};

TEST_F(ReaddirTest, AnEmptyDirectoryHasTwoEntries) {
  const Bytes directory = root_->make_directory(top_, "d");
  for (const bool plus : {false, true}) {
    const auto entries = list(directory, 8192, plus);
    ASSERT_EQ(names(entries), (std::set<std::string>{".", ".."}));
    for (const Entry& entry : entries) {
      const Bytes& which = entry.name == "." ? directory : top_;
      EXPECT_EQ(entry.fileid, RESOK(root_->getattr(which), GETATTR).obj_attributes.fileid);
    }
  }
}

TEST_F(ReaddirTest, TheRootShowsNothingAboveIt) {
  const std::uint64_t own = RESOK(root_->getattr(top_), GETATTR).obj_attributes.fileid;
  for (const bool plus : {false, true}) {
    for (const Entry& entry : list(top_, 8192, plus)) {
      if (entry.name != "." && entry.name != "..") continue;
      EXPECT_EQ(entry.fileid, own) << entry.name;
      EXPECT_TRUE(entry.handle.empty() || entry.handle == top_) << entry.name;
    }
  }
}

TEST_F(ReaddirTest, PlusGivesHandlesAndAttributes) {
  const Bytes directory = root_->make_directory(top_, "d");
  std::map<std::string, Bytes> made;
  for (int i = 0; i < 20; ++i) {
    const std::string name =
        std::string(static_cast<std::size_t>(1 + i * 12), 'n') + std::to_string(i);
    made[name] = root_->make_file(directory, name);
  }
  made["e"] = root_->make_directory(directory, "e");
  ASSERT_OK(root_->symlink(directory, "l", "t"));
  made["l"] = root_->look(directory, "l");
  ASSERT_OK(root_->mknod(directory, "p", NF3FIFO));
  made["p"] = root_->look(directory, "p");
  for (const Entry& entry : list(directory, 1500, true)) {
    if (entry.name == "." || entry.name == "..") continue;
    ASSERT_EQ(made.count(entry.name), 1u) << entry.name;
    EXPECT_TRUE(entry.has_attributes) << entry.name;
    EXPECT_EQ(entry.handle, made[entry.name]) << entry.name;
    made.erase(entry.name);
  }
  EXPECT_TRUE(made.empty());
}

TEST_F(ReaddirTest, CountIsABoundToTheByte) {
  const Bytes directory = root_->make_directory(top_, "d");
  make_local("d", "name-of-some-length-", 40);
  const auto reply_bytes = [&](std::uint32_t count) {
    XdrWriter arguments;
    return encoded_bytes(*root_, 16, arguments.opaque(directory).u64(0).u64(0).u32(count));
  };
  const std::size_t whole = reply_bytes(65536);
  for (std::uint32_t count = 200; count <= whole; ++count) {
    ASSERT_LE(reply_bytes(count), count);
  }
  EXPECT_EQ(reply_bytes(static_cast<std::uint32_t>(whole)), whole);
  EXPECT_LT(reply_bytes(static_cast<std::uint32_t>(whole) - 1), whole);

  const auto plus_bytes = [&](std::uint32_t dircount, std::uint32_t maxcount) {
    XdrWriter arguments;
    arguments.opaque(directory).u64(0).u64(0).u32(dircount).u32(maxcount);
    return encoded_bytes(*root_, 17, arguments);
  };
  const std::size_t whole_plus = plus_bytes(65536, 65536);
  for (std::uint32_t count = 400; count <= whole_plus; count += 7) {
    ASSERT_LE(plus_bytes(65536, count), count);
  }
  EXPECT_EQ(plus_bytes(65536, static_cast<std::uint32_t>(whole_plus)), whole_plus);
  EXPECT_LT(plus_bytes(65536, static_cast<std::uint32_t>(whole_plus) - 1), whole_plus);
}

TEST_F(ReaddirTest, DircountBoundsNamesOnly) {
  const Bytes directory = root_->make_directory(top_, "d");
  make_local("d", "f", 50);
  for (const std::uint32_t dircount : {24u, 48u, 100u, 500u}) {
    const auto answer = root_->readdirplus(directory, 0, dircount, 65536);
    ASSERT_OK(answer);
    std::size_t information = 0;
    const auto [entries, eof] = page(RESOK(answer, READDIRPLUS));
    for (const Entry& entry : entries) {
      information += 8 + 4 + (entry.name.size() + 3) / 4 * 4 + 8;
    }
    EXPECT_LE(information, dircount);
    EXPECT_GT(information + 8 + 4 + 4 + 8, dircount);  // Not one of the short names more.
    EXPECT_FALSE(eof);
  }
}

TEST_F(ReaddirTest, ARepliesSizeIsBoundedWhateverIsAskedFor) {
  const Bytes directory = root_->make_directory(top_, "large");
  const std::string long_name(240, 'n');
  for (int i = 0; i < 400; ++i) {
    const int fd = ::open(path("rw/large/" + long_name + std::to_string(i)).c_str(),
                          O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    ::close(fd);
  }
  constexpr std::size_t most = 64U << 10;
  XdrWriter arguments;
  arguments.opaque(directory).u64(0).u64(0).u32(UINT32_MAX);
  EXPECT_LE(encoded_bytes(*root_, NFS3_READDIR, arguments), most);
  EXPECT_GT(encoded_bytes(*root_, NFS3_READDIR, arguments), most / 2);
  arguments.u32(UINT32_MAX);
  EXPECT_LE(encoded_bytes(*root_, NFS3_READDIRPLUS, arguments), most);
}

TEST_F(ReaddirTest, TooSmallForOneEntry) {
  const Bytes directory = root_->make_directory(top_, "d");
  for (const std::uint32_t count : {0u, 1u, 16u, 100u, 104u, 123u}) {
    const auto answer = root_->readdir(directory, 0, count);
    EXPECT_STATUS(NFS3ERR_TOOSMALL, answer) << count;
    EXPECT_EQ(attributes(RESFAIL(answer, READDIR).dir_attributes).type, NF3DIR);
  }
  for (const std::uint32_t count : {0u, 104u, 200u}) {
    const auto answer = root_->readdirplus(directory, 0, 8192, count);
    EXPECT_STATUS(NFS3ERR_TOOSMALL, answer) << count;
    EXPECT_EQ(attributes(RESFAIL(answer, READDIRPLUS).dir_attributes).type, NF3DIR);
  }
  EXPECT_STATUS(NFS3ERR_TOOSMALL, root_->readdirplus(directory, 0, 8, 8192));
}

TEST_F(ReaddirTest, TinyCountsListEverythingOnce) {
  const Bytes directory = root_->make_directory(top_, "d");
  make_local("d", "f", 300);
  const auto one_by_one = names(list(directory, 132, false));
  EXPECT_EQ(one_by_one.size(), 302u);
  EXPECT_EQ(names(list(directory, 340, true)), one_by_one);
  EXPECT_EQ(names(list(directory, 0xffffffff, false)), one_by_one);
  EXPECT_EQ(names(list(directory, 0xffffffff, true)), one_by_one);
}

TEST_F(ReaddirTest, CookieOfARemovedEntryGoesOn) {
  const Bytes directory = root_->make_directory(top_, "d");
  make_local("d", "f", 100);
  const auto first = root_->readdir(directory, 0, 600);
  ASSERT_OK(first);
  const auto [entries, eof] = page(RESOK(first, READDIR));
  ASSERT_FALSE(eof);
  std::set<std::string> seen;
  for (const Entry& entry : entries) seen.insert(entry.name);
  if (entries.back().name.front() == 'f') ASSERT_OK(root_->remove(directory, entries.back().name));
  std::uint64_t cookie = entries.back().cookie;
  while (true) {
    const auto answer = root_->readdir(directory, cookie, 600);
    ASSERT_OK(answer);
    const auto [more, end] = page(RESOK(answer, READDIR));
    for (const Entry& entry : more) EXPECT_TRUE(seen.insert(entry.name).second) << entry.name;
    if (end) break;
    ASSERT_FALSE(more.empty());
    cookie = more.back().cookie;
  }
  EXPECT_EQ(seen.size(), 102u);
}

TEST_F(ReaddirTest, CookieAtTheEndGivesTheEnd) {
  const Bytes directory = root_->make_directory(top_, "d");
  make_local("d", "f", 3);
  const std::uint64_t last = list(directory, 8192).back().cookie;
  const auto answer = root_->readdir(directory, last, 8192);
  ASSERT_OK(answer);
  EXPECT_EQ(RESOK(answer, READDIR).reply.entries, nullptr);
  EXPECT_NE(RESOK(answer, READDIR).reply.eof, 0u);
}

TEST_F(ReaddirTest, CookiesSurviveARestart) {
  const Bytes directory = root_->make_directory(top_, "d");
  make_local("d", "f", 100);
  const auto first = root_->readdir(directory, 0, 1000);
  ASSERT_OK(first);
  auto [entries, eof] = page(RESOK(first, READDIR));
  restart_server();
  std::uint64_t cookie = entries.back().cookie;
  while (!eof) {
    const auto answer = root_->readdir(directory, cookie, 1000);
    ASSERT_OK(answer);
    const auto [more, end] = page(RESOK(answer, READDIR));
    entries.insert(entries.end(), more.begin(), more.end());
    eof = end || more.empty();
    cookie = entries.back().cookie;
  }
  EXPECT_EQ(names(entries).size(), 102u);
}

TEST_F(ReaddirTest, WrongCookies) {
  const Bytes directory = root_->make_directory(top_, "d");
  const std::uint64_t cookie = list(directory, 8192).front().cookie;
  const auto wrong = root_->readdir(directory, cookie, 8192, 12345);
  EXPECT_STATUS(NFS3ERR_BAD_COOKIE, wrong);
  EXPECT_EQ(attributes(RESFAIL(wrong, READDIR).dir_attributes).type, NF3DIR);
  EXPECT_STATUS(NFS3ERR_BAD_COOKIE, root_->readdirplus(directory, cookie, 8192, 8192, 12345));
  for (const std::uint64_t any : {~std::uint64_t{0}, std::uint64_t{1} << 63,
                                  (std::uint64_t{1} << 63) - 1, std::uint64_t{0xdeadbeef}}) {
    const nfsstat3 status = root_->readdir(directory, any, 8192).status();
    EXPECT_TRUE(status == NFS3_OK || status == NFS3ERR_BAD_COOKIE) << status;
  }
}

TEST_F(ReaddirTest, Fails) {
  const Bytes file = root_->make_file(top_, "f");
  EXPECT_STATUS(NFS3ERR_NOTDIR, root_->readdir(file, 0, 8192));
  EXPECT_STATUS(NFS3ERR_NOTDIR, root_->readdirplus(file, 0, 8192, 8192));
  const Bytes closed = root_->make_directory(top_, "closed", 0711);
  const auto denied = alice_->readdir(closed, 0, 8192);
  EXPECT_STATUS(NFS3ERR_ACCES, denied);
  EXPECT_EQ(attributes(RESFAIL(denied, READDIR).dir_attributes).mode, 0711u);
  EXPECT_STATUS(NFS3ERR_ACCES, alice_->readdirplus(closed, 0, 8192, 8192));
  ASSERT_OK(root_->rmdir(top_, "closed"));
  EXPECT_STATUS(NFS3ERR_STALE, root_->readdir(closed, 0, 8192));
  EXPECT_STATUS(NFS3ERR_STALE, root_->readdirplus(closed, 0, 8192, 8192));
}

TEST_F(ReaddirTest, TwentyThousandEntriesWhileOthersComeAndGo) {
  const Bytes directory = root_->make_directory(top_, "d");
  constexpr int staying = 20000;
  make_local("d", "stay-", staying);
  std::atomic<bool> done{false};
  std::thread other([&] {
    Nfs3Client changer(port());
    for (int i = 0; !done; ++i) {
      changer.make_file(directory, "come-" + std::to_string(i));
      if (i % 2 == 1) changer.remove(directory, "come-" + std::to_string(i - 1));
    }
  });
  for (const bool plus : {false, true}) {
    std::set<int> seen;
    for (const Entry& entry : list(directory, 65536, plus)) {
      if (!entry.name.starts_with("stay-")) continue;
      EXPECT_TRUE(seen.insert(std::stoi(entry.name.substr(5))).second) << entry.name << " twice";
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(staying));
  }
  done = true;
  other.join();
}

}  // namespace
}  // namespace selvage::tests
