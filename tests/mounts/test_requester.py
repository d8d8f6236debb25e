"""Our requester on raw verbs (tools/requester) against a server: its parts as tests."""

import contextlib
import dataclasses
import re
import sys
import time
from collections.abc import Callable, Iterator

import pytest

import progress
import test_adapter as adapter_tests
import test_callback as callback_tests
import test_versions as version_tests
from guests.agent import Result
from guests.cell import LONG_SECONDS, LOOK_SECONDS, Cell
from guests.pair import OURS
from judges import trace_events, trace_responder
from judges.messages import SIW_GOODBYE, Expected
from plan import Test, long, provokes, of
from provoked import DEBUGGED, MOVED

# The program's own words for its parts.
PULLS, LATE, HELD, CROWDED = "pulls", "late pulls", "held pulls", "crowded pulls"
# Clients of the last of them, bytes of Replies that each may have provided, and what a region of memory costs beside that: with
# the software devices its list of pages.
HOLDERS, HELD_BYTES, REGION_BYTES = 8, 4 << 20, 8192
# Clients of the other, Replies of each, and the parts of the server's memory that are for all Replies, and for their regions.
CROWD, EACH, PART, REGIONS_PART = 64, 15, 16, 64
# Seconds that a Reply is provided at most, and bytes of those of one client.
KNOBS = "cd /proc/sys/sunrpc/svc_rdma && echo {} > reliable_reply_timeout && echo {} > reliable_reply_bytes"
# Memory regions of the server's device.
REGIONS = "rdma resource show mr | wc -l"
# The program says by this file that it waits.
WAITS = ("for try in $(seq {0}); do test -e /tmp/pulls.held && exit 0; pgrep -f '^python3 /lab/requester' > /dev/null || exit 1; "
         "sleep 1; done; exit 1")
HELD_2, MANY_SECONDS = "held Replies", 7200
# A Reply has ten buffers. So many wait for each client at least.
LEAST_HELD = 5
# RPCs that nfsd has executed.
EXECUTED = "awk '/^rpc / {print $2}' /proc/net/rpc/nfsd"
# As many, and then for two seconds none.
RESTS = ("last=0; for try in $(seq 60); do now=$({1}); test $now -ge {0} && test $now -eq $last && echo $now && exit 0; last=$now; "
         "sleep 2; done; echo $now >&2; exit 1")
# What a device has made, in all; the seconds of a machine, and the lines that our module has said. It says so many of one peer
# in a minute (rust/kapi/sys/log.rs).
RESOURCES, UPTIME, SAID = "rdma resource show", "cut -d. -f1 /proc/uptime", "dmesg | grep -c ' rpcrdma: ' || true"
LINES_A_MINUTE = 6
# A try to send, and its outcome for want of memory, after which it is tried again (ENOBUFS).
SENT, NO_BUFFERS = "xprt_transmit", re.compile(r"\bstatus=-105\b")
# A tenth of it is how long nfsd waits for the answer to a Call. Each that is over is told of by an event; with a Call that is made
# again and again without delay there are thousands.
GIVEN_UP_LEASE, UNANSWERED_LEASE, CALL_ENDED, LEAST_ENDED, MOST_ENDED = 60, 120, "nfsd_cb_rpc_done", 3, 40
LOST = Expected(60, re.compile(r"rpcrdma: (connection from \S+ lost: .*|\d+ callbacks suppressed)"),
                "the requester breaks connections")
SILENT = Expected(1, re.compile(r"rpcrdma: connection from \S+ closed: the client answers no calls"), "the requester does not")
BROKEN = Expected(10, re.compile(r"rpcrdma: connection from \S+ closed: the client breaks the protocol"), "the requester does")
CLOSED = Expected(2, re.compile(r"rpcrdma: connection from \S+ closed: all credits are with dropped requests"),
                  "the requester has one credit")
REFUSED = Expected(30, re.compile(r"rxe0: qp#\d+ make_send_cqe: non-flush error status = \d+|"
                                  r"make_send_cqe: \d+ callbacks suppressed"), LOST.reason)
