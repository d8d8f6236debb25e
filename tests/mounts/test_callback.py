"""The tests of the server's Calls: delegations that it recalls, copies and locks that it tells of, and many of them,
which cost no memory."""

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import progress
from guests.cell import GONE, LONG_SECONDS, Cell, checksum
from judges.messages import Expected
from plan import provokes

# The versions whose callbacks come over the mount's own connection.
CALLED_BACK = ("4.1", "4.2")
PROCESSES, HELD_MILLISECONDS = 8, 10
# What the ends need in any case is there after so many.
FIRST = 1000
# A leak of a small object a callback would be more than this, where there are enough of them.
LEAK_BYTES = 80
LEAST_PER_SECOND = 5
LOOK_SECONDS = 3
START = "cd {0} && {{ setsid /lab/locks.py {0} {1} {2} > /tmp/locks 2>&1 < /dev/null & echo $! > /tmp/locks.pid; }}"
END = f"read -r group < /tmp/locks.pid; kill -9 -$group; {GONE.format('$group')}"
# After a lost connection the client may hear only with its next renewal that the server has no way back to it.
UP = ("for try in $(seq 250); do grep -qx 'callback state: UP' /proc/fs/nfsd/clients/*/info && exit 0; "
      "sleep 0.2; done; grep -h callback /proc/fs/nfsd/clients/*/info >&2; exit 1")
# Nothing is delegated as long as somebody may claim what he had; lockd's clients, too.
NO_GRACE = ("for try in $(seq 250); do grep -q Y /proc/fs/nfsd/v4_end_grace && grep -q Y /proc/fs/lockd/nlm_end_grace && "
            "exit 0; sleep 0.2; done; echo 'the grace period does not end' >&2; exit 1")
# Sizes of files that are delegated for reading, and for writing; few, and as many as take a while under load.
READ, WRITTEN = (1000, 70001), (2000, 80001)
MANY_READ, MANY_WRITTEN = tuple(range(1000, 1006)), tuple(range(2000, 2006))
# Whoever waits at the server for a delegation that is not given back waits as long as a lease is.
LONGEST_RECALLS_SECONDS = 45
# Of the mount's counters: Calls sent. With fewer of them for each recall there was no load.
SENT, LEAST_CALLS = 6, 4
# Not those of directories.
DELEGATIONS = "cat /proc/fs/nfsd/clients/*/states | grep -c 'type: deleg.*/file-'; true"
HOLD = ("rm -f /tmp/held; {{ setsid /lab/holder.py /mnt/t/recalled {0} > /tmp/held 2>&1 < /dev/null & echo $! > /tmp/held.pid; }}; "
        "for try in $(seq 300); do grep -qx held /tmp/held && exit 0; sleep 0.2; done; cat /tmp/held >&2; exit 1")
LET_GO = f"read -r group < /tmp/held.pid; kill -9 -$group; {GONE.format('$group')}"
# A copy of more than two READs is one that the server tells of when it is done.
RSIZE, COPY_SIZE, COPIES = 65536, 1_000_003, 3
COPY_EVENTS = ("nfsd_copy_async", "nfsd_cb_offload", "nfsd_cb_offload_done")
# The server knows that the old one has ended.
ONE_CONNECTION = ("for try in $(seq 250); do test $(rdma resource show qp | grep -c 'type RC') = 1 && exit 0; sleep 0.2; "
                  "done; rdma resource show qp >&2; exit 1")
