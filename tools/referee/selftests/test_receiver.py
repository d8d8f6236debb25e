"""What a receiver accepts, refuses and discards, message by message and in sequences."""

import struct
import unittest
from dataclasses import replace
from typing import Any

import protocol
from generator import AMPLE
from message import Message, Prefix, error
from receiver import Accepted, Discarded, Limits, Receiver, Refused
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


START = call_payload(XID)
REPLY_START = reply_payload(XID)
GRANT = message(protocol.GRANT, 0)
AN_ERROR = error(Prefix(XID, 2, 0, 0), 1, protocol.SYSTEM).encode()


class Case(unittest.TestCase):
    """Sends to one receiver and compares what it makes of each message."""

    def setUp(self) -> None:
        self.connect()

    def connect(self, is_server: bool = True, limits: Limits = AMPLE) -> None:
        self.receiver = Receiver(is_server, limits)

    def accepts(self, octets: bytes, whole: int | None = None) -> Message:
        verdict = self.receiver.receive(octets)
        assert isinstance(verdict, Accepted), verdict
        if whole is not None:
            self.assertEqual(verdict.whole, whole)
        return verdict.message

    def refuses(self, octets: bytes, code: int, *arguments: int) -> None:
        verdict = self.receiver.receive(octets)
        assert isinstance(verdict, Refused), verdict
        request = Prefix.decode(octets)
        for answer in verdict.answers:
            self.assertEqual(answer.prefix, Prefix(request.xid, request.version, 7, protocol.ERROR))
        self.assertEqual([answer.error for answer in verdict.answers], [(code, [*arguments])])

    def discards(self, octets: bytes) -> None:
        self.assertEqual(self.receiver.receive(octets), Discarded())


class Prefixes(Case):
    """The draft, sections 6.4 and 7.1."""

    def test_short(self) -> None:
        for length in range(16):
            self.discards(GRANT[:length])
        self.accepts(GRANT)

    def test_other_version(self) -> None:
        for version in (0, 1, 3, 0xffffffff):
            self.refuses(GRANT[:4] + word(version) + GRANT[8:], protocol.VERS_MISMATCH)

    def test_error_of_another_version(self) -> None:
        self.discards(AN_ERROR[:4] + word(1) + AN_ERROR[8:])

    def test_refusal_of_another_version(self) -> None:
        refusal = error(Prefix(XID, 1, 0, 0), 1, protocol.ERR_VERS, 1, 1).encode()
        self.assertEqual(self.accepts(refusal).error, (protocol.ERR_VERS, [1, 1]))
        self.discards(refusal[:-4])

    def test_unknown_type(self) -> None:
        for kind in (0, 3, 14, 0xffffffff):
            self.refuses(GRANT[:12] + word(kind), protocol.INVAL_HTYPE)

    def test_grant(self) -> None:
        self.accepts(message(protocol.GRANT, 99))


class Errors(Case):
    """RDMA2_ERROR, which nothing answers."""

    def test_known(self) -> None:
        for code in protocol.ERRORS:
            count = {1: 2, 6: 1, 7: 1, 8: 1, 9: 2, 10: 1}.get(code, 0)
            octets = error(Prefix(XID, 2, 0, 0), 1, code, *range(count)).encode()
            self.assertEqual(self.accepts(octets).error, (code, [*range(count)]))
            self.discards(octets[:-4])

    def test_unknown(self) -> None:
        for code in (0, 12, 99, 101):
            self.discards(AN_ERROR[:16] + word(code))


