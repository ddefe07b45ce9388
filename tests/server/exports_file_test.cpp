#include "server/exports_file.h"

#include "server/config.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

namespace selvage::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string text_of(const AccessRule& rule) {
  std::string text = rule.client.text() + (rule.read_only ? " ro" : " rw");
  if (!rule.secure) text += " insecure";
  if (rule.squash == Squash::all) text += " all_squash";
  if (rule.squash == Squash::none) text += " no_root_squash";
  if (rule.anonuid != 65534) text += " anonuid=" + std::to_string(rule.anonuid);
  if (rule.anongid != 65534) text += " anongid=" + std::to_string(rule.anongid);
  return text;
}

/// "PATH: RULE; RULE" for each export, in the order in which the rules decide.
std::vector<std::string> lines_of(const ListedExports& listed) {
  std::vector<std::string> lines;
  for (auto one : listed.exports) {
    sort_rules(one.rules);
    std::string line = one.path + ":";
    for (std::size_t i = 0; i < one.rules.size(); ++i) {
      line += (i > 0 ? "; " : " ") + text_of(one.rules[i]);
    }
    lines.push_back(line);
  }
  return lines;
}

struct Reading {
  const char* text;
  std::vector<std::string> expected;
  int notices;
};

class ExportsFile : public ::testing::TestWithParam<Reading> {};

TEST_P(ExportsFile, IsReadAsNfsUtilsReadsIt) {
  ListedExports listed;
  const auto error = parse_exports_text(GetParam().text, "exports", listed);
  ASSERT_FALSE(error) << GetParam().text << error->message;
  EXPECT_EQ(lines_of(listed), GetParam().expected) << GetParam().text;
  EXPECT_THAT(listed.notices, SizeIs(GetParam().notices)) << GetParam().text;
}

