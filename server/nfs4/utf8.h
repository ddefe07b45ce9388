// UTF-8 (RFC 3629), for exports that ask for it (RFC 7530, 12).
#pragma once

#include <string_view>

namespace selvage::server::nfs4 {

/// No overlong forms, no surrogates, nothing past U+10FFFF, none of the code points that are no
/// characters (RFC 3454, table C.4).
bool is_utf8(std::string_view text);

}  // namespace selvage::server::nfs4
