// The 22 procedures of RFC 1813, 3.3. Private to server/nfs3.
#pragma once

#include "server/nfs3/context.h"

namespace selvage::server::nfs3 {

/// Each is one coroutine on the call's worker; `service` is a nfs3::Service.
Awaitable<Reply> null(void* service, Call& call);

Awaitable<Reply> getattr(void* service, Call& call);
Awaitable<Reply> setattr(void* service, Call& call);
Awaitable<Reply> access(void* service, Call& call);

Awaitable<Reply> lookup(void* service, Call& call);
Awaitable<Reply> readlink(void* service, Call& call);

Awaitable<Reply> read(void* service, Call& call);
Awaitable<Reply> write(void* service, Call& call);
Awaitable<Reply> commit(void* service, Call& call);

Awaitable<Reply> create(void* service, Call& call);
Awaitable<Reply> mkdir(void* service, Call& call);
Awaitable<Reply> symlink(void* service, Call& call);
Awaitable<Reply> mknod(void* service, Call& call);

Awaitable<Reply> remove(void* service, Call& call);
Awaitable<Reply> rmdir(void* service, Call& call);
Awaitable<Reply> rename(void* service, Call& call);
Awaitable<Reply> link(void* service, Call& call);

Awaitable<Reply> readdir(void* service, Call& call);
Awaitable<Reply> readdirplus(void* service, Call& call);

Awaitable<Reply> fsstat(void* service, Call& call);
Awaitable<Reply> fsinfo(void* service, Call& call);
Awaitable<Reply> pathconf(void* service, Call& call);

}  // namespace selvage::server::nfs3
