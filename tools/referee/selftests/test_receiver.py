"""What a receiver accepts, refuses and discards, message by message and in sequences."""

import struct
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

import protocol
from generator import AMPLE
from message import Message, Prefix, error
from protocol import (BAD_PROPVAL, BAD_XDR, INVAL_CONT, INVAL_HTYPE, READ_CHUNKS, SEGMENTS, SYSTEM, VERS_MISMATCH,
                      WRITE_CHUNKS)
from receiver import Accepted, Discarded, Receiver, Refused
from conveyed import Call, Reply, call_payload, reply_payload, segment

XID = 0x11
ONE = segment(1, 4, 0)
# What a Call chunk or Reply chunk is that has a message.
BODY = segment(2, 400, 0)


def message(kind: int, xid: int = XID, payload: bytes | None = None, **body: Any) -> bytes:
    """A message of which some fields are given and the others are empty."""
    empty: dict[str, Any] = {"rdma_inv_handle": 0, "rdma_call": [], "rdma_reads": [], "rdma_provisional_writes": [],
                             "rdma_provisional_reply": None, "rdma_writes": [], "rdma_reply": None, "rdma_remaining": 0,
                             "rdma_props": []}
    if payload is None:
        is_call = kind in protocol.CALLS
        payload = b""
        if kind in protocol.FRAGMENTS:
            payload = call_payload(xid, 0, bytes(200)) if is_call else reply_payload(xid)
    return Message(Prefix(xid, 2, 1, kind), {**empty, **body}, payload).encode()


def entries(*positions: int, target: Any = ONE) -> list[dict[str, Any]]:
    return [{"rdma_position": position, "rdma_target": target} for position in positions]


def chunk(*segments: Any) -> dict[str, Any]:
    return {"rdma_target": list(segments)}


def middle(remaining: int, payload: bytes, xid: int = XID, kind: int = protocol.CALL_MIDDLE) -> bytes:
    return message(kind, xid, payload, rdma_remaining=remaining)


def end(payload: bytes, xid: int = XID, kind: int = protocol.CALL_INLINE, **body: Any) -> bytes:
    return message(kind, xid, payload, **body)


def properties(*props: tuple[int, bytes], kind: int = protocol.CONNPROP_FINAL, xid: int = XID) -> bytes:
    return message(kind, xid, rdma_props=[{"rdma_which": which, "rdma_data": data} for which, data in props])


def word(value: int) -> bytes:
    return struct.pack(">I", value)


@dataclass
class Step:
    """A message, and what a receiver makes of it."""

    octets: bytes
    verdict: type[Accepted] | type[Refused] | type[Discarded]
    whole: int | None = None
    # The error that the message is, or that answers it.
    error: tuple[int, list[int]] | None = None

    def check(self, receiver: Receiver) -> None:
        verdict = receiver.receive(self.octets)
        assert isinstance(verdict, self.verdict), verdict
        if isinstance(verdict, Accepted):
            assert self.whole in (None, verdict.whole)
            assert self.error is None or verdict.message.error == self.error
        if isinstance(verdict, Refused):
            request = Prefix.decode(self.octets)
            for answer in verdict.answers:
                assert answer.prefix == Prefix(request.xid, request.version, 7, protocol.ERROR)
            assert [answer.error for answer in verdict.answers] == [self.error]


def accepts(octets: bytes, whole: int | None = None, error: tuple[int, list[int]] | None = None) -> Step:
    return Step(octets, Accepted, whole, error)


def refuses(octets: bytes, code: int, *arguments: int) -> Step:
    return Step(octets, Refused, error=(code, [*arguments]))


def discards(octets: bytes) -> Step:
    return Step(octets, Discarded)


