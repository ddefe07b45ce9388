#include "server/nfs4/utf8.h"

#include <cstddef>
#include <cstdint>

namespace selvage::server::nfs4 {
namespace {

struct Form {
  std::uint8_t mask, lead;
  std::size_t following;
  std::uint32_t least;  ///< Code points below have a shorter form.
};
constexpr Form forms[] = {
    {0x80, 0x00, 0, 0}, {0xe0, 0xc0, 1, 0x80}, {0xf0, 0xe0, 2, 0x800}, {0xf8, 0xf0, 3, 0x10000}};

const Form* form_of(std::uint8_t lead) {
  for (const Form& form : forms) {
    if ((lead & form.mask) == form.lead) return &form;
  }
  return nullptr;
}

}  // namespace

bool is_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto lead = static_cast<std::uint8_t>(text[at]);
    const Form* form = form_of(lead);
    if (form == nullptr || form->following >= text.size() - at) return false;
    auto code = static_cast<std::uint32_t>(lead & static_cast<std::uint8_t>(~form->mask));
    for (std::size_t i = 1; i <= form->following; ++i) {
      const auto byte = static_cast<std::uint8_t>(text[at + i]);
      if ((byte & 0xc0U) != 0x80U) return false;
      code = code << 6U | (byte & 0x3fU);
    }
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    const bool no_character = (code & 0xfffeU) == 0xfffe || (code >= 0xfdd0 && code <= 0xfdef);
    if (code < form->least || code > 0x10ffff || surrogate || no_character) return false;
    at += 1 + form->following;
  }
  return true;
}

}  // namespace selvage::server::nfs4
