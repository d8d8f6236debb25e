"""The judge: finds no fault with the good conversation, and in each broken one just the rule that is broken."""

import struct
import unittest
from dataclasses import replace
from typing import Any

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


class Conversations(unittest.TestCase):
    """The conversation of the two raw ends."""

    def test_good(self) -> None:
        judged = judge(Conversation().run())
        self.assertEqual([str(each) for each in judged if each.findings], [])

    def test_each_rule(self) -> None:
        self.assertEqual([*BREAKS], [*RULES])
        for rule in RULES:
            with self.subTest(rule):
                self.assertEqual(set(rules(broken(rule))), {rule})

    def test_says_what_each_message_is(self) -> None:
        texts = [each.text for each in judge(Conversation().run())]
        self.assertTrue(all(text.startswith(("client: RDMA2_", "server: RDMA2_")) for text in texts))
        for part, count in (("RDMA2_ERR_READ_CHUNKS 2", 1), ("invalidates 0x00001001", 2), ("35964 remaining", 1),
                            ("property 5 = 00000002", 1), ("may invalidate 0x00004001", 1), ("40 of payload", 3)):
            self.assertEqual(sum(part in text for text in texts), count, part)
        self.assertIn("client: RDMA2_CALL_EXTERNAL, xid 0x00000005, credits 20, 152 octets, 1 Call segments, 1 Read segments, "
                      "2 Write chunks, 1 Reply segments, may invalidate 0x00004001", texts)
        self.assertIn("server: RDMA2_GRANT, xid 0x00000000, credits 37, 16 octets", texts)


class Versions(unittest.TestCase):
    """Negotiation and what is left unjudged."""

    OLD = Sent(True, words(5, 1, 32, 0, 0, 0, 0))

    def test_version_1(self) -> None:
        self.assertEqual(rules([self.OLD, replace(self.OLD, by_client=False), self.OLD]), [])

    def test_falls_back(self) -> None:
        for version in (1, 2):
            refusal = Sent(False, words(1, version, 16, 4, 1, 1, 1))
            self.assertEqual(rules([opening()[0], refusal, self.OLD, replace(self.OLD, by_client=False)]), [])
            self.assertEqual(rules([opening()[0], refusal, self.OLD, *call()]), ["version"])

    def test_refusal_that_leaves_version_2(self) -> None:
        for lowest, highest in ((1, 2), (2, 2), (2, 3)):
            messages = [opening()[0], *answer(1, protocol.ERR_VERS, lowest, highest), *call()]
            self.assertEqual(rules(messages), [])
        self.assertEqual(rules([opening()[0], *answer(1, protocol.ERR_VERS, 3, 4), *call()]), ["version"])

    def test_longest_first_message(self) -> None:
        self.assertEqual(rules([filler(True, 1024)]), [])
        self.assertEqual(rules([filler(True, 1028)]), ["first-size"])

    def test_what_is_not_understood_uses_a_credit(self) -> None:
        told = Sent(False, Prefix(0, 2, 2, protocol.GRANT).encode())
        for lost, rule in ((b"short", "encoding"), (self.OLD.message, "version")):
            self.assertEqual(rules([opening()[0], told, Sent(True, lost), *call()]), [rule, "credit"])

    def test_version_1_after_version_2(self) -> None:
        mismatch = Sent(False, words(5, 1, CREDITS, 4, protocol.VERS_MISMATCH))
        self.assertEqual(rules([*opening(), self.OLD, mismatch]), ["version"])
        self.assertEqual(rules([*opening(), mismatch]), ["version"])

    def test_any_message_of_version_2_is_an_answer(self) -> None:
        self.assertEqual(rules([opening()[0], replace(GRANT, by_client=False), *call(), *reply()]), [])

    def test_nothing_of_the_client_before_the_answer(self) -> None:
        self.assertEqual(rules([opening()[0], *call()]), ["patience", "credit"])