// tests/service/test_exportfs compares with exportfs(8) of nfs-utils.
INSTANTIATE_TEST_SUITE_P(
    Table, ExportsFile,
    ::testing::Values(
        Reading{"", {}, 0}, Reading{"\n# nothing\n  \t\n#", {}, 0},
        Reading{"/srv 10.0.0.1(rw)", {"/srv: 10.0.0.1 rw"}, 0},
        Reading{"/srv//a/./ 10.0.0.1(rw)\n", {"/srv/a: 10.0.0.1 rw"}, 0},
        // Defaults: ro, secure, root_squash.
        Reading{"/srv 10.0.0.1()\n", {"/srv: 10.0.0.1 ro"}, 0},
        Reading{"/srv 10.0.0.1\n", {"/srv: 10.0.0.1 ro"}, 1}, Reading{"/srv\n", {"/srv: * ro"}, 1},
        Reading{"/srv (rw)\n", {"/srv: * rw"}, 1},
        // The blank that makes everybody a writer.
        Reading{"/srv 10.0.0.1 (rw)\n", {"/srv: 10.0.0.1 ro; * rw"}, 2},
        // All options.
        Reading{"/srv *(rw,insecure,no_root_squash,anonuid=7,anongid=8)",
                {"/srv: * rw insecure no_root_squash anonuid=7 anongid=8"},
                0},
        Reading{"/srv *(rw,sync,wdelay,no_wdelay,hide,nocrossmnt,no_subtree_check,secure_locks,"
                "insecure_locks,auth_nlm,no_auth_nlm,acl,no_acl,no_pnfs,sec=sys)",
                {"/srv: * rw"},
                0},
        Reading{"/srv *(fsid=0) @a(crossmnt) @b(nohide) @c(subtree_check) @d(fsid=5) @e(pnfs)\n",
                {"/srv: @a ro; @b ro; @c ro; @d ro; @e ro; * ro"},
                6},
        Reading{"/srv *(anonuid=-2,anongid=4294967294)",
                {"/srv: * ro anonuid=4294967294 anongid=4294967294"},
                0},
        // The last one counts; all_squash hides root_squash, no_all_squash shows it again.
        Reading{"/srv @a(ro,rw) @b(all_squash) @c(no_root_squash,all_squash,no_all_squash) "
                "@d(all_squash,no_all_squash)",
                {"/srv: @a rw; @b ro all_squash; @c ro no_root_squash; @d ro"},
                0},
        Reading{"/srv @a(rw,)", {"/srv: @a rw"}, 0},
        // Precedence: hosts, networks, wildcards, netgroups, everybody; then as written.
        Reading{"/srv *(ro) @z(rw) @a(ro) *.b.org(rw) h?(ro) 10.0.0.0/8(rw) 10.0.0.0/16(ro) "
                "10.0.0.1(rw) host.b.org(ro) ::1(rw) 2001:db8::/32(rw)",
                {"/srv: 10.0.0.1 rw; host.b.org ro; ::1 rw; 10.0.0.0/8 rw; 10.0.0.0/16 ro; "
                 "2001:db8::/32 rw; *.b.org rw; h? ro; @z rw; @a ro; * ro"},
                0},
        Reading{"/srv 10.1.2.3/24(rw) 10.1.0.0/255.255.0.0(rw)",
                {"/srv: 10.1.2.0/24 rw; 10.1.0.0/16 rw"},
                0},
        // Defaults after '-' hold for what follows, and add up.
        Reading{"/srv -rw,no_root_squash 10.0.0.1 10.0.0.2(ro) -ro 10.0.0.3\n/b 10.0.0.1()",
                {"/srv: 10.0.0.1 rw no_root_squash; 10.0.0.2 ro no_root_squash; "
                 "10.0.0.3 ro no_root_squash",
                 "/b: 10.0.0.1 ro"},
                0},
        Reading{"/srv -rw\n", {"/srv: * rw"}, 1},
        // Paths and lines.
        Reading{"\"/a b\" @x()\n/c\\040d @x()\n", {"/a b: @x ro", "/c d: @x ro"}, 0},
        Reading{"/a \\\n   @x(rw) \\\n @y()\n", {"/a: @x rw; @y ro"}, 0},
        Reading{"/a @x(rw)\\\n@y()", {"/a: @x rw; @y ro"}, 0},
        Reading{"/e\"t\"c \"@x(rw, insecure)\"", {"/etc: @x rw insecure"}, 0},
        Reading{"/a @x(r\\167) # comment (", {"/a: @x rw"}, 0},
        Reading{"/a#b @x#y(rw)", {"/a#b: @x#y rw"}, 0},
        // One path on several lines; the first entry of a client counts.
        Reading{"/a @x(rw)\n/b @x()\n/a @y()\n/a @x(ro)", {"/a: @x rw; @y ro", "/b: @x ro"}, 1},
        // Flavours: what stands behind a sec= is about its flavours, and those named later.
        Reading{"/a @x(sec=krb5:sys,rw)", {"/a: @x rw"}, 1},
        Reading{"/a @x(rw,sec=krb5,ro,sec=sys,no_root_squash,sec=none,ro)",
                {"/a: @x ro no_root_squash"},
                1},
        Reading{"/a @x(sec=krb5,rw,no_root_squash,sec=sys,ro)", {"/a: @x ro no_root_squash"}, 1},
        Reading{"/a @x(sec=none:sys,rw) @y(sec=krb5:none:sys,rw)", {"/a: @x rw; @y rw"}, 1},
        // Of several policies for TLS a client may choose that of none.
        Reading{"/a @x(rw,xprtsec=none)", {"/a: @x rw"}, 0},
        Reading{"/a @x(xprtsec=none:tls:mtls,rw) @y(xprtsec=mtls:none)", {"/a: @x rw; @y ro"}, 2},
        Reading{"/a @x(mp=/nonexistent) @y(rw)", {"/a: @y rw"}, 1},
        Reading{"/proc @y(mp)", {"/proc: @y ro"}, 0}));

struct BadReading {
  const char* text;
  const char* message;
};

class BadExportsFile : public ::testing::TestWithParam<BadReading> {};

