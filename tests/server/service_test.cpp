// What running as a service needs of small things: endpoints, settings, clients, requests,
// histograms as Prometheus gets them.
#include "server/config.h"
#include "server/control/request.h"
#include "server/endpoint.h"
#include "server/exporter/families.h"
#include "server/log.h"
#include "server/options.h"
#include "server/printable.h"
#include "server/rpc/client_table.h"
#include "server/server.h"
#include "tests/support/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace selvage::server {
namespace {

using std::chrono::nanoseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Endpoint, ReadAndWrittenBack) {
  for (const char* text : {"127.0.0.1:9464", "0.0.0.0:0", "[::1]:65535", "[2001:db8::1]:80"}) {
    const auto endpoint = parse_endpoint(text);
    ASSERT_TRUE(endpoint) << text;
    EXPECT_EQ(to_text(*endpoint), text);
  }
  for (const char* text : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
                           "127.0.0.1:1x", "::1:80", "::1", "[::1]", "host:80", ":80"}) {
    EXPECT_FALSE(parse_endpoint(text)) << text;
  }
}

TEST(ServiceSettings, InTheFileAndOnTheCommandLine) {
  const auto file =
      parse_config_text("metrics: '127.0.0.1:1' control_socket: '/a/b' control_group: 'adm'", "f");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(to_text(*file->metrics), "127.0.0.1:1");
  EXPECT_EQ(file->control_socket, "/a/b");
  EXPECT_EQ(file->control_group, "adm");
  const std::vector<const char*> arguments{"--metrics", "[::1]:2",  "--control-socket",
                                           "none",      "--export", "/"};
  const auto options = parse_options(arguments);
  ASSERT_TRUE(options) << options.error().message;
  const auto config = combine(*file, options->settings);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(to_text(*config->metrics), "[::1]:2") << "the command line counts";
  EXPECT_EQ(config->control_socket, "none");
  EXPECT_EQ(config->control_group, "adm");

  const auto bad = parse_config_text("port: 1\nmetrics: 'x'", "f");
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().message, HasSubstr("f:2: metrics: 'x' is not ADDRESS:PORT"));
  EXPECT_FALSE(parse_config_text("control_socket: 'relative'", "f"));
  const std::vector<const char*> wrong{"--metrics", "9464"};
  EXPECT_FALSE(parse_options(wrong));
}

TEST(ClientTable, CountsByAddressAndForgetsTheLongestGone) {
  const auto at = [](unsigned n) {
    return boost::asio::ip::address(boost::asio::ip::address_v4(n));
  };
  rpc::ClientTable table(2);
  const auto one = table.enter(at(1));
  EXPECT_EQ(table.enter(at(1)), one);
  EXPECT_EQ(one->connections.load(), 2U);
  table.leave(at(1), one);
  const auto two = table.enter(at(2));

  // No room, and nobody to go: a row for all the others.
  const auto three = table.enter(at(3));
  EXPECT_EQ(table.enter(at(4)), three);
  three->requests.add(5);
  ASSERT_THAT(table.rows(), SizeIs(3));
  EXPECT_TRUE(table.rows()[2].others);
  EXPECT_EQ(table.rows()[2].counters->connections.load(), 2U);
  table.leave(at(3), three);
  table.leave(at(4), three);
  EXPECT_EQ(three->connections.load(), 0U);

  // Of those without a connection the one that is longest without goes.
  two->requests.add(7);
  table.leave(at(2), two);
  table.leave(at(1), one);
  EXPECT_EQ(table.enter(at(2)), two) << "back before it was forgotten";
  const auto five = table.enter(at(5));
  EXPECT_NE(five, three);
  std::vector<boost::asio::ip::address> kept;
  for (const auto& row : table.rows()) {
    if (!row.others) kept.push_back(row.address);
  }
  EXPECT_THAT(kept, ElementsAre(at(2), at(5)));
  EXPECT_EQ(two->requests.get(), 7U);
}

TEST(ClientCounters, VersionsThatWereUsed) {
  rpc::ClientCounters counters;
  for (const unsigned version : {3U, 4U, 3U, 32U, 4'000'000'000U}) counters.used_nfs(version);
  EXPECT_EQ(counters.nfs_versions.load(), 1U << 3U | 1U << 4U);
}

TEST(Histogram, BucketsAndSumInSeconds) {
  storage::Histogram times;
  // Each bound is in the bucket above it: [2^(n-1), 2^n) us.
  for (const auto ns : {0, 999, 1000, 1999, 2000, 1'000'000, -5}) times.add(nanoseconds(ns));
  times.add(std::chrono::hours(24));
  Families families;
  families.histogram("x_seconds", "X.", times, {{"a", "b"}});
  const auto all = families.take();
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].name, "selvage_x_seconds");
  const auto& histogram = all[0].metric.at(0).histogram;
  EXPECT_EQ(histogram.sample_count, 8U);
  EXPECT_DOUBLE_EQ(histogram.sample_sum, (999 + 1000 + 1999 + 2000 + 1'000'000) / 1e9 + 86400);
  const auto below = [&](double bound) {
    for (const auto& bucket : histogram.bucket) {
      if (bucket.upper_bound == bound) return static_cast<int>(bucket.cumulative_count);
    }
    return -1;
  };
  EXPECT_EQ(below(1e-6), 3);
  EXPECT_EQ(below(2e-6), 5);
  EXPECT_EQ(below(4e-6), 6);
  EXPECT_EQ(below(512e-6), 6);
  EXPECT_EQ(below(1024e-6), 7);
  EXPECT_EQ(histogram.bucket.back().cumulative_count, 7U) << "a day is above every bound";
  EXPECT_EQ(histogram.bucket.back().upper_bound, 33.554432);
}

