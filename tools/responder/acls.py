"""Calls that ask for ACLs, and the longest answer that a client of NFS 3 takes."""

import struct

from rpc import accepted

NFS, NFSACL = 100003, 100227
GETACL, COMPOUND = 1, 1
OP_GETATTR, OP_PUTFH, OP_SEQUENCE = 9, 22, 53
SEQUENCE_BYTES = 32
# Of the first word of a bitmap.
FATTR4_ACL = 1 << 12
# As many entries as Linux takes in each of the two ACLs.
MOST_ENTRIES = 1024
USER_OBJ, USER, GROUP_OBJ, MASK, OTHER, DEFAULT = 0x01, 0x02, 0x04, 0x10, 0x20, 0x1000
FIRST_USER = 1001


class _Reader:
    """XDR being read."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def word(self) -> int:
        value, = struct.unpack_from(">I", self._data, self._at)
        self._at += 4
        return value

    def skip(self, length: int) -> None:
        self._at += length + -length % 4

    def skip_opaque(self) -> None:
        self.skip(self.word())


def of_nfs_3(call: bytes) -> bool:
    """Whether it is GETACL of the NFSACL program."""
    return _procedure(_Reader(call)) == (NFSACL, 3, GETACL)


def of_nfs_4(call: bytes) -> bool:
    """Whether it is a COMPOUND that the Linux client asks for an ACL with: GETATTR alone, of a file handle."""
    reader = _Reader(call)
    if _procedure(reader) != (NFS, 4, COMPOUND):
        return False
    # The tag, and the minor version.
    reader.skip_opaque()
    reader.word()
    for _ in range(reader.word()):
        operation = reader.word()
        if operation == OP_GETATTR:
            return reader.word() > 0 and bool(reader.word() & FATTR4_ACL)
        if operation == OP_SEQUENCE:
            reader.skip(SEQUENCE_BYTES)
        elif operation == OP_PUTFH:
            reader.skip_opaque()
        else:
            return False
    return False


def longest(xid: int) -> bytes:
    """The Reply to GETACL for a directory: access and default ACL, both as long as can be."""
    users = [(USER, FIRST_USER + number) for number in range(MOST_ENTRIES - 4)]
    entries = [(USER_OBJ, 0), *users, (GROUP_OBJ, 0), (MASK, 0), (OTHER, 0)]
    # No error, no attributes, everything that can be asked for.
    reply = accepted(xid).words(0, 0, 0xf)
    for kind in (0, DEFAULT):
        reply.words(len(entries), len(entries))
        for tag, name in entries:
            reply.words(tag | kind, name, 7)
    return bytes(reply.bytes)


def _procedure(reader: _Reader) -> tuple[int, int, int]:
    """Program, version and procedure; reads the header of the Call."""
    reader.skip(12)
    program, version, procedure = reader.word(), reader.word(), reader.word()
    for _ in ("credential", "verifier"):
        reader.word()
        reader.skip_opaque()
    return program, version, procedure
