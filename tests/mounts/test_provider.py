"""Our responder on raw verbs as one that provides Replies for the client to pull (tools/responder/provides.py)."""

import pytest

import progress
from guests.cell import LONG_SECONDS, Cell
from plan import long, provokes
from provoked import NOT_RESPONDING
from test_keep_alive import KEEPALIVE
from test_responder import BAD, BAD_MESSAGES, FAILS_TO_LIST, LOST, mounted_behind

RELIABLE_REPLY = "rdma_reliable_reply"
# Of long names: their list comes inline in no Reply.
NAMES = 300
# So many short Replies of a kind, and the client does not expect the next to be long.
FEW = 12
MAKE = f"mkdir few many && (cd few && seq {FEW} | xargs mkdir) && (cd many && seq -f 'name-%0100g' {NAMES} | xargs touch)"
FORGET = "echo 3 > /proc/sys/vm/drop_caches; ls /mnt/t/few/*"
NOT_READY = "/sys/class/infiniband/rxe0/ports/1/hw_counters/retry_rnr_exceeded_err"
# A ring of its own.
TRACE = "/sys/kernel/tracing/instances/provider"
DELAY_SECONDS = 2
# Two looks at what a killed process waits for, and what a guest needs.
GONE_SECONDS = 25
# What is wrong with Replies that are provided badly: so many kinds.
KINDS = 11


def said(cell: Cell, word: str) -> int:
    return int(cell.server(f"grep -c '^{word}$' /tmp/responder; true"))


def listed(cell: Cell) -> None:
    """Fail unless the client sees the names that there are."""
    cell.client("echo 3 > /proc/sys/vm/drop_caches")
    cell.lists_the_same(LONG_SECONDS)


@pytest.mark.parametrize("behaviour", ["provides", "provides-too-much"])
def test_server_provides_replies(cell: Cell, behaviour: str) -> None:
    """Each Reply is pulled, and the server is told once for each that it has provided; the connection lasts."""
    _pulled(cell, behaviour)


def _pulled(cell: Cell, behaviour: str) -> None:
    provided, done, anew = _used(behaviour, cell)
    progress.line(f"  {provided} Replies were provided")
    if not provided or done != provided or anew:
        raise progress.Failure(f"{provided} Replies provided, {done} pulled, {anew} more connections were made")


@provokes(LOST, NOT_RESPONDING)
def test_server_provides_replies_twice(cell: Cell) -> None:
    """The same where each is provided twice, and another one that nobody awaits. Credits are for one Reply to a Call: the client
    need not have a Receive for the others, and where it has none the connection is lost."""
    cell.load_modules()
    before = _not_ready(cell)
    provided, done, anew = _used("provides-twice", cell)
    not_ready = _not_ready(cell) - before
    progress.line(f"  {provided} Replies were provided; {not_ready} times there was no Receive")
    if not provided or anew != not_ready or (done != provided and not anew):
        raise progress.Failure(f"{provided} Replies provided, {done} pulled, {anew} more connections were made, "
                          f"{not_ready} times there was no Receive")


def _used(behaviour: str, cell: Cell) -> tuple[int, int, int]:
    """Use a mount of the program: how many Replies it has provided, of how many it was told that they were pulled, and how many
    connections were made beside the first."""
    with mounted_behind(cell, behaviour, MAKE):
        for _ in range(3):
            cell.client(FORGET)
            listed(cell)
        cell.written("some", "100 5000 70000", "--direct")
        return said(cell, "provided"), said(cell, "done"), cell.connects() - 1


def _not_ready(cell: Cell) -> int:
    """Messages of the server for which the client had no Receive, on a device that can tell."""
    return int(cell.server(f"cat {NOT_READY} 2> /dev/null || echo 0"))


@provokes(LOST, NOT_RESPONDING)
def test_server_provides_replies_in_many_pieces(cell: Cell) -> None:
    """A Reply in more segments than the device can read at once is asked for again, with room for it. siw cannot read
    them, and asks again with a Reply chunk."""
    if cell.device != "siw":
        _pulled(cell, "provides-in-pieces")
        return
    with mounted_behind(cell, "provides-in-pieces", MAKE):
        listed(cell)
        listed(cell)
        provided, anew = said(cell, "provided"), cell.connects() - 1
        progress.line(f"  {provided} Replies were provided; {anew} more connections")
        if not provided or provided != anew or cell.counter(BAD_MESSAGES):
            raise progress.Failure(f"{provided} Replies provided, {anew} more connections, {cell.counter(BAD_MESSAGES)} bad "
                              "messages counted")


def test_server_provides_replies_beside_write_chunks(cell: Cell) -> None:
    """What is around the data of a READ may be provided while the data are in their Write chunk."""
    _pulled(cell, "provides-beside")
    if not said(cell, "beside"):
        raise progress.Failure("nothing was provided beside a Write chunk")


