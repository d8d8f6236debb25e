"""The judge: finds no fault with the good conversation, and in each broken one just the rule that is broken."""

import struct
from dataclasses import replace
from typing import Any

import pytest

import protocol
import returned
from breaks import BREAKS, broken
from conversation import Conversation
from judge import judge
from link import Sent
from message import Message, Prefix, error
from conveyed import Call, Reply, call_payload, reply_payload, segment
from rules import RULES

CREDITS = 100
CHUNK = [segment(1, 100, 0), segment(2, 100, 0)]


def rules(messages: list[Sent]) -> list[str]:
    return [finding.rule for judged in judge(messages) for finding in judged.findings]


def words(*values: int) -> bytes:
    return struct.pack(f">{len(values)}I", *values)


def sent(message: Message, by_client: bool = True, invalidates: int | None = None) -> Sent:
    return Sent(by_client, replace(message, prefix=replace(message.prefix, credits=CREDITS)).encode(), invalidates)


def properties(by_client: bool, kind: int = protocol.CONNPROP_FINAL, xid: int = 1, **values: int) -> Sent:
    props = [{"rdma_which": protocol.NUMBER["RDMA2_PROPID_" + name], "rdma_data": words(value)}
             for name, value in values.items()]
    return sent(Message(Prefix(xid, 2, 0, kind), {"rdma_props": props}), by_client)


def opening(**client: int) -> list[Sent]:
    return [properties(True, **client), properties(False)]


def call(xid: int = 9, by_client: bool = True, length: int = 0, **fields: Any) -> list[Sent]:
    return [sent(each, by_client) for each in Call(xid, call_payload(xid, 1, bytes(length)), **fields).messages(4096)]


def reply(xid: int = 9, by_client: bool = False, length: int = 0, invalidates: int | None = None, **fields: Any) -> list[Sent]:
    messages = Reply(xid, reply_payload(xid, bytes(length)), **fields).messages(4096)
    return [sent(each, by_client, invalidates if each is messages[-1] else None) for each in messages]


def answer(xid: int, code: int, *arguments: int, by_client: bool = False) -> list[Sent]:
    return [sent(error(Prefix(xid, 2, 0, 0), 0, code, *arguments), by_client)]


def filler(by_client: bool, length: int, kind: int = protocol.CONNPROP_FINAL) -> Sent:
    """Properties that nobody knows, in a message of so many octets."""
    props = [{"rdma_which": 99, "rdma_data": bytes(length - 28)}]
    return sent(Message(Prefix(1, 2, 0, kind), {"rdma_props": props}), by_client)


GRANT = sent(Message(Prefix(0, 2, 0, protocol.GRANT)))
# The first messages of a connection, and messages that are used again below.
HELLO, ANSWERED = opening()
START = [HELLO, ANSWERED]
OLD = Sent(True, words(5, 1, 32, 0, 0, 0, 0))
OLD_ANSWER = replace(OLD, by_client=False)
SERVER_GRANT = replace(GRANT, by_client=False)
MISMATCH = Sent(False, words(5, 1, CREDITS, 4, protocol.VERS_MISMATCH))
WHOLE, = call()
CUT = replace(WHOLE, message=WHOLE.message[:20])
FIRST, *REST = LONG = call(length=9000)
*BEFORE, LAST = LONG
BEGIN, *END = reply(length=9000)
BIG = sent(Call(9, call_payload(9, 1, bytes(5000))).messages(8192)[0])
MIDDLE = properties(False, protocol.CONNPROP_MIDDLE)
MIDDLE_SIZE = properties(False, protocol.CONNPROP_MIDDLE, RBSIZ=8192)
FILL = filler(False, 4096, protocol.CONNPROP_MIDDLE)
SYSTEM = answer(9, protocol.SYSTEM)
SMALL = [HELLO, properties(False, RCSIZ=2, RSSIZ=100)]
WRITING = [*START, *call(writes=[CHUNK], inv_handle=2)]
UNASKED = [*START, *call(writes=[CHUNK])]
TARGET, SHORT = segment(1, 100, 0), segment(1, 4096, 0)


def refusal(version: int) -> Sent:
    """As version 1 has it, of this one."""
    return Sent(False, words(1, version, 16, 4, 1, 1, 1))


