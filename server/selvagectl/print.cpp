#include "server/selvagectl/print.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace selvage::ctl {
namespace {

using Row = std::vector<std::string>;

std::string number(double value) {
  std::array<char, 64> text{};
  const bool whole = value == static_cast<double>(static_cast<std::int64_t>(value));
  std::snprintf(text.data(), text.size(), whole ? "%.0f" : "%.6g", value);
  return text.data();
}

std::string of(std::uint64_t value, std::uint64_t limit) {
  return std::to_string(value) + " of " + std::to_string(limit);
}

std::string joined(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  std::string all;
  for (const auto& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all;
}

std::string text_of(const control::Status& status) {
  std::vector<Row> rows{
      {"selvaged " + status.version(), "process " + std::to_string(status.pid()) + ", up for " +
                                           time_text(status.uptime_seconds())},
      {"listening on", joined(status.listening())},
      {"exports", std::to_string(status.exports())},
      {"workers", std::to_string(status.workers()) +
                      (status.io_uring() ? " with io_uring" : " without io_uring")},
      {"connections", of(status.connections(), status.connections_limit())},
      {"requests in flight", of(status.requests_in_flight(), status.requests_in_flight_limit())},
      {"NFSv4", std::to_string(status.nfs4_clients()) + " clients, " +
                    std::to_string(status.nfs4_opens()) + " opens, " +
                    std::to_string(status.nfs4_locks()) + " locks" +
                    (status.grace() ? ", in its grace period" : "")}};
  if (!status.metrics().empty()) rows.push_back({"metrics", status.metrics()});
  std::vector<Row> memory{{"memory held by", "bytes", "limit"}};
  for (const auto& one : status.memory()) {
    memory.push_back({one.holder(), bytes_text(static_cast<double>(one.bytes())),
                      one.limit() == 0 ? "" : bytes_text(static_cast<double>(one.limit()))});
  }
  memory.push_back(
      {"the process, resident", bytes_text(static_cast<double>(status.resident_bytes())), ""});
  return table(rows, {1}) + "\n" + table(memory);
}

std::string text_of(const control::Exports& exports) {
  std::vector<Row> rows{{"export", "files", "reads", "read", "writes", "written", "errors"}};
  std::string descriptions;
  for (const auto& one : exports.exports()) {
    rows.push_back({one.path(), std::to_string(one.open_files()), std::to_string(one.reads()),
                    bytes_text(static_cast<double>(one.read_bytes())), std::to_string(one.writes()),
                    bytes_text(static_cast<double>(one.write_bytes())),
                    std::to_string(one.errors())});
    descriptions += one.description() + "\n";
  }
  return table(rows) + "\n" + descriptions;
}

std::string text_of(const control::Clients& clients) {
  if (clients.clients().empty()) return "no clients\n";
  std::vector<Row> rows{
      {"address", "versions", "connections", "requests", "received", "sent", "idle"}};
  std::vector<Row> states{{"NFSv4 client", "version", "address", "sessions", "opens", "locks",
                           "seen", "state", "name"}};
  for (const auto& one : clients.clients()) {
    rows.push_back({one.address(), joined(one.versions()), std::to_string(one.connections()),
                    std::to_string(one.requests()),
                    bytes_text(static_cast<double>(one.received_bytes())),
                    bytes_text(static_cast<double>(one.sent_bytes())),
                    one.has_idle_seconds() ? time_text(one.idle_seconds()) : ""});
    for (const auto& state : one.nfs4()) {
      const char* how = "active";
      if (!state.confirmed()) how = "unconfirmed";
      if (state.expired()) how = "expired";
      if (state.revoked()) how = "evicted";
      states.push_back({state.id(), state.version(), one.address(),
                        std::to_string(state.sessions()), std::to_string(state.opens()),
                        std::to_string(state.locks()), time_text(state.last_seen_seconds()), how,
                        state.owner()});
    }
  }
  std::string text = table(rows, {1});
  if (states.size() > 1) text += "\n" + table(states, {1, 2, 7, 8});
  return text;
}

std::string labels_of(const control::Stats::Sample& sample) {
  // A map has no order of its own.
  std::vector<std::string> labels;
  for (const auto& [name, value] : sample.labels()) labels.push_back(name + "=" + value);
  std::ranges::sort(labels);
  std::string all;
  for (const auto& label : labels) all += (all.empty() ? "" : " ") + label;
  return all;
}

std::string text_of(const control::Stats& stats) {
  std::vector<Row> rows{{"name", "labels", "value"}};
  for (const auto& sample : stats.samples()) {
    if (sample.value() == 0) continue;
    rows.push_back({sample.name(), labels_of(sample), number(sample.value())});
  }
  return rows.size() > 1 ? table(rows, {1}) : "nothing but zeros\n";
}

std::string text_of(const control::Edges& edges) {
  if (edges.files().empty()) return "no boundary pages in play\n";
  std::vector<Row> rows{{"file", "inode", "pages", "kept in", "not on disk", "in flight", "key"}};
  for (const auto& one : edges.files()) {
    rows.push_back({one.path(), std::to_string(one.fileid()), std::to_string(one.pages()),
                    one.assembled() ? "memory" : "page cache",
                    one.assembled() ? bytes_text(static_cast<double>(one.dirty_bytes())) : "",
                    one.assembled() ? "" : std::to_string(one.in_flight()),
                    std::to_string(one.key())});
  }
  return table(rows);
}

/// The set result of the reply.
const google::protobuf::Message& result_of(const control::Reply& reply) {
  const auto* type = control::Reply::descriptor()->FindOneofByName("result");
  const auto* field = reply.GetReflection()->GetOneofFieldDescriptor(reply, type);
  return field == nullptr ? reply : reply.GetReflection()->GetMessage(reply, field);
}

}  // namespace

std::string to_json(const control::Reply& reply) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(result_of(reply), &text, options).ok())
    return {};
  return text + "\n";
}

std::string to_text(const control::Reply& reply) {
  switch (reply.result_case()) {
    case control::Reply::kDone:
      return reply.done().message() + "\n";
    case control::Reply::kStatus:
      return text_of(reply.status());
    case control::Reply::kExports:
      return text_of(reply.exports());
    case control::Reply::kClients:
      return text_of(reply.clients());
    case control::Reply::kStats:
      return text_of(reply.stats());
    case control::Reply::kEdges:
      return text_of(reply.edges());
    case control::Reply::kError:
    case control::Reply::RESULT_NOT_SET:
      break;
  }
  return {};
}

std::string bytes_text(double bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return text.data();
}

std::string time_text(std::uint64_t seconds) {
  if (seconds < 120) return std::to_string(seconds) + " s";
  if (seconds < 7200) return std::to_string(seconds / 60) + " min";
  if (seconds < 172'800) return std::to_string(seconds / 3600) + " h";
  return std::to_string(seconds / 86'400) + " d";
}

std::string table(const std::vector<Row>& rows, const std::vector<std::size_t>& left) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      const bool to_the_left = i == 0 || std::ranges::find(left, i) != left.end();
      if (i > 0) line += "  ";
      line += to_the_left ? row[i] + padding : padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace selvage::ctl