# The requester's own adapter refuses what the server was told to do.
TERMINATED = Expected(60, re.compile(r"siw: got TERMINATE\. layer [012], type \d, code \d+"), "a key that is none")
# Each case may say good-bye.
LEFT = dataclasses.replace(SIW_GOODBYE, most=8)
# None of them by a mistake of its own.
ENDS_MANY = (dataclasses.replace(LEFT, most=10_000), Expected(10_000, re.compile(
    r"rpcrdma: connection from \S+ (closed: the client breaks the protocol|lost: (?!local (length|protection|access)|bad ).*)|"
    r"rpcrdma: \d+ lines about \S+ were left out|rxe0: qp#\d+ (make_send_cqe|do_complete): non-flush error status = \d+|"
    r"make_send_cqe: \d+ callbacks suppressed|siw: got TERMINATE\. layer [012], type \d, code \d+"), BROKEN.reason))
NFSD = "/proc/fs/nfsd"


COMMAND = "PYTHONPYCACHEPREFIX=/tmp/pycache PYTHONPATH=/lab/raw:/lab/referee python3 /lab/requester 192.0.2.1 {} '{}' 2>&1"


def words(name: str) -> str:
    """The name of a part in that of a test."""
    return name.replace(" ", "-")


@provokes(LEFT)
@pytest.mark.parametrize("name", ["Read lists", "Write lists", "Reply chunks", "errors", "sessions"], ids=words)
def test_quiet_part(cell: Cell, name: str) -> None:
    """What the server answers. Read lists in any order and shape, padding or not, each limit and one beyond; Write
    chunks for several READs and READLINKs, empty, unused, too small; Reply chunks needed or not, and thresholds to the
    word; each error of RFC 8166, section 4.5, and chunks of what may not be reduced; READ_PLUS of 4.2 beside READ."""
    part(cell, name)


@provokes(LOST, REFUSED, TERMINATED)
def test_loud_part(cell: Cell) -> None:
    """Connections that the requester breaks. Private data missing, short or of another kind; keys invalidated or not;
    grants; more Calls than granted; bad keys, and what becomes of retransmissions; clients that take no Replies, or go
    and come back with the same XIDs."""
    part(cell, "connections")


# Of iWARP alone.
@provokes(LOST, LEFT)
def test_forged_keys(cell: Cell) -> None:
    """A client on a socket, without a device (MPA, DDP, RDMAP), says that it has pulled a Reply before the server's
    device has made the key valid."""
    part(cell, "forged keys")


def of_any_adapter(flavour: str = "debug", whose: str = OURS) -> list[Test]:
    """What any adapter can do, for a server with that kernel and that module: Debian's kernel has no NFS 2, one that debugs has more
    memory around what is measured, and the in-tree module has neither version 2 nor much to pull."""
    measured = test_held_pulls, test_held_replies, test_crowded_pulls
    cannot = (test_nfs_2,) if flavour == "stock" else measured
    lacks = () if whose == OURS else (test_version_2, test_version_2_back, test_mutated_messages, *measured)
    return of(sys.modules[__name__], test_forged_keys, *cannot, *lacks)


def part(cell: Cell, name: str) -> None:
    """One part of the program, case by case."""
    judge(cell.guests.client.run(COMMAND.format(cell.server_module, name), LONG_SECONDS))


def judge(result: Result) -> None:
    """Say what the program has said, and fail if one of its cases has."""
    lines = result.out.splitlines()
    for line in lines:
        progress.line(f"  {line}")
    failed = [line for line in lines if line.startswith("FAILED ")]
    if failed or result.status != 0:
        why = failed[0].removeprefix("FAILED ") if failed else f"ended with status {result.status}"
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise progress.Failure(f"{why}{more}")


@provokes(LEFT, MOVED)
def test_nfs_2(cell: Cell) -> None:
    """The part for NFS 2, which rpc.nfsd does not know any more. READLINK and READ with a Write chunk, WRITE and
    SYMLINK with a Read chunk."""
    with progress.undoing(lambda: cell.server(f"cd {NFSD} && echo 0 > threads && echo -2 > versions && /lab/nfs-server")):
        cell.server(f"cd {NFSD} && echo 0 > threads && echo +2 > versions && "
                    "echo rdma 20049 > portlist && echo 4 > threads")
        part(cell, "NFS 2")


