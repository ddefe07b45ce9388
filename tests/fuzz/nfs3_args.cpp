// Arguments and results of NFSv3: the first byte chooses which, the second where a cut falls.
#include "xdr/nfs3.h"

#include "wire.h"

#include <array>

namespace {

using namespace selvage::xdr;

using Decoder = void (*)(std::span<const std::byte>);

constexpr std::array<Decoder, 42> decoders{
    &fuzz::decode_and_encode<GETATTR3args>,     &fuzz::decode_and_encode<SETATTR3args>,
    &fuzz::decode_and_encode<LOOKUP3args>,      &fuzz::decode_and_encode<ACCESS3args>,
    &fuzz::decode_and_encode<READLINK3args>,    &fuzz::decode_and_encode<READ3args>,
    &fuzz::decode_and_encode<WRITE3args>,       &fuzz::decode_and_encode<CREATE3args>,
    &fuzz::decode_and_encode<MKDIR3args>,       &fuzz::decode_and_encode<SYMLINK3args>,
    &fuzz::decode_and_encode<MKNOD3args>,       &fuzz::decode_and_encode<REMOVE3args>,
    &fuzz::decode_and_encode<RMDIR3args>,       &fuzz::decode_and_encode<RENAME3args>,
    &fuzz::decode_and_encode<LINK3args>,        &fuzz::decode_and_encode<READDIR3args>,
    &fuzz::decode_and_encode<READDIRPLUS3args>, &fuzz::decode_and_encode<FSSTAT3args>,
    &fuzz::decode_and_encode<FSINFO3args>,      &fuzz::decode_and_encode<PATHCONF3args>,
    &fuzz::decode_and_encode<COMMIT3args>,      &fuzz::decode_and_encode<GETATTR3res>,
    &fuzz::decode_and_encode<SETATTR3res>,      &fuzz::decode_and_encode<LOOKUP3res>,
    &fuzz::decode_and_encode<ACCESS3res>,       &fuzz::decode_and_encode<READLINK3res>,
    &fuzz::decode_and_encode<READ3res>,         &fuzz::decode_and_encode<WRITE3res>,
    &fuzz::decode_and_encode<CREATE3res>,       &fuzz::decode_and_encode<MKDIR3res>,
    &fuzz::decode_and_encode<SYMLINK3res>,      &fuzz::decode_and_encode<MKNOD3res>,
    &fuzz::decode_and_encode<REMOVE3res>,       &fuzz::decode_and_encode<RMDIR3res>,
    &fuzz::decode_and_encode<RENAME3res>,       &fuzz::decode_and_encode<LINK3res>,
    &fuzz::decode_and_encode<READDIR3res>,      &fuzz::decode_and_encode<READDIRPLUS3res>,
    &fuzz::decode_and_encode<FSSTAT3res>,       &fuzz::decode_and_encode<FSINFO3res>,
    &fuzz::decode_and_encode<PATHCONF3res>,     &fuzz::decode_and_encode<COMMIT3res>,
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto input = std::as_bytes(std::span(data, size));
  decoders[data[0] % decoders.size()](input.subspan(2));
  fuzz::decode_in_pieces<WRITE3args>(input.subspan(2), data[1], data[0]);
  return 0;
}
