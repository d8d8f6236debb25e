"""The test of many callbacks: each is answered well, and the memory of both ends is what it was before."""

import functools
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

import say
from cell import GONE, Cell, Test
from machine import Machine
from messages import Expected

PROCESSES, HELD_MILLISECONDS = 8, 10
# What the ends need in any case is there after so many.
FIRST = 1000
# A leak of a small object a callback would be more than this, where there are enough of them.
LEAK_BYTES = 80
LEAST_PER_SECOND = 5
LOOK_SECONDS = 3
START = "cd {0} && {{ setsid /lab/locks.py {0} {1} {2} > /tmp/locks 2>&1 < /dev/null & echo $! > /tmp/locks.pid; }}"
END = f"read -r group < /tmp/locks.pid; kill -9 -$group; {GONE.format('$group')}"
# MemFree does not count the lists that processors keep of free pages, which may have tens of MiB.
FREE_KILOBYTES = "awk '/^MemFree:/ {n += $2} /^ *count:/ {n += 4 * $2} END {print n}' /proc/meminfo /proc/zoneinfo"
LOCK_TOLD = "nfsd_cb_notify_lock_done"
# A ring of its own, since the other one is for what goes wrong.
TRACE = "/sys/kernel/tracing/instances/callbacks"
# How many there have been, also those that the ring has no room for any more.
EVENTS = f"cat {TRACE}/per_cpu/cpu*/stats | awk '/^(entries|overrun):/ {{n += $2}} END {{print n + 0}}'"
STATUS = re.compile(rf": {LOCK_TOLD}: .*\bstatus=(-?\d+)")


# nfsd gives up a callback that takes a tenth of the lease. With the usual one of the tests that is a second, in which a
# busy machine's guest may not run at all.
LONG_LEASE = "echo 3600 > /proc/fs/nfsd/nfsv4leasetime && rpc.nfsd 4 && echo rdma 20049 > /proc/fs/nfsd/portlist"
RESTARTED = Expected(4, re.compile(r"NFSD: (Using .* tracking.*|.*no clients to reclaim.*|"
                                   r"starting \d+-second grace period.*)"), "nfsd is stopped and started")


@contextmanager
def recorded(cell: Cell) -> Iterator[None]:
    """What nfsd's callbacks come to, for the length of a block; a Failure if one was not answered well."""
    with say.undoing(lambda: cell.server(f"rmdir {TRACE}")):
        cell.server(f"mkdir {TRACE} && echo 1 > {TRACE}/events/nfsd/{LOCK_TOLD}/enable")
        yield
        found = STATUS.findall(cell.server(f"cat {TRACE}/trace"))
    bad = [status for status in found if int(status) != 0]
    if bad or not found:
        raise say.Failure(f"{len(found)} callbacks on record, {len(bad)} with an error: {' '.join(bad[:9])}")


def called_back(count: int, cell: Cell) -> None:
    """Processes of both ends want the same locks, so the server calls the client back whenever one is free."""
    cell.load_modules()
    cell.guests.stop_serving()
    cell.server(LONG_LEASE)
    with say.undoing(cell.guests.stop_serving), cell.mounted(), recorded(cell):
        _contend(cell, FIRST)
        before = [_free(machine) for machine in cell.guests.machines]
        began = time.monotonic()
        told = _contend(cell, count)
        seconds = time.monotonic() - began
        lost = [was - _free(machine) for was, machine in zip(before, cell.guests.machines)]
        memory = ", ".join(f"{machine.role.name} {bytes_lost >> 10:+} KiB" for machine, bytes_lost
                           in zip(cell.guests.machines, lost))
        say.line(f"  {told} callbacks answered in {say.duration(seconds)}; memory in use since: {memory}")
    if max(lost) > LEAK_BYTES * count:
        raise say.Failure(f"{max(lost) >> 10} KiB are lost after {told} callbacks")


def _contend(cell: Cell, count: int) -> int:
    """Have locks contended for until so many more callbacks have been answered; how many it was in the end."""
    first = int(cell.server(EVENTS))
    with say.undoing(lambda: cell.server(END)), say.undoing(lambda: cell.client(END)):
        # Long enough for the client to come too late, each time anew.
        cell.server(START.format("/export/t", PROCESSES, HELD_MILLISECONDS))
        cell.client(START.format("/mnt/t", PROCESSES, 0))
        deadline = time.monotonic() + 30 + count / LEAST_PER_SECOND
        while (now := int(cell.server(EVENTS)) - first) < count:
            if time.monotonic() > deadline:
                raise say.Failure(f"only {now} of {count} callbacks")
            time.sleep(LOOK_SECONDS)
    return now


def _free(machine: Machine) -> int:
    """Bytes of memory that nobody uses, without what could be read again. The slab allocator gives back what it can."""
    machine.must("sync; { for cache in /sys/kernel/slab/*; do echo 1 > $cache/shrink; done; } 2> /dev/null; "
                 "echo 3 > /proc/sys/vm/drop_caches")
    return 1024 * int(machine.must(FREE_KILOBYTES))


def test(count: int) -> Test:
    """So many callbacks."""
    return Test(f"{count} callbacks", functools.partial(called_back, count), (RESTARTED,))
