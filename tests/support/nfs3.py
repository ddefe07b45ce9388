"""A small synchronous NFSv3 client for tests that must know what was acknowledged.

Independent of the server's own XDR code. One Client is one TCP connection; not thread-safe.
"""

import os
import random
import socket
import struct
import time

UNSTABLE, DATA_SYNC, FILE_SYNC = 0, 1, 2
OK, ERR_NOENT, ERR_IO, ERR_EXIST, ERR_STALE, ERR_JUKEBOX = 0, 2, 5, 17, 70, 10008
NFS, MOUNT = 100003, 100005


class Broken(Exception):
    """The connection ended before the reply came."""


class Refused(Exception):
    """The server answered with a status other than OK."""

    def __init__(self, status):
        super().__init__(f"NFS status {status}")
        self.status = status


def opaque(data):
    return struct.pack(">I", len(data)) + data + b"\0" * (-len(data) % 4)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def u32(self):
        self.at += 4
        return struct.unpack_from(">I", self.data, self.at - 4)[0]

    def u64(self):
        self.at += 8
        return struct.unpack_from(">Q", self.data, self.at - 8)[0]

    def opaque(self):
        n = self.u32()
        start = self.at
        self.at += n + -n % 4
        return self.data[start:start + n]

    def fattr3(self):
        names = ("type", "mode", "nlink", "uid", "gid")
        attr = {name: self.u32() for name in names}
        attr["size"], attr["used"] = self.u64(), self.u64()
        attr["rdev"] = (self.u32(), self.u32())
        attr["fsid"], attr["fileid"] = self.u64(), self.u64()
        for name in ("atime", "mtime", "ctime"):
            attr[name] = (self.u32(), self.u32())
        return attr

    def post_op_attr(self):
        return self.fattr3() if self.u32() else None

    def wcc_data(self):
        if self.u32():
            self.at += 24
        return self.post_op_attr()


class Client:
    def __init__(self, port, host="127.0.0.1", uid=0, gid=0, timeout=60, source=""):
        self.sock = socket.create_connection((host, port), timeout, (source, 0))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.xid = random.getrandbits(32)
        body = struct.pack(">I", int(time.time())) + opaque(b"tests") + struct.pack(">III", uid, gid, 0)
        self.credential = struct.pack(">I", 1) + opaque(body) + struct.pack(">II", 0, 0)
        self.after = None  # The post-operation attributes of the last WRITE, COMMIT, READ, SETATTR.
        self.eof = None    # Of the last READ.

    def close(self):
        self.sock.close()

    def _receive(self, n):
        parts = []
        while n:
            try:
                part = self.sock.recv(n)
            except OSError as e:
                raise Broken(str(e)) from e
            if not part:
                raise Broken("closed")
            parts.append(part)
            n -= len(part)
        return b"".join(parts)

    def call(self, program, version, procedure, arguments=b""):
        self.xid = (self.xid + 1) & 0xFFFFFFFF
        message = struct.pack(">IIIIII", self.xid, 0, 2, program, version, procedure)
        message += self.credential + arguments
        try:
            self.sock.sendall(struct.pack(">I", 0x80000000 | len(message)) + message)
        except OSError as e:
            raise Broken(str(e)) from e
        reply = b""
        while True:
            mark = struct.unpack(">I", self._receive(4))[0]
            reply += self._receive(mark & 0x7FFFFFFF)
            if mark >> 31:
                break
        r = Reader(reply)
        assert r.u32() == self.xid, "reply to another call"
        assert (r.u32(), r.u32()) == (1, 0), "not an accepted reply"
        r.u32()
        r.opaque()
        accepted = r.u32()
        assert accepted == 0, f"accept status {accepted}"
        return r

    def nfs(self, procedure, arguments):
        r = self.call(NFS, 3, procedure, arguments)
        status = r.u32()
        if status:
            raise Refused(status)
        return r

    def mount(self, path):
        r = self.call(MOUNT, 3, 1, opaque(os.fsencode(path)))
        status = r.u32()
        if status:
            raise Refused(status)
        return r.opaque()

    def getattr(self, handle):
        return self.nfs(1, opaque(handle)).fattr3()

    def setattr(self, handle, mode=None, uid=None, gid=None, size=None, mtime=None):
        """mtime is (seconds, nanoseconds)."""
        self.after = self.nfs(2, opaque(handle) + sattr3(mode, uid, gid, size, mtime) +
                              struct.pack(">I", 0)).wcc_data()
        return self.after

    def lookup(self, directory, name):
        return self.nfs(3, opaque(directory) + opaque(name.encode())).opaque()

    def read(self, handle, offset, count):
        r = self.nfs(6, opaque(handle) + struct.pack(">QI", offset, count))
        self.after = r.post_op_attr()
        r.u32()
        self.eof = r.u32() != 0
        return r.opaque()

    def write(self, handle, offset, data, stable=FILE_SYNC):
        """Returns (count, committed, verifier, size afterwards)."""
        r = self.nfs(7, opaque(handle) + struct.pack(">QII", offset, len(data), stable) + opaque(data))
        self.after = r.wcc_data()
        return r.u32(), r.u32(), r.u64(), self.after["size"]

    def _new(self, r):
        handle = r.opaque() if r.u32() else None
        r.post_op_attr()
        return handle

    def create(self, directory, name, mode=0o644, guarded=False):
        name = name if isinstance(name, bytes) else name.encode()
        return self._new(self.nfs(8, opaque(directory) + opaque(name) +
                                  struct.pack(">I", 1 if guarded else 0) + sattr3(mode)))

    def mkdir(self, directory, name, mode=0o755):
        return self._new(self.nfs(9, opaque(directory) + opaque(name.encode()) + sattr3(mode)))

    def symlink(self, directory, name, target):
        return self._new(self.nfs(10, opaque(directory) + opaque(name.encode()) + sattr3() +
                                  opaque(target.encode())))

    def remove(self, directory, name):
        self.nfs(12, opaque(directory) + opaque(name.encode()))

    def rmdir(self, directory, name):
        self.nfs(13, opaque(directory) + opaque(name.encode()))

    def rename(self, directory, name, to_directory, to_name):
        self.nfs(14, opaque(directory) + opaque(name.encode()) + opaque(to_directory) +
                 opaque(to_name.encode()))

    def link(self, handle, directory, name):
        self.nfs(15, opaque(handle) + opaque(directory) + opaque(name.encode()))

    def commit(self, handle, offset=0, count=0):
        """Returns the verifier."""
        r = self.nfs(21, opaque(handle) + struct.pack(">QI", offset, count))
        self.after = r.wcc_data()
        return r.u64()


def sattr3(mode=None, uid=None, gid=None, size=None, mtime=None):
    out = b""
    for value in (mode, uid, gid):
        out += struct.pack(">I", 0) if value is None else struct.pack(">II", 1, value)
    out += struct.pack(">I", 0) if size is None else struct.pack(">IQ", 1, size)
    out += struct.pack(">I", 0)
    out += struct.pack(">I", 0) if mtime is None else struct.pack(">III", 2, *mtime)
    return out