class Headers(Case):
    """Calls and Replies that come in one message."""

    def test_what_a_header_has(self) -> None:
        call = Call(XID, START, reads=[(40, ONE), (40, ONE), (48, ONE)], writes=[[ONE], []], reply=[ONE], inv_handle=1)
        (octets,) = (each.encode() for each in call.messages(4096))
        got = self.accepts(octets, whole=40)
        self.assertEqual([(at, len(segments)) for at, segments in got.read_chunks()], [(40, 2), (48, 1)])
        self.assertEqual((got.writes, got.reply_chunk, got.header + got.payload), ([[ONE], []], [ONE], octets))

    def test_replies(self) -> None:
        for reply in (Reply(XID, REPLY_START, [[ONE]]), Reply(XID, b"", [[ONE], []], [BODY])):
            (octets,) = (each.encode() for each in reply.messages(4096))
            self.assertEqual(self.accepts(octets).encode(), octets)

    def test_cut(self) -> None:
        call = message(protocol.CALL_INLINE, rdma_reads=entries(40), rdma_provisional_writes=[chunk(ONE)])
        for length in range(16, len(call) - 240 + 8):
            self.refuses(call[:length], protocol.BAD_XDR)
        reply = message(protocol.REPLY_INLINE, rdma_writes=[chunk(ONE)])
        for length in range(16, len(reply) - len(REPLY_START) + 8):
            self.discards(reply[:length])
        self.accepts(reply[:len(reply) - len(REPLY_START) + 8])

    def test_what_follows_a_header_without_payload(self) -> None:
        self.accepts(message(protocol.CALL_EXTERNAL, rdma_call=entries(0, target=BODY)) + b"more")
        self.accepts(GRANT + b"more")

    def test_what_does_not_come_inline_has_no_length(self) -> None:
        for octets in (message(protocol.CALL_EXTERNAL, rdma_call=entries(0, target=BODY)),
                       message(protocol.REPLY_EXTERNAL, rdma_reply=chunk(BODY)), GRANT):
            verdict = self.receiver.receive(octets)
            assert isinstance(verdict, Accepted)
            self.assertIsNone(verdict.whole)

    def test_xid_of_the_payload(self) -> None:
        self.refuses(end(call_payload(XID + 1)), protocol.BAD_XDR)
        self.discards(end(reply_payload(XID + 1), kind=protocol.REPLY_INLINE))

    def test_direction_of_the_payload(self) -> None:
        self.refuses(end(REPLY_START), protocol.BAD_XDR)
        self.discards(end(START, kind=protocol.REPLY_INLINE))

    def test_positions(self) -> None:
        for kind, call in ((protocol.CALL_INLINE, []), (protocol.CALL_EXTERNAL, entries(0, target=BODY))):
            for positions in ((0,), (4,), (36,), (42,), (60, 40), (40, 60, 40), (40, 0)):
                self.refuses(message(kind, rdma_reads=entries(*positions), rdma_call=call), protocol.BAD_XDR)
            self.accepts(message(kind, rdma_reads=entries(40, 40, 60), rdma_call=call))

    def test_read_chunks_are_in_the_message(self) -> None:
        odd = segment(1, 3, 0)
        for kind, call, length in ((protocol.CALL_INLINE, [], 240), (protocol.CALL_EXTERNAL, entries(0, target=BODY), 400)):
            for target, last in ((ONE, length + 4), (odd, length + 4)):
                reads = entries(length, last, target=target)
                self.accepts(message(kind, rdma_reads=reads, rdma_call=call))
                reads = entries(length, last + 4, target=target)
                self.refuses(message(kind, rdma_reads=reads, rdma_call=call), protocol.BAD_XDR)
            self.refuses(message(kind, rdma_reads=entries(length + 4), rdma_call=call), protocol.BAD_XDR)
            self.refuses(message(kind, rdma_reads=entries(40, 40, 44), rdma_call=call), protocol.BAD_XDR)

    def test_call_chunk(self) -> None:
        self.refuses(message(protocol.CALL_EXTERNAL), protocol.BAD_XDR)
        self.refuses(message(protocol.CALL_EXTERNAL, rdma_call=entries(0, 40, target=BODY)), protocol.BAD_XDR)
        self.refuses(message(protocol.CALL_EXTERNAL, rdma_call=entries(0)), protocol.BAD_XDR)
        self.accepts(message(protocol.CALL_EXTERNAL, rdma_call=entries(0, 0)))

    def test_reply_chunk(self) -> None:
        self.discards(message(protocol.REPLY_EXTERNAL))
        self.discards(message(protocol.REPLY_EXTERNAL, rdma_reply=chunk(ONE)))
        self.accepts(message(protocol.REPLY_EXTERNAL, rdma_reply=chunk(ONE, ONE)))

    def test_segment_around_the_end_of_all_addresses(self) -> None:
        around, before = segment(1, 4, (1 << 64) - 3), segment(1, 4, (1 << 64) - 5)
        self.refuses(message(protocol.CALL_INLINE, rdma_provisional_writes=[chunk(around)]), protocol.BAD_XDR)
        self.accepts(message(protocol.CALL_INLINE, rdma_provisional_writes=[chunk(before)]))

    def test_handle_to_invalidate(self) -> None:
        first, second, third, fourth = (segment(handle, 64, 0) for handle in range(1, 5))
        lists: dict[str, Any] = {"rdma_call": entries(0, target=first), "rdma_reads": entries(40, target=second),
                                 "rdma_provisional_writes": [chunk(third)], "rdma_provisional_reply": chunk(fourth)}
        for handle in range(5):
            self.accepts(message(protocol.CALL_EXTERNAL, rdma_inv_handle=handle, **lists))
        self.refuses(message(protocol.CALL_EXTERNAL, rdma_inv_handle=5, **lists), protocol.BAD_XDR)
        self.refuses(message(protocol.CALL_INLINE, rdma_inv_handle=1), protocol.BAD_XDR)

    def test_optional_word(self) -> None:
        octets = message(protocol.CALL_INLINE)
        for at in (20, 24, 28):
            self.refuses(octets[:at] + word(2) + octets[at + 4:], protocol.BAD_XDR)


