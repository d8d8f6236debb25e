"""Tests of what users of NFS over RDMA have reported of this transport or of others, and what passes here."""

from collections.abc import Iterator
from contextlib import contextmanager

import progress
import test_callback as callback_tests
from guests.cell import FEW_SIZES, LONG_SECONDS, Cell
from plan import provokes
from provoked import LOST, NOT_RESPONDING
from test_payload import LARGE
from test_storm import DISK

# So many Calls from one broken connection to the next, so many of these, and for how long, at least.
INTERVAL, LEAST_BROKEN, SECONDS, LEAST_TIMES = 10, 200, 30, 250

# How nfsd reads and writes: through the page cache without keeping anything there, or past it, of which there are events.
DROP, PAST = 1, 2
THIS_WAY = "cd /sys/kernel/debug/nfsd && echo {0} > io_cache_read && echo {0} > io_cache_write"
# The first has nfsd read as usual, too.
AS_USUAL = "cd /sys/kernel/debug/nfsd && echo 0 > disable-splice-read && echo 0 > io_cache_write"
PAST_EVENTS = ("nfsd_read_direct", "nfsd_write_direct")
# Whom lockd's other end is told by, after a restart.
STATD = "pgrep -x rpc.statd > /dev/null || rpc.statd"
CLIENT_STATD = ("mountpoint -q /var/lib/nfs || { mount -t tmpfs state /var/lib/nfs && mkdir -p /var/lib/nfs/sm /var/lib/nfs/sm.bak; }; "
                f"pgrep -x rpcbind > /dev/null || rpcbind -w; {STATD}")
# lockd forgets whom to tell when it ends in good order, and not when a server loses its power.
KEEP = "rm -rf /tmp/sm && cp -a /var/lib/nfs/sm /tmp/sm && ls -A /tmp/sm | grep -q ."
TELL = "cp -a /tmp/sm/. /var/lib/nfs/sm && mkdir -p /var/lib/nfs/sm.bak && sm-notify -f"
LOCKED, LOCKED_THERE = "/mnt/t/locked", "/export/t/locked"
LOCK = ("rm -f /tmp/held; {{ setsid python3 -IS -c \"import fcntl, time; file = open('{0}', 'r+'); fcntl.lockf(file, fcntl.LOCK_EX); "
        "print('held', flush=True); time.sleep(3600)\" > /tmp/held 2>&1 < /dev/null & echo $! > /tmp/held.pid; }}")
NOT_HELD = "sleep 2; ! grep held /tmp/held"
REFUSED = ("! python3 -IS -c \"import fcntl; fcntl.lockf(open('{0}', 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)\" 2> /tmp/refused && "
           "grep -q BlockingIOError /tmp/refused")
KNOWN = f'grep -q ":$(stat -c %i {LOCKED_THERE}) " /proc/locks'
CLAIMED = f"for try in $(seq 300); do {KNOWN} && exit 0; sleep 0.2; done; cat /proc/locks >&2; exit 1"
HELD = "for try in $(seq 300); do grep -qx held /tmp/held && exit 0; sleep 0.2; done; cat /tmp/held >&2; exit 1"
# Kept by the client for longer than the test takes: a delegated file's bytes are written when it has to be.
DIRTY_BYTES = 123_456
WRITE = (f"rm -f /tmp/held; {{ setsid python3 -IS -c \"import os, time; file = os.open('/mnt/t/dirty', os.O_RDWR | os.O_CREAT); "
         f"os.write(file, bytes({DIRTY_BYTES})); print('held', flush=True); time.sleep(3600)\" > /tmp/held 2>&1 < /dev/null & "
         "echo $! > /tmp/held.pid; }")
ASKED = "nfsd_cb_getattr_done"
# nfsd waits for no answer longer than 30 ms, which a guest may take; then it says what it knows, and the next look asks anew.
LOOK = (f"for try in $(seq 20); do test $(stat -c %s /tmp/other/t/dirty) = {DIRTY_BYTES} && break; sleep 0.2; done; "
        "stat -c %s /tmp/other/t/dirty /export/t/dirty")
# What is said when nfsd begins, and its disk is mounted.
BEGUN = (callback_tests.RESTARTED, DISK)


