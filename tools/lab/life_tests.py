"""The tests of what lives and dies at the server: connections, listeners and devices come and go while a mount is used,
and at the end nothing of them is left."""

import functools
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import mount_tests
import say
from cell import GONE, Cell, Test
from messages import Expected
from tally import TALLY, Kind

# For one connection, or one restart.
SECONDS_EACH = 20
# A client that has to reclaim its state anew all the time gets no further, and its kernel then calls that a hang.
RESTARTS_IN_A_ROW = 20
# More connections at once than the listener's backlog has room for.
WORKERS = 16
# A mount's client comes back after a few seconds, the longer the more often it had to.
BACK_SECONDS = 120
# Of the callers' connections, which it leaves in the middle of anything, and those that the server itself gives up; but
# nothing that this end would be to blame for.
LEFT = Expected(10_000, re.compile(r"rpcrdma: (connection (to|from) \S+ lost: (?!local (length|protection|access)|bad ).*|"
                                   r"\d+ callbacks suppressed)|"
                                   r"(rxe|siw)0: qp#\d+ (make_send_cqe|do_complete): non-flush error status = \d+|"
                                   r"(make_send_cqe|do_complete|rxe_modify_qp): \d+ callbacks suppressed|"
                                   r"rxe0: qp#\d+ rxe_modify_qp: returned err = -22|"
                                   r"siw: got TERMINATE\. layer \d, type \d, code \d+"),
                "connections are left in the middle of anything")
DEVICE_GONE = Expected(10_000, re.compile(r"infiniband (rxe|siw)0: .*|(rxe|siw)0: .*|rpcrdma: cannot listen on .*"),
                       "the device goes and comes")
# A connection was being asked for when the listener went. The kernel waits for that, and calls it a timeout at once, since
# its patience is that of a connection's retries, of which a listener has none.
WAITED = Expected(10_000, re.compile(r"cm_destroy_id_wait_timeout: (cm_id=\S+ timed out\. state 1 -> 0, refcnt=\d+|"
                                     r"\d+ callbacks suppressed)"), "a listener goes while it is asked")
# Each when a message has come in since the last, and then after another moment. rpc.nfsd does the same, but takes longer
# to be loaded than nfsd to begin.
RESTARTS = ("cd /proc/fs/nfsd; n=0; while [ $n -lt {} ]; do n=$((n + 1)); tries=0; counter=/proc/sys/sunrpc/svc_rdma/"
            "rdma_stat_recv; read -r before < $counter; while read -r now < $counter && [ $now = $before ]; do "
            "tries=$((tries + 1)); test $tries -lt 300 || {{ echo nobody is connected >&2; exit 1; }}; sleep 0.1; done; "
            "sleep 0.$((n * 7 % 10)); echo 0 > threads && echo rdma 20049 > portlist && echo 4 > threads || exit 1; done; "
            "rpc.nfsd 0 && /lab/nfs-server")
RESTARTED = Expected(10_000, re.compile(r"NFSD: (Using .* tracking.*|starting .* grace period.*|.*no clients to reclaim.*|"
                                        r"all clients done reclaiming.*|[eE]nd.* grace.*)|"
                                        r"nfs: server \S+ (not responding, still trying|OK)"),
                     "nfsd is stopped and started")


@dataclass(frozen=True)
class Amounts:
    """How often."""

    connections: int
    restarts: int
    removals: int


# The check has a tenth of what the soak has.
SOAK = Amounts(connections=1000, restarts=200, removals=20)
CHECK = Amounts(connections=100, restarts=20, removals=2)


def tests(amounts: Amounts) -> list[Test]:
    """All of them, `amounts` times; each ends with what shows that nothing is left."""
    made = [Test(f"{amounts.connections} connections come and go", functools.partial(come_and_go, amounts.connections),
                 (LEFT,)),
            Test(f"{amounts.restarts} restarts of nfsd under load", functools.partial(restarted, amounts.restarts),
                 (LEFT, RESTARTED, WAITED)),
            Test(f"server's device removed {amounts.removals} times under load",
                 functools.partial(device_removed, amounts.removals), (LEFT, DEVICE_GONE, RESTARTED, WAITED))]
    left = [each for test in made for each in (test, Test(f"nothing left after {test.name}", nothing_left))]
    return [*left, mount_tests.NO_LEAK]


def come_and_go(count: int, cell: Cell) -> None:
    """Connections are made, and left at a random moment, beside a mount in use."""
    cell.load_modules()
    with cell.mounted(), cell.load():
        connects = cell.connects()
        # The backlog is short on purpose, so some are.
        refused = cell.client(f"/lab/callers.py {count} come {WORKERS}", SECONDS_EACH * count).strip()
        say.line(f"  {count} connections made, {refused} refused")
        cell.still_works()
        if cell.connects() != connects:
            raise say.Failure("the mount lost its own connection")


def restarted(count: int, cell: Cell) -> None:
    """nfsd ends and begins again, while a mount is in use and connections are asked for."""
    cell.load_modules()
    with cell.mounted():
        for done in range(0, count, RESTARTS_IN_A_ROW):
            number = min(RESTARTS_IN_A_ROW, count - done)
            with cell.load():
                with _callers(cell):
                    cell.server(RESTARTS.format(number), SECONDS_EACH * number)
                # What writes does not end without.
                await_connection(cell)
            cell.still_works()


def device_removed(count: int, cell: Cell) -> None:
    """The server's RDMA device goes away under load with all connections, and comes back."""
    cell.load_modules()
    with cell.mounted():
        with cell.load(), _callers(cell):
            for number in range(count):
                await_connection(cell)
                # Not always just after the connection is there.
                time.sleep(number % 3)
                cell.server(f"rdma link delete {cell.device}0", 120)
                time.sleep(1)
                cell.server(f"/lab/rdma-device {cell.device}")
                TALLY.add(Kind.REMOVALS, 1)
            await_connection(cell)
        cell.still_works()


def nothing_left(cell: Cell) -> None:
    """No queue pair after the last unmount, no page of a connection after nfsd's end, no object after rmmod."""
    cell.settled()
    look = "/lab/pages-of-rpc"
    if cell.guests.server in cell.debugged and "svc_fill_pages" not in cell.server(look):
        raise say.Failure("what tells of pages that are left does not even show those of nfsd at work")
    cell.guests.stop_serving()
    for machine in cell.debugged:
        pages = machine.must(look, 120)
        if pages.strip():
            raise say.Failure(f"pages are left at the {machine.role.name}:\n{pages}")
    mount_tests.removed(cell)


def await_connection(cell: Cell) -> None:
    """Wait until the mount has a connection. Those of the callers have no kernel module's name in brackets."""
    cell.client(f"for try in $(seq {5 * BACK_SECONDS}); do rdma resource show qp | grep -q "
                "'type RC.* state RTS.*comm \\[' && exit 0; sleep 0.2; done; rdma resource show qp >&2; exit 1",
                2 * BACK_SECONDS)


@contextmanager
def _callers(cell: Cell) -> Iterator[None]:
    """Connections come and go for the length of a block."""
    cell.client("{ setsid /lab/callers.py 1000000 beside 2 > /tmp/callers 2>&1 < /dev/null & echo $! > /tmp/callers.pid; }")
    end = f"read -r group < /tmp/callers.pid; kill -9 -$group; {GONE.format('$group')}"
    with say.undoing(lambda: cell.client(end)):
        yield
        cell.client("read -r group < /tmp/callers.pid; pgrep -g $group > /dev/null && ! test -s /tmp/callers || "
                    "{ cat /tmp/callers >&2; exit 1; }")