TEST_P(BadExportsFile, IsRefusedWithLineAndReason) {
  ListedExports listed;
  const auto error = parse_exports_text(GetParam().text, "exports", listed);
  ASSERT_TRUE(error) << GetParam().text;
  EXPECT_THAT(error->message, ::testing::StartsWith(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadExportsFile,
    ::testing::Values(
        BadReading{"\n\n/a @x(async)", "exports:3: async: "},
        BadReading{"/a @x(rw)\n/b \\\n  @x(RW)", "exports:3: unknown option 'RW'"},
        BadReading{"/a @x(rw,,ro)", "exports:1: unknown option ''"},
        BadReading{"/a @x(rw", "exports:1: the option list is not closed"},
        BadReading{"/a @x(rw, ro)", "exports:1: the option list is not closed"},
        BadReading{"/a @x(rw)ro", "exports:1: the option list is not closed"},
        BadReading{"/a @xrw)", "exports:1: a ')' without a '('"},
        BadReading{"# x\na @x(rw)", "exports:2: 'a' is not an absolute path"},
        BadReading{"/a/../b @x(rw)", "exports:1: '/a/../b' has a '..'"},
        BadReading{"/a \"@x(rw)\n", "exports:1: a quote is not closed"},
        BadReading{"\"\" @x(rw)\n", "exports:1: an empty path"},
        BadReading{"/a 10.0.0.300(rw)", "exports:1: '10.0.0.300' is neither an address"},
        BadReading{"/a 10.0.0.0/33(rw)", "exports:1: '10.0.0.0/33' has a prefix length out"},
        BadReading{"/a @x(anonuid=x)", "exports:1: anonuid=: 'x' is not an id"},
        BadReading{"/a @x(anonuid=-1)", "exports:1: anonuid=: '-1' is not an id"},
        BadReading{"/a @x(anongid=4294967295)", "exports:1: anongid=: "},
        BadReading{"/a @x(sec=foo)", "exports:1: sec=: 'foo' is no security flavour"},
        BadReading{"/a @x(sec=krb5p)", "exports:1: sec=: sys is not among the flavours"},
        BadReading{"/a @x(sec=none:krb5)", "exports:1: sec=: sys is not among the flavours"},
        BadReading{"/a @x(xprtsec=tls:mtls)", "exports:1: xprtsec=tls:mtls: there is no TLS"},
        BadReading{"/a @x(xprtsec=)", "exports:1: xprtsec=: there is no TLS"},
        BadReading{"/a @x(xprtsec=none:ssl)", "exports:1: xprtsec=: 'ssl' is no policy"},
        BadReading{"/a 10.0.0.0/255.0.255.0(rw)",
                   "exports:1: '10.0.0.0/255.0.255.0' has a netmask that is not one"},
        BadReading{"/a 10.0.0.0/255.0.0.256(rw)",
                   "exports:1: '10.0.0.0/255.0.0.256' has a netmask that is not one"},
        BadReading{"/a gss/krb5(rw)", "exports:1: gss/krb5: only sec=sys"},
        BadReading{"/a @x(refer=/b@c)", "exports:1: refer=: referrals are not given"},
        BadReading{"/a @x(replicas=/b@c)", "exports:1: replicas=: referrals"},
        BadReading{"/a @x(mp=b)", "exports:1: mp=: must be an absolute path"},
        BadReading{"/a -nosuch @x", "exports:1: unknown option 'nosuch'"}));

TEST(ExportsFileText, AsyncNamesWhatToUseInstead) {
  ListedExports listed;
  const auto error = parse_exports_text("/a *(async)", "exports", listed);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("sync=no"));
}

TEST(ExportsFileText, IsBounded) {
  ListedExports listed;
  EXPECT_TRUE(parse_exports_text(std::string(max_config_bytes + 1, '\n'), "exports", listed));
  EXPECT_TRUE(parse_exports_text("/a " + std::string(5000, 'x'), "exports", listed));
  std::string many;
  for (std::size_t i = 0; i <= max_exports; ++i) many += "/" + std::to_string(i) + " *()\n";
  const auto error = parse_exports_text(many, "exports", listed);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, ::testing::StartsWith("exports:10001: "));
}

