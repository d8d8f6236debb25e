"""How version 2 begins: the version, and the properties (the draft, sections 4.3 and 5)."""

import nfs
import protocol
from bench import Bench
from case import Case
from connection import Connection
from connection_2 import PROPERTIES, Connection2, inline, masked, middle, null, properties
from failure import require, same
from header import RDMA_ERROR, Header, chunk_error, version_error, words
from message import Message, Prefix, error
from write_chunks import read

ERR_VERS, OTHERS, UNKNOWN, HOSTAUTH = 1, (0, 3, 0xffffffff), 99, 6
# Of all properties of a client (interpretation 57), and of one message with some.
MOST_PROPERTIES, PART = 16 << 10, 4000
# Of a Reply that fits into a message of the usual size, and not into one of the least.
BETWEEN = 2000
# Of one that fits into two messages of the default size, and one of 8192 octets.
ABOVE = 6000


def begins(bench: Bench) -> None:
    """The properties come first, and then Calls (sections 4.3.1 and 6.3.4)."""
    Connection2(bench).close()


def begins_with_call(bench: Bench) -> None:
    """A server answers whatever is the first message of version 2 (interpretation 1): with its properties, too."""
    one, xid = Connection2(bench, begins=False), bench.xid()
    one.send(inline(xid, null(xid)))
    found = both(one)
    (expected,) = one.expected(xid, nfs.null().reply(xid))
    same("Reply", masked(found[protocol.REPLY_INLINE]), expected)
    told = found[protocol.CONNPROP_FINAL]
    one.take_properties(Prefix.decode(told).xid, told)
    one.close()


def other_versions_first(bench: Bench) -> None:
    """ERR_VERS with the range 1 to 2; the next message may be of either (section 7.1.1, interpretation 4)."""
    for version in OTHERS:
        for following in (1, 2):
            one, xid = Connection2(bench, begins=False), bench.xid()
            one.connection.send(Header(xid, version=version).encode() + null(xid))
            same(f"version {version}", masked(one.connection.receive().message),
                 words(xid, version, 0, RDMA_ERROR, ERR_VERS, 1, 2))
            if following == 1:
                bench.works(one.connection)
                one.connection.close()
            else:
                one.begin()
                one.close()


def other_versions_twice(bench: Bench) -> None:
    """The answer to a second one waits for a credit, which it does not need once the connection has come to speak version 1."""
    one, version, xids = Connection2(bench, begins=False), OTHERS[1], [bench.xid() for _ in range(2)]
    for xid in xids:
        one.connection.send(Header(xid, version=version).encode() + null(xid))
    own = bench.xid()
    first = masked(one.connection.receive().message)
    # Two threads of nfsd may look at them at the same time.
    answered = [xid for xid in xids if words(xid, version, 0, RDMA_ERROR, ERR_VERS, 1, 2) == first]
    require(len(answered) == 1, f"the first answer is {first.hex(' ', 4)}")
    xids.remove(answered[0])
    one.must_be_silent("no credit for a second")
    one.connection.send(Header(own).encode() + null(own))
    found = [masked(one.connection.receive().message) for _ in range(2)]
    # Version 1 may be agreed on before anybody has looked at it.
    require(any(words(xids[0], version, 0, RDMA_ERROR, ERR_VERS, 1, highest) in found for highest in (2, 1)),
            "the other is not answered")
    require(any(Prefix.decode(each).xid == own for each in found), "a Call of version 1 is not answered")
    bench.works(one.connection)
    one.connection.close()


def other_version_before(bench: Bench) -> None:
    """The same where version 2 is agreed on before anybody has looked at the message: it is refused in either version."""
    for version in OTHERS:
        one, xid, own = Connection2(bench, begins=False), bench.xid(), bench.xid()
        call = inline(xid, null(xid)).encode()
        one.connection.send(call[:4] + words(version) + call[8:])
        one.send(properties(own))
        found = both(one)
        one.take_properties(own, found[protocol.CONNPROP_FINAL])
        refused = masked(found[protocol.ERROR])
        require(refused in (words(xid, version, 0, RDMA_ERROR, ERR_VERS, 1, 2),
                            words(xid, version, 0, RDMA_ERROR, protocol.VERS_MISMATCH)),
                f"the answer to version {version} is {refused.hex(' ', 4)}")
        one.close()


def other_versions_later(bench: Bench) -> None:
    """RDMA2_ERR_VERS_MISMATCH, under the version of the message (section 7.1.2, interpretation 6); but no error answers an
    error, whatever its version."""
    one = Connection2(bench)
    for version in (1, *OTHERS):
        xid = bench.xid()
        one.must_refuse(Header(xid, version=version).encode() + null(xid), f"version {version}", protocol.VERS_MISMATCH)
        # In another version that need not be a grant (interpretation 40).
        one.must_refuse(words(bench.xid(), version, 0, protocol.GRANT), f"type 5 of version {version}", protocol.VERS_MISMATCH)
    one.must_drop(chunk_error(bench.xid(), 1), "RDMA_ERROR of version 1")
    one.must_drop(words(bench.xid(), 3, 0, RDMA_ERROR, 100), "RDMA_ERROR of version 3")
    one.close()