@provokes(BROKEN, LOST, REFUSED, TERMINATED, LEFT)
def test_version_2(cell: Cell) -> None:
    """The part for version 2 of RPC-over-RDMA, which our module alone speaks. The in-tree one refuses it as any other
    version does ("errors"). First messages and properties; each header type with each kind of chunk; fragments and what
    may come between; credits few, none, taken back; silence; each error of the draft, section 7."""
    with _speaking_2(cell), version_tests.fired(cell.guests.server, "svcrdma", version_tests.GRANTS):
        part(cell, "version 2")


@provokes(*ENDS_MANY)
@pytest.mark.parametrize("name", ["mutated messages", pytest.param("many mutated messages", marks=long)], ids=words)
def test_mutated_messages(cell: Cell, name: str) -> None:
    """The part for messages with something wrong, which cost connections at most, and a few lines a minute; and all
    that the server's device had made for them goes. 2,000 or 100,000; another connection is served meanwhile."""
    cell.settled()
    with _speaking_2(cell), left_alone(cell, cell.server):
        judge(cell.guests.client.run(COMMAND.format(cell.server_module, name), MANY_SECONDS))


@contextlib.contextmanager
def left_alone(cell: Cell, run: Callable[[str], str]) -> Iterator[None]:
    """Fail if a block leaves more than there was of the device of one end, or has it say more of one peer than it may."""
    before, began, said = (run(command) for command in (RESOURCES, UPTIME, SAID))
    yield
    # The module counts by minutes of its own: one has begun before, another is not over.
    minutes, lines = (int(run(UPTIME)) - int(began)) // 60 + 2, int(run(SAID)) - int(said)
    progress.line(f"  {lines} lines in {minutes} minutes")
    # With that which says how many were left out.
    if lines > (LINES_A_MINUTE + 1) * minutes:
        raise progress.Failure(f"{lines} lines are said of one peer in {minutes} minutes")
    most, deadline = _numbers(before), cell.guests.clock.now() + LONG_SECONDS
    left = run(RESOURCES)
    while any(now > then for now, then in zip(_numbers(left), most)):
        if cell.guests.clock.now() > deadline:
            raise progress.Failure(f"{left.strip()} is left, where there was {before.strip()}")
        time.sleep(LOOK_SECONDS)
        left = run(RESOURCES)


def _numbers(resources: str) -> list[int]:
    return [int(word) for word in resources.split() if word.isdecimal()]


@provokes(LEFT, callback_tests.RESTARTED)
def test_version_2_back(cell: Cell) -> None:
    """The same for Calls of nfsd, as in `reverse`."""
    with callback_tests.patient(cell), _speaking_2(cell):
        cell.server(callback_tests.NO_GRACE)
        part(cell, "version 2 back")


@contextlib.contextmanager
def _speaking_2(cell: Cell) -> Iterator[None]:
    """For the length of a block the server may speak version 2."""
    with progress.undoing(lambda: cell.guests.speak(cell.protocol, cell.protocol)):
        cell.guests.speak(2, cell.protocol)
        yield


@provokes(LEFT, callback_tests.RESTARTED)
def test_reverse_calls(cell: Cell) -> None:
    """The part for Calls of nfsd, which has to delegate files, and to wait long for the answers. Bad Replies of each
    kind are discarded while the Call waits on; errors end it; the same XID in both directions; nothing but a good Reply
    grants credits."""
    with callback_tests.patient(cell):
        cell.server(callback_tests.NO_GRACE)
        part(cell, "reverse Calls")


@provokes(LEFT, callback_tests.RESTARTED)
@pytest.mark.parametrize(("name", "lease"), [
    pytest.param("given-up Calls", GIVEN_UP_LEASE, id="given-up"),
    pytest.param("never answered", UNANSWERED_LEASE, id="never-answered", marks=(long, provokes(SILENT)))])
