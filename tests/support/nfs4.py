"""A small synchronous NFSv4 client for tests: COMPOUNDs of 4.0, 4.1 and 4.2, written from the RFCs.

Independent of the server's own XDR code. An operation is bytes made by a function of its name
(`putfh(handle)`); a reply is a Reply whose results are dictionaries. One Connection is one TCP
connection; not thread-safe.
"""

import os
import random
import struct

from nfs3 import Broken, Client, Reader, opaque  # noqa: F401  (Broken for those who import this)

NFS = 100003
OK, PERM, NOENT, IO, ACCESS, EXIST, XDEV, NOTDIR, ISDIR, INVAL = 0, 1, 2, 5, 13, 17, 18, 20, 21, 22
FBIG, ROFS, NAMETOOLONG, NOTEMPTY, STALE, BADHANDLE, BAD_COOKIE = 27, 30, 63, 66, 70, 10001, 10003
NOTSUPP, TOOSMALL, BADTYPE, DELAY, SAME, DENIED = 10004, 10005, 10007, 10008, 10009, 10010
EXPIRED, LOCKED, GRACE, SHARE_DENIED, CLID_INUSE = 10011, 10012, 10013, 10015, 10017
RESOURCE, NOFILEHANDLE, MINOR_VERS_MISMATCH, STALE_CLIENTID = 10018, 10020, 10021, 10022
STALE_STATEID, OLD_STATEID, BAD_STATEID, BAD_SEQID, NOT_SAME = 10023, 10024, 10025, 10026, 10027
SYMLINK, RESTOREFH, ATTRNOTSUPP, NO_GRACE, BADXDR = 10029, 10030, 10032, 10033, 10036
RECLAIM_BAD, LOCKS_HELD = 10034, 10037
OPENMODE, BADOWNER, BADNAME, OP_ILLEGAL = 10038, 10039, 10041, 10044
BADSESSION, BADSLOT, COMPLETE_ALREADY = 10052, 10053, 10054
SEQ_MISORDERED, SEQUENCE_POS, BAD_HIGH_SLOT = 10063, 10064, 10077
REQ_TOO_BIG, REP_TOO_BIG, REP_TOO_BIG_TO_CACHE, RETRY_UNCACHED_REP = 10065, 10066, 10067, 10068
TOO_MANY_OPS, OP_NOT_IN_SESSION, CLIENTID_BUSY, SEQ_FALSE_RETRY = 10070, 10071, 10074, 10076
NOT_ONLY_OP, WRONG_TYPE, UNION_NOTSUPP = 10081, 10083, 10090

READ, WRITE, BOTH = 1, 2, 3
READ_LT, WRITE_LT, READW_LT, WRITEW_LT = 1, 2, 3, 4
UNSTABLE, DATA_SYNC, FILE_SYNC = 0, 1, 2
TO_END = 0xFFFFFFFFFFFFFFFF
ANONYMOUS = (0, b"\0" * 12)
BYPASS = (0xFFFFFFFF, b"\xff" * 12)
CURRENT = (1, b"\0" * 12)

TYPE, CHANGE, SIZE, FSID, LEASE_TIME, RDATTR_ERROR = 1, 3, 4, 8, 10, 11
FILEHANDLE, FILEID = 19, 20
MODE, NUMLINKS, OWNER, OWNER_GROUP, SPACE_USED = 33, 35, 36, 37, 45
TIME_ACCESS, TIME_ACCESS_SET = 47, 48
TIME_METADATA, TIME_MODIFY, TIME_MODIFY_SET, MOUNTED_ON_FILEID = 52, 53, 54, 55
SUPPATTR_EXCLCREAT, CHANGE_ATTR_TYPE, MODE_UMASK = 75, 79, 81


def u32(*values):
    return struct.pack(f">{len(values)}I", *values)


def u64(*values):
    return struct.pack(f">{len(values)}Q", *values)