def second_on_first(bench: Bench) -> None:
    """ERR_VERS of RFC 8166 on a connection that speaks version 1 (interpretation 6)."""
    connection = Connection(bench.adapter)
    bench.works(connection)
    for message in (inline(bench.xid(), null(0)), properties(bench.xid(), (UNKNOWN, b""))):
        answer = version_error(message.prefix.xid, protocol.VERSION, bench.credits)
        bench.must_answer(message.encode(), answer, "message of version 2", connection)
        bench.works(connection)
    connection.close()


def short(bench: Bench) -> None:
    """What is shorter than the prefix is dropped (section 7, interpretation 25), before the version is known, and later. It
    uses a credit, which the server gives back unasked (section 4.2.1.1)."""
    one = Connection2(bench, begins=False)
    for length in range(protocol.PREFIX):
        one.connection.send(properties(bench.xid()).encode()[:length])
    one.begin()
    for length in range(protocol.PREFIX):
        one.must_drop(inline(bench.xid(), b"").encode()[:length], f"message of {length} bytes")
    for _ in range(200):
        one.send(b"short")
    require(one.grants > 0, "no GRANT for messages that are not answered")
    one.close()


def nothing_before(bench: Bench) -> None:
    """A server says nothing by itself to a client of which it does not know the version (sections 4.3 and 4.3.3)."""
    for length in (0, protocol.PREFIX - 1):
        one = Connection2(bench, begins=False)
        one.connection.send(properties(bench.xid()).encode()[:length])
        one.must_be_silent("no version is known")
        one.begin()
        one.close()


def in_several(bench: Bench) -> None:
    """Properties in RDMA2_CONNPROP_MIDDLE and RDMA2_CONNPROP_FINAL; a GRANT and an error may come between, and nothing else
    (section 6.3.3, interpretation 17)."""
    one, xid = Connection2(bench, begins=False), bench.xid()
    one.send(properties(xid, (UNKNOWN, bytes(5)), (protocol.RBSIZ, words(1024)), kind=protocol.CONNPROP_MIDDLE))
    one.take_properties(xid, one.receive().message)
    one.send(Message(Prefix(0, protocol.VERSION, 0, protocol.GRANT)))
    one.send(error(Prefix(bench.xid(), protocol.VERSION, 0, 0), 0, protocol.SYSTEM))
    for number in (bench.xid(), xid):
        one.send(inline(number, null(number)))
        same("Call between properties", masked(one.receive().message),
             error(Prefix(number, protocol.VERSION, 0, 0), 0, protocol.INVAL_CONT).encode())
    one.send(properties(xid, (protocol.RSSIZ, words(1 << 20)), kind=protocol.CONNPROP_MIDDLE))
    one.send(properties(xid, (protocol.RCSIZ, words(16))))
    one.size = 1024
    one.exchange(nfs.compound(*read(bench, 0, BETWEEN)))
    one.close()


def bad_values(bench: Bench) -> None:
    """RDMA2_ERR_BAD_PROPVAL; nothing of that message is applied, and it counts as sent (section 7.2.2, interpretations 52 to
    56)."""
    number = {which: (which, words(value)) for which, value in PROPERTIES.items()}
    bad = {"Reverse-Direction Support of 4": (protocol.BRS, words(4)), "Receives of 1023 bytes": (protocol.RBSIZ, words(1023)),
           "segments of no bytes": (protocol.RSSIZ, words(0)), "a number of three bytes": (protocol.RCSIZ, bytes(3)),
           "a number of eight bytes": (protocol.SBSIZ, bytes(8))}
    for what, value in bad.items():
        refused(bench, what, properties(bench.xid(), (protocol.RBSIZ, words(1024)), number[protocol.RSSIZ], value).encode(),
                protocol.BAD_PROPVAL)
    whole = properties(bench.xid(), (protocol.RBSIZ, words(1024)), (UNKNOWN, bytes(8))).encode()
    refused(bench, "a value that runs past the message", whole[:-4], protocol.BAD_PROPVAL)
    refused(bench, "a property that is not there", whole[:-16], protocol.BAD_XDR)