def test_calls_given_up(cell: Cell, name: str, lease: int) -> None:
    """The part for Calls that nfsd gives up, which it has to do, but not all the time. A Call that is longer than the
    client receives holds up no other. Who answers none loses the connection after a minute."""
    with callback_tests.patient(cell, lease), callback_tests.recorded(cell, CALL_ENDED, SENT) as lines:
        cell.server(callback_tests.NO_GRACE)
        part(cell, name)
    ended = sum(f": {CALL_ENDED}: " in line for line in lines)
    # How often the in-tree server tries to send is its own matter.
    if cell.server_module == OURS and not LEAST_ENDED <= ended <= MOST_ENDED:
        raise progress.Failure(f"nfsd has given up or had {ended} answers to its Calls")
    # It would stand in the way of others until its time is over.
    held = [line for line in lines if f": {SENT}: " in line and NO_BUFFERS.search(line)]
    if held:
        raise progress.Failure(f"a Call is kept to be sent again: {held[0].strip()}")


@provokes(CLOSED, LEFT)
def test_dropped_calls(cell: Cell) -> None:
    """The part for Calls that nfsd drops. When the requester makes a directory for that, nfsd forgets its exports, and
    mountd does not answer it for a while. What becomes of the credit of a Call that nfsd executes for another
    connection, or of the connection if it was the only one; Calls put off are answered."""
    cell.server("rmdir /export/requester/hold 2> /dev/null; { setsid /lab/hold-nfsd /export/requester/hold "
                "> /dev/null 2>&1 < /dev/null & }")
    with progress.undoing(lambda: cell.server("pkill -x hold-nfsd; pkill -CONT -x rpc.mountd")):
        part(cell, "dropped Calls")


@provokes(LOST, REFUSED, TERMINATED, LEFT)
def test_pulls(cell: Cell) -> None:
    """The parts for Replies that are pulled, of which there may be 2 MiB; and that are provided for two seconds only.
    In any pieces, beside Write chunks, under one XID twice, too late, twice, by another connection; words for nobody,
    and keys of others; more than may be provided."""
    if cell.server_module != OURS:
        return part(cell, PULLS)
    with _knobs(cell):
        refused, overdue = (f"/proc/sys/sunrpc/svc_rdma/rdma_stat_pull_{name}" for name in ("refused", "overdue"))
        cell.server(f"{KNOBS.format(60, 2 << 20)} && echo 0 > {refused} && echo 0 > {overdue}")
        part(cell, PULLS)
        cell.server(KNOBS.format(2, 2 << 20))
        with trace_events.recorded(cell.guests.server, trace_responder.RPC_EVENT) as trace:
            part(cell, LATE)
        counted = [int(cell.server(f"cat {counter}")) for counter in (refused, overdue)]
        told = len(trace.named("pull_overdue"))
        progress.line(f"  the server counts {counted[0]} Replies refused, and {counted[1]} overdue")
        if not counted[0] or not 0 < counted[1] == told:
            raise progress.Failure(f"the server has told of {told} Replies that were overdue")


@long
@provokes(LEFT)
def test_held_pulls(cell: Cell) -> None:
    """What is provided to clients that do not say that they have pulled it costs the server no more than the user guide
    says; when they say so it is free again. It takes four minutes."""
    with _knobs(cell):
        cell.server(KNOBS.format(600, HELD_BYTES))
        _held(cell)


def _knobs(cell: Cell) -> contextlib.AbstractContextManager[None]:
    """For the length of a block others may be in force for the Replies that are pulled."""
    return progress.undoing(lambda: cell.server(KNOBS.format(60, 16 << 20)))


@long
@provokes(LOST, REFUSED, TERMINATED, dataclasses.replace(LEFT, most=CROWD))
def test_crowded_pulls(cell: Cell) -> None:
    """What is provided to many clients together costs the server no more than the user guide says, and goes with them."""
    with _knobs(cell):
        cell.server(KNOBS.format(600, HELD_BYTES))
        _crowded(cell)