# For both ends to know what a new connection is good for.
NOTICE_SECONDS = 2
# How often locks are told of, for every check.
SOME_LOCKS = 20
LOCK_TOLD = "nfsd_cb_notify_lock_done"
# A ring of its own, since the other one is for what goes wrong.
TRACE = "/sys/kernel/tracing/instances/callbacks"
EVENT = re.compile(r": (nfsd_\w+): (.*)")
# Of a long trace the rest is left alone: a guest is slow at telling it.
MOST_LINES = 5000
# How many there have been, also those that the ring has no room for any more.
EVENTS = f"cat {TRACE}/per_cpu/cpu*/stats | awk '/^(entries|overrun):/ {{n += $2}} END {{print n + 0}}'"
STATUS = re.compile(r"\bstatus=(-?\d+)")
# sunrpc closes a connection after five minutes without RPC; and for how long there is none in all.
CLOSE_SECONDS, IDLE_SECONDS = 420, 600
# nfsd gives a callback up that takes a tenth of the lease.
LONG_LEASE = 3600
WITH_LEASE = "echo {0} > /proc/fs/nfsd/nfsv4leasetime && rpc.nfsd 4 && echo rdma 20049 > /proc/fs/nfsd/portlist"
IDLE_CLOSED = (f"for try in $(seq {CLOSE_SECONDS}); do rdma resource show qp | grep -q 'type RC' || exit 0; "
               "sleep 1; done; rdma resource show qp >&2; exit 1")
BROKEN = Expected(10, re.compile(r"rpcrdma: connection (to|from) \S+ lost: .*"), "the test breaks a connection")
RESTARTED = Expected(10, re.compile(r"NFSD: (Using .* tracking.*|.*no clients to reclaim.*|"
                                   r"starting \d+-second grace period.*)"), "nfsd is stopped and started")


@contextmanager
def patient(cell: Cell, lease: int = LONG_LEASE) -> Iterator[None]:
    """A server with a long lease for the length of a block: it forgets nothing of a client, and gives no callback up for being
    late; or, with a shorter one, only later than usual.

    With the usual lease of the tests it has a second for each. Then it calls again, under the same slot, while the client
    still has the Call before, or has dropped its answer: NFS4ERR_RETRY_UNCACHED_REP (10068), over TCP just as well.
    """
    cell.load_modules()
    cell.guests.stop_serving()
    with progress.undoing(cell.guests.stop_serving):
        cell.server(WITH_LEASE.format(lease))
        yield
    cell.load_modules()


@contextmanager
def recorded(cell: Cell, *events: str) -> Iterator[list[str]]:
    """These events of the server for the length of a block; their lines are in the list after it."""
    lines: list[str] = []
    with progress.undoing(lambda: cell.server(f"rmdir {TRACE}")):
        # A test that hung may have left it.
        cell.server(f"{{ rmdir {TRACE} 2> /dev/null; mkdir {TRACE}; }} && cd {TRACE}/events && for event in {' '.join(events)}; do "
                    "echo 1 > $(echo */$event)/enable || exit 1; done")
        yield lines
        lines += cell.server(f"tail -n {MOST_LINES} {TRACE}/trace").splitlines()


def counts(lines: Iterable[str]) -> Counter[str]:
    """How often each event is in a trace; a Failure if a callback had another status than 0."""
    found = [(event[1], event[2]) for line in lines if (event := EVENT.search(line))]
    for name, text in found:
        status = STATUS.search(text)
        if name.endswith("_done") and (status is None or int(status[1]) != 0):
            raise progress.Failure(f"{name}: {text}")
    return Counter(name for name, _ in found)


@provokes(RESTARTED)
def test_delegations_recalled(cell: Cell) -> None:
    """The server writes files that are delegated to the client: that gives them back at once, though it holds them
    open, and then reads what is in them. Delegations for reading and for writing (CB_RECALL)."""
    with patient(cell), cell.mounted(prepare=_to_be_read(READ)), _delegated(cell, READ, WRITTEN):
        _recall(cell, (*READ, *WRITTEN))


@provokes(RESTARTED)
def test_delegations_recalled_under_load(cell: Cell) -> None:
    """The same while the client has as many Calls under way as it may, behind which its answers could wait, with a
    lease that gives no callback up for being late; it costs no connection."""
    with patient(cell), cell.mounted(prepare=_to_be_read(MANY_READ)):
        sizes = (*MANY_READ, *MANY_WRITTEN)
        with _delegated(cell, MANY_READ, MANY_WRITTEN), cell.load():
            before = cell.counter(SENT)
            seconds = _recall(cell, sizes)
            sent = cell.counter(SENT) - before
        connects = cell.connects()
    progress.line(f"  {sent} Calls in the meantime")
    if seconds > LONGEST_RECALLS_SECONDS:
        raise progress.Failure(f"{len(sizes)} delegations came back in {seconds:.0f} s")
    if sent < LEAST_CALLS * len(sizes) or connects != 1:
        raise progress.Failure(f"{sent} Calls were sent meanwhile, and {connects} connections made")