inline, external = partial(message, protocol.CALL_INLINE), partial(message, protocol.CALL_EXTERNAL)
reply_middle, reply_end = partial(middle, kind=protocol.REPLY_MIDDLE), partial(end, kind=protocol.REPLY_INLINE)
reply_external = partial(message, protocol.REPLY_EXTERNAL)
START = call_payload(XID)
REPLY_START = reply_payload(XID)
CALL_CHUNK = entries(0, target=BODY)
GRANT = message(protocol.GRANT, 0)
ARGUMENTS = {code: [*range({1: 2, 6: 1, 7: 1, 8: 1, 9: 2, 10: 1}.get(code, 0))] for code in protocol.ERRORS}
ERRORS = {code: error(Prefix(XID, 2, 0, 0), 1, code, *arguments).encode() for code, arguments in ARGUMENTS.items()}
AN_ERROR = ERRORS[SYSTEM]
REFUSAL = error(Prefix(XID, 1, 0, 0), 1, protocol.ERR_VERS, 1, 1).encode()
A_CALL = inline(rdma_reads=entries(40), rdma_provisional_writes=[chunk(ONE)])
A_REPLY = message(protocol.REPLY_INLINE, rdma_writes=[chunk(ONE)])
# Where the beginning of its payload ends.
REPLY_ENDS = len(A_REPLY) - len(REPLY_START) + 8
AROUND, BEFORE = segment(1, 4, (1 << 64) - 3), segment(1, 4, (1 << 64) - 5)
FOUR: dict[str, Any] = {"rdma_call": entries(0, target=segment(1, 64, 0)), "rdma_reads": entries(40, target=segment(2, 64, 0)),
                        "rdma_provisional_writes": [chunk(segment(3, 64, 0))], "rdma_provisional_reply": chunk(segment(4, 64, 0))}
THREE, TOO_LONG = chunk(ONE, ONE, ONE), segment(1, 405, 0)
PROPERTY_MIDDLE, BAD_PROPERTY = properties(kind=protocol.CONNPROP_MIDDLE), (5, word(4))
HALF = properties((99, bytes(8192 - 28)), kind=protocol.CONNPROP_MIDDLE)
ANY = properties((99, b""))
# Calls in one message and their payload's length.
KINDS = (("inline", partial(inline, rdma_call=[]), 240), ("external", partial(external, rdma_call=CALL_CHUNK), 400))