class Encoding(unittest.TestCase):
    """What cannot be decoded, or is not what it would be encoded to."""

    def test_malformed(self) -> None:
        whole = call()[0]
        self.assertEqual(rules([*opening(), replace(whole, message=whole.message[:20])]), ["encoding"])
        self.assertEqual(rules([*opening(), replace(whole, message=whole.message[:10])]), ["encoding"])

    def test_padding(self) -> None:
        props = [{"rdma_which": 99, "rdma_data": b"a"}]
        message = Message(Prefix(1, 2, CREDITS, protocol.CONNPROP_FINAL), {"rdma_props": props})
        self.assertEqual(rules([Sent(True, message.encode()[:-1] + b"x")]), ["encoding"])

    def test_error_may_answer_what_is_malformed(self) -> None:
        whole = call()[0]
        messages = [*opening(), replace(whole, message=whole.message[:20]), *answer(9, protocol.BAD_XDR)]
        self.assertEqual(rules(messages), ["encoding"])


class Continuation(unittest.TestCase):
    """Fragments."""

    def test_aside(self) -> None:
        first, *rest = call(length=9000)
        self.assertEqual(rules([*opening(), *call(8), first, GRANT, *rest, *reply(8), *reply()]), [])
        begin, *end = reply(length=9000)
        self.assertEqual(rules([*opening(), *call(8), *call(), begin, *answer(8, protocol.SYSTEM), *end]), [])

    def test_properties_between(self) -> None:
        first, *rest = call(length=9000)
        self.assertEqual(rules([opening()[0], replace(GRANT, by_client=False), first, properties(True), *rest]),
                         ["interleaved", "second-final"])

    def test_reply_between(self) -> None:
        messages = [*opening(BRS=2), *call(7, by_client=False)]
        first, *rest = call(length=9000)
        self.assertEqual(rules([*messages, first, *reply(7, by_client=True), *rest]), ["interleaved"])

    def test_external_call_between(self) -> None:
        first, *rest = call(length=9000)
        self.assertEqual(rules([*opening(), first, *call(call_chunk=[segment(1, 100, 0)]), *rest]), ["interleaved"])

    def test_end_brings_what_remains(self) -> None:
        *start, last = call(length=9000)
        self.assertEqual(rules([*opening(), *start, replace(last, message=last.message[:-4])]), ["remaining"])
        self.assertEqual(rules([*opening(), *start, replace(last, message=last.message + bytes(4))]), ["remaining"])

    def test_nothing_remains(self) -> None:
        message = Message(Prefix(9, 2, CREDITS, protocol.CALL_MIDDLE), {"rdma_remaining": 0}, call_payload(9))
        self.assertEqual(rules([*opening(), Sent(True, message.encode())]), ["remaining"])

    def test_first_fragment_of_one_word(self) -> None:
        payload, (last,) = call_payload(9), call(9)
        for length, expected in ((4, ["payload-type"]), (7, ["payload-type"]), (8, [])):
            first = Message(Prefix(9, 2, CREDITS, protocol.CALL_MIDDLE), {"rdma_remaining": 40 - length}, payload[:length])
            end = last.message[:-40] + payload[length:]
            self.assertEqual(rules([*opening(), Sent(True, first.encode()), replace(last, message=end)]), expected)

    def test_error_ends_an_unfinished_call(self) -> None:
        first, *rest = call(length=9000)
        self.assertEqual(rules([*opening(), first, *answer(9, protocol.INVAL_CONT), *rest, *reply()]), ["reply"])


class Positions(unittest.TestCase):
    """Where the Read chunks belong in a message."""

    def test_within_what_came_before(self) -> None:
        target = segment(1, 100, 0)
        for position, wrong in ((9040, []), (9044, ["chunks"])):
            self.assertEqual(rules([*opening(), *call(length=9000, reads=[(position, target)])]), wrong)
        for position, wrong in ((100, []), (104, ["chunks"])):
            self.assertEqual(rules([*opening(), *call(call_chunk=[target], reads=[(position, target)])]), wrong)


