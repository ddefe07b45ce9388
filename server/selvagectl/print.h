// Replies as text for people, or as JSON.
#pragma once

#include "server/control.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace selvage::ctl {

/// The reply's result as a JSON object (protobuf's mapping, the names of control.proto); one line.
std::string to_json(const control::Reply& reply);

/// The same as text; ends with a newline unless there is nothing to say.
std::string to_text(const control::Reply& reply);

/// "3.2 MiB"
std::string bytes_text(double bytes);
/// "2d 3h", "5 min", "12 s"
std::string time_text(std::uint64_t seconds);

/// Columns as wide as their widest cell; the first row is the heading. The first column and those
/// of `left` are aligned to the left, the others to the right.
std::string table(const std::vector<std::vector<std::string>>& rows,
                  const std::vector<std::size_t>& left = {});

}  // namespace selvage::ctl