def padded() -> Sent:
    """With padding that is not zero."""
    message = Message(Prefix(1, 2, CREDITS, protocol.CONNPROP_FINAL), {"rdma_props": [{"rdma_which": 99, "rdma_data": b"a"}]})
    return Sent(True, message.encode()[:-1] + b"x")


def cut_after(length: int) -> list[Sent]:
    """A Call in two fragments, the first of so many octets."""
    payload, (last,) = call_payload(9), call(9)
    first = Message(Prefix(9, 2, CREDITS, protocol.CALL_MIDDLE), {"rdma_remaining": 40 - length}, payload[:length])
    return [Sent(True, first.encode()), replace(last, message=last.message[:-40] + payload[length:])]


# What is said, and the rules that are broken in it.
JUDGED: dict[str, tuple[list[Sent], list[str]]] = {
    # Negotiation and what is left unjudged.
    "version 1": ([OLD, OLD_ANSWER, OLD], []),
    **{f"falls back from {version}": ([HELLO, refusal(version), OLD, OLD_ANSWER], []) for version in (1, 2)},
    **{f"does not fall back from {version}": ([HELLO, refusal(version), OLD, *call()], ["version"]) for version in (1, 2)},
    **{f"refusal that leaves version 2 in {versions}": ([HELLO, *answer(1, protocol.ERR_VERS, *versions), *call()], [])
       for versions in ((1, 2), (2, 2), (2, 3))},
    "refusal that does not leave version 2": ([HELLO, *answer(1, protocol.ERR_VERS, 3, 4), *call()], ["version"]),
    "longest first message": ([filler(True, 1024)], []),
    "first message that is too long": ([filler(True, 1028)], ["first-size"]),
    **{f"what is not understood uses a credit, {rule}": (
        [HELLO, Sent(False, Prefix(0, 2, 2, protocol.GRANT).encode()), Sent(True, lost), *call()], [rule, "credit"])
       for lost, rule in ((b"short", "encoding"), (OLD.message, "version"))},
    "version 1 after version 2": ([*START, OLD, MISMATCH], ["version"]),
    "refusal of version 1 after version 2": ([*START, MISMATCH], ["version"]),
    "any message of version 2 is an answer": ([HELLO, SERVER_GRANT, *call(), *reply()], []),
    "nothing of the client before the answer": ([HELLO, *call()], ["patience", "credit"]),
    # What cannot be decoded, or is not what it would be encoded to.
    "malformed": ([*START, CUT], ["encoding"]),
    "malformed prefix": ([*START, replace(WHOLE, message=WHOLE.message[:10])], ["encoding"]),
    "padding": ([padded()], ["encoding"]),
    "error may answer what is malformed": ([*START, CUT, *answer(9, protocol.BAD_XDR)], ["encoding"]),
    # Fragments.
    "aside": ([*START, *call(8), FIRST, GRANT, *REST, *reply(8), *reply()], []),
    "aside of a Reply": ([*START, *call(8), *call(), BEGIN, *answer(8, protocol.SYSTEM), *END], []),
    "properties between": ([HELLO, SERVER_GRANT, FIRST, properties(True), *REST], ["interleaved", "second-final"]),
    "Reply between": ([*opening(BRS=2), *call(7, by_client=False), FIRST, *reply(7, by_client=True), *REST], ["interleaved"]),
    "external Call between": ([*START, FIRST, *call(call_chunk=[TARGET]), *REST], ["interleaved"]),
    "end brings less than what remains": ([*START, *BEFORE, replace(LAST, message=LAST.message[:-4])], ["remaining"]),
    "end brings more than what remains": ([*START, *BEFORE, replace(LAST, message=LAST.message + bytes(4))], ["remaining"]),
    "nothing remains": ([*START, sent(Message(Prefix(9, 2, 0, protocol.CALL_MIDDLE), {"rdma_remaining": 0}, call_payload(9)))],
                        ["remaining"]),
    **{f"first fragment of {length} octets": ([*START, *cut_after(length)], wrong)
       for length, wrong in ((4, ["payload-type"]), (7, ["payload-type"]), (8, []))},
    "error ends an unfinished Call": ([*START, FIRST, *answer(9, protocol.INVAL_CONT), *REST, *reply()], ["reply"]),
    # Where the Read chunks belong in a message: within what came before.
    **{f"Position {position} of a continued Call": ([*START, *call(length=9000, reads=[(position, TARGET)])], wrong)
       for position, wrong in ((9040, []), (9044, ["chunks"]))},
    **{f"Position {position} of an external Call": ([*START, *call(call_chunk=[TARGET], reads=[(position, TARGET)])], wrong)
       for position, wrong in ((100, []), (104, ["chunks"]))},
    # Properties: what the ends tell.
    "in several messages": ([HELLO, MIDDLE_SIZE, SERVER_GRANT, ANSWERED, *call()], []),
    "hold with the last": ([properties(True, SBSIZ=8192), MIDDLE_SIZE, ANSWERED, BIG], []),
    "do not hold before the last": ([properties(True, SBSIZ=8192), MIDDLE_SIZE, BIG], ["size"]),
    "default of sizes": ([*START, BIG], ["size", "send-size"]),
    "default of segments": ([*START, *call(reads=[(40, segment(each, 4, 0)) for each in range(17)])], ["segment-count"]),
    "default of their size": ([*START, *call(reads=[(40, segment(1, (1 << 20) + 1, 0))])], ["segment-size"]),
    "refused": ([properties(True, RBSIZ=1024), ANSWERED, *answer(1, protocol.BAD_PROPVAL), HELLO, *call(length=2000),
                 *reply(length=2000)], []),
    **{f"{length} octets with properties for 1024": ([properties(True, RBSIZ=1024), filler(False, length)], wrong)
       for length, wrong in ((1024, []), (1028, ["property-size"]))},
    **{f"{length} octets with properties": ([HELLO, filler(False, length)], wrong)
       for length, wrong in ((4096, []), (4100, ["property-size"]))},
    "longest properties": ([HELLO, *[FILL] * 4], []),
    "properties that are too long": ([HELLO, *[FILL] * 5, ANSWERED], ["property-total"]),
    "most segments and longest": ([*SMALL, *call(writes=[CHUNK])], []),
    "more than most segments": ([*SMALL, *call(writes=[CHUNK, CHUNK])], ["segment-count"]),
    "longer than longest segment": ([*SMALL, *call(reply=[segment(1, 101, 0)])], ["segment-size"]),
    "Calls after a broken sequence": ([opening(BRS=1)[0], MIDDLE, *call(1, False), *call(2, False)], ["property-sequence"]),
    "hold after another error": (
        [properties(True, RBSIZ=1024), ANSWERED, *answer(1, protocol.SYSTEM), *call(), *reply(length=2000)], ["size"]),
    "second error for properties": ([*START, *answer(1, protocol.SYSTEM), *answer(1, protocol.SYSTEM)], ["error"]),
    # Replies, errors and what they end.
    "XID may be used in both directions": (
        [*opening(BRS=2), *call(), *call(by_client=False), *reply(by_client=True), *reply()], []),
    "XID is free after the answer": ([*START, *call(), *reply(), *call(), *SYSTEM, *call(), *reply()], []),
    "no Reply after an error": ([*START, *call(), *SYSTEM, *reply()], ["reply"]),
    "no second error": ([*START, *call(), *SYSTEM * 2], ["error"]),
    "no error for a GRANT": ([*START, GRANT, *answer(0, protocol.SYSTEM)], ["error"]),
    "no error for an error": ([*START, *call(), *SYSTEM, *answer(9, 100, by_client=True)], ["error"]),
    "unknown type may be answered": ([*START, Sent(True, words(9, 2, CREDITS, 77)), *answer(9, protocol.INVAL_HTYPE)], ["type"]),
    "long Reply": ([*START, *call(reply=[SHORT]), *reply(length=9000)], []),
    # The header of the RPC message comes to what is asked for.
    **{f"long Reply with room for {4096 + more}": ([*START, *call(reply=[SHORT, segment(2, more, 0)]), *reply(length=9000)], wrong)
       for more, wrong in ((9024 - 4096, ["reply-chunk-unused"]), (9023 - 4096, []))},
    "invalidation": ([*WRITING, *reply(writes=[CHUNK], invalidates=2)], []),
    "invalidation of another": ([*WRITING, *reply(writes=[CHUNK], invalidates=1)], ["invalidated-handle"]),
    "invalidation by the first fragment": (
        [*WRITING, *(replace(each, invalidates=None if number else 2)
                     for number, each in enumerate(reply(writes=[CHUNK], length=9000)))], ["invalidation"]),
    **{f"invalidation of {handle} that nobody asked for": ([*UNASKED, *reply(writes=[CHUNK], invalidates=handle)],
                                                           ["invalidated-handle"]) for handle in (0, 1)}}