class Room(Case):
    """The draft, section 7.3."""

    def call(self, **limits: int) -> None:
        self.connect(limits=replace(AMPLE, **limits))

    def test_read_chunks(self) -> None:
        self.call(read_chunks=2)
        body = entries(0, target=BODY)
        self.accepts(message(protocol.CALL_INLINE, rdma_reads=entries(40, 40, 40, 60)))
        self.refuses(message(protocol.CALL_INLINE, rdma_reads=entries(40, 60, 80)), protocol.READ_CHUNKS, 2)
        self.accepts(message(protocol.CALL_EXTERNAL, rdma_call=body * 3, rdma_reads=entries(40)))
        self.refuses(message(protocol.CALL_EXTERNAL, rdma_call=body, rdma_reads=entries(40, 60)), protocol.READ_CHUNKS, 2)

    def test_read_segments(self) -> None:
        self.call(read_segments=3)
        body = entries(0, 0, target=BODY)
        self.accepts(message(protocol.CALL_EXTERNAL, rdma_call=body, rdma_reads=entries(40)))
        self.refuses(message(protocol.CALL_EXTERNAL, rdma_call=body, rdma_reads=entries(40, 60)), protocol.SEGMENTS, 3)

    def test_write_chunks(self) -> None:
        self.call(write_chunks=1)
        self.accepts(message(protocol.CALL_INLINE, rdma_provisional_writes=[chunk(ONE)], rdma_provisional_reply=chunk(ONE)))
        self.refuses(message(protocol.CALL_INLINE, rdma_provisional_writes=[chunk(), chunk()]), protocol.WRITE_CHUNKS, 1)
        self.discards(message(protocol.REPLY_INLINE, rdma_writes=[chunk(), chunk()]))

    def test_write_segments(self) -> None:
        self.call(write_segments=2)
        writes = [chunk(ONE), chunk(ONE)]
        self.accepts(message(protocol.CALL_INLINE, rdma_provisional_writes=writes, rdma_provisional_reply=chunk(ONE)))
        self.refuses(message(protocol.CALL_INLINE, rdma_provisional_writes=[*writes, chunk(ONE)]), protocol.SEGMENTS, 2)

    def test_chunk_segments(self) -> None:
        self.call(chunk_segments=2)
        three = chunk(ONE, ONE, ONE)
        self.accepts(message(protocol.CALL_INLINE, rdma_reads=entries(40, 40, 60, 60)))
        self.refuses(message(protocol.CALL_INLINE, rdma_reads=entries(40, 40, 40)), protocol.SEGMENTS, 2)
        self.refuses(message(protocol.CALL_EXTERNAL, rdma_call=entries(0, 0, 0)), protocol.SEGMENTS, 2)
        self.refuses(message(protocol.CALL_INLINE, rdma_provisional_writes=[three]), protocol.SEGMENTS, 2)
        self.refuses(message(protocol.CALL_INLINE, rdma_provisional_reply=three), protocol.SEGMENTS, 2)
        self.discards(message(protocol.REPLY_EXTERNAL, rdma_reply=three))

    def test_chunk_bytes(self) -> None:
        self.call(chunk_bytes=404)
        body, long = entries(0, target=BODY), segment(1, 405, 0)
        self.accepts(message(protocol.CALL_EXTERNAL, rdma_call=body, rdma_reads=entries(40)))
        self.refuses(message(protocol.CALL_EXTERNAL, rdma_call=body, rdma_reads=entries(40, 60)), protocol.SYSTEM)
        self.accepts(message(protocol.CALL_INLINE, rdma_provisional_writes=[chunk(BODY, ONE), chunk(BODY)]))
        self.refuses(message(protocol.CALL_INLINE, rdma_provisional_writes=[chunk(BODY, ONE, ONE)]), protocol.SYSTEM)
        self.refuses(message(protocol.CALL_INLINE, rdma_provisional_reply=chunk(long)), protocol.SYSTEM)
        self.discards(message(protocol.REPLY_INLINE, rdma_writes=[chunk(long)]))

    def test_several_faults(self) -> None:
        """Each may be answered."""
        self.call(read_chunks=0, write_chunks=0)
        reads = entries(40)
        verdict = self.receiver.receive(message(protocol.CALL_INLINE, rdma_reads=reads, rdma_provisional_writes=[chunk(ONE)]))
        assert isinstance(verdict, Refused)
        self.assertEqual([each.error for each in verdict.answers], [(protocol.READ_CHUNKS, [0]), (protocol.WRITE_CHUNKS, [0])])

    def test_end_that_takes_no_chunks(self) -> None:
        self.call(chunk_segments=0)
        self.accepts(message(protocol.CALL_INLINE, rdma_provisional_reply=chunk()))
        self.call(chunk_segments=0, read_chunks=0, write_chunks=0)
        self.refuses(message(protocol.CALL_INLINE, rdma_provisional_reply=chunk()), protocol.WRITE_CHUNKS, 0)

    def test_client_takes_no_chunks(self) -> None:
        self.connect(is_server=False)
        self.accepts(message(protocol.CALL_INLINE))
        self.refuses(message(protocol.CALL_INLINE, rdma_reads=entries(40)), protocol.READ_CHUNKS, 0)
        self.refuses(message(protocol.CALL_EXTERNAL, rdma_call=entries(0, target=BODY)), protocol.READ_CHUNKS, 0)
        self.refuses(message(protocol.CALL_INLINE, rdma_provisional_writes=[chunk()]), protocol.WRITE_CHUNKS, 0)
        self.refuses(message(protocol.CALL_INLINE, rdma_provisional_reply=chunk()), protocol.WRITE_CHUNKS, 0)
        self.accepts(message(protocol.REPLY_EXTERNAL, rdma_writes=[chunk(ONE)], rdma_reply=chunk(BODY)))


