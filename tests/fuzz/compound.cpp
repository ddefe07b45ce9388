// COMPOUNDs of NFSv4: what looks at them before they are executed (where the payload is, whether
// they change something), and the arguments of one operation after the other, as the engine decodes
// them. The first byte chooses between a whole COMPOUND and one type alone.
#include "server/nfs4/program.h"
#include "xdr/nfs41_ops.h"
#include "xdr/nfs4_ops.h"

#include "wire.h"

#include <array>

namespace {

using namespace selvage::xdr;
using fuzz::require;

using Check = void (*)(std::span<const std::byte>);
using Skip = bool (*)(Source&);

/// Decodes one operation's arguments; what they were made of is encoded the same.
template <class Args>
bool skip(Source& source) {
  const std::size_t before = source.position();
  Args args;
  if (!decode(source, args)) return false;
  require(encoded_size(args) == source.position() - before);
  return true;
}

bool skip_nothing(Source& /*source*/) {
  return true;
}

struct Operation {
  Skip skip = nullptr;
  Check alone = nullptr;
};

template <class Args>
constexpr Operation operation() {
  return {&skip<Args>, &fuzz::decode_and_encode<Args>};
}

constexpr std::size_t operations = OP_REMOVEXATTR + 1;

constexpr std::array<Operation, operations> make_table() {
  std::array<Operation, operations> t{};
  for (const auto number :
       {OP_GETFH, OP_LOOKUPP, OP_PUTPUBFH, OP_PUTROOTFH, OP_READLINK, OP_RESTOREFH, OP_SAVEFH}) {
    t[number].skip = &skip_nothing;
  }
  t[OP_ACCESS] = operation<ACCESS4args>();
  t[OP_CLOSE] = operation<CLOSE4args>();
  t[OP_COMMIT] = operation<COMMIT4args>();
  t[OP_CREATE] = operation<CREATE4args>();
  t[OP_GETATTR] = operation<GETATTR4args>();
  t[OP_LINK] = operation<LINK4args>();
  t[OP_LOCK] = operation<LOCK4args>();
  t[OP_LOCKT] = operation<LOCKT4args>();
  t[OP_LOCKU] = operation<LOCKU4args>();
  t[OP_LOOKUP] = operation<LOOKUP4args>();
  t[OP_NVERIFY] = t[OP_VERIFY] = operation<VERIFY4args>();
  t[OP_OPEN] = operation<OPEN4args>();
  t[OP_OPEN_CONFIRM] = operation<OPEN_CONFIRM4args>();
  t[OP_OPEN_DOWNGRADE] = operation<OPEN_DOWNGRADE4args>();
  t[OP_PUTFH] = operation<PUTFH4args>();
  t[OP_READ] = operation<READ4args>();
  t[OP_READDIR] = operation<READDIR4args>();
  t[OP_REMOVE] = operation<REMOVE4args>();
  t[OP_RENAME] = operation<RENAME4args>();
  t[OP_RENEW] = operation<RENEW4args>();
  t[OP_SECINFO] = operation<SECINFO4args>();
  t[OP_SETATTR] = operation<SETATTR4args>();
  t[OP_SETCLIENTID] = operation<SETCLIENTID4args>();
  t[OP_SETCLIENTID_CONFIRM] = operation<SETCLIENTID_CONFIRM4args>();
  t[OP_WRITE] = operation<WRITE4args>();
  t[OP_RELEASE_LOCKOWNER] = operation<RELEASE_LOCKOWNER4args>();
  t[OP_BACKCHANNEL_CTL] = operation<BACKCHANNEL_CTL4args>();
  t[OP_BIND_CONN_TO_SESSION] = operation<BIND_CONN_TO_SESSION4args>();
  t[OP_EXCHANGE_ID] = operation<EXCHANGE_ID4args>();
  t[OP_CREATE_SESSION] = operation<CREATE_SESSION4args>();
  t[OP_DESTROY_SESSION] = operation<DESTROY_SESSION4args>();
  t[OP_FREE_STATEID] = operation<FREE_STATEID4args>();
  t[OP_SECINFO_NO_NAME] = operation<SECINFO_NO_NAME4args>();
  t[OP_SEQUENCE] = operation<SEQUENCE4args>();
  t[OP_TEST_STATEID] = operation<TEST_STATEID4args>();
  t[OP_DESTROY_CLIENTID] = operation<DESTROY_CLIENTID4args>();
  t[OP_RECLAIM_COMPLETE] = operation<RECLAIM_COMPLETE4args>();
  t[OP_ALLOCATE] = t[OP_DEALLOCATE] = operation<ALLOCATE4args>();
  t[OP_IO_ADVISE] = operation<IO_ADVISE4args>();
  t[OP_READ_PLUS] = operation<READ_PLUS4args>();
  t[OP_SEEK] = operation<SEEK4args>();
  return t;
}

constexpr auto table = make_table();

constexpr std::array<Check, 16> results{
    &fuzz::decode_and_encode<GETATTR4res>,   &fuzz::decode_and_encode<LOCK4res>,
    &fuzz::decode_and_encode<OPEN4res>,      &fuzz::decode_and_encode<READ4res>,
    &fuzz::decode_and_encode<READDIR4res>,   &fuzz::decode_and_encode<SECINFO4res>,
    &fuzz::decode_and_encode<SETATTR4res>,   &fuzz::decode_and_encode<SETCLIENTID4res>,
    &fuzz::decode_and_encode<WRITE4res>,     &fuzz::decode_and_encode<EXCHANGE_ID4res>,
    &fuzz::decode_and_encode<SEQUENCE4res>,  &fuzz::decode_and_encode<CREATE_SESSION4res>,
    &fuzz::decode_and_encode<READ_PLUS4res>, &fuzz::decode_and_encode<TEST_STATEID4res>,
    &fuzz::decode_and_encode<COMMIT4res>,    &fuzz::decode_and_encode<CREATE4res>,
};

void whole(std::span<const std::byte> input) {
  const auto place = selvage::server::nfs4::find_payload(NFSPROC4_COMPOUND, input);
  static_cast<void>(selvage::server::nfs4::changes_something(Source(input)));
  Source source(input);
  COMPOUND4head head;
  if (!decode(source, head)) return;
  bool found = false;
  for (std::uint32_t i = 0; i < head.operations; ++i) {
    std::uint32_t number = 0;
    if (!source.get(number) || number >= operations || table[number].skip == nullptr) break;
    const std::size_t arguments = source.position();
    if (number == OP_WRITE && !found) {
      found = true;
      WRITE4args args;
      Source write = source;
      // The payload lies where the receiver was told.
      if (decode(write, args) && !args.data.bytes.empty() && place) {
        const auto at = static_cast<std::size_t>(args.data.bytes.data() - input.data());
        require(place->position == at && place->length == args.data.bytes.size());
        require(place->file_offset == args.offset && at > arguments);
      }
    }
    if (!table[number].skip(source)) break;
  }
  require(source.position() <= input.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  // XDR is in units of four bytes.
  const auto input = std::as_bytes(std::span(data, size)).subspan(4);
  const std::size_t which = data[0];
  if (which < operations && table[which].alone != nullptr) {
    table[which].alone(input);
  } else if (which >= 128 && which < 128 + results.size()) {
    results[which - 128](input);
  } else {
    whole(input);
  }
  fuzz::decode_in_pieces<WRITE4args>(input, data[1], data[2]);
  return 0;
}