TEST(Families, SamplesOfOneNameStayTogether) {
  Families families;
  families.counter("a_total", "A.", 1, {{"l", "1"}});
  families.gauge("b", "B.", 2);
  families.counter("a_total", "A.", 3, {{"l", "2"}});
  const auto all = families.take();
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_THAT(all[0].metric, SizeIs(2));
  EXPECT_EQ(all[0].metric[1].counter.value, 3);
  EXPECT_EQ(all[1].metric[0].gauge.value, 2);
}

std::string refusal(const std::string& bytes) {
  const auto parsed = control::parse_request(bytes);
  const auto* reply = std::get_if<control::Reply>(&parsed);
  if (reply == nullptr) return {};
  EXPECT_EQ(reply->error().code(), control::Error::bad_request);
  return reply->error().message();
}

TEST(ControlRequest, OneKnownCommand) {
  control::Request request;
  request.mutable_stats()->set_export_("/srv");
  const auto parsed = control::parse_request(request.SerializeAsString());
  ASSERT_TRUE(std::holds_alternative<control::Request>(parsed));
  EXPECT_EQ(std::get<control::Request>(parsed).stats().export_(), "/srv");

  EXPECT_THAT(refusal(""), HasSubstr("does not know"));
  EXPECT_THAT(refusal("\xff\xff"), HasSubstr("not a request"));
  EXPECT_THAT(refusal(std::string("\x7a\x00", 2)), HasSubstr("does not know")) << "a new command";
  EXPECT_THAT(refusal(std::string("\x0a\x02\x08\x01", 4)), HasSubstr("does not know"))
      << "a new field of a known one";
  request.mutable_sync()->set_export_(std::string(4096, 'x'));
  EXPECT_THAT(refusal(request.SerializeAsString()), IsEmpty());
  request.mutable_sync()->set_export_(std::string(4097, 'x'));
  EXPECT_THAT(refusal(request.SerializeAsString()), HasSubstr("too long"));
}

TEST(Printable, WhateverTheBytesTheTextIsUtf8AndTellsThemApart) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"/srv/data", "/srv/data"},
      {"/srv/\xc3\xbc", "/srv/\xc3\xbc"},
      {"/srv/\xff", "/srv/\\xff"},
      {"/srv/\\xff", "/srv/\\x5cxff"},
      {"\xc3\xbc\xc3", "\\xc3\\xbc\\xc3"},
      {"a\nb\x1b[31m\x7f", "a\\x0ab\\x1b[31m\\x7f"},
      {"a\xc2\x9b"
       "31m\xc2\xa0",
       "a\\xc2\\x9b31m\xc2\xa0"},
      {std::string("\0", 1), "\\x00"},
      {"", ""},
  };
  for (const auto& [name, text] : table) EXPECT_EQ(printable(name), text);
  EXPECT_EQ(as_utf8("a\nb \\ \xc3\xbc"), "a\nb \\ \xc3\xbc");
  EXPECT_EQ(as_utf8("a\nb \xff"), "a\nb \\xff");
  const auto reply = control::error(control::Error::failed, "/srv/\xff: gone");
  EXPECT_EQ(reply.error().message(), "/srv/\\xff: gone");
  EXPECT_EQ(control::done("/\xff").done().message(), "/\\xff");
}

TEST(Exporter, AServerWithoutClientsEndsAtOnce) {
  // The web server looks every second or two whether it is to end: eight ends would take eight
  // seconds and more. A loaded machine has five.
  storage::TempDir folder;
  std::chrono::steady_clock::duration stopping{};
  for (int i = 0; i < 8; ++i) {
    Settings settings;
    settings.listen.push_back(boost::asio::ip::make_address("127.0.0.1"));
    settings.port = 0;
    settings.state_dir = folder / "state";
    settings.threads = 1;
    settings.metrics = *parse_endpoint("127.0.0.1:0");
    settings.control_socket = "none";
    settings.exports.push_back(*parse_export_argument(folder.path()));
    const auto config = combine({}, settings);
    ASSERT_TRUE(config) << config.error().message;
    auto server = Server::start(*config);
    ASSERT_TRUE(server) << server.error().message;
    const auto began = std::chrono::steady_clock::now();
    EXPECT_TRUE((*server)->stop());
    stopping += std::chrono::steady_clock::now() - began;
  }
  EXPECT_LT(stopping, std::chrono::seconds(5));
}

TEST(Log, Levels) {
  EXPECT_EQ(log::parse_level("error"), log::Level::error);
  EXPECT_EQ(log::parse_level("info"), log::Level::info);
  EXPECT_FALSE(log::parse_level("debug"));
  EXPECT_FALSE(log::parse_level(""));
}

}  // namespace
}  // namespace selvage::server