class Fragments(Case):
    """The draft, sections 6.3.6, 6.3.9 and 7.1.4."""

    def test_in_order(self) -> None:
        for kinds in ((protocol.CALL_MIDDLE, protocol.CALL_INLINE), (protocol.REPLY_MIDDLE, protocol.REPLY_INLINE)):
            start = START if kinds[0] in protocol.CALLS else REPLY_START
            self.accepts(middle(20, start, kind=kinds[0]))
            self.accepts(middle(9, b"x" * 11, kind=kinds[0]))
            self.accepts(end(b"y" * 9, kind=kinds[1]), whole=len(start) + 20)

    def test_aside(self) -> None:
        self.accepts(middle(8, START))
        self.accepts(GRANT)
        self.accepts(AN_ERROR)
        self.accepts(end(bytes(8)), whole=48)

    def test_wrong_remaining(self) -> None:
        for remaining in (0, 7, 9, 12):
            self.connect()
            self.accepts(middle(12, START))
            self.refuses(middle(remaining, bytes(4)), protocol.INVAL_CONT)
            self.discards(middle(4, bytes(4)))
            self.discards(end(bytes(4)))
            self.accepts(end(START))

    def test_end_of_wrong_length(self) -> None:
        for length in (4, 12):
            self.accepts(middle(8, START))
            self.refuses(end(bytes(length)), protocol.INVAL_CONT)
            self.accepts(end(START))

    def test_nothing_remains(self) -> None:
        self.refuses(middle(0, START), protocol.INVAL_CONT)
        self.discards(end(START))
        self.accepts(end(START))

    def test_middle_too_short_or_of_another_message(self) -> None:
        self.refuses(middle(8, b"abc"), protocol.BAD_XDR)
        self.discards(end(START))
        self.refuses(middle(8, call_payload(XID + 1)), protocol.BAD_XDR)
        self.discards(end(START))

    def test_bound(self) -> None:
        self.connect(limits=replace(AMPLE, message_bytes=100))
        self.refuses(middle(61, START), protocol.INVAL_CONT)
        self.discards(end(bytes(61)))
        self.accepts(middle(60, START))

    def test_chunks_of_the_end(self) -> None:
        self.accepts(middle(8, START))
        self.accepts(end(bytes(8), rdma_reads=entries(48)), whole=48)
        self.accepts(middle(8, START))
        self.refuses(end(bytes(8), rdma_reads=entries(52)), protocol.BAD_XDR)
        self.accepts(middle(8, START))
        self.refuses(end(bytes(8), rdma_reads=entries(2)), protocol.BAD_XDR)
        self.accepts(end(START))

    def test_intruders(self) -> None:
        external = message(protocol.CALL_EXTERNAL, rdma_call=entries(0, target=BODY))
        for intruder in (end(call_payload(9), 9), external, properties(), properties(kind=protocol.CONNPROP_MIDDLE),
                         end(REPLY_START, kind=protocol.REPLY_INLINE)):
            self.connect()
            self.accepts(middle(8, START))
            self.refuses(intruder, protocol.INVAL_CONT)
            self.accepts(end(bytes(8)), whole=48)
            self.accepts(end(START))

    def test_intruders_between_replies(self) -> None:
        for intruder in (end(reply_payload(9), 9, protocol.REPLY_INLINE), end(START)):
            self.connect()
            self.accepts(middle(8, REPLY_START, kind=protocol.REPLY_MIDDLE))
            self.refuses(intruder, protocol.INVAL_CONT)
            self.accepts(end(bytes(8), kind=protocol.REPLY_INLINE))

    def test_unknown_type_between(self) -> None:
        self.accepts(middle(8, START))
        self.refuses(GRANT[:12] + word(14), protocol.INVAL_HTYPE)
        self.refuses(GRANT[:4] + word(1) + GRANT[8:], protocol.VERS_MISMATCH)
        self.accepts(end(bytes(8)))

    def test_fragments_of_an_intruder(self) -> None:
        self.accepts(middle(8, START))
        self.refuses(middle(8, call_payload(9), 9), protocol.INVAL_CONT)
        self.discards(end(bytes(8), 9))
        self.accepts(end(bytes(8)))

    def test_fragments_of_an_intruder_behind_the_message(self) -> None:
        self.accepts(middle(16, START))
        self.refuses(middle(8, call_payload(9), 9), protocol.INVAL_CONT)
        self.accepts(middle(8, bytes(8)))
        self.accepts(end(bytes(8)))
        self.discards(end(bytes(8), 9))

    def test_what_is_left_is_forgotten_after_another_message(self) -> None:
        self.refuses(middle(0, START), protocol.INVAL_CONT)
        self.accepts(GRANT)
        self.accepts(end(call_payload(9), 9))
        self.accepts(end(START))

    def test_bad_reply_is_discarded(self) -> None:
        self.accepts(middle(8, REPLY_START, kind=protocol.REPLY_MIDDLE))
        self.discards(middle(8, bytes(4), kind=protocol.REPLY_MIDDLE))
        self.discards(end(bytes(4), kind=protocol.REPLY_INLINE))
        self.accepts(end(REPLY_START, kind=protocol.REPLY_INLINE))