def test_good() -> None:
    """Of the conversation of the two raw ends."""
    assert [str(each) for each in judge(Conversation().run()) if each.findings] == []


def test_rules_have_breaks() -> None:
    assert [*BREAKS] == [*RULES]


@pytest.mark.parametrize("rule", RULES)
def test_each_rule(rule: str) -> None:
    assert set(rules(broken(rule))) == {rule}


def test_says_what_each_message_is() -> None:
    texts = [each.text for each in judge(Conversation().run())]
    assert all(text.startswith(("client: RDMA2_", "server: RDMA2_")) for text in texts)
    for part, count in (("RDMA2_ERR_READ_CHUNKS 2", 1), ("invalidates 0x00001001", 2), ("35964 remaining", 1),
                        ("property 5 = 00000002", 1), ("may invalidate 0x00004001", 1), ("40 of payload", 3)):
        assert sum(part in text for text in texts) == count, part
    assert ("client: RDMA2_CALL_EXTERNAL, xid 0x00000005, credits 20, 152 octets, 1 Call segments, 1 Read segments, "
            "2 Write chunks, 1 Reply segments, may invalidate 0x00004001") in texts
    assert "server: RDMA2_GRANT, xid 0x00000000, credits 37, 16 octets" in texts


@pytest.mark.parametrize(("messages", "wrong"), JUDGED.values(), ids=JUDGED)
def test_judged(messages: list[Sent], wrong: list[str]) -> None:
    assert rules(messages) == wrong


