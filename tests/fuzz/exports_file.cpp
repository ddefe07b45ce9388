// exports(5): any bytes are read or refused with their line.
#include "server/exports_file.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace selvage::server;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ListedExports listed;
  const auto error = parse_exports_text(text, "fuzz", listed);
  if (error && !error->message.starts_with("fuzz:")) std::abort();
  for (ExportConfig& one : listed.exports) {
    if (one.path.front() != '/' || one.rules.empty()) std::abort();
    sort_rules(one.rules);
    for (const AccessRule& rule : one.rules) {
      const auto again = ClientRule::parse(rule.client.text());
      if (!again || *again != rule.client) std::abort();
    }
  }
  return 0;
}