def refused(bench: Bench, what: str, message: bytes, code: int) -> None:
    """A first message that tells a size of 1024 is answered with this error; the default size holds, and no other follows."""
    one, prefix = Connection2(bench, begins=False), Prefix.decode(message)
    one.send(message)
    found = both(one)
    one.take_properties(prefix.xid, found[protocol.CONNPROP_FINAL])
    same(what, masked(found[protocol.ERROR]), error(prefix, 0, code).encode())
    one.size = protocol.DEFAULT_SIZE
    one.exchange(nfs.compound(*read(bench, 0, BETWEEN)))
    again = properties(bench.xid(), (protocol.RBSIZ, words(1024)))
    one.must_refuse(again, f"RDMA2_CONNPROP_FINAL after {what}", protocol.INVAL_CONT)
    one.exchange(nfs.compound(*read(bench, 0, BETWEEN)))
    one.close()


def own_refused(bench: Bench) -> None:
    """Where a client refuses the properties of the server, they count as not sent: it sends no longer messages than by default
    (section 7.2.2)."""
    one = Connection2(bench, PROPERTIES | {protocol.RBSIZ: 8192})
    one.exchange(nfs.compound(*read(bench, 0, ABOVE)))
    one.send(error(Prefix(bench.xid(), protocol.VERSION, 0, 0), 0, protocol.BAD_PROPVAL))
    one.size = protocol.DEFAULT_SIZE
    one.exchange(nfs.compound(*read(bench, 0, ABOVE)))
    one.close()


def skipped(bench: Bench) -> None:
    """Properties that nobody knows, and those for authentication, which are ignored (sections 5.1 and 5.2.6, interpretation
    58); no octets are the default (interpretation 53), and of one that comes twice the last counts (interpretation 55)."""
    one, xid = Connection2(bench, begins=False), bench.xid()
    one.send(properties(xid, (UNKNOWN, b""), (HOSTAUTH, bytes(77)), (protocol.RBSIZ, words(8192)), (0xffffffff, bytes(3)),
                        (0, bytes(9)), (protocol.RBSIZ, words(1024)), (protocol.BRS, b""), (HOSTAUTH, b"")))
    one.take_properties(xid, one.receive().message)
    one.size = 1024
    one.exchange(nfs.compound(*read(bench, 0, BETWEEN)))
    one.close()
    one, xid = Connection2(bench, begins=False), bench.xid()
    one.send(properties(xid, (protocol.RBSIZ, words(1024)), (protocol.RBSIZ, b"")))
    one.take_properties(xid, one.receive().message)
    one.size = protocol.DEFAULT_SIZE
    one.exchange(nfs.compound(*read(bench, 0, BETWEEN)))
    one.close()


def second_final(bench: Bench) -> None:
    """No properties come after RDMA2_CONNPROP_FINAL (section 6.3.4)."""
    one = Connection2(bench)
    for kind in (protocol.CONNPROP_FINAL, protocol.CONNPROP_MIDDLE):
        one.must_refuse(properties(bench.xid(), (protocol.RBSIZ, words(1024)), kind=kind), "properties after the last",
                        protocol.INVAL_CONT)
        one.exchange(nfs.compound(*read(bench, 0, BETWEEN)))
    one.close()


def too_many(bench: Bench) -> None:
    """Properties in messages of more than 16 KiB together (interpretation 57)."""
    one, xid = Connection2(bench, begins=False), bench.xid()
    message = properties(xid, kind=protocol.CONNPROP_MIDDLE)
    one.send(message)
    one.take_properties(xid, one.receive().message)
    octets, message = len(message.encode()), properties(xid, (UNKNOWN, bytes(PART)), kind=protocol.CONNPROP_MIDDLE)
    while octets + len(message.encode()) <= MOST_PROPERTIES:
        octets += len(message.encode())
        one.send(message)
    for last in (message, properties(xid, (protocol.RBSIZ, words(1024)))):
        one.send(last)
        same("too many properties", masked(one.receive().message), error(last.prefix, 0, protocol.INVAL_CONT).encode())
    one.size = protocol.DEFAULT_SIZE
    one.exchange(nfs.compound(*read(bench, 0, BETWEEN)))
    one.close()


def both(one: Connection2) -> dict[int, bytes]:
    """The next two messages by their types: an answer, and the properties of the server."""
    found = [one.receive().message for _ in range(2)]
    return {Prefix.decode(message).kind: message for message in found}


CASES = [Case("properties first", begins), Case("Call first", begins_with_call),
         Case("other versions first", other_versions_first), Case("two other versions", other_versions_twice),
         Case("another version before", other_version_before),
         Case("other versions later", other_versions_later),
         Case("version 2 on a connection of version 1", second_on_first), Case("shorter than the prefix", short),
         Case("silence before the version", nothing_before), Case("properties in several messages", in_several),
         Case("bad properties", bad_values), Case("the server's own are refused", own_refused),
         Case("properties that are skipped", skipped), Case("properties after the last", second_final),
         Case("properties without end", too_many)]
