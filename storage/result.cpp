#include "storage/result.h"

namespace selvage::storage {
namespace {

class Category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "selvage.storage"; }
  std::string message(int value) const override {
    switch (static_cast<Errc>(value)) {
      case Errc::bad_handle:
        return "bad file handle";
      case Errc::not_sync:
        return "the object has changed since";
      case Errc::bad_cookie:
        return "bad directory cookie";
      case Errc::bad_type:
        return "type of object not supported";
      case Errc::too_small:
        return "buffer too small";
      case Errc::bad_name:
        return "bad name";
      case Errc::reserved_name:
        return "reserved name";
    }
    return "unknown storage error";
  }
};

}  // namespace

const boost::system::error_category& storage_category() {
  static const Category category;
  return category;
}

}  // namespace selvage::storage
