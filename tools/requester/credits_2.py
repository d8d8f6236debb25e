"""Credits of version 2 (the draft, section 4.2.1): a count of messages, each way."""

import nfs
import protocol
from bench import Bench
from case import Case
from connection_2 import GRANT, SILENCE, Connection2, inline, is_grant, masked, null
from endpoint import Lost
from events import SECONDS
from failure import require, same
from message import Message, Prefix, error
from messages_2 import LONG_REPLY, MOST_MESSAGES
from pulls import HOLDERS, pause
from write_chunks import read

# Fewer messages than a long Reply takes.
FEW = 3
# More messages than the queues of both ends hold together.
FAR_TOO_MANY = 600
# The most that a credit value may be ahead of what was sent (section 4.2.1, interpretation 10).
MOST_CREDITS = (1 << 31) - 2
# As long as one in so many messages of this client's can be.
LONGEST_REPLY = 40_000
# How many of them a client asks for that takes none.
ASKED = 100
# Calls that use all credits of a new connection several times.
MANY = 200


def silent(bench: Bench) -> None:
    """An idle connection is silent, and RDMA2_GRANT is not answered as long as there are the credits for a long message (section
    4.2.1.1, interpretation 13)."""
    one = Connection2(bench)
    for _ in range(3):
        one.works()
    one.must_be_silent("idle connection", 1)
    while one.end.left > MOST_MESSAGES:
        one.send(GRANT)
    one.must_be_silent("RDMA2_GRANT alone")
    one.close()


