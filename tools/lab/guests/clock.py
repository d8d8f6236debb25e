"""The time that guests have had: what the lab waits by.

On a machine that does other things, too, a guest waits for a processor again and again, under emulation for all that it
does. A limit in the host's time would then be one of the host's speed. So time in which guests wait for the host does
not count; time in which they sleep, or wait for each other, does. pytest-timeout knows the host's time alone, and counts
the wait for a place, too; so each command in a guest has a limit here.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path

# From one look at who waited to the next.
LOOK_SECONDS = 1.0
# What counts at least of the time of a guest that gets no processor, so that every limit is reached.
LEAST_PART = 0.1
# How many seconds each thread of a guest has waited for a processor so far, by its number.
Waits = Callable[[], dict[int, float]]


class Clock:
    """The time of guests that have to do with each other."""

    def __init__(self) -> None:
        # Two guests are asked side by side for what they have logged.
        self._lock = threading.Lock()
        self._guests: list[tuple[Waits, dict[int, float]]] = []
        self._looked = time.monotonic()
        self._had = 0.0

    def add(self, waits: Waits) -> None:
        """One guest more."""
        with self._lock:
            self._guests.append((waits, waits()))

    def now(self) -> float:
        """Seconds that the guests have had; between two looks it may run ahead by less than the time from one to the
        next."""
        with self._lock:
            passed = time.monotonic() - self._looked
            if passed < LOOK_SECONDS:
                return self._had + passed
            self._looked += passed
            had = passed
            for number, (waits, before) in enumerate(self._guests):
                now = waits()
                longest = max((seconds - before.get(thread, 0.0) for thread, seconds in now.items()), default=0.0)
                # A guest that works while the other waits for it holds up both.
                had *= max(LEAST_PART, 1 - longest / passed)
                self._guests[number] = (waits, now)
            self._had += had
            return self._had

    def sleep(self, seconds: float) -> None:
        """Wait until the guests have had so much time more."""
        end = self.now() + seconds
        while (left := end - self.now()) > 0:
            time.sleep(min(left, LOOK_SECONDS))


def waits_of_child(parent: int) -> dict[int, float]:
    """What the threads of a process's only child have waited; nothing where the kernel keeps no such account."""
    try:
        child = int(Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0])
        # Time on a processor, time waiting for one in nanoseconds, and how often it had one.
        return {int(task.name): int((task / "schedstat").read_text().split()[1]) / 1e9
                for task in Path(f"/proc/{child}/task").iterdir()}
    except (OSError, IndexError):
        # It may be about to begin or to end, too.
        return {}