# What comes to a server that has room for much.
RECEIVED: dict[str, list[Step]] = {
    # The draft, sections 6.4 and 7.1.
    "short": [*(discards(GRANT[:length]) for length in range(16)), accepts(GRANT)],
    "other version": [refuses(GRANT[:4] + word(version) + GRANT[8:], VERS_MISMATCH) for version in (0, 1, 3, 0xffffffff)],
    "error of another version": [discards(AN_ERROR[:4] + word(1) + AN_ERROR[8:])],
    "refusal of another version": [accepts(REFUSAL, error=(protocol.ERR_VERS, [1, 1])), discards(REFUSAL[:-4])],
    "unknown type": [refuses(GRANT[:12] + word(kind), INVAL_HTYPE) for kind in (0, 3, 14, 0xffffffff)],
    "GRANT": [accepts(message(protocol.GRANT, 99))],
    # RDMA2_ERROR, which nothing answers.
    **{f"error {code}": [accepts(octets, error=(code, ARGUMENTS[code])), discards(octets[:-4])] for code, octets in ERRORS.items()},
    "unknown error": [discards(AN_ERROR[:16] + word(code)) for code in (0, 12, 99, 101)],
    # Calls and Replies that come in one message.
    "cut Call": [refuses(A_CALL[:length], BAD_XDR) for length in range(16, len(A_CALL) - 240 + 8)],
    "cut Reply": [*(discards(A_REPLY[:length]) for length in range(16, REPLY_ENDS)), accepts(A_REPLY[:REPLY_ENDS])],
    "what follows a header without payload": [accepts(external(rdma_call=CALL_CHUNK) + b"more"), accepts(GRANT + b"more")],
    "XID of the payload": [refuses(end(call_payload(XID + 1)), BAD_XDR), discards(reply_end(reply_payload(XID + 1)))],
    "direction of the payload": [refuses(end(REPLY_START), BAD_XDR), discards(reply_end(START))],
    **{f"positions, {name}": [
        *(refuses(kind(rdma_reads=entries(*positions)), BAD_XDR)
          for positions in ((0,), (4,), (36,), (42,), (60, 40), (40, 60, 40), (40, 0))),
        accepts(kind(rdma_reads=entries(40, 40, 60)))] for name, kind, _ in KINDS},
    **{f"Read chunks of {octets} octets are in the message, {name}": [
        accepts(kind(rdma_reads=entries(length, length + 4, target=segment(1, octets, 0)))),
        refuses(kind(rdma_reads=entries(length, length + 8, target=segment(1, octets, 0))), BAD_XDR)]
       for name, kind, length in KINDS for octets in (3, 4)},
    **{f"Read chunks are in the message, {name}": [
        refuses(kind(rdma_reads=entries(length + 4)), BAD_XDR), refuses(kind(rdma_reads=entries(40, 40, 44)), BAD_XDR)]
       for name, kind, length in KINDS},
    "Call chunk": [refuses(external(), BAD_XDR), refuses(external(rdma_call=entries(0, 40, target=BODY)), BAD_XDR),
                   refuses(external(rdma_call=entries(0)), BAD_XDR), accepts(external(rdma_call=entries(0, 0)))],
    "Reply chunk": [discards(reply_external()), discards(reply_external(rdma_reply=chunk(ONE))),
                    accepts(reply_external(rdma_reply=chunk(ONE, ONE)))],
    "segment around the end of all addresses": [refuses(inline(rdma_provisional_writes=[chunk(AROUND)]), BAD_XDR),
                                                accepts(inline(rdma_provisional_writes=[chunk(BEFORE)]))],
    "handle to invalidate": [*(accepts(external(rdma_inv_handle=handle, **FOUR)) for handle in range(5)),
                             refuses(external(rdma_inv_handle=5, **FOUR), BAD_XDR), refuses(inline(rdma_inv_handle=1), BAD_XDR)],
    "optional word": [refuses(inline()[:at] + word(2) + inline()[at + 4:], BAD_XDR) for at in (20, 24, 28)],
    # The draft, sections 6.3.6, 6.3.9 and 7.1.4.
    "in order": [accepts(middle(20, START)), accepts(middle(9, b"x" * 11)), accepts(end(b"y" * 9), whole=len(START) + 20),
                 accepts(reply_middle(20, REPLY_START)), accepts(reply_middle(9, b"x" * 11)),
                 accepts(reply_end(b"y" * 9), whole=len(REPLY_START) + 20)],
    "aside": [accepts(middle(8, START)), accepts(GRANT), accepts(AN_ERROR), accepts(end(bytes(8)), whole=48)],
    **{f"wrong remaining {remaining}": [accepts(middle(12, START)), refuses(middle(remaining, bytes(4)), INVAL_CONT),
                                        discards(middle(4, bytes(4))), discards(end(bytes(4))), accepts(end(START))]
       for remaining in (0, 7, 9, 12)},
    "end of wrong length": [step for length in (4, 12) for step in (
        accepts(middle(8, START)), refuses(end(bytes(length)), INVAL_CONT), accepts(end(START)))],
    "nothing remains": [refuses(middle(0, START), INVAL_CONT), discards(end(START)), accepts(end(START))],
    "middle too short or of another message": [refuses(middle(8, b"abc"), BAD_XDR), discards(end(START)),
                                               refuses(middle(8, call_payload(XID + 1)), BAD_XDR), discards(end(START))],
    "chunks of the end": [
        accepts(middle(8, START)), accepts(end(bytes(8), rdma_reads=entries(48)), whole=48),
        accepts(middle(8, START)), refuses(end(bytes(8), rdma_reads=entries(52)), BAD_XDR),
        accepts(middle(8, START)), refuses(end(bytes(8), rdma_reads=entries(2)), BAD_XDR), accepts(end(START))],
    **{f"intruder: {name}": [accepts(middle(8, START)), refuses(octets, INVAL_CONT), accepts(end(bytes(8)), whole=48),
                             accepts(end(START))]
       for name, octets in (("Call", end(call_payload(9), 9)), ("external Call", external(rdma_call=CALL_CHUNK)),
                            ("properties", properties()), ("some properties", PROPERTY_MIDDLE), ("Reply", reply_end(REPLY_START)))},
    **{f"intruder between Replies: {name}": [accepts(reply_middle(8, REPLY_START)), refuses(octets, INVAL_CONT),
                                             accepts(reply_end(bytes(8)))]
       for name, octets in (("Reply", reply_end(reply_payload(9), 9)), ("Call", end(START)))},
    "unknown type between": [accepts(middle(8, START)), refuses(GRANT[:12] + word(14), INVAL_HTYPE),
                             refuses(GRANT[:4] + word(1) + GRANT[8:], VERS_MISMATCH), accepts(end(bytes(8)))],
    "fragments of an intruder": [accepts(middle(8, START)), refuses(middle(8, call_payload(9), 9), INVAL_CONT),
                                 discards(end(bytes(8), 9)), accepts(end(bytes(8)))],
    "fragments of an intruder behind the message": [
        accepts(middle(16, START)), refuses(middle(8, call_payload(9), 9), INVAL_CONT), accepts(middle(8, bytes(8))),
        accepts(end(bytes(8))), discards(end(bytes(8), 9))],
    "what is left is forgotten after another message": [
        refuses(middle(0, START), INVAL_CONT), accepts(GRANT), accepts(end(call_payload(9), 9)), accepts(end(START))],
    "bad Reply is discarded": [accepts(reply_middle(8, REPLY_START)), discards(reply_middle(8, bytes(4))),
                               discards(reply_end(bytes(4))), accepts(reply_end(REPLY_START))],
    # The draft, sections 5.1, 6.3.3, 6.3.4 and 7.2.2.
    **{f"property {which} of {len(data)} octets": [refuses(properties((99, b""), (which, data)), BAD_PROPVAL)]
       for which in range(1, 6) for data in (b"a", bytes(3), bytes(5), bytes(8))},
    "reverse level too high": [refuses(properties(BAD_PROPERTY), BAD_PROPVAL)],
    "size too small": [refuses(properties((2, word(1023))), BAD_PROPVAL)],
    **{f"value longer than the message by {less}": [refuses(properties((99, b"abcde"))[:-less], BAD_PROPVAL)] for less in (4, 1)},
    **{f"properties cut after {length}": [refuses(ANY[:length], BAD_XDR)] for length in range(16, len(ANY))},
    "second final": [accepts(properties()), refuses(properties(), INVAL_CONT), refuses(PROPERTY_MIDDLE, INVAL_CONT),
                     accepts(end(START))],
    "sequence": [accepts(PROPERTY_MIDDLE), accepts(GRANT), accepts(AN_ERROR), refuses(end(START), INVAL_CONT),
                 accepts(PROPERTY_MIDDLE), accepts(properties()), accepts(end(START))],
    "what was refused counts as sent": [
        refuses(properties(BAD_PROPERTY, kind=protocol.CONNPROP_MIDDLE), BAD_PROPVAL), refuses(end(START), INVAL_CONT),
        refuses(properties(BAD_PROPERTY), BAD_PROPVAL), accepts(end(START)), refuses(properties(), INVAL_CONT)],
    "bound of properties": [accepts(HALF), accepts(HALF), refuses(properties(), INVAL_CONT), accepts(end(START))]}