def grants_only(bench: Bench) -> None:
    """Two ends that send nothing but RDMA2_GRANT come to rest: many that come are answered with fewer (interpretation 13)."""
    one = Connection2(bench)
    before = one.grants
    for _ in range(MANY):
        one.send(GRANT)
    while one.connection.has_received(SILENCE):
        require(is_grant(one.next(SECONDS)), "RDMA2_GRANT is answered with something else")
    require(one.grants - before <= MANY // 2, f"{one.grants - before} GRANTs in answer to {MANY}")
    one.close()


def promised_nothing(bench: Bench) -> None:
    """A Reply waits until the client has a Receive for it, in all its messages, and so does an error; each uses a credit
    (interpretation 14). As many go out as are granted."""
    one = Connection2(bench)
    one.end.advertises = 0
    waiting = {}
    for _ in range(2 * FEW):
        xid = bench.xid()
        one.send(inline(xid, null(xid)))
        (waiting[xid],) = one.expected(xid, nfs.null().reply(xid))
    xid = bench.xid()
    one.send(Message(Prefix(xid, protocol.VERSION, 0, 0)))
    waiting[xid] = error(Prefix(xid, protocol.VERSION, 0, 0), 0, protocol.INVAL_HTYPE).encode()
    one.must_be_silent("no credits for a Reply")
    while waiting:
        one.end.advertises = min(FEW, len(waiting))
        one.send(GRANT)
        for _ in range(one.end.advertises):
            found = one.receive().message
            same("Reply that has waited", masked(found), waiting.pop(Prefix.decode(found).xid, b""))
        one.end.advertises = 0
        one.must_be_silent("credits are used up")
    one.end.advertises = 16
    one.send(GRANT)
    one.close()


def promised_too_few(bench: Bench) -> None:
    """A continued Reply waits for the credits of all its messages (interpretation 21); where there were never so many, it is
    answered with RDMA2_ERR_REPLY_RESOURCE."""
    one = Connection2(bench)
    message, xid = nfs.compound(*read(bench, 0, LONG_REPLY)), bench.xid()
    expected = one.expected(xid, message.reply(xid))
    one.end.advertises = 0
    one.send(inline(xid, bytes(message.call(xid).bytes)))
    one.must_be_silent("no credits for a continued Reply")
    one.end.advertises = len(expected) - 1
    one.send(GRANT)
    one.must_be_silent("a credit too few for a continued Reply")
    one.end.advertises = len(expected)
    one.send(GRANT)
    one.must_reply(expected)
    one.end.advertises = 16
    one.close()
    one = Connection2(bench, begins=False)
    one.end.has_told, one.end.advertises = False, FEW
    one.begin()
    for _ in range(2):
        one.works()
    xid = bench.xid()
    one.send(inline(xid, bytes(message.call(xid).bytes)))
    same("Reply that has never credits", masked(one.receive().message),
         error(Prefix(xid, protocol.VERSION, 0, 0), 0, protocol.REPLY_RESOURCE, len(message.reply(xid).bytes)).encode())
    one.close()


def taken_back(bench: Bench) -> None:
    """A value may go back behind what the server has sent, which waits then (interpretation 11)."""
    one = Connection2(bench)
    one.end.advertises = -2
    one.send(GRANT)
    xid = bench.xid()
    one.send(inline(xid, null(xid)))
    one.must_be_silent("credits that are taken back")
    one.end.advertises = MOST_CREDITS
    one.send(GRANT)
    one.must_reply(one.expected(xid, nfs.null().reply(xid)))
    one.end.advertises = 16
    one.close()


def hostile(bench: Bench) -> None:
    """A value that goes back by more than there ever was, or is ahead by 2^31 - 1 or more, costs the connection (section 4.2.1,
    interpretation 11)."""
    for advertised in (-1000, MOST_CREDITS + 1, 1 << 31):
        for is_call in (True, False):
            one, xid = Connection2(bench), bench.xid()
            one.end.advertises = advertised
            one.send(inline(xid, null(xid)) if is_call else GRANT)
            one.connection.must_be_lost()
            one.connection.close()


def many(bench: Bench) -> None:
    """Calls as fast as the server's credits allow; each is answered."""
    one = Connection2(bench)
    waiting = {}
    one.end.advertises = 48
    for _ in range(MANY):
        xid = bench.xid()
        one.send(inline(xid, null(xid)))
        (waiting[xid],) = one.expected(xid, nfs.null().reply(xid))
    _must_be_answered(one, waiting)
    one.close()


def overrun_by_one(bench: Bench) -> None:
    """One message more than there are credits has a Receive, whatever it is: that which is kept for RDMA2_GRANT (interpretation
    12)."""
    one, waiting = Connection2(bench, retries=0), {}
    for _ in range(one.end.left + 1):
        xid = bench.xid()
        one.send(inline(xid, null(xid)), heeds=False)
        (waiting[xid],) = one.expected(xid, nfs.null().reply(xid))
    _must_be_answered(one, waiting)
    one.close()


def all_used(bench: Bench) -> None:
    """Calls that use all credits, behind a Reply that waits for those of the client: the server tells of each Receive that it has,
    so that the client can give it some (interpretation 14)."""
    one, waiting = Connection2(bench, retries=0), {}
    message, xid = nfs.compound(*read(bench, 0, LONG_REPLY)), bench.xid()
    expected = one.expected(xid, message.reply(xid))
    one.end.advertises = 0
    one.send(inline(xid, bytes(message.call(xid).bytes)))
    one.must_be_silent("no credits for a continued Reply")
    while one.end.left > 0:
        xid = bench.xid()
        one.send(inline(xid, null(xid)))
        (waiting[xid],) = one.expected(xid, nfs.null().reply(xid))
    # Beside them.
    one.send(GRANT, heeds=False)
    require(is_grant(one.next(SECONDS)), "the server tells nothing")
    one.end.advertises = 48
    one.send(GRANT)
    one.must_reply(expected)
    _must_be_answered(one, waiting)
    one.close()


def overrun(bench: Bench) -> None:
    """Many more messages than the server has given credits for cost the connection, and no other."""
    one = Connection2(bench, retries=0)
    one.end.advertises = 0
    try:
        for _ in range(FAR_TOO_MANY):
            xid = bench.xid()
            one.send(inline(xid, null(xid)), heeds=False)
        one.connection.must_be_lost()
    except Lost:
        pass
    one.connection.close()
    bench.works()


def held(bench: Bench) -> None:
    """Clients that have had a short Reply; then that take none, and have asked for many; and that have gone."""
    message = nfs.compound(*read(bench, 0, LONGEST_REPLY))
    ones = [Connection2(bench) for _ in range(HOLDERS)]
    for one in ones:
        one.works()
    pause()
    for one in ones:
        ask_for_many(bench, one, message)
    # The server executes nothing more for who does not take a Reply.
    pause(len(ones))
    for one in ones:
        one.connection.close()
    pause()


def ask_for_many(bench: Bench, one: Connection2, message: nfs.Message) -> None:
    """Make a Call as often as there are credits, but not so often that the server has no buffer for a Reply, and take none."""
    asked, one.end.advertises = 0, 0
    while asked < ASKED and (one.end.left > 0 or one.connection.has_received(SILENCE)):
        if one.end.left > 0:
            xid, asked = bench.xid(), asked + 1
            one.send(inline(xid, bytes(message.call(xid).bytes)))
        else:
            require(is_grant(one.next(SECONDS)), "a Reply comes without a credit")


def _must_be_answered(one: Connection2, waiting: dict[int, bytes]) -> None:
    """Fail unless each of these Calls has its Reply, in any order."""
    while waiting:
        found = one.receive().message
        same("Reply", masked(found), waiting.pop(Prefix.decode(found).xid, b""))


CASES = [Case("idle connection", silent), Case("nothing but RDMA2_GRANT", grants_only),
         Case("no credits for Replies", promised_nothing), Case("few credits for a continued Reply", promised_too_few),
         Case("credits taken back", taken_back), Case("credits that cannot be", hostile), Case("many Calls", many),
         Case("one message too many", overrun_by_one), Case("Calls use all credits", all_used),
         Case("more messages than credits", overrun)]
HOLDING = [Case("as many Replies as may wait", held)]
