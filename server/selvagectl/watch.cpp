#include "server/selvagectl/watch.h"

#include "server/selvagectl/print.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace selvage::ctl {
namespace {

using Clock = std::chrono::steady_clock;
using Labels = std::map<std::string, std::string>;
using Values = std::map<std::pair<std::string, Labels>, double>;

constexpr std::size_t shown_clients = 10;

std::string fixed(double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

bool is_counter(const std::string& name) {
  return name.ends_with("_total") || name.ends_with("_count") || name.ends_with("_sum");
}

struct Snapshot {
  Clock::time_point at;
  Values values;

  double get(const std::string& name, const Labels& labels) const {
    const auto found = values.find({"selvage_" + name, labels});
    return found == values.end() ? 0 : found->second;
  }
  /// Of all labels.
  double sum(const std::string& name) const {
    double all = 0;
    for (const auto& [key, value] : values) all += key.first == "selvage_" + name ? value : 0;
    return all;
  }
};

std::variant<Snapshot, Failure> take(Connection& connection, const control::Request& request) {
  auto answer = connection.ask(request);
  if (auto* failure = std::get_if<Failure>(&answer)) return std::move(*failure);
  Snapshot snapshot;
  snapshot.at = Clock::now();
  for (const auto& sample : std::get<control::Reply>(answer).stats().samples()) {
    const Labels labels(sample.labels().begin(), sample.labels().end());
    snapshot.values[{sample.name(), labels}] = sample.value();
  }
  return snapshot;
}

/// Counters per second, gauges as they are.
control::Reply moved(const Snapshot& before, const Snapshot& after) {
  const double seconds = std::chrono::duration<double>(after.at - before.at).count();
  control::Reply reply;
  auto& stats = *reply.mutable_stats();
  for (const auto& [key, value] : after.values) {
    const auto& [name, labels] = key;
    const auto found = before.values.find(key);
    const double earlier = found == before.values.end() ? 0 : found->second;
    if (!is_counter(name) && value == earlier) continue;
    auto& sample = *stats.add_samples();
    sample.set_name(is_counter(name) ? name + "/s" : name);
    sample.set_value(is_counter(name) ? (value - earlier) / seconds : value);
    sample.mutable_labels()->insert(labels.begin(), labels.end());
  }
  return reply;
}

/// The lines of `top` above the clients.
std::string summary(const Snapshot& before, const Snapshot& after) {
  const double seconds = std::chrono::duration<double>(after.at - before.at).count();
  const auto rate = [&](const std::string& name) {
    return (after.sum(name) - before.sum(name)) / seconds;
  };
  const auto ratio = [&](const std::string& of, const std::string& by) {
    return rate(by) > 0 ? rate(of) / rate(by) : 0;
  };
  const auto milliseconds = [&](const std::string& name) {
    return fixed(ratio(name + "_sum", name + "_count") * 1000);
  };
  std::vector<std::vector<std::string>> rows{{"", "per second", "bytes/s", "ms on average"}};
  rows.push_back({"WRITE", fixed(rate("writes_total")), bytes_text(rate("write_bytes_total")),
                  milliseconds("write_duration_seconds")});
  rows.push_back({"READ", fixed(rate("reads_total")), bytes_text(rate("read_bytes_total")),
                  milliseconds("read_duration_seconds")});
  rows.push_back(
      {"COMMIT", fixed(rate("commits_total")), "", milliseconds("commit_duration_seconds")});
  rows.push_back({"requests", fixed(rate("requests_total")), "", ""});
  return table(rows) + "\nWRITEs per batch " + fixed(ratio("batch_writes_total", "batches_total")) +
         ", per sync " + fixed(ratio("writes_total", "syncs_total")) + "; device reads per WRITE " +
         fixed(ratio("edge_pages_read_total", "writes_total")) + "\nin flight " +
         fixed(after.sum("requests_in_flight")) + ", connections " +
         fixed(after.sum("connections")) + ", payload memory " +
         bytes_text(after.sum("buffer_bytes")) + ", edge pages " +
         bytes_text(after.sum("edge_bytes")) + "\n";
}

std::string clients(const Snapshot& before, const Snapshot& after) {
  const double seconds = std::chrono::duration<double>(after.at - before.at).count();
  std::vector<std::pair<double, std::vector<std::string>>> found;
  for (const auto& [key, value] : after.values) {
    if (key.first != "selvage_client_requests_total") continue;
    const auto rate = [&](const std::string& name) {
      return (after.get(name, key.second) - before.get(name, key.second)) / seconds;
    };
    const double received = rate("client_received_bytes_total");
    const double sent = rate("client_sent_bytes_total");
    found.push_back({received + sent,
                     {key.second.at("client"), fixed(rate("client_requests_total")),
                      bytes_text(received), bytes_text(sent)}});
  }
  std::ranges::sort(found, std::ranges::greater(), [](const auto& one) { return one.first; });
  std::vector<std::vector<std::string>> rows{{"client", "requests/s", "received/s", "sent/s"}};
  for (auto& [bytes, row] : found) {
    if (rows.size() <= shown_clients) rows.push_back(std::move(row));
  }
  return table(rows);
}

}  // namespace

std::optional<Failure> watch_stats(Connection& connection, const control::Request& request,
                                   const Watch& watch) {
  auto before = take(connection, request);
  if (auto* failure = std::get_if<Failure>(&before)) return std::move(*failure);
  for (std::uint64_t i = 0; watch.count == 0 || i < watch.count; ++i) {
    std::this_thread::sleep_for(watch.interval);
    auto after = take(connection, request);
    if (auto* failure = std::get_if<Failure>(&after)) return std::move(*failure);
    const auto reply = moved(std::get<Snapshot>(before), std::get<Snapshot>(after));
    print(watch.json ? to_json(reply) : (i > 0 ? "\n" : "") + to_text(reply));
    before = std::move(after);
  }
  return std::nullopt;
}

std::optional<Failure> top(Connection& connection, const Watch& watch) {
  control::Request all;
  all.mutable_stats();
  control::Request by_client;
  by_client.mutable_stats()->set_clients(true);
  const bool redraw = ::isatty(STDOUT_FILENO) != 0;
  std::optional<std::pair<Snapshot, Snapshot>> before;
  for (std::uint64_t i = 0; watch.count == 0 || i <= watch.count; ++i) {
    if (before) std::this_thread::sleep_for(watch.interval);
    auto first = take(connection, all);
    if (auto* failure = std::get_if<Failure>(&first)) return std::move(*failure);
    auto second = take(connection, by_client);
    if (auto* failure = std::get_if<Failure>(&second)) return std::move(*failure);
    std::pair after(std::get<Snapshot>(std::move(first)), std::get<Snapshot>(std::move(second)));
    if (before && watch.json) {
      auto reply = moved(before->first, after.first);
      reply.mutable_stats()->MergeFrom(moved(before->second, after.second).stats());
      print(to_json(reply));
    } else if (before) {
      print((redraw ? "\033[H\033[2J" : "") + summary(before->first, after.first) + "\n" +
            clients(before->second, after.second));
    }
    before = std::move(after);
  }
  return std::nullopt;
}

}  // namespace selvage::ctl