class ExportsFiles : public ::testing::Test {
 protected:
  ExportsFiles() {
    EXPECT_EQ(::mkdir((dir_ / "a").c_str(), 0755), 0);
    EXPECT_EQ(::mkdir((dir_ / "b").c_str(), 0755), 0);
    EXPECT_EQ(::mkdir((dir_ / "exports.d").c_str(), 0755), 0);
  }
  std::string write(const std::string& name, const std::string& text) {
    return tests::write_file(dir_ / name, text);
  }
  Parsed<Config> combined(const std::string& config) {
    auto file = parse_config_text(config, "conf");
    if (!file) return file.error();
    return combine(std::move(*file), {});
  }

  storage::TempDir dir_;
};

TEST_F(ExportsFiles, TheFolderIsReadInOrder) {
  const std::string main = write("exports", dir_ / "a" + " @main(rw)\n");
  write("exports.d/10.exports", dir_ / "a" + " @ten(rw)\n");
  write("exports.d/9.exports", dir_ / "a" + " @nine(rw)\n");
  write("exports.d/.hidden.exports", "nonsense");
  write("exports.d/note.txt", "nonsense");
  write("exports.d/.exports", "nonsense");
  ASSERT_EQ(::mkdir((dir_ / "exports.d/folder.exports").c_str(), 0755), 0);
  ASSERT_EQ(::mkfifo((dir_ / "exports.d/pipe.exports").c_str(), 0644), 0);
  const auto listed = read_exports_files(std::vector{main});
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_THAT(lines_of(*listed), ElementsAre(dir_ / "a" + ": @main rw; @nine rw; @ten rw"));
  const auto pipe = read_exports_files(std::vector{dir_ / "exports.d/pipe.exports"});
  ASSERT_FALSE(pipe);
  EXPECT_THAT(pipe.error().message, HasSubstr("no regular file"));
  write("exports.d/5.exports", "\n/a (rw");
  const auto bad = read_exports_files(std::vector{main});
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().message, ::testing::StartsWith(dir_ / "exports.d/5.exports:2: "));
  EXPECT_FALSE(read_exports_files(std::vector<std::string>{dir_ / "missing"}));
}

TEST_F(ExportsFiles, OurOwnSettingsAreAddedByPath) {
  const std::string main = write("exports", dir_ / "a" + " 10.0.0.0/8(rw) *(ro)\n");
  const auto config = combined("exports: '" + main + "'\nexport { path: '" + dir_ / "a" +
                               "' edges: pagecache sync: false utf8: true }\nexport { path: '" +
                               dir_ / "b" + "' min_middle: 3 }\n");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_THAT(config->exports, SizeIs(1));  // What only has settings is not open to everybody.
  const auto& one = config->exports[0];
  EXPECT_EQ(one.path, dir_ / "a");
  ASSERT_THAT(one.rules, SizeIs(2));
  EXPECT_FALSE(one.rules[0].read_only);
  EXPECT_TRUE(one.rules[1].read_only);
  EXPECT_EQ(one.storage.edges, storage::EdgeMode::pagecache);
  EXPECT_FALSE(one.storage.sync);
  EXPECT_TRUE(one.utf8);
  EXPECT_THAT(config->notices, ElementsAre(HasSubstr("not served")));
}

TEST_F(ExportsFiles, WhoIsSaidInOnePlace) {
  const std::string main = write("exports", dir_ / "a" + " *(ro)\n");
  const auto twice =
      combined("exports: '" + main + "'\nexport { path: '" + dir_ / "a" + "'\naccess: rw }\n");
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message, ::testing::StartsWith("conf:2: "));
  const auto both =
      combined("exports: '" + main + "'\nexport { path: '" + dir_ / "b" + "' clients: '::1' }\n");
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_THAT(both->exports, SizeIs(2));
}

TEST_F(ExportsFiles, ADirectoryThatIsMissingIsNamedWithItsLine) {
  const std::string main = write("exports", "\n" + dir_ / "gone" + " *(ro)\n");
  const auto missing = combined("exports: '" + main + "'\n");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, main + ":2: " + dir_ / "gone" + ": No such file or directory");
}

}  // namespace
}  // namespace selvage::server