# The draft, section 7.3: what comes to a server that has room for less.
LIMITED: dict[str, tuple[dict[str, int], list[Step]]] = {
    "Read chunks": ({"read_chunks": 2}, [
        accepts(inline(rdma_reads=entries(40, 40, 40, 60))), refuses(inline(rdma_reads=entries(40, 60, 80)), READ_CHUNKS, 2),
        accepts(external(rdma_call=CALL_CHUNK * 3, rdma_reads=entries(40))),
        refuses(external(rdma_call=CALL_CHUNK, rdma_reads=entries(40, 60)), READ_CHUNKS, 2)]),
    "Read segments": ({"read_segments": 3}, [
        accepts(external(rdma_call=CALL_CHUNK * 2, rdma_reads=entries(40))),
        refuses(external(rdma_call=CALL_CHUNK * 2, rdma_reads=entries(40, 60)), SEGMENTS, 3)]),
    "Write chunks": ({"write_chunks": 1}, [
        accepts(inline(rdma_provisional_writes=[chunk(ONE)], rdma_provisional_reply=chunk(ONE))),
        refuses(inline(rdma_provisional_writes=[chunk(), chunk()]), WRITE_CHUNKS, 1),
        discards(message(protocol.REPLY_INLINE, rdma_writes=[chunk(), chunk()]))]),
    "Write segments": ({"write_segments": 2}, [
        accepts(inline(rdma_provisional_writes=[chunk(ONE), chunk(ONE)], rdma_provisional_reply=chunk(ONE))),
        refuses(inline(rdma_provisional_writes=[chunk(ONE), chunk(ONE), chunk(ONE)]), SEGMENTS, 2)]),
    "segments of a chunk": ({"chunk_segments": 2}, [
        accepts(inline(rdma_reads=entries(40, 40, 60, 60))), refuses(inline(rdma_reads=entries(40, 40, 40)), SEGMENTS, 2),
        refuses(external(rdma_call=entries(0, 0, 0)), SEGMENTS, 2), refuses(inline(rdma_provisional_writes=[THREE]), SEGMENTS, 2),
        refuses(inline(rdma_provisional_reply=THREE), SEGMENTS, 2), discards(reply_external(rdma_reply=THREE))]),
    "octets of a chunk": ({"chunk_bytes": 404}, [
        accepts(external(rdma_call=CALL_CHUNK, rdma_reads=entries(40))),
        refuses(external(rdma_call=CALL_CHUNK, rdma_reads=entries(40, 60)), SYSTEM),
        accepts(inline(rdma_provisional_writes=[chunk(BODY, ONE), chunk(BODY)])),
        refuses(inline(rdma_provisional_writes=[chunk(BODY, ONE, ONE)]), SYSTEM),
        refuses(inline(rdma_provisional_reply=chunk(TOO_LONG)), SYSTEM),
        discards(message(protocol.REPLY_INLINE, rdma_writes=[chunk(TOO_LONG)]))]),
    "no segments": ({"chunk_segments": 0}, [accepts(inline(rdma_provisional_reply=chunk()))]),
    "end that takes no chunks": ({"chunk_segments": 0, "read_chunks": 0, "write_chunks": 0}, [
        refuses(inline(rdma_provisional_reply=chunk()), WRITE_CHUNKS, 0)]),
    "octets of a message": ({"message_bytes": 100}, [
        refuses(middle(61, START), INVAL_CONT), discards(end(bytes(61))), accepts(middle(60, START))])}