@pytest.mark.parametrize(("level", "messages", "wrong"), [
    (0, call(9, False), {"reverse"}), (1, call(9, False), set()), (1, call(9, False, 9000), {"reverse"}),
    (2, call(9, False, 9000), set()), (2, call(9, False, writes=[[]]), {"reverse"}), (3, call(9, False, writes=[[]]), set())])
def test_reverse(level: int, messages: list[Sent], wrong: set[str]) -> None:
    assert set(rules([*opening(BRS=level), *messages])) == wrong


def fault(writes: list[Any], reply_chunk: Any = None, offered: Any = None) -> str:
    """What is wrong with the chunks of a Reply."""
    (asked,) = Call(9, call_payload(9), writes=[CHUNK, []], reply=offered).messages(4096)
    (came,) = Reply(9, reply_payload(9), writes, reply_chunk).messages(4096)
    return returned.fault(asked, came) or ""


def lengths(first: int, second: int) -> list[Any]:
    return [segment(1, first, 0), segment(2, second, 0)]


def test_good_chunks() -> None:
    for first in (CHUNK, [], lengths(100, 0), lengths(0, 0), lengths(7, 0)):
        assert fault([first, []]) == ""
    assert fault([[], []], lengths(1, 0), CHUNK) == ""


@pytest.mark.parametrize(("chunks", "wrong"), [
    ([[CHUNK]], "come back"), ([[CHUNK, CHUNK]], "segments"), ([[CHUNK[:1], []]], "segments"), ([[lengths(101, 0), []]], "room"),
    ([[lengths(99, 1), []]], "order"), ([[[segment(1, 100, 4), segment(2, 100, 0)], []]], "another"),
    ([[lengths(100, 100)[::-1], []]], "another"), ([[[], []], CHUNK], "no Reply chunk"),
    ([[[], []], lengths(0, 0), CHUNK], "nothing"), ([[[], []], [], CHUNK], "segments")])
def test_bad_chunks(chunks: list[Any], wrong: str) -> None:
    assert wrong in fault(*chunks)