class Properties(Case):
    """The draft, sections 5.1, 6.3.3, 6.3.4 and 7.2.2."""

    MIDDLE = properties(kind=protocol.CONNPROP_MIDDLE)

    def refuses_alone(self, octets: bytes, code: int) -> None:
        """As the first message of a connection."""
        self.connect()
        self.refuses(octets, code)

    def test_values(self) -> None:
        props = [(1, word(0)), (2, word(1024)), (3, word(1)), (4, word(0)), (5, word(3)), (1, b""), (2, b""), (6, b"odd"),
                 (99, b"x"), (1, word(8))]
        self.assertEqual(self.accepts(properties(*props)).properties, props)

    def test_bad_values(self) -> None:
        for which in range(1, 6):
            for data in (b"a", bytes(3), bytes(5), bytes(8)):
                self.refuses_alone(properties((99, b""), (which, data)), protocol.BAD_PROPVAL)
        self.refuses_alone(properties((5, word(4))), protocol.BAD_PROPVAL)
        self.refuses_alone(properties((2, word(1023))), protocol.BAD_PROPVAL)

    def test_value_longer_than_the_message(self) -> None:
        self.refuses_alone(properties((99, b"abcde"))[:-4], protocol.BAD_PROPVAL)
        self.refuses_alone(properties((99, b"abcde"))[:-1], protocol.BAD_PROPVAL)

    def test_cut(self) -> None:
        octets = properties((99, b""))
        for length in range(16, len(octets)):
            self.refuses_alone(octets[:length], protocol.BAD_XDR)

    def test_second_final(self) -> None:
        self.accepts(properties())
        self.refuses(properties(), protocol.INVAL_CONT)
        self.refuses(self.MIDDLE, protocol.INVAL_CONT)
        self.accepts(end(START))

    def test_sequence(self) -> None:
        self.accepts(self.MIDDLE)
        self.accepts(GRANT)
        self.accepts(AN_ERROR)
        self.refuses(end(START), protocol.INVAL_CONT)
        self.accepts(self.MIDDLE)
        self.accepts(properties())
        self.accepts(end(START))

    def test_what_was_refused_counts_as_sent(self) -> None:
        self.refuses(properties((5, word(4)), kind=protocol.CONNPROP_MIDDLE), protocol.BAD_PROPVAL)
        self.refuses(end(START), protocol.INVAL_CONT)
        self.refuses(properties((5, word(4))), protocol.BAD_PROPVAL)
        self.accepts(end(START))
        self.refuses(properties(), protocol.INVAL_CONT)

    def test_bound(self) -> None:
        half = properties((99, bytes(8192 - 28)), kind=protocol.CONNPROP_MIDDLE)
        self.assertEqual(len(half), 8192)
        self.accepts(half)
        self.accepts(half)
        self.refuses(properties(), protocol.INVAL_CONT)
        self.accepts(end(START))


if __name__ == "__main__":
    unittest.main()