def accepted(octets: bytes) -> Accepted:
    verdict = Receiver(True, AMPLE).receive(octets)
    assert isinstance(verdict, Accepted), verdict
    return verdict


@pytest.mark.parametrize("steps", RECEIVED.values(), ids=RECEIVED)
def test_received(steps: list[Step]) -> None:
    receiver = Receiver(True, AMPLE)
    for step in steps:
        step.check(receiver)


@pytest.mark.parametrize(("limits", "steps"), LIMITED.values(), ids=LIMITED)
def test_limited(limits: dict[str, int], steps: list[Step]) -> None:
    receiver = Receiver(True, replace(AMPLE, **limits))
    for step in steps:
        step.check(receiver)


def test_client_takes_no_chunks() -> None:
    receiver = Receiver(False, AMPLE)
    for step in (accepts(inline()), refuses(inline(rdma_reads=entries(40)), READ_CHUNKS, 0),
                 refuses(external(rdma_call=CALL_CHUNK), READ_CHUNKS, 0),
                 refuses(inline(rdma_provisional_writes=[chunk()]), WRITE_CHUNKS, 0),
                 refuses(inline(rdma_provisional_reply=chunk()), WRITE_CHUNKS, 0),
                 accepts(reply_external(rdma_writes=[chunk(ONE)], rdma_reply=chunk(BODY)))):
        step.check(receiver)


def test_several_faults() -> None:
    """Each may be answered."""
    verdict = Receiver(True, replace(AMPLE, read_chunks=0, write_chunks=0)).receive(A_CALL)
    assert isinstance(verdict, Refused)
    assert [each.error for each in verdict.answers] == [(READ_CHUNKS, [0]), (WRITE_CHUNKS, [0])]


def test_what_a_header_has() -> None:
    call = Call(XID, START, reads=[(40, ONE), (40, ONE), (48, ONE)], writes=[[ONE], []], reply=[ONE], inv_handle=1)
    (octets,) = (each.encode() for each in call.messages(4096))
    verdict = accepted(octets)
    got = verdict.message
    assert verdict.whole == 40
    assert [(at, len(segments)) for at, segments in got.read_chunks()] == [(40, 2), (48, 1)]
    assert (got.writes, got.reply_chunk, got.header + got.payload) == ([[ONE], []], [ONE], octets)


@pytest.mark.parametrize("reply", [Reply(XID, REPLY_START, [[ONE]]), Reply(XID, b"", [[ONE], []], [BODY])])
def test_replies(reply: Reply) -> None:
    (octets,) = (each.encode() for each in reply.messages(4096))
    assert accepted(octets).message.encode() == octets


@pytest.mark.parametrize("octets", [external(rdma_call=CALL_CHUNK), reply_external(rdma_reply=chunk(BODY)), GRANT],
                         ids=["Call", "Reply", "GRANT"])
def test_what_does_not_come_inline_has_no_length(octets: bytes) -> None:
    assert accepted(octets).whole is None


def test_values_of_properties() -> None:
    props = [(1, word(0)), (2, word(1024)), (3, word(1)), (4, word(0)), (5, word(3)), (1, b""), (2, b""), (6, b"odd"),
             (99, b"x"), (1, word(8))]
    assert accepted(properties(*props)).message.properties == props


def test_half_of_the_bound_of_properties() -> None:
    assert len(HALF) == 8192
