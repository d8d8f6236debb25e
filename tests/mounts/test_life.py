"""The tests of what lives and dies at the server: connections, listeners and devices come and go while a mount is used,
and at the end nothing of them is left."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import progress
import test_loading as loading
import test_pull as pull
from guests.cell import GONE, LONG_SECONDS, LOOK_SECONDS, Cell
from judges.messages import Expected
from plan import Case, Test, provokes
from totals import TOTALS, Kind

# For one connection.
SECONDS_EACH = 20
# A client that has to reclaim its state anew all the time gets no further: what writes waits for the end of a row, and its
# kernel calls that a hang when it takes 120 seconds, which on a busy machine are over soon.
RESTARTS_IN_A_ROW = 5
# With as many in all a load is ended, and files are compared.
RESTARTS_OF_A_LOAD = 20
WORKERS = 16
# For how long nobody takes what waits.
HELD_SECONDS = 5
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
            "tries=$((tries + 1)); test $tries -lt 1200 || {{ echo nobody is connected >&2; exit 1; }}; sleep 0.1; done; "
            "sleep 0.$((n * 7 % 10)); echo 0 > threads && echo rdma 20049 > portlist && echo 4 > threads || exit 1; done; "
            "rpc.nfsd 0 && /lab/nfs-server")
RESTARTED = Expected(10_000, re.compile(r"NFSD: (Using .* tracking.*|starting .* grace period.*|.*no clients to reclaim.*|"
                                        r"all clients done reclaiming.*|[eE]nd.* grace.*)|"
                                        r"nfs: server \S+ (not responding, still trying|OK)"),
                     "nfsd is stopped and started")


# A listener without a single thread, as when the others are all busy.
NO_THREADS = "rpc.nfsd 0 && echo rdma 20049 > /proc/fs/nfsd/portlist"
# Connections of the server that wait to be accepted. They have no queue pair yet, and the callers' own are not here.
WAITING = "rdma resource show cm_id | grep -c 'state CONNECT .*dst-addr' || true"


@dataclass(frozen=True)
class Amounts:
    """How often."""

    connections: int
    restarts: int
    removals: int
    crowd: int


# For `make soak`, `make life`, and every check, which has what takes long only once.
SOAK = Amounts(connections=1000, restarts=200, removals=20, crowd=1000)
SOME = Amounts(connections=100, restarts=20, removals=2, crowd=100)
CHECK = Amounts(connections=WORKERS, restarts=2, removals=1, crowd=30)


def cases(amounts: Amounts, device: str) -> list[Test]:
    """All of them for a device, `amounts` times; each ends with what shows that nothing is left, in a check all together."""
    made = [Case(test_connections_come_and_go, (amounts.connections,)), Case(test_nfsd_restarted, (amounts.restarts,)),
            Case(test_servers_device_removed, (amounts.removals,)), Case(test_connections_that_wait_are_lost)]
    # Who asks by siw waits no longer than ten seconds.
    if device != "siw":
        made.append(Case(test_connections_wait_for_nfsd, (amounts.crowd,)))
    if amounts == CHECK:
        return [*made, test_nothing_left, loading.test_no_leak]
    left = [each for case in made for each in (case, Case(test_nothing_left, name=f"after-{case.function.__name__[5:]}"))]
    return [*left, loading.test_no_leak]


@provokes(LEFT)
def test_connections_come_and_go(cell: Cell, count: int) -> None:
    """Connections are made, and left at a random moment, beside a mount in use. They leave while they are accepted, at
    once, with Calls unanswered, while the server reads a Read chunk, or in good order; the mount's own connection
    stays."""
    cell.load_modules()
    with cell.mounted(), pull.loaded(cell):
        connects = cell.connects()
        # Those, too, that had no answer within the program's patience.
        refused = cell.client(f"/lab/callers.py {count} come {WORKERS}", max(LONG_SECONDS, SECONDS_EACH * count)).strip()
        progress.line(f"  {count} connections made, {refused} refused")
        cell.still_works()
        if cell.connects() != connects:
            raise progress.Failure("the mount lost its own connection")


@provokes(LEFT, RESTARTED, WAITED)
def test_nfsd_restarted(cell: Cell, count: int) -> None:
    """nfsd ends and begins again, while a mount is in use and connections are asked for. The listener and all
    connections go in the middle of such a storm, also those that wait to be accepted."""
    cell.load_modules()
    with cell.mounted():
        for _ in range(0, count, RESTARTS_OF_A_LOAD):
            with pull.loaded(cell):
                with _callers(cell):
                    for _ in range(0, min(count, RESTARTS_OF_A_LOAD), RESTARTS_IN_A_ROW):
                        cell.server(RESTARTS.format(min(count, RESTARTS_IN_A_ROW)))
                        cell.gets_further()
                # What writes does not end without.
                await_connection(cell)
            cell.still_works()


@provokes(LEFT, DEVICE_GONE, RESTARTED, WAITED)
def test_servers_device_removed(cell: Cell, count: int) -> None:
    """The server's RDMA device goes away under load with all connections, and comes back. The listener is there when
    the device is back."""
    cell.load_modules()
    with cell.mounted():
        with pull.loaded(cell), _callers(cell):
            for number in range(count):
                await_connection(cell)
                pull.await_one(cell)
                # Not always just after that.
                time.sleep((count - number) % 3)
                cell.server(f"rdma link delete {cell.device}0", 120)
                time.sleep(1)
                cell.server(f"/lab/rdma-device {cell.device}")
                TOTALS.add(Kind.REMOVALS, 1)
            await_connection(cell)
        cell.still_works()


@provokes(LEFT, RESTARTED)
def test_connections_wait_for_nfsd(cell: Cell, count: int) -> None:
    """So many connections are asked for while no nfsd thread has time: all wait, and are accepted when one has. For
    five seconds; on rxe alone, since siw has who asks wait for ten at most."""
    with _without_threads(cell), _counted_accepts(cell) as accepts:
        with _crowd(cell, count):
            _await_waiting(cell, count)
            time.sleep(HELD_SECONDS)
            cell.server("echo 4 > /proc/fs/nfsd/threads")
            _await_waiting(cell, 0)
        # nfsd itself keeps few of those that say nothing, and closes the others as soon as it has accepted them.
        if (accepted := accepts()) != count:
            raise progress.Failure(f"{accepted} of {count} connections were accepted")
    with cell.mounted():
        cell.still_works()


@provokes(LEFT, DEVICE_GONE, RESTARTED, WAITED)
def test_connections_that_wait_are_lost(cell: Cell) -> None:
    """What waits to be accepted goes with its client, and with its device, without an nfsd thread. The removal of the
    device would not end otherwise. siw does not tell of a client that goes."""
    # siw does not tell when a client goes that waits.
    if cell.device != "siw":
        with _without_threads(cell):
            with _crowd(cell, WORKERS):
                _await_waiting(cell, WORKERS)
            _await_waiting(cell, 0)
    with _without_threads(cell):
        with _crowd(cell, WORKERS):
            _await_waiting(cell, WORKERS)
            # Ends when all ids on it are destroyed.
            cell.server(f"rdma link delete {cell.device}0", 120)
        cell.server(f"/lab/rdma-device {cell.device}")
    with cell.mounted():
        cell.still_works()


@contextmanager
def _without_threads(cell: Cell) -> Iterator[None]:
    """The server listens, and has no thread, for the length of a block."""
    cell.load_modules()
    cell.guests.stop_serving()
    with progress.undoing(lambda: cell.server("rpc.nfsd 0")):
        cell.server(NO_THREADS)
        yield
    cell.load_modules()


@contextmanager
def _counted_accepts(cell: Cell) -> Iterator[Callable[[], int]]:
    """What tells how many connections of any client nfsd has accepted, for the length of a block."""
    instance = "/sys/kernel/tracing/instances/accepts"
    event = f"{instance}/events/sunrpc/svc_xprt_accept"
    cell.server(f"mkdir {instance} && echo 1 > {event}/enable")
    with progress.undoing(lambda: cell.server(f"echo 0 > {event}/enable; rmdir {instance}")):
        yield lambda: int(cell.server(f"grep -c svc_xprt_accept: {instance}/trace || true"))


@contextmanager
def _crowd(cell: Cell, count: int) -> Iterator[None]:
    """So many connections are asked for, by somebody who is killed at the end of a block."""
    cell.client(f"{{ setsid /lab/crowd.py {count} > /tmp/crowd 2>&1 < /dev/null & echo $! > /tmp/crowd.pid; }}; "
                f"for try in $(seq {5 * SECONDS_EACH * count}); do read -r word < /tmp/crowd && break; sleep 0.2; done; "
                "test \"$word\" = asked || { cat /tmp/crowd >&2; exit 1; }", SECONDS_EACH * count)
    # It may have ended by itself.
    end = f"read -r group < /tmp/crowd.pid; kill -9 -$group 2> /dev/null; {GONE.format('$group')}"
    with progress.undoing(lambda: cell.client(end)):
        yield


def _await_waiting(cell: Cell, count: int) -> None:
    """Fail unless so many connections will wait at the server."""
    clock = cell.guests.clock
    deadline = clock.now() + BACK_SECONDS
    while (found := int(cell.server(WAITING))) != count:
        if clock.now() > deadline:
            raise progress.Failure(f"{found} connections wait at the server, not {count}")
        time.sleep(LOOK_SECONDS)


def test_nothing_left(cell: Cell) -> None:
    """No queue pair after the last unmount, no page of a connection after nfsd's end, no object after rmmod. Pages are
    found by the page allocator's own account of who took which."""
    cell.settled()
    look = "/lab/pages-of-rpc"
    if cell.guests.server in cell.debugged and "svc_fill_pages" not in cell.server(look):
        raise progress.Failure("what tells of pages that are left does not even show those of nfsd at work")
    cell.guests.stop_serving()
    for machine in cell.debugged:
        pages = machine.must(look, 120)
        if pages.strip():
            raise progress.Failure(f"pages are left at the {machine.role.name}:\n{pages}")
    loading.test_module_removed(cell)


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
    with progress.undoing(lambda: cell.client(end)):
        yield
        cell.client("read -r group < /tmp/callers.pid; pgrep -g $group > /dev/null && ! test -s /tmp/callers || "
                    "{ cat /tmp/callers >&2; exit 1; }")
