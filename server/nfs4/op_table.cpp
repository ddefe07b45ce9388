#include "server/nfs4/op_table.h"

#include "server/nfs4/operations.h"

#include <array>
#include <memory>
#include <type_traits>
#include <utility>

namespace selvage::server::nfs4 {
namespace {

xdr::nfsstat4 status_in(const xdr::SETATTR4res& result) {
  return result.status;
}
template <class... Arms>
xdr::nfsstat4 status_in(const xdr::Union<xdr::nfsstat4, Arms...>& result) {
  return result.tag;
}

template <class Res>
Res failed(xdr::nfsstat4 status) {
  if constexpr (std::is_same_v<Res, xdr::SETATTR4res>) {
    return {status, {}};
  } else {
    return Res(status);
  }
}

// What has no room in the reply becomes an error without a body.
template <class Res>
xdr::nfsstat4 put(Compound& compound, Res result) {
  if (compound.replay) {
    compound.results.put_opaque(*compound.replay);
    const auto* file = static_cast<const Object*>(compound.owner_context.get());
    if (file != nullptr) compound.set_current(*file);
    compound.replay.reset();
    return status_in(result);
  }
  if (compound.results.size() + xdr::encoded_size(result) > compound.max_results) {
    result = failed<Res>(compound.too_big);
  }
  const xdr::nfsstat4 status = status_in(result);
  if (compound.owner_turn) {
    xdr::Sink sink;
    xdr::encode(sink, result);
    auto bytes = std::make_shared<const std::vector<std::byte>>(sink.joined());
    compound.results.put_opaque(*bytes);
    auto turn = std::exchange(compound.owner_turn, {});
    auto context = std::exchange(compound.owner_context, nullptr);
    turn.finish({compound.operation, status, std::move(bytes), std::move(context)});
    return status;
  }
  xdr::encode(compound.results, result);
  return status;
}

template <auto Function>
struct Runner;

template <class Res, class Args, Awaitable<Res> (*Function)(Compound&, Args)>
struct Runner<Function> {
  static Awaitable<xdr::nfsstat4> run(Compound& compound) {
    Args args;
    if (!xdr::decode(compound.call.arguments, args)) {
      co_return put(compound, failed<Res>(xdr::NFS4ERR_BADXDR));
    }
    Res result = co_await Function(compound, std::move(args));
    co_return put(compound, std::move(result));
  }
};

template <class Res, Awaitable<Res> (*Function)(Compound&)>
struct Runner<Function> {
  static Awaitable<xdr::nfsstat4> run(Compound& compound) {
    Res result = co_await Function(compound);
    co_return put(compound, std::move(result));
  }
};

enum Needs : std::uint8_t { nothing, current, both };
enum Effect : std::uint8_t { looks, changes };

constexpr std::size_t small_result = 512;

template <auto Function>
constexpr OperationRow row(std::string_view name, std::uint8_t first, std::uint8_t last,
                           Needs needs, Effect effect, Session session = Session::inside) {
  OperationRow row;
  row.name = name;
  row.first_minor = first;
  row.last_minor = last;
  row.needs_current = needs != nothing;
  row.needs_saved = needs == both;
  row.changes = effect == changes;
  row.session = session;
  row.result_bytes = effect == changes ? small_result : 0;
  row.run = &Runner<Function>::run;
  return row;
}

constexpr OperationRow unsupported(std::string_view name, std::uint8_t first, std::uint8_t last) {
  OperationRow row;
  row.name = name;
  row.first_minor = first;
  row.last_minor = last;
  return row;
}

using Table = std::array<OperationRow, last_operation + 1>;

constexpr void core(Table& t) {
  using namespace xdr;
  t[OP_ACCESS] = row<access>("ACCESS", 0, 2, current, looks);
  t[OP_COMMIT] = row<commit>("COMMIT", 0, 2, current, looks);
  t[OP_CREATE] = row<create>("CREATE", 0, 2, current, changes);
  t[OP_GETATTR] = row<getattr>("GETATTR", 0, 2, current, looks);
  t[OP_GETFH] = row<getfh>("GETFH", 0, 2, current, looks);
  t[OP_LINK] = row<nfs4::link>("LINK", 0, 2, both, changes);
  t[OP_LOOKUP] = row<lookup>("LOOKUP", 0, 2, current, looks);
  t[OP_LOOKUPP] = row<lookupp>("LOOKUPP", 0, 2, current, looks);
  t[OP_NVERIFY] = row<nverify>("NVERIFY", 0, 2, current, looks);
  t[OP_OPENATTR] = unsupported("OPENATTR", 0, 2);
  t[OP_PUTFH] = row<putfh>("PUTFH", 0, 2, nothing, looks);
  t[OP_PUTPUBFH] = row<putrootfh>("PUTPUBFH", 0, 2, nothing, looks);
  t[OP_PUTROOTFH] = row<putrootfh>("PUTROOTFH", 0, 2, nothing, looks);
  t[OP_READ] = row<nfs4::read>("READ", 0, 2, current, looks);
  t[OP_READDIR] = row<nfs4::readdir>("READDIR", 0, 2, current, looks);
  t[OP_READLINK] = row<nfs4::readlink>("READLINK", 0, 2, current, looks);
  t[OP_REMOVE] = row<nfs4::remove>("REMOVE", 0, 2, current, changes);
  t[OP_RENAME] = row<nfs4::rename>("RENAME", 0, 2, both, changes);
  t[OP_RESTOREFH] = row<restorefh>("RESTOREFH", 0, 2, nothing, looks);
  t[OP_SAVEFH] = row<savefh>("SAVEFH", 0, 2, current, looks);
  t[OP_SECINFO] = row<secinfo>("SECINFO", 0, 2, current, looks);
  t[OP_SECINFO_NO_NAME] = row<secinfo_no_name>("SECINFO_NO_NAME", 1, 2, current, looks);
  t[OP_SETATTR] = row<setattr>("SETATTR", 0, 2, current, changes);
  t[OP_VERIFY] = row<verify>("VERIFY", 0, 2, current, looks);
  t[OP_WRITE] = row<nfs4::write>("WRITE", 0, 2, current, changes);
}

constexpr void stateful(Table& t) {
  using namespace xdr;
  t[OP_CLOSE] = row<nfs4::close>("CLOSE", 0, 2, current, changes);
  t[OP_DELEGPURGE] = unsupported("DELEGPURGE", 0, 2);
  t[OP_DELEGRETURN] = unsupported("DELEGRETURN", 0, 2);
  t[OP_LOCK] = row<nfs4::lock>("LOCK", 0, 2, current, changes);
  t[OP_LOCKT] = row<lockt>("LOCKT", 0, 2, current, looks);
  t[OP_LOCKU] = row<locku>("LOCKU", 0, 2, current, changes);
  t[OP_OPEN] = row<nfs4::open>("OPEN", 0, 2, current, changes);
  t[OP_OPEN_CONFIRM] = row<open_confirm>("OPEN_CONFIRM", 0, 0, current, changes);
  t[OP_OPEN_DOWNGRADE] = row<open_downgrade>("OPEN_DOWNGRADE", 0, 2, current, changes);
  t[OP_RENEW] = row<renew>("RENEW", 0, 0, nothing, looks);
  t[OP_SETCLIENTID] = row<setclientid>("SETCLIENTID", 0, 0, nothing, changes);
  t[OP_SETCLIENTID_CONFIRM] =
      row<setclientid_confirm>("SETCLIENTID_CONFIRM", 0, 0, nothing, changes);
  t[OP_RELEASE_LOCKOWNER] = row<release_lockowner>("RELEASE_LOCKOWNER", 0, 0, nothing, changes);
  t[OP_FREE_STATEID] = row<free_stateid>("FREE_STATEID", 1, 2, nothing, changes);
  t[OP_TEST_STATEID] = row<test_stateid>("TEST_STATEID", 1, 2, nothing, looks);
}

constexpr void sessions(Table& t) {
  using namespace xdr;
  t[OP_BACKCHANNEL_CTL] = row<backchannel_ctl>("BACKCHANNEL_CTL", 1, 2, nothing, looks);
  t[OP_BIND_CONN_TO_SESSION] =
      row<bind_conn_to_session>("BIND_CONN_TO_SESSION", 1, 2, nothing, looks, Session::optional);
  t[OP_EXCHANGE_ID] = row<exchange_id>("EXCHANGE_ID", 1, 2, nothing, changes, Session::optional);
  t[OP_CREATE_SESSION] =
      row<create_session>("CREATE_SESSION", 1, 2, nothing, changes, Session::optional);
  t[OP_DESTROY_SESSION] =
      row<destroy_session>("DESTROY_SESSION", 1, 2, nothing, changes, Session::optional);
  t[OP_DESTROY_CLIENTID] =
      row<destroy_clientid>("DESTROY_CLIENTID", 1, 2, nothing, changes, Session::optional);
  t[OP_RECLAIM_COMPLETE] = row<reclaim_complete>("RECLAIM_COMPLETE", 1, 2, nothing, changes);
  t[OP_SEQUENCE] = unsupported("SEQUENCE", 1, 2);  // The engine's own.
  t[OP_SEQUENCE].session = Session::opens;
  t[OP_GET_DIR_DELEGATION] = unsupported("GET_DIR_DELEGATION", 1, 2);
  t[OP_GETDEVICEINFO] = unsupported("GETDEVICEINFO", 1, 2);
  t[OP_GETDEVICELIST] = unsupported("GETDEVICELIST", 1, 2);
  t[OP_LAYOUTCOMMIT] = unsupported("LAYOUTCOMMIT", 1, 2);
  t[OP_LAYOUTGET] = unsupported("LAYOUTGET", 1, 2);
  t[OP_LAYOUTRETURN] = unsupported("LAYOUTRETURN", 1, 2);
  t[OP_SET_SSV] = unsupported("SET_SSV", 1, 2);
  t[OP_WANT_DELEGATION] = unsupported("WANT_DELEGATION", 1, 2);
}

constexpr void minor_two(Table& t) {
  using namespace xdr;
  t[OP_ALLOCATE] = row<allocate>("ALLOCATE", 2, 2, current, changes);
  t[OP_DEALLOCATE] = row<deallocate>("DEALLOCATE", 2, 2, current, changes);
  t[OP_IO_ADVISE] = row<io_advise>("IO_ADVISE", 2, 2, current, looks);
  t[OP_READ_PLUS] = row<read_plus>("READ_PLUS", 2, 2, current, looks);
  t[OP_SEEK] = row<nfs4::seek>("SEEK", 2, 2, current, looks);
  t[OP_COPY] = unsupported("COPY", 2, 2);
  t[OP_COPY_NOTIFY] = unsupported("COPY_NOTIFY", 2, 2);
  t[OP_LAYOUTERROR] = unsupported("LAYOUTERROR", 2, 2);
  t[OP_LAYOUTSTATS] = unsupported("LAYOUTSTATS", 2, 2);
  t[OP_OFFLOAD_CANCEL] = unsupported("OFFLOAD_CANCEL", 2, 2);
  t[OP_OFFLOAD_STATUS] = unsupported("OFFLOAD_STATUS", 2, 2);
  t[OP_WRITE_SAME] = unsupported("WRITE_SAME", 2, 2);
  t[OP_CLONE] = unsupported("CLONE", 2, 2);
  t[OP_GETXATTR] = unsupported("GETXATTR", 2, 2);
  t[OP_SETXATTR] = unsupported("SETXATTR", 2, 2);
  t[OP_LISTXATTRS] = unsupported("LISTXATTRS", 2, 2);
  t[OP_REMOVEXATTR] = unsupported("REMOVEXATTR", 2, 2);
}

constexpr Table make_table() {
  Table t{};
  for (OperationRow& none : t) none.first_minor = 255;
  core(t);
  stateful(t);
  sessions(t);
  minor_two(t);
  return t;
}

constexpr Table table = make_table();

// What later minor versions took out stays defined there (RFC 8881, 8178: mandatory not to
// implement).
constexpr OperationRow gone = unsupported("", 0, 2);

}  // namespace

const OperationRow* find_operation(std::uint32_t number, std::uint32_t minor) {
  if (number > last_operation) return nullptr;
  const OperationRow& row = table[number];
  if (minor < row.first_minor) return nullptr;
  return minor > row.last_minor ? &gone : &row;
}

std::vector<OperationCount> operation_counts(const Service& service) {
  std::vector<OperationCount> counts;
  for (std::size_t number = 0; number < service.operations.size(); ++number) {
    const auto& counters = service.operations[number];
    if (counters.calls.get() == 0) continue;
    const std::string_view name = number == 0 ? "ILLEGAL" : table[number].name;
    counts.push_back({name, counters.calls.get(), counters.errors.get()});
  }
  return counts;
}

void put_status(Compound& compound, std::uint32_t number, xdr::nfsstat4 status) {
  if (number == xdr::OP_SETATTR) {
    xdr::encode(compound.results, xdr::SETATTR4res{status, {}});
  } else {
    xdr::encode(compound.results, xdr::STATUS4res(status));
  }
}

}  // namespace selvage::server::nfs4
