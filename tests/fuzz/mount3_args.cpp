// Arguments and results of MOUNT: the first byte chooses which.
#include "xdr/mount3.h"

#include "wire.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace selvage::xdr;
  if (size == 0) return 0;
  const auto input = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0] % 5) {
    case 0:
      fuzz::decode_and_encode<dirpath_args>(input);
      break;
    case 1:
      fuzz::decode_and_encode<mountres3>(input);
      break;
    case 2:
      fuzz::decode_and_encode<fhstatus>(input);
      break;
    case 3:
      fuzz::decode_and_encode<mountlist>(input);
      break;
    default:
      fuzz::decode_and_encode<exports>(input);
      break;
  }
  return 0;
}