def _to_be_read(sizes: tuple[int, ...]) -> str:
    """What the server does beforehand."""
    make = " && ".join(f"head -c {size} /dev/zero > file-{size}" for size in sizes)
    return f"mkdir -m 777 recalled && cd recalled && {make}"


@contextmanager
def _delegated(cell: Cell, read: tuple[int, ...], written: tuple[int, ...]) -> Iterator[None]:
    """Files that the client holds open, and delegations of all of them, for the length of a block."""
    cell.server(NO_GRACE)
    cell.server(UP)
    sizes = (*read, *written)
    before = int(cell.server(DELEGATIONS))
    cell.client(HOLD.format(" ".join(f"file-{size}" for size in sizes)))
    with progress.undoing(lambda: cell.client(LET_GO)):
        delegated = int(cell.server(DELEGATIONS)) - before
        if delegated != len(sizes):
            raise progress.Failure(f"{delegated} of {len(sizes)} files were delegated")
        yield


def _recall(cell: Cell, sizes: tuple[int, ...]) -> float:
    """Have the server write delegated files, and fail unless each was recalled and given back, and the client reads
    what was written; how many seconds the server took."""
    with recorded(cell, "nfsd_cb_recall", "nfsd_cb_recall_done", "nfsd_stid_revoke") as lines:
        began = cell.guests.clock.now()
        cell.server(f"/lab/files.py make /export/t/recalled {' '.join(map(str, sizes))}", LONG_SECONDS)
        seconds = cell.guests.clock.now() - began
    found = counts(lines)
    # From the server: the NFS client believes in its cache of files that were delegated for writing, with the in-tree
    # transport, too.
    cell.client("/lab/files.py check /mnt/t/recalled --direct", LONG_SECONDS)
    progress.line(f"  {found['nfsd_cb_recall_done']} delegations recalled in {seconds:.1f} s")
    if found["nfsd_cb_recall"] < len(sizes) or found["nfsd_cb_recall_done"] < len(sizes):
        raise progress.Failure(f"{len(sizes)} files were delegated, but recalls were: {dict(found)}")
    if found["nfsd_stid_revoke"]:
        raise progress.Failure(f"the server waited in vain for delegations: {dict(found)}")
    return seconds


@provokes(BROKEN, RESTARTED)
def test_copies_of_the_servers(cell: Cell) -> None:
    """The server copies files by itself and says when it is done (CB_OFFLOAD), also on the next connection.
    `copy_file_range()` of what takes the server a while."""
    with patient(cell), cell.mounted(cell.mount_command(option=f"proto=rdma,rsize={RSIZE},wsize={RSIZE}")):
        cell.server(UP)
        _copied(cell, "first")
        before = cell.connects()
        with cell.broken(cell.debugged[0], 1, 1):
            # Nothing has to be renewed for an hour, and the Reply to the Call that breaks it may come before its end.
            cell.client("touch /mnt/t/broken && touch /mnt/t/again")
            cell.await_connects(before + 1, LONG_SECONDS)
        # With its next Call the client is told that the server has no way back any more.
        cell.server(ONE_CONNECTION)
        cell.client("touch /mnt/t/next")
        time.sleep(NOTICE_SECONDS)
        cell.server(UP)
        _copied(cell, "second")


