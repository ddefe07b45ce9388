// The operations of NFSv4, one coroutine each; see op_table. Private to server/nfs4.
//
// An operation is called with its arguments decoded and with the filehandles that its row of the
// table asks for. It may hand on the current filehandle and stateid; its result is encoded by the
// engine.
#pragma once

#include "server/nfs4/compound.h"
#include "xdr/nfs41_ops.h"
#include "xdr/nfs4_ops.h"

namespace selvage::server::nfs4 {

// handles.cpp
Awaitable<xdr::STATUS4res> putfh(Compound& compound, xdr::PUTFH4args args);
Awaitable<xdr::STATUS4res> putrootfh(Compound& compound);
Awaitable<xdr::GETFH4res> getfh(Compound& compound);
Awaitable<xdr::STATUS4res> savefh(Compound& compound);
Awaitable<xdr::STATUS4res> restorefh(Compound& compound);

// lookup.cpp
Awaitable<xdr::STATUS4res> lookup(Compound& compound, xdr::LOOKUP4args args);
Awaitable<xdr::STATUS4res> lookupp(Compound& compound);
Awaitable<xdr::READLINK4res> readlink(Compound& compound);
Awaitable<xdr::SECINFO4res> secinfo(Compound& compound, xdr::SECINFO4args args);
Awaitable<xdr::SECINFO4res> secinfo_no_name(Compound& compound, xdr::SECINFO_NO_NAME4args args);

// attributes_ops.cpp
Awaitable<xdr::ACCESS4res> access(Compound& compound, xdr::ACCESS4args args);
Awaitable<xdr::GETATTR4res> getattr(Compound& compound, xdr::GETATTR4args args);
Awaitable<xdr::SETATTR4res> setattr(Compound& compound, xdr::SETATTR4args args);
Awaitable<xdr::STATUS4res> verify(Compound& compound, xdr::VERIFY4args args);
Awaitable<xdr::STATUS4res> nverify(Compound& compound, xdr::VERIFY4args args);

// readdir.cpp
Awaitable<xdr::READDIR4res> readdir(Compound& compound, xdr::READDIR4args args);

// names.cpp
Awaitable<xdr::CREATE4res> create(Compound& compound, xdr::CREATE4args args);
Awaitable<xdr::REMOVE4res> remove(Compound& compound, xdr::REMOVE4args args);
Awaitable<xdr::RENAME4res> rename(Compound& compound, xdr::RENAME4args args);
Awaitable<xdr::LINK4res> link(Compound& compound, xdr::LINK4args args);

// io.cpp
Awaitable<xdr::READ4res> read(Compound& compound, xdr::READ4args args);
Awaitable<xdr::WRITE4res> write(Compound& compound, xdr::WRITE4args args);
Awaitable<xdr::COMMIT4res> commit(Compound& compound, xdr::COMMIT4args args);

// space.cpp
Awaitable<xdr::STATUS4res> allocate(Compound& compound, xdr::ALLOCATE4args args);
Awaitable<xdr::STATUS4res> deallocate(Compound& compound, xdr::ALLOCATE4args args);
Awaitable<xdr::SEEK4res> seek(Compound& compound, xdr::SEEK4args args);
Awaitable<xdr::READ_PLUS4res> read_plus(Compound& compound, xdr::READ_PLUS4args args);
Awaitable<xdr::IO_ADVISE4res> io_advise(Compound& compound, xdr::IO_ADVISE4args args);

// open.cpp
Awaitable<xdr::OPEN4res> open(Compound& compound, xdr::OPEN4args args);
Awaitable<xdr::CLOSE4res> close(Compound& compound, xdr::CLOSE4args args);
Awaitable<xdr::OPEN_CONFIRM4res> open_confirm(Compound& compound, xdr::OPEN_CONFIRM4args args);
Awaitable<xdr::OPEN_DOWNGRADE4res> open_downgrade(Compound& compound,
                                                  xdr::OPEN_DOWNGRADE4args args);

// lock.cpp
Awaitable<xdr::LOCK4res> lock(Compound& compound, xdr::LOCK4args args);
Awaitable<xdr::LOCKT4res> lockt(Compound& compound, xdr::LOCKT4args args);
Awaitable<xdr::LOCKU4res> locku(Compound& compound, xdr::LOCKU4args args);
Awaitable<xdr::STATUS4res> release_lockowner(Compound& compound, xdr::RELEASE_LOCKOWNER4args args);
Awaitable<xdr::TEST_STATEID4res> test_stateid(Compound& compound, xdr::TEST_STATEID4args args);
Awaitable<xdr::STATUS4res> free_stateid(Compound& compound, xdr::FREE_STATEID4args args);

// clientid.cpp
Awaitable<xdr::SETCLIENTID4res> setclientid(Compound& compound, xdr::SETCLIENTID4args args);
Awaitable<xdr::STATUS4res> setclientid_confirm(Compound& compound,
                                               xdr::SETCLIENTID_CONFIRM4args args);
Awaitable<xdr::STATUS4res> renew(Compound& compound, xdr::RENEW4args args);

// session.cpp
Awaitable<xdr::EXCHANGE_ID4res> exchange_id(Compound& compound, xdr::EXCHANGE_ID4args args);
Awaitable<xdr::CREATE_SESSION4res> create_session(Compound& compound,
                                                  xdr::CREATE_SESSION4args args);
Awaitable<xdr::STATUS4res> destroy_session(Compound& compound, xdr::DESTROY_SESSION4args args);
Awaitable<xdr::STATUS4res> destroy_clientid(Compound& compound, xdr::DESTROY_CLIENTID4args args);
Awaitable<xdr::BIND_CONN_TO_SESSION4res> bind_conn_to_session(Compound& compound,
                                                              xdr::BIND_CONN_TO_SESSION4args args);
Awaitable<xdr::STATUS4res> backchannel_ctl(Compound& compound, xdr::BACKCHANNEL_CTL4args args);
Awaitable<xdr::STATUS4res> reclaim_complete(Compound& compound, xdr::RECLAIM_COMPLETE4args args);

}  // namespace selvage::server::nfs4
