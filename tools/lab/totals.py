"""What the tests of a run have done in all, in numbers."""

import threading
from collections import Counter
from enum import StrEnum

import progress


class Kind(StrEnum):
    """What is counted, as the summary calls it."""

    RPCS = "RPCs"
    DISCONNECTS = "disconnects"
    RECONNECTS = "reconnects"
    REMOVALS = "device removals"
    BYTES = "bytes verified"


class Totals:
    """Counts, to which tests add that run side by side."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[Kind] = Counter()

    def add(self, kind: Kind, count: int) -> None:
        with self._lock:
            self._counts[kind] += count

    def counts(self) -> dict[str, int]:
        """All of them, for another process."""
        with self._lock:
            return {str(kind): count for kind, count in self._counts.items()}

    def include(self, counts: dict[str, int]) -> None:
        """Add those of another process."""
        for kind, count in counts.items():
            self.add(Kind(kind), count)

    def tell(self) -> None:
        """Print all of them, if anything was done."""
        with self._lock:
            if self._counts.total():
                progress.line("in all: " + ", ".join(f"{self._counts[kind]} {kind}" for kind in Kind))


# Of this run.
TOTALS = Totals()