@provokes(RESTARTED)
def test_copy_after_idleness(cell: Cell) -> None:
    """The same after ten minutes without RPC, in which the RPC layer has closed the connection, with a lease that wants no
    renewal before that."""
    with patient(cell):
        with cell.mounted(cell.mount_command(option=f"proto=rdma,rsize={RSIZE},wsize={RSIZE}")):
            cell.server(UP)
            _copied(cell, "first")
            before = cell.connects()
            began = time.monotonic()
            cell.client(IDLE_CLOSED, CLOSE_SECONDS + LONG_SECONDS)
            time.sleep(max(0, IDLE_SECONDS - (time.monotonic() - began)))
            if "type RC" in cell.client("rdma resource show qp"):
                raise progress.Failure("the mount was not idle")
            # The server may have nowhere to send the word to: it is asked instead.
            cell.client(f"/lab/copies.py /mnt/t/second {COPY_SIZE} {COPIES}", LONG_SECONDS)
            _judge_copies(cell, "second")
            cell.server(UP)
            _copied(cell, "third")
            if cell.connects() == before:
                raise progress.Failure("the connection was not made again")


def _copied(cell: Cell, directory: str) -> None:
    """Fail unless copies are right, and the server told of each."""
    with recorded(cell, *COPY_EVENTS) as lines:
        cell.client(f"/lab/copies.py /mnt/t/{directory} {COPY_SIZE} {COPIES}", LONG_SECONDS)
        # The server notes an answer after the client has gone on.
        cell.server(f"for try in $(seq 250); do test $({EVENTS}) -ge {COPIES * len(COPY_EVENTS)} && break; sleep 0.2; done")
    found = counts(lines)
    _judge_copies(cell, directory)
    if any(found[event] != COPIES for event in COPY_EVENTS):
        raise progress.Failure(f"{COPIES} copies, but events were: {dict(found)}")


def _judge_copies(cell: Cell, directory: str) -> None:
    """By the server's checksums."""
    sums = [line.split()[0] for line in cell.server(f"sha256sum /export/t/{directory}/*", LONG_SECONDS).splitlines()]
    if sums != [checksum(f"file-{COPY_SIZE}")] * (1 + COPIES):
        raise progress.Failure(f"{directory}: the server has other bytes than it should")


@provokes(RESTARTED)
def test_locks_told_of(cell: Cell) -> None:
    """Processes of both ends want the same locks: the server says whenever one is free (CB_NOTIFY_LOCK). By nfsd's
    trace events, with status 0."""
    with patient(cell), cell.mounted(), recorded(cell, LOCK_TOLD) as lines:
        _contend(cell, SOME_LOCKS)
    counts(lines)


@provokes(RESTARTED)
def test_called_back(cell: Cell, count: int) -> None:
    """The same so often that a leak would show. Afterwards both ends have as much free memory as before."""
    with patient(cell), cell.mounted(), recorded(cell, LOCK_TOLD) as lines:
        _contend(cell, FIRST)
        before = [machine.free_bytes() for machine in cell.guests.machines]
        began = time.monotonic()
        told = _contend(cell, count)
        seconds = time.monotonic() - began
        lost = [was - machine.free_bytes() for was, machine in zip(before, cell.guests.machines)]
        memory = ", ".join(f"{machine.role.name} {bytes_lost >> 10:+} KiB" for machine, bytes_lost
                           in zip(cell.guests.machines, lost))
        progress.line(f"  {told} callbacks answered in {progress.duration(seconds)}; memory in use since: {memory}")
    # Of the last ones.
    counts(lines)
    if max(lost) > LEAK_BYTES * count:
        raise progress.Failure(f"{max(lost) >> 10} KiB are lost after {told} callbacks")


def _contend(cell: Cell, count: int) -> int:
    """Have locks contended for until so many callbacks more have been answered; how many it was in the end."""
    first = int(cell.server(EVENTS))
    with progress.undoing(lambda: cell.server(END)), progress.undoing(lambda: cell.client(END)):
        # Long enough for the client to come too late, each time anew.
        cell.server(START.format("/export/t", PROCESSES, HELD_MILLISECONDS))
        cell.client(START.format("/mnt/t", PROCESSES, 0))
        deadline = cell.guests.clock.now() + 30 + count / LEAST_PER_SECOND
        while (now := int(cell.server(EVENTS)) - first) < count:
            if cell.guests.clock.now() > deadline:
                raise progress.Failure(f"only {now} of {count} callbacks")
            time.sleep(LOOK_SECONDS)
    return now