@provokes(LOST, NOT_RESPONDING)
def test_done_once_over_broken_connections(cell: Cell) -> None:
    """What may be done once is done once, though connections break all the time and Calls are sent again: the server
    knows them. mkdir, rename, link, unlink and exclusive create, with each tenth Call breaking the connection."""
    cell.load_modules()
    with cell.mounted():
        before = cell.connects()
        cell.client("mkdir /mnt/t/once")
        with cell.broken(cell.debugged[0], INTERVAL):
            times = int(cell.client(f"/lab/once.py /mnt/t/once {SECONDS} {LEAST_TIMES}", LONG_SECONDS))
        broken = cell.connects() - before
        progress.line(f"  {times} times, with {broken} broken connections")
        if broken < LEAST_BROKEN:
            raise progress.Failure(f"only {broken} connections were broken")


@provokes(*BEGUN)
def test_past_the_servers_cache(cell: Cell) -> None:
    """nfsd reads and writes past the page cache of the server, or keeps nothing there. `io_cache_read` and
    `io_cache_write` of 2 and 1, by its trace events; records on page boundaries and off them."""
    cell.load_modules()
    for mode in (DROP, PAST):
        with cell.mounted(), _past_the_cache(cell, mode), callback_tests.recorded(cell, *PAST_EVENTS) as lines:
            for name, sizes, how in (("odd", f"{FEW_SIZES} {LARGE}", "--direct --odd"),
                                     ("even", f"{FEW_SIZES} {LARGE}", "--direct"), ("cached", FEW_SIZES, "")):
                cell.written(name, sizes, how)
                # Of what nfsd has written itself nothing has to be read.
                cell.server("/lab/files.py forget")
                cell.same(name, how)
        found = callback_tests.counts(lines)
        progress.line(f"  {mode}: {dict(found)}")
        if any(bool(found[event]) != (mode == PAST) for event in PAST_EVENTS):
            raise progress.Failure(f"io_cache_read and io_cache_write are {mode}, but events were: {dict(found)}")


@contextmanager
def _past_the_cache(cell: Cell, mode: int) -> Iterator[None]:
    """This way for the length of a block."""
    with progress.undoing(lambda: cell.server(AS_USUAL)):
        cell.server(THIS_WAY.format(mode))
        yield


@provokes(LOST, NOT_RESPONDING, *BEGUN)
def test_locks_of_both_ends(cell: Cell) -> None:
    """A lock of NFS 3 is respected at the other end, whoever has it. The client has it again when nfsd has been started
    anew, which forgets it."""
    cell.load_modules()
    cell.server(STATD)
    cell.client(CLIENT_STATD)
    with cell.mounted(cell.mount_command().replace(",nolock", ""), prepare="touch locked && chmod 666 locked"):
        cell.server(callback_tests.NO_GRACE)
        cell.client(LOCK.format(LOCKED))
        with progress.undoing(lambda: cell.client(callback_tests.LET_GO)):
            cell.client(HELD)
            cell.server(REFUSED.format(LOCKED_THERE))
            cell.server(KEEP)
            cell.guests.stop_serving()
            cell.server(f"! {KNOWN}")
            cell.load_modules()
            cell.server(f"{TELL} && {CLAIMED}")
            cell.server(REFUSED.format(LOCKED_THERE))
        cell.server(LOCK.format(LOCKED_THERE))
        with progress.undoing(lambda: cell.server(callback_tests.LET_GO)):
            cell.server(HELD)
            cell.server(callback_tests.NO_GRACE)
            cell.client(LOCK.format(LOCKED))
            cell.client(NOT_HELD)
        with progress.undoing(lambda: cell.client(callback_tests.LET_GO)):
            cell.client(HELD)


@provokes(*BEGUN)
def test_size_of_what_is_not_written_yet(cell: Cell) -> None:
    """Another client that wants to know how long a file is learns what its writer has, who keeps it to himself: the server
    asks him (CB_GETATTR)."""
    cell.load_modules()
    with cell.mounted():
        cell.server(callback_tests.NO_GRACE)
        cell.server(callback_tests.UP)
        cell.server("mkdir -p /tmp/other && mount -t nfs -o vers=4.2,proto=tcp,actimeo=0 localhost:/ /tmp/other")
        with progress.undoing(lambda: cell.server("umount /tmp/other")):
            cell.client(WRITE)
            with progress.undoing(lambda: cell.client(callback_tests.LET_GO)), callback_tests.recorded(cell, ASKED) as lines:
                cell.client(HELD)
                said = cell.server(LOOK).split()
    if callback_tests.counts(lines)[ASKED] == 0 or said != [str(DIRTY_BYTES), "0"]:
        raise progress.Failure(f"the other client sees, and the server has: {' and '.join(said)} bytes; events: {lines}")
