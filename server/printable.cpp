#include "server/printable.h"

#include "server/nfs4/utf8.h"

namespace selvage::server {
namespace {

void append_escaped(std::string& to, unsigned char byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  to += "\\x";
  to += digits[byte >> 4U];
  to += digits[byte & 15U];
}

}  // namespace

std::string printable(std::string_view name) {
  const bool utf8 = nfs4::is_utf8(name);
  std::string text;
  bool control = false;  // The second byte of U+0080 to U+009F, which terminals obey too.
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    const bool second = control;
    control = utf8 && byte == 0xc2 && static_cast<unsigned char>(name[i + 1]) < 0xa0;
    const bool plain = byte >= 0x20 && byte < 0x7f && byte != '\\';
    if (plain || (byte >= 0x80 && utf8 && !control && !second)) {
      text += name[i];
    } else {
      append_escaped(text, byte);
    }
  }
  return text;
}

std::string as_utf8(std::string_view message) {
  if (nfs4::is_utf8(message)) return std::string(message);
  std::string text;
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
    } else {
      append_escaped(text, byte);
    }
  }
  return text;
}

}  // namespace selvage::server