@long
@provokes(LOST, BAD, NOT_RESPONDING)
def test_server_provides_replies_that_change(cell: Cell) -> None:
    """A Reply that changes is taken as it was read: with its XID, or not at all."""
    with mounted_behind(cell, "provides-what-changes", MAKE):
        for _ in range(4):
            cell.client(FORGET)
            listed(cell)
        provided, anew = said(cell, "provided"), cell.connects() - 1
        progress.line(f"  {provided} Replies were provided; {anew} more connections")
        if not provided or anew > cell.counter(BAD_MESSAGES):
            raise progress.Failure(f"{provided} Replies provided, {anew} more connections, {cell.counter(BAD_MESSAGES)} bad "
                              "messages counted")


@long
@provokes(LOST, BAD, NOT_RESPONDING)
def test_server_provides_replies_badly(cell: Cell) -> None:
    """What is wrong with a Reply costs the connection, and nothing else: it is asked for again. Eleven kinds, of the
    message, the chunk and the bytes that are read."""
    with mounted_behind(cell, "provides-badly", MAKE):
        for _ in range(2 * KINDS):
            cell.client(FORGET)
            listed(cell)
        count = int(cell.server("grep -c '^spoilt' /tmp/responder; true"))
        if count != KINDS or cell.connects() <= KINDS or not cell.counter(BAD_MESSAGES):
            raise progress.Failure(f"{count} Replies were spoilt, {cell.connects()} connections made, "
                              f"{cell.counter(BAD_MESSAGES)} bad messages counted")


def test_server_provides_nothing(cell: Cell) -> None:
    """A server that provides Replies, and has no room for one, is offered room for it at once, on the same connection."""
    with mounted_behind(cell, "provides-nothing", MAKE):
        listed(cell)
        listed(cell)
        count = said(cell, "refused")
        if not count or cell.connects() != 1:
            raise progress.Failure(f"{count} Replies were refused, {cell.connects()} connections made")


@provokes(BAD, LOST)
def test_server_provides_replies_nowhere(cell: Cell) -> None:
    """A server that provides Replies where nothing is to be read, whatever was offered for them, ends the RPC with the
    second one: it is not asked for ever. Two connections are lost, and the RPC: keys that nobody has."""
    with mounted_behind(cell, "provides-nowhere", MAKE):
        cell.client(FAILS_TO_LIST)
        provided, anew = said(cell, "provided"), cell.connects() - 1
        progress.line(f"  {provided} Replies were provided; {anew} more connections")
        if provided != 2 or anew > 2:
            raise progress.Failure(f"{provided} Replies provided, {anew} more connections")
        cell.written("some", "100 2000", "--direct")


@provokes(BAD)
def test_server_provides_replies_unasked(cell: Cell) -> None:
    """A Reply that is provided, which was not agreed on, ends its RPC, and nothing else; the server is told that it is not to be
    read any more. A client that would never agree does the same."""
    for agrees in (1, 0):
        with cell.tunable(RELIABLE_REPLY, agrees), mounted_behind(cell, "provides-unasked", MAKE):
            cell.client(FAILS_TO_LIST)
            cell.written("some", "100 5000", "--direct")
            provided, done = said(cell, "provided"), said(cell, "done")
            if not provided or done != provided or cell.connects() != 1 or cell.counter(BAD_MESSAGES) != provided:
                raise progress.Failure(f"{provided} Replies provided, of {done} told, {cell.connects()} connections made, "
                                       f"{cell.counter(BAD_MESSAGES)} bad messages counted")


@provokes(LOST, NOT_RESPONDING)
def test_server_goes_silent_while_it_is_read(cell: Cell) -> None:
    """A process that is killed while its Reply is pulled from a server of which nothing comes any more is gone soon,
    whatever the adapter makes of that, and though the server is never asked whether it is there. On siw the killed
    process is gone within seconds."""
    with cell.tunable(KEEPALIVE, 0), mounted_behind(cell, "provides", MAKE):
        cell.client("echo 3 > /proc/sys/vm/drop_caches")
        with progress.undoing(lambda: cell.server("tc qdisc delete dev eth0 root")):
            # What the server sends is on its way for so long that it can be taken away.
            cell.server(f"tc qdisc replace dev eth0 root handle 1: netem delay {DELAY_SECONDS}s limit 100000")
            cell.client(f"rmdir {TRACE} 2> /dev/null; mkdir {TRACE} && echo 1 > {TRACE}/events/rpcrdma/xprtrdma_pull/enable && "
                        "{ setsid ls /mnt/t/many > /tmp/ls 2>&1 < /dev/null & echo $! > /tmp/ls.pid; }; "
                        f"for try in $(seq 1000); do grep -q ': xprtrdma_pull: ' {TRACE}/trace && exit 0; sleep 0.1; done; "
                        "cat /tmp/ls >&2; exit 1")
            cell.server("tc qdisc replace dev eth0 root handle 2: netem loss 100%")
            cell.client("read -r pid < /tmp/ls.pid; kill -9 $pid; "
                        f"for try in $(seq {5 * GONE_SECONDS}); do test -e /proc/$pid || exit 0; sleep 0.2; done; "
                        "cat /proc/$pid/stack /proc/$pid/status >&2; exit 1")
        cell.client(f"rmdir {TRACE}")
        listed(cell)