class Properties(unittest.TestCase):
    """What the ends tell."""

    def test_in_several_messages(self) -> None:
        middle = properties(False, protocol.CONNPROP_MIDDLE, RBSIZ=8192)
        self.assertEqual(rules([opening()[0], middle, replace(GRANT, by_client=False), properties(False), *call()]), [])

    def test_hold_with_the_last(self) -> None:
        big = Call(9, call_payload(9, 1, bytes(5000))).messages(8192)[0]
        middle = properties(False, protocol.CONNPROP_MIDDLE, RBSIZ=8192)
        self.assertEqual(rules([properties(True, SBSIZ=8192), middle, properties(False), sent(big)]), [])
        self.assertEqual(rules([properties(True, SBSIZ=8192), middle, sent(big)]), ["size"])

    def test_defaults_hold(self) -> None:
        big = Call(9, call_payload(9, 1, bytes(5000))).messages(8192)[0]
        self.assertEqual(rules([*opening(), sent(big)]), ["size", "send-size"])
        self.assertEqual(rules([*opening(), *call(reads=[(40, segment(each, 4, 0)) for each in range(17)])]), ["segment-count"])
        self.assertEqual(rules([*opening(), *call(reads=[(40, segment(1, (1 << 20) + 1, 0))])]), ["segment-size"])

    def test_refused(self) -> None:
        first = properties(True, RBSIZ=1024)
        messages = [first, properties(False), *answer(1, protocol.BAD_PROPVAL), properties(True), *call(length=2000),
                    *reply(length=2000)]
        self.assertEqual(rules(messages), [])

    def test_size_of_a_message_with_properties(self) -> None:
        for length, wrong in ((1024, []), (1028, ["property-size"])):
            self.assertEqual(rules([properties(True, RBSIZ=1024), filler(False, length)]), wrong)

    def test_longest(self) -> None:
        for length, wrong in ((4096, []), (4100, ["property-size"])):
            self.assertEqual(rules([opening()[0], filler(False, length)]), wrong)
        middle = filler(False, 4096, protocol.CONNPROP_MIDDLE)
        self.assertEqual(rules([opening()[0], *[middle] * 4]), [])
        self.assertEqual(rules([opening()[0], *[middle] * 5, properties(False)]), ["property-total"])

    def test_most_segments_and_longest(self) -> None:
        first = [opening()[0], properties(False, RCSIZ=2, RSSIZ=100)]
        self.assertEqual(rules([*first, *call(writes=[CHUNK])]), [])
        self.assertEqual(rules([*first, *call(writes=[CHUNK, CHUNK])]), ["segment-count"])
        self.assertEqual(rules([*first, *call(reply=[segment(1, 101, 0)])]), ["segment-size"])

    def test_calls_after_a_broken_sequence(self) -> None:
        middle = properties(False, protocol.CONNPROP_MIDDLE)
        messages = [opening(BRS=1)[0], middle, *call(1, False), *call(2, False)]
        self.assertEqual(rules(messages), ["property-sequence"])

    def test_hold_after_another_error(self) -> None:
        messages = [properties(True, RBSIZ=1024), properties(False), *answer(1, protocol.SYSTEM), *call(), *reply(length=2000)]
        self.assertEqual(rules(messages), ["size"])
        self.assertEqual(rules([*opening(), *answer(1, protocol.SYSTEM), *answer(1, protocol.SYSTEM)]), ["error"])

    def test_reverse(self) -> None:
        levels = ((0, call(9, False), True), (1, call(9, False), False), (1, call(9, False, 9000), True),
                  (2, call(9, False, 9000), False), (2, call(9, False, writes=[[]]), True),
                  (3, call(9, False, writes=[[]]), False))
        for level, messages, is_wrong in levels:
            self.assertEqual(set(rules([*opening(BRS=level), *messages])), {"reverse"} if is_wrong else set())


