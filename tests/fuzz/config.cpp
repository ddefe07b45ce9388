// The configuration file and the argument of --export: any bytes are accepted or refused in words.
#include "server/config.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace selvage::server;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = parse_config_text(text, "fuzz");
  if (!file && !file.error().message.starts_with("fuzz")) std::abort();
  const auto argument = parse_export_argument(text);
  if (argument && argument->path.front() != '/') std::abort();
  if (!argument && !argument.error().message.starts_with("--export ")) std::abort();
  const auto rule = ClientRule::parse(text);
  if (rule && *ClientRule::parse(rule->text()) != *rule) std::abort();
  return 0;
}
