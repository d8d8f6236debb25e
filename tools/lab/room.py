"""The room of the host, as the processes of a run share it: how many pairs of guests may be busy at the same time, and for how
long."""

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import cache

# Two guests, with what QEMU and the files of the host need beside their memory.
PAIR_BYTES = 5 << 30
LOOK_SECONDS = 0.5
# How many there are, as the processes of a run tell each other.
PLACES = "RPCRDMA_PLACES"
# When it began, on the clock that all processes have.
BEGAN = "RPCRDMA_BEGAN"


def places() -> int:
    """How many pairs the machine has processors and memory for; one in any case. All processes of a run are told the same."""
    if PLACES not in os.environ:
        available = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
        memory = 1024 * int(available[1]) if available else 0
        os.environ[PLACES] = str(max(1, min(len(os.sched_getaffinity(0)), memory // PAIR_BYTES)))
    return int(os.environ[PLACES])


def seconds() -> float:
    """How long the run has gone on; the first that asks begins it."""
    return time.monotonic() - float(os.environ.setdefault(BEGAN, str(time.monotonic())))


@contextlib.contextmanager
def place(count: int = 1) -> Iterator[None]:
    """So many of the places, for the length of a block; others of this run may have them for a while."""
    with contextlib.ExitStack() as stack:
        with _turn():
            while count:
                count -= _taken(stack)
                if count:
                    time.sleep(LOOK_SECONDS)
        yield


@contextlib.contextmanager
def _turn() -> Iterator[None]:
    """Wait for those who have waited longer. Who gives a place back and wants the next would have it again before all others, and
    two that have a part each of what they want would wait for each other."""
    with _lock("turn") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _lock(name: str) -> TextIO:
    path = cache.directory() / "locks" / name
    path.parent.mkdir(exist_ok=True)
    return path.open("a")


def _taken(stack: contextlib.ExitStack) -> bool:
    """Take one that is free, if there is any."""
    for number in range(places()):
        file = _lock(f"place-{number}")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        stack.enter_context(file)
        return True
    return False
