"""The test of many callbacks: the memory of both ends is what it was before."""

import functools
import time

import say
from cell import GONE, Cell, Test
from machine import Machine

PROCESSES, HELD_MILLISECONDS = 8, 10
# What the ends need in any case is there after so many.
FIRST = 1000
# A leak of a small object a callback would be more than this, where there are enough of them.
LEAK_BYTES = 80
LEAST_PER_SECOND = 5
LOOK_SECONDS = 3
# How often a LOCK was refused: the last number of its line. The client then waits for CB_NOTIFY_LOCK, and asks again.
REFUSED = "sed -n 's/^\\s*LOCK: .* //p' /proc/self/mountstats"
START = "cd {0} && {{ setsid /lab/locks.py {0} {1} {2} > /tmp/locks 2>&1 < /dev/null & echo $! > /tmp/locks.pid; }}"
END = f"read -r group < /tmp/locks.pid; kill -9 -$group; {GONE.format('$group')}"


def called_back(count: int, cell: Cell) -> None:
    """Processes of both ends want the same locks, so the server calls the client back whenever one is free."""
    cell.load_modules()
    with cell.mounted():
        _contend(cell, FIRST)
        before = [_free(machine) for machine in cell.guests.machines]
        began = time.monotonic()
        _contend(cell, count)
        seconds = time.monotonic() - began
        lost = [was - _free(machine) for was, machine in zip(before, cell.guests.machines)]
    told = ", ".join(f"{machine.role.name} {bytes_lost >> 10:+} KiB" for machine, bytes_lost
                     in zip(cell.guests.machines, lost))
    say.line(f"  {count} callbacks in {say.duration(seconds)}; memory in use since: {told}")
    if max(lost) > LEAK_BYTES * count:
        raise say.Failure(f"{max(lost) >> 10} KiB are lost after {count} callbacks")


def _contend(cell: Cell, count: int) -> None:
    """Have locks contended for until there have been so many callbacks more."""
    first = _refused(cell)
    with say.undoing(lambda: cell.server(END)), say.undoing(lambda: cell.client(END)):
        # Long enough for the client to come too late, each time anew.
        cell.server(START.format("/export/t", PROCESSES, HELD_MILLISECONDS))
        cell.client(START.format("/mnt/t", PROCESSES, 0))
        deadline = time.monotonic() + 30 + count / LEAST_PER_SECOND
        while (now := _refused(cell) - first) < count:
            if time.monotonic() > deadline:
                raise say.Failure(f"only {now} of {count} callbacks")
            time.sleep(LOOK_SECONDS)


def _refused(cell: Cell) -> int:
    return int(cell.client(REFUSED).strip() or 0)


def _free(machine: Machine) -> int:
    """Bytes of memory that nobody uses, without what could be read again. The slab allocator gives back what it can."""
    machine.must("sync; { for cache in /sys/kernel/slab/*; do echo 1 > $cache/shrink; done; } 2> /dev/null; "
                 "echo 3 > /proc/sys/vm/drop_caches")
    return 1024 * int(machine.must("sed -n 's/^MemFree: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo"))


def test(count: int) -> Test:
    """So many callbacks."""
    return Test(f"{count} callbacks", functools.partial(called_back, count))
