"""Tests of what belongs to version 1: private data, and Replies that the requester pulls."""

from pathlib import Path

import example
import tshark
from captures import BOTH_KINDS, EACH_FORM, IWARP, ROCE, Form, agreement, written
from example import read_list, reply_chunk, segment, words, write_list
from link import Sent

RDMA_MSG, RDMA_NOMSG, RDMA_DONE = 0, 1, 3
PRIVATE = ("rpcrdma_private.version", "rpcrdma_private.invalidates", "rpcrdma_private.sends", "rpcrdma_private.receives",
           "rpcrdma_private.may_pull", "rpcrdma_private.may_provide", "_ws.expert.message")
NO_CHUNKS = words(0, 0, 0)


def version_1(kind: int, xid: int, body: bytes = b"") -> bytes:
    """A message of version 1 (RFC 8166, section 4)."""
    return words(xid, 1, 32, kind) + body


def call(xid: int) -> Sent:
    """A Call for which no Reply chunk is offered."""
    return Sent(True, version_1(RDMA_MSG, xid, NO_CHUNKS + example.readdir_call(xid)))


def provided(xid: int, *segments: bytes) -> Sent:
    """A Reply in a Read chunk (Documentation/reliable-reply.rst)."""
    chunk = read_list(*((0, plain) for plain in segments))
    return Sent(False, version_1(RDMA_NOMSG, xid, chunk + write_list() + reply_chunk()))


def done(xid: int, key: int | None = None) -> Sent:
    """What says that a Reply was pulled."""
    return Sent(True, version_1(RDMA_DONE, xid), key)


def shown(name: str, private: tuple[bytes, bytes]) -> list[list[str]]:
    """What is said of the private data; the same whatever the connection is carried by."""
    roce, iwarp = (tshark.fields(written(name, form, [], private), "rpcrdma_private", *PRIVATE) for form in (ROCE, IWARP))
    assert roce == iwarp
    return roce


def test_both_ends() -> None:
    assert shown("private", (agreement(True, False), agreement(False, True))) == [
        ["1", "True", "8192", "4096", "True", "False", ""], ["1", "True", "8192", "4096", "False", "True", ""]]


def test_without_the_block() -> None:
    assert shown("private-plain", (bytes.fromhex("f6ab0e180100ff00"), b"")) == [["1", "False", "262144", "1024", "", "", ""]]


def test_behind_other_data() -> None:
    """A lower layer may have put its own in front (RFC 8797, section 5.2)."""
    line, = shown("private-behind", (b"\xf6\xab\x0e" + agreement(True, True), b""))
    assert line[:4] == ["1", "True", "8192", "4096"]


def test_counts_as_none() -> None:
    """Of another version, cut off, of something else."""
    assert shown("private-none", (bytes.fromhex("f6ab0e1802010707"), b"something else")) == []
    flags = bytes.fromhex("f6ab0e180101070772a1c35e01070000")
    version = bytes.fromhex("f6ab0e180101070772a1c35e02010000")
    assert [line[-1][:14] for line in shown("private-unknown", (flags, version))] == ["Counts as none"] * 2


def pulling(name: str, form: Form, messages: list[Sent]) -> Path:
    """A capture of a connection whose ends pull and provide."""
    return written(name, form, messages, (agreement(True, False), agreement(False, True)))


@EACH_FORM
def test_pulled(form: Form) -> None:
    """The Reply tells how long it is and where its Call is; the word that it was pulled, which Reply that was."""
    path = pulling("pulled", form, [
        call(1), call(2), provided(2, segment(0x77, 9000, 0x1000), segment(0x78, 1000, 0x9000)),
        provided(1, segment(0x79, 65536, 0)), done(2, 0x77), done(1)])
    names = (f"rpcrdma_pull.{name}" for name in ("octets", "segments", "call_in", "reply_in"))
    found = tshark.fields(path, "rpcrdma_pull", "frame.number", "rpcordma.xid", *names)
    first = int(found[0][0]) - 2
    assert found == [[str(first + 2), "0x00000002", "10000", "2", str(first + 1), ""],
                     [str(first + 3), "0x00000001", "65536", "1", str(first), ""],
                     [str(first + 4), "0x00000002", "10000", "", "", str(first + 2)],
                     [str(first + 5), "0x00000001", "65536", "", "", str(first + 3)]]
    pulled = tshark.fields(path, "rpcrdma_pull.done_in", "rpcrdma_pull.done_in", options=("-2",))
    assert pulled == [[str(first + 4)], [str(first + 5)]]
    assert "[Reply of 65536 octets to be pulled]" in tshark.output(path)
    assert f"[Reply of frame {first + 3} was pulled]" in tshark.output(path)
    assert tshark.output(path, "-Y", "_ws.malformed || _ws.lua.error || rpcrdma_pull.stray") == ""


@BOTH_KINDS
def test_stray(form: Form) -> None:
    """Nobody has provided it, or it was pulled before."""
    path = pulling("stray", form, [done(9), call(1), provided(1, segment(0x77, 9000, 0x1000)), done(1), done(1)])
    assert tshark.fields(path, "rpcrdma_pull.stray", "rpcordma.xid") == [["0x00000009"], ["0x00000001"]]


@BOTH_KINDS
def test_calls_are_not_provided(form: Form) -> None:
    """A Call has a Position Zero Read chunk, too."""
    long_call = Sent(True, version_1(RDMA_NOMSG, 1, read_list((0, segment(0x11, 5000, 0))) + write_list() + reply_chunk()))
    answer = Sent(False, version_1(RDMA_MSG, 1, NO_CHUNKS + example.reply(1)))
    assert tshark.output(pulling("long", form, [long_call, answer, long_call]), "-Y", "rpcrdma_pull") == ""