def _crowded(cell: Cell) -> None:
    size, memory = map(int, cell.server("cat /proc/sys/sunrpc/svc_rdma/max_req_size; "
                                        "awk '/^MemTotal:/ {print $2}' /proc/meminfo").split())
    before = int(cell.server(REGIONS))
    used, kept, _ = _measured(cell, CROWDED)
    most = (memory << 10) // PART + (memory << 10) // REGIONS_PART + CROWD * EACH * 2 * size
    progress.line(f"  {CROWD} clients have {used >> 10} KiB provided of {most >> 10}, and {kept >> 10} KiB when they have gone")
    if not most // 4 < used <= most:
        raise progress.Failure(f"{used} bytes are provided to all clients, which may have {most}")
    if kept > most // 4:
        raise progress.Failure(f"{kept} bytes are still used when all have gone")
    cell.server(f"for try in $(seq 250); do test $({REGIONS}) -le {before} && exit 0; sleep 0.2; done; {REGIONS} >&2; exit 1")


def _measured(cell: Cell, name: str) -> tuple[int, int, int]:
    """Bytes that the server uses more than in the beginning: with all that a part has it provide, and in the end; and the RPCs
    that it has executed for the former."""
    client, server = cell.guests.client, cell.guests.server
    program, free, executed = client.start(COMMAND.format(cell.server_module, name)), list[int](), list[int]()
    try:
        for _ in ("nothing", "all", "nothing again"):
            cell.client(WAITS.format(LONG_SECONDS), LONG_SECONDS)
            least = int(cell.client("cat /tmp/pulls.held")) + (executed[-1] if executed else 0)
            executed.append(int(cell.server(RESTS.format(least, EXECUTED), LONG_SECONDS)))
            free.append(server.free_bytes())
            cell.client("rm /tmp/pulls.held")
    except progress.Failure:
        # It may wait for somebody who looks, and may have said what is wrong.
        cell.client("pkill -f '^python3 /lab/requester'; rm -f /tmp/pulls.held")
        judge(client.wait(program, LONG_SECONDS, name))
        raise
    judge(client.wait(program, LONG_SECONDS, name))
    used, kept = (free[0] - later for later in free[1:])
    return used, kept, executed[1] - executed[0]


@long
@provokes(LEFT, DEBUGGED)
def test_held_replies(cell: Cell) -> None:
    """What waits for clients of version 2 that take no Replies costs the server no more than the user guide says, and goes with
    them. Of their Calls none is begun while a Reply waits: each thread of nfsd may have begun one before."""
    cell.server("rpcdebug -m rpc -s svcsock")
    with progress.undoing(lambda: cell.server("rpcdebug -m rpc -c svcsock")), _speaking_2(cell):
        used, kept, executed = _measured(cell, HELD_2)
        sends, receives, _ = map(int, adapter_tests.ACCEPTED.findall(cell.server("dmesg"))[-1])
    size = int(cell.server("cat /proc/sys/sunrpc/svc_rdma/max_req_size"))
    most = HOLDERS * (sends + 2 * receives) * size
    threads = int(cell.server(f"cat {NFSD}/threads"))
    progress.line(f"  {used >> 10} KiB of {most >> 10} wait for {HOLDERS} clients, and {kept >> 10} KiB when they have gone; {executed} "
                  "Calls were executed")
    if executed > HOLDERS * (threads + 1):
        raise progress.Failure(f"{executed} Calls were executed by {threads} threads while Replies waited")
    if not HOLDERS * LEAST_HELD * size < used <= most:
        raise progress.Failure(f"{used} bytes wait for clients, for which there may be {most}")
    if kept > used // 2:
        raise progress.Failure(f"{kept} bytes are still used when all have gone")


def _held(cell: Cell) -> None:
    requests, size = map(int, cell.server("cd /proc/sys/sunrpc/svc_rdma && cat max_requests max_req_size").split())
    used, kept, _ = _measured(cell, HELD)
    around = requests * (size + 6 * REGION_BYTES)
    progress.line(f"  {HOLDERS} clients have {used >> 10} KiB provided, and {kept >> 10} KiB when they have said that it was pulled")
    if not HOLDERS * HELD_BYTES // 2 < used <= HOLDERS * (HELD_BYTES + around):
        raise progress.Failure(f"{used} bytes are provided to {HOLDERS} clients that may have {HELD_BYTES}, and {around} around them")
    if kept > HOLDERS * around:
        raise progress.Failure(f"{kept} bytes are still used when all was pulled")
