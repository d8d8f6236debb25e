"""Messages of version 2 with something wrong about them, by the referee's generator: its own, and Calls that are good but for
their headers. Whatever becomes of them, a connection answers or ends, and others go on."""

import functools
import itertools
import random
from collections.abc import Iterator
from dataclasses import replace

import nfs
import protocol
from bench import Bench
from case import Case
from connection import Connection
from connection_2 import SERVER_BYTES, Connection2, inline, null, segments
from conveyed import Call
from endpoint import Lost
from failure import require, same
from generator import Generator
from header import Header, private_data, words
from message import Prefix
from messages_2 import LONG_CALL, LONG_REPLY
from read_chunks import data, listed, written
from write_chunks import chunk, read

FEW, MANY = 2000, 100_000
SEED = 8166
# Messages in front of a Call that is answered if the connection is still there, and how often that is so on one connection.
BATCH, BATCHES = 24, 8
# One of so many comes from the generator, has a credit value that is anything, or is on a connection whose version is open.
GENERATED, WILD, OPEN = 4, 50, 10
# What a connection whose version is open tells of credits.
CREDITS = 16


def mutated(count: int, bench: Bench) -> None:
    """So many messages."""
    source, sent, lost, served = _Source(bench), 0, 0, 0
    while sent < count:
        speak = _open if source.one_of(OPEN) else _agreed
        more, is_lost = speak(bench, source)
        sent, lost, served = sent + more, lost + is_lost, served + 1
        # The connection of the others.
        xid = bench.xid()
        found = bench.ask(Header(xid).encode() + null(xid)).message
        same("Reply of version 1", found, bench.expected(xid, nfs.null().reply(xid), [], None, False))
    # Who may write to it has done so.
    bench.arena.clear()
    require(0 < lost < served, "each connection has ended, or none")
    print(f"{sent} messages have ended {lost} of {served} connections", flush=True)


class _Source:
    """Where the messages come from; the same each time."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._random = random.Random(SEED)
        self._generator = Generator(SEED)
        self._cases = self._generator.cases(1 << 62)
        self._calls = list(_calls(bench))
        self._messages = itertools.chain.from_iterable(iter(self._next, None))

    def one_of(self, count: int) -> bool:
        """True once in so many times."""
        return self._random.randrange(count) == 0

    def word(self) -> int:
        """Any credit value."""
        return self._random.getrandbits(32)

    def take(self, count: int) -> list[bytes]:
        """The next messages."""
        return list(itertools.islice(self._messages, count))

    def _next(self) -> list[bytes]:
        """The messages of something that was begun."""
        if self.one_of(GENERATED):
            return [bytes.fromhex(each)[:SERVER_BYTES] for each in next(self._cases)["messages"]]
        call, xid = self._random.choice(self._calls), self._bench.xid()
        anew = replace(call, xid=xid, payload=words(xid) + call.payload[4:])
        messages = anew.messages(SERVER_BYTES)
        octets = [message.encode() for message in messages]
        at = self._random.randrange(len(octets))
        # With the words in which RPC begins.
        front = len(messages[at].header) + 8
        octets[at] = (self._generator.mutate(octets[at][:front]) + octets[at][front:])[:SERVER_BYTES]
        return octets


def _calls(bench: Bench) -> Iterator[Call]:
    """Good Calls of each form."""
    bench.arena.clear()
    yield Call(0, nfs.null().call(0).bytes)
    stream = nfs.compound(*read(bench, 11, 3001)).call(0)
    yield Call(0, stream.bytes, writes=[segments(chunk(bench, 1000, 2001))])
    yield Call(0, nfs.compound(*read(bench, 0, LONG_REPLY)).call(0).bytes, reply=segments(chunk(bench, LONG_REPLY, 1000)))
    yield Call(0, nfs.compound(*read(bench, 0, LONG_REPLY)).call(0).bytes)
    message = written(bench, data(1, 1001), data(2, 77))
    stream = message.call(0)
    reads = [(position, segments([each])[0]) for item in range(2) for position, each in listed(bench, stream, item, [5])]
    yield Call(0, stream.without(stream.items), reads=reads)
    yield Call(0, message.call(0).bytes, segments(bench.arena.holding(stream.bytes, [50])))
    yield Call(0, written(bench, data(3, LONG_CALL)).call(0).bytes)


def _agreed(bench: Bench, source: _Source) -> tuple[int, bool]:
    """A connection that speaks version 2, whose server the referee judges; how many messages it has taken, and whether it has
    ended."""
    one, sent = Connection2(bench), 0
    try:
        for _ in range(BATCHES):
            for octets in source.take(BATCH):
                one.send(octets, credits=source.word() if source.one_of(WILD) else None)
                sent += 1
            xid = bench.xid()
            one.send(inline(xid, null(xid)))
            while Prefix.decode(one.receive().message).xid != xid:
                pass
    except Lost:
        return sent, True
    finally:
        one.connection.close()
    return sent, False


def _open(bench: Bench, source: _Source) -> tuple[int, bool]:
    """The same where they are the first of the connection, of which nobody knows what it comes to speak."""
    one, sent = Connection(bench.adapter, private_data(True)), 0
    try:
        for octets in source.take(4):
            one.send((octets[:8] + words(CREDITS) + octets[12:])[:len(octets)])
            sent += 1
        xid = bench.xid()
        one.send(words(xid, protocol.VERSION, CREDITS) + inline(xid, null(xid)).encode()[12:])
        while int.from_bytes(one.receive().message[:4]) != xid:
            pass
    except Lost:
        return sent, True
    finally:
        one.close()
    return sent, False


CASES = [Case("messages with something wrong", functools.partial(mutated, FEW))]
MANY_CASES = [Case("many messages with something wrong", functools.partial(mutated, MANY))]