class Replies(unittest.TestCase):
    """Replies, errors and what they end."""

    def test_xid_may_be_used_in_both_directions(self) -> None:
        messages = [*opening(BRS=2), *call(), *call(by_client=False), *reply(by_client=True), *reply()]
        self.assertEqual(rules(messages), [])

    def test_xid_is_free_after_the_answer(self) -> None:
        self.assertEqual(rules([*opening(), *call(), *reply(), *call(), *answer(9, protocol.SYSTEM), *call(), *reply()]), [])

    def test_no_reply_after_an_error(self) -> None:
        self.assertEqual(rules([*opening(), *call(), *answer(9, protocol.SYSTEM), *reply()]), ["reply"])

    def test_no_second_error(self) -> None:
        self.assertEqual(rules([*opening(), *call(), *answer(9, protocol.SYSTEM) * 2]), ["error"])

    def test_no_error_for_a_grant_or_an_error(self) -> None:
        self.assertEqual(rules([*opening(), GRANT, *answer(0, protocol.SYSTEM)]), ["error"])
        self.assertEqual(rules([*opening(), *call(), *answer(9, protocol.SYSTEM), *answer(9, 100, by_client=True)]), ["error"])

    def test_unknown_type_may_be_answered(self) -> None:
        unknown = Sent(True, words(9, 2, CREDITS, 77))
        self.assertEqual(rules([*opening(), unknown, *answer(9, protocol.INVAL_HTYPE)]), ["type"])

    def test_long_reply(self) -> None:
        short = [segment(1, 4096, 0)]
        self.assertEqual(rules([*opening(), *call(reply=short), *reply(length=9000)]), [])
        # The header of the RPC message comes to what is asked for.
        for more, wrong in ((9024 - 4096, ["reply-chunk-unused"]), (9023 - 4096, [])):
            messages = [*opening(), *call(reply=[*short, segment(2, more, 0)]), *reply(length=9000)]
            self.assertEqual(rules(messages), wrong)

    def test_invalidation(self) -> None:
        messages = [*opening(), *call(writes=[CHUNK], inv_handle=2)]
        self.assertEqual(rules([*messages, *reply(writes=[CHUNK], invalidates=2)]), [])
        self.assertEqual(rules([*messages, *reply(writes=[CHUNK], invalidates=1)]), ["invalidated-handle"])
        first, *rest = reply(writes=[CHUNK], length=9000)
        self.assertEqual(rules([*messages, replace(first, invalidates=2), *rest]), ["invalidation"])

    def test_invalidation_that_nobody_asked_for(self) -> None:
        for handle in (0, 1):
            messages = [*opening(), *call(writes=[CHUNK]), *reply(writes=[CHUNK], invalidates=handle)]
            self.assertEqual(rules(messages), ["invalidated-handle"])


class Returned(unittest.TestCase):
    """The chunks of a Reply."""

    def fault(self, writes: list[Any], reply_chunk: Any = None, offered: Any = None) -> str:
        (asked,) = Call(9, call_payload(9), writes=[CHUNK, []], reply=offered).messages(4096)
        (came,) = Reply(9, reply_payload(9), writes, reply_chunk).messages(4096)
        return returned.fault(asked, came) or ""

    def lengths(self, first: int, second: int) -> list[Any]:
        return [segment(1, first, 0), segment(2, second, 0)]

    def test_good(self) -> None:
        for first in (CHUNK, [], self.lengths(100, 0), self.lengths(0, 0), self.lengths(7, 0)):
            self.assertEqual(self.fault([first, []]), "")
        self.assertEqual(self.fault([[], []], self.lengths(1, 0), CHUNK), "")

    def test_bad(self) -> None:
        other = [segment(1, 100, 4), segment(2, 100, 0)]
        for writes, wrong in (([CHUNK], "come back"), ([CHUNK, CHUNK], "segments"), ([CHUNK[:1], []], "segments"),
                              ([self.lengths(101, 0), []], "room"), ([self.lengths(99, 1), []], "order"),
                              ([other, []], "another"), ([self.lengths(100, 100)[::-1], []], "another")):
            self.assertIn(wrong, self.fault(writes))
        self.assertIn("no Reply chunk", self.fault([[], []], CHUNK))
        self.assertIn("nothing", self.fault([[], []], self.lengths(0, 0), CHUNK))
        self.assertIn("segments", self.fault([[], []], [], CHUNK))


if __name__ == "__main__":
    unittest.main()
