"""Counting what a command judges by itself: what passed, what failed and why, and the last line."""

import time
import traceback
from collections.abc import Callable

import progress

# How much of a reason is said twice, in characters.
MOST_REPEATED = 1000


class Results:
    """The outcome of a run. A test that could not run has failed."""

    def __init__(self) -> None:
        self.passed = 0
        # What each is called, and why it failed.
        self._failed: list[tuple[str, str]] = []

    @property
    def failed(self) -> int:
        return len(self._failed)

    def include(self, others: "Results") -> None:
        """Count what was found elsewhere, and said there."""
        self.passed += others.passed
        self._failed += others._failed

    def ok(self, name: str, note: str = "") -> None:
        self.passed += 1
        progress.line(f"ok      {name}{f' ({note})' if note else ''}")

    def fail(self, name: str, why: str) -> None:
        self._failed.append((name, why))
        progress.line(f"FAILED  {name}: {why}")

    def test(self, name: str, function: Callable[[], None]) -> bool:
        """Run one test, which fails by raising a Failure, or by a mistake of its own."""
        began = time.monotonic()
        try:
            function()
        except progress.Failure as failure:
            self.fail(name, str(failure))
            return False
        except Exception as error:  # noqa: BLE001
            self.fail(name, f"{type(error).__name__}: {error}")
            traceback.print_exc()
            return False
        self.ok(name, progress.duration(time.monotonic() - began))
        return True

    def finish(self) -> int:
        """Tell the failures again, where one looks first, print the last line, and give the exit status."""
        for name, why in self._failed:
            progress.line(f"failed: {name}")
            progress.line(f"        {why[:MOST_REPEATED]}")
        progress.line(f"{self.passed} passed, {self.failed} failed")
        return 1 if self._failed or not self.passed else 0
