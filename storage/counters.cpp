#include "storage/counters.h"

namespace selvage::storage {

std::string_view to_string(PlanReason reason) {
  switch (reason) {
    case PlanReason::aligned:
      return "aligned";
    case PlanReason::split:
      return "split";
    case PlanReason::too_small:
      return "too_small";
    case PlanReason::no_middle:
      return "no_middle";
    case PlanReason::no_alignment:
      return "no_alignment";
    case PlanReason::mode_buffered:
      return "mode_buffered";
    case PlanReason::mode_dontcache:
      return "mode_dontcache";
  }
  return "unknown";
}

}  // namespace selvage::storage