def bitmap(bits):
    words = [0] * (max(bits, default=-1) // 32 + 1)
    for bit in bits:
        words[bit // 32] |= 1 << bit % 32
    return u32(len(words), *words)


def stateid(value):
    return u32(value[0]) + value[1]


def fattr(values):
    """values: {attribute: encoded value}."""
    body = b"".join(values[bit] for bit in sorted(values))
    return bitmap(values) + opaque(body)


def owner(text):
    return opaque(str(text).encode())


def time_set(seconds, nanoseconds):
    return u32(1) + struct.pack(">qI", seconds, nanoseconds)


def op(number, *parts):
    return u32(number) + b"".join(parts)


# --- Operations, by their RFC names.

def access(bits): return op(3, u32(bits))
def close(sid, seqid=0): return op(4, u32(seqid), stateid(sid))
def commit(offset=0, count=0): return op(5, u64(offset), u32(count))
def getattr_(*bits): return op(9, bitmap(bits))
def getfh(): return op(10)
def link(name): return op(11, opaque(name))
def lookup(name): return op(15, opaque(name))
def lookupp(): return op(16)
def nverify(values): return op(17, fattr(values))
def open_confirm(sid, seqid): return op(20, stateid(sid), u32(seqid))
def putfh(handle): return op(22, opaque(handle))
def putpubfh(): return op(23)
def putrootfh(): return op(24)
def read(sid, offset, count): return op(25, stateid(sid), u64(offset), u32(count))
def readlink(): return op(27)
def remove(name): return op(28, opaque(name))
def rename(old, new): return op(29, opaque(old), opaque(new))
def renew(client): return op(30, u64(client))
def restorefh(): return op(31)
def savefh(): return op(32)
def secinfo(name): return op(33, opaque(name))
def setattr_(values, sid=ANONYMOUS): return op(34, stateid(sid), fattr(values))
def verify(values): return op(37, fattr(values))
def release_lockowner(client, name): return op(39, u64(client), opaque(name))
def destroy_session(session): return op(44, session)
def free_stateid(sid): return op(45, stateid(sid))
def secinfo_no_name(style=0): return op(52, u32(style))
def test_stateid(*sids): return op(55, u32(len(sids)), *map(stateid, sids))
def destroy_clientid(client): return op(57, u64(client))
def reclaim_complete(one_fs=False): return op(58, u32(one_fs))
def allocate(sid, offset, length): return op(59, stateid(sid), u64(offset, length))
def deallocate(sid, offset, length): return op(62, stateid(sid), u64(offset, length))
def read_plus(sid, offset, count): return op(68, stateid(sid), u64(offset), u32(count))
def seek(sid, offset, what): return op(69, stateid(sid), u64(offset), u32(what))


def create(kind, name, values=(), target=b"", device=(0, 0)):
    body = {5: opaque(target), 3: u32(*device), 4: u32(*device)}.get(kind, b"")
    return op(6, u32(kind), body, opaque(name), fattr(dict(values)))


def readdir(cookie=0, bits=(FILEID,), verifier=b"\0" * 8, dircount=8192, maxcount=32768):
    return op(26, u64(cookie), verifier, u32(dircount, maxcount), bitmap(bits))


def write(sid, offset, data, stable=FILE_SYNC):
    return op(38, stateid(sid), u64(offset), u32(stable), opaque(data))


def open_(name, client, who, access=BOTH, deny=0, seqid=0, create=None, values=(), verifier=b"",
          claim=0):
    """create: None, "unchecked", "guarded", "exclusive", "exclusive4_1"."""
    how = u32(0)
    if create:
        mode = ("unchecked", "guarded", "exclusive", "exclusive4_1").index(create)
        how = u32(1, mode) + (verifier if mode >= 2 else b"")
        how += fattr(dict(values)) if mode != 2 else b""
    by = {0: lambda: opaque(name), 1: lambda: u32(0), 4: lambda: b""}[claim]()
    return op(18, u32(seqid, access, deny), u64(client), opaque(who), how, u32(claim), by)


def open_downgrade(sid, access, deny=0, seqid=0):
    return op(21, stateid(sid), u32(seqid, access, deny))


def lock_new(kind, offset, length, open_sid, client, who, open_seqid=0, seqid=0, reclaim=False):
    return op(12, u32(kind, reclaim), u64(offset, length), u32(1, open_seqid), stateid(open_sid),
              u32(seqid), u64(client), opaque(who))


def lock(kind, offset, length, sid, seqid=0, reclaim=False):
    return op(12, u32(kind, reclaim), u64(offset, length), u32(0), stateid(sid), u32(seqid))


def lockt(kind, offset, length, client, who):
    return op(13, u32(kind), u64(offset, length), u64(client), opaque(who))


def locku(kind, offset, length, sid, seqid=0):
    return op(14, u32(kind, seqid), stateid(sid), u64(offset, length))


def setclientid(verifier, name):
    return op(35, verifier, opaque(name), u32(0x40000000), opaque(b"tcp"), opaque(b"0.0.0.0.0.0"),
              u32(0))


def setclientid_confirm(client, verifier): return op(36, u64(client), verifier)


def bind_conn_to_session(session, direction): return op(41, session, u32(direction, 0))


def exchange_id(verifier, name, flags=0, protect=0):
    return op(42, verifier, opaque(name), u32(flags, protect, 0))


def channel(request=1 << 20, response=1 << 20, cached=8192, operations=64, slots=16):
    return u32(0, request, response, cached, operations, slots, 0)


def create_session(client, sequence, fore=None, flags=0):
    return op(43, u64(client), u32(sequence, flags), fore or channel(), channel(4096, 4096, 0, 2, 1),
              u32(0x40000000), u32(1, 0))


def sequence(session, seq, slot=0, highest=0, keep=False):
    return op(53, session, u32(seq, slot, highest, keep))


# --- Results.

class Attributes(dict):
    """By attribute number."""


def parse_fattr(r):
    words = [r.u32() for _ in range(r.u32())]
    body = Reader(r.opaque())
    found = Attributes()
    for bit in range(len(words) * 32):
        if words[bit // 32] >> bit % 32 & 1:
            found[bit] = parse_attribute(body, bit)
    assert body.at == len(body.data), "bytes after the last attribute"
    return found


def parse_attribute(r, bit):
    if bit in (0, SUPPATTR_EXCLCREAT):
        words = [r.u32() for _ in range(r.u32())]
        return {b for b in range(len(words) * 32) if words[b // 32] >> b % 32 & 1}
    if bit in (3, 4, 20, 21, 22, 23, 27, 30, 31, 42, 43, 44, 45, 55):
        return r.u64()
    if bit in (8,):
        return r.u64(), r.u64()
    if bit == 19:
        return r.opaque()
    if bit in (36, 37):
        return r.opaque().decode()
    if bit == 41:
        return r.u32(), r.u32()
    if bit in (47, 51, 52, 53):
        return struct.unpack(">q", r.take(8))[0], r.u32()
    return r.u32()


class Results(Reader):
    def take(self, n):
        self.at += n
        return self.data[self.at - n:self.at]

    def sid(self):
        return self.u32(), self.take(12)

    def change(self):
        return self.u32(), self.u64(), self.u64()

    def bits(self):
        words = [self.u32() for _ in range(self.u32())]
        return {b for b in range(len(words) * 32) if words[b // 32] >> b % 32 & 1}

    def denied(self):
        return {"offset": self.u64(), "length": self.u64(), "type": self.u32(),
                "client": self.u64(), "owner": self.opaque()}


# Attributes are read from a Reader of their own.
Reader.take = Results.take


def parse(r, number, status):
    """What follows the status of one result."""
    if number == 34:
        return {"set": r.bits()}
    if number in (12, 13) and status == DENIED:
        return {"denied": r.denied()}
    if number == 35 and status == CLID_INUSE:
        return {"used_by": (r.opaque(), r.opaque())}
    if status:
        return {}
    if number in (4, 12, 14, 20, 21):
        return {"stateid": r.sid()}
    readers = {
        3: lambda: {"supported": r.u32(), "access": r.u32()},
        5: lambda: {"verifier": r.take(8)},
        6: lambda: {"change": r.change(), "set": r.bits()},
        9: lambda: {"attributes": parse_fattr(r)},
        10: lambda: {"handle": r.opaque()},
        11: lambda: {"change": r.change()},
        18: lambda: parse_open(r),
        25: lambda: {"eof": bool(r.u32()), "data": r.opaque()},
        26: lambda: parse_readdir(r),
        27: lambda: {"target": r.opaque()},
        28: lambda: {"change": r.change()},
        29: lambda: {"from": r.change(), "to": r.change()},
        33: lambda: {"flavors": [r.u32() for _ in range(r.u32())]},
        35: lambda: {"client": r.u64(), "confirm": r.take(8)},
        38: lambda: {"count": r.u32(), "committed": r.u32(), "verifier": r.take(8)},
        41: lambda: {"session": r.take(16), "direction": r.u32(), "rdma": r.u32()},
        42: lambda: parse_exchange_id(r),
        43: lambda: parse_create_session(r),
        52: lambda: {"flavors": [r.u32() for _ in range(r.u32())]},
        53: lambda: {"session": r.take(16), "sequence": r.u32(), "slot": r.u32(),
                     "highest": r.u32(), "target": r.u32(), "flags": r.u32()},
        55: lambda: {"statuses": [r.u32() for _ in range(r.u32())]},
        68: lambda: parse_read_plus(r),
        69: lambda: {"eof": bool(r.u32()), "offset": r.u64()},
    }
    return readers[number]() if number in readers else {}


def parse_open(r):
    result = {"stateid": r.sid(), "change": r.change(), "flags": r.u32(), "set": r.bits()}
    result["delegation"] = r.u32()
    if result["delegation"] == 3:
        result["why"] = r.u32()
        if result["why"] in (1, 2):
            r.u32()
    else:
        assert result["delegation"] == 0, "a delegation that nobody expects"
    return result


def parse_readdir(r):
    result = {"verifier": r.take(8), "entries": []}
    while r.u32():
        result["entries"].append((r.u64(), r.opaque(), parse_fattr(r)))
    result["eof"] = bool(r.u32())
    return result


def parse_exchange_id(r):
    result = {"client": r.u64(), "sequence": r.u32(), "flags": r.u32(), "protect": r.u32()}
    result.update(minor=r.u64(), major=r.opaque(), scope=r.opaque())
    for _ in range(r.u32()):
        r.opaque(), r.opaque(), r.take(12)
    return result


def parse_channel(r):
    names = ("pad", "request", "response", "cached", "operations", "slots")
    channel = {name: r.u32() for name in names}
    for _ in range(r.u32()):
        r.u32()
    return channel


def parse_create_session(r):
    return {"session": r.take(16), "sequence": r.u32(), "flags": r.u32(),
            "fore": parse_channel(r), "back": parse_channel(r)}


def parse_read_plus(r):
    result = {"eof": bool(r.u32()), "contents": []}
    for _ in range(r.u32()):
        if r.u32():
            result["contents"].append(("hole", r.u64(), r.u64()))
        else:
            result["contents"].append(("data", r.u64(), r.opaque()))
    return result


class Reply:
    """status: of the COMPOUND; results: [(operation, status, {...})]."""

    def __init__(self, reader):
        r = Results(reader.data)
        r.at = reader.at
        self.raw = r.data[r.at:]
        self.status, self.tag = r.u32(), r.opaque()
        self.results = []
        for _ in range(r.u32()):
            number, status = r.u32(), r.u32()
            self.results.append((number, status, parse(r, number, status)))
        assert r.at == len(r.data), "bytes after the last result"

    def __getitem__(self, number):
        """The last result of that operation."""
        return next(fields for n, _, fields in reversed(self.results) if n == number)

    def __repr__(self):
        return repr(self.results)

    def last(self):
        return self.results[-1]


class Connection(Client):
    """A COMPOUND in, a Reply out."""

    def __init__(self, port, minor, **options):
        super().__init__(port, **options)
        self.minor = minor

    def compound(self, *operations, tag=b"", minor=None, count=None):
        minor = self.minor if minor is None else minor
        count = len(operations) if count is None else count
        return Reply(self.call(NFS, 4, 1, opaque(tag) + u32(minor, count) + b"".join(operations)))


class V40(Connection):
    """With a confirmed clientid, and one open owner."""

    def __init__(self, port, name=None, **options):
        super().__init__(port, 0, **options)
        self.name = name or b"v40 " + os.urandom(8).hex().encode()
        self.verifier = os.urandom(8)
        done = self.compound(setclientid(self.verifier, self.name))
        assert done.status == OK, done.results
        self.client = done[35]["client"]
        assert self.compound(setclientid_confirm(self.client, done[35]["confirm"])).status == OK
        self.seqids = {}

    def seqid(self, who):
        self.seqids[who] = self.seqids.get(who, 0) + 1
        return self.seqids[who]

    def open(self, directory, name, who=b"owner", **options):
        """(handle, stateid), confirmed."""
        done = self.compound(putfh(directory), open_(name, self.client, who,
                                                     seqid=self.seqid(who), **options), getfh())
        if done.status != OK:
            return done
        handle, sid = done[10]["handle"], done[18]["stateid"]
        if done[18]["flags"] & 2:
            sid = self.compound(putfh(handle), open_confirm(sid, self.seqid(who)))[20]["stateid"]
        return handle, sid


class Session(Connection):
    """With a clientid and a session, one slot in use."""

    def __init__(self, port, minor=1, name=None, complete=True, fore=None, verifier=None, **options):
        super().__init__(port, minor, **options)
        self.name = name or b"v41 " + os.urandom(8).hex().encode()
        self.verifier = verifier or os.urandom(8)
        self.slot_sequence = 0
        done = self.compound(exchange_id(self.verifier, self.name))
        assert done.status == OK, done.results
        self.client = done[42]["client"]
        self.confirmed = bool(done[42]["flags"] & 0x80000000)
        made = self.compound(create_session(self.client, done[42]["sequence"], fore))
        assert made.status == OK, made.results
        self.session, self.fore = made[43]["session"], made[43]["fore"]
        if complete:
            assert self.run(reclaim_complete()).status == OK

    def run(self, *operations, keep=False, tag=b""):
        self.slot_sequence += 1
        return self.compound(sequence(self.session, self.slot_sequence, keep=keep), *operations,
                             tag=tag)

    def open(self, directory, name, who=b"owner", **options):
        """(handle, stateid)"""
        done = self.run(putfh(directory), open_(name, self.client, who, **options), getfh())
        return (done[10]["handle"], done[18]["stateid"]) if done.status == OK else done


def walk(connection, path):
    """The handle of an absolute path."""
    operations = [putrootfh()] + [lookup(part.encode()) for part in path.split("/") if part]
    send = connection.run if isinstance(connection, Session) else connection.compound
    done = send(*operations, getfh())
    assert done.status == OK, (path, done.results)
    return done[10]["handle"]


def unique():
    return b"%08x" % random.getrandbits(32)
