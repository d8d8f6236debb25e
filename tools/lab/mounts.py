"""`make check-mount`: real mounts between two guests, our client against the in-tree server, in every cell."""

from contextlib import ExitStack

import kernels
import mount_tests
import module
import pair
import say
from mount_tests import Cell, Test
from pair import Pair
from results import Results

DEVICES = ("rxe", "siw")
VERSIONS = ("3", "4.0", "4.1", "4.2")
FULL_VERSION = "4.2"


def run() -> int:
    """Every cell, and the last line."""
    results = Results()
    check(results)
    return results.finish()


def check(results: Results) -> None:
    """Run all cells on one pair of guests; a hang costs the rest of its cell, and the next one gets new guests."""
    kernel = kernels.debug()
    setup = pair.Setup("mount", kernel, kernel, module.build(kernel), "1500M", "1500M")
    guests: Pair | None = None
    with ExitStack() as stack:
        for device in DEVICES:
            for version in VERSIONS:
                name = f"{device} NFSv{version}"
                tests = mount_tests.FULL if version == FULL_VERSION else mount_tests.SHORT
                try:
                    if guests is None:
                        guests = stack.enter_context(pair.running(setup))
                    with say.step(f"{name}: {len(tests)} tests"):
                        guests.load(device)
                        whole = _cell(results, Cell(guests, device, version), name, tests)
                except say.Failure as failure:
                    failure.tell_log()
                    _could_not_run(results, name, tests, failure.what)
                    whole = False
                if not whole:
                    stack.close()
                    guests = None


def _cell(results: Results, cell: Cell, name: str, tests: list[Test]) -> bool:
    """Run the tests of a cell; False when its guests are of no more use."""
    for number, test in enumerate(tests):
        hung = False

        def judged(test=test) -> None:
            nonlocal hung
            try:
                test.function(cell)
            except say.TimedOut:
                hung = True
                raise
            finally:
                troubles = [] if hung else cell.guests.log_troubles()
                for trouble in troubles:
                    say.line(f"  unexpected kernel message: {trouble}")
            if troubles:
                raise say.Failure(f"{len(troubles)} unexpected kernel messages")

        if not results.test(f"{name}: {test.name}", judged):
            if hung or not cell.clear():
                _could_not_run(results, name, tests[number + 1:], f"`{test.name}` left the guests unusable")
                return False
    return True


def _could_not_run(results: Results, name: str, tests: list[Test], why: str) -> None:
    """A test that could not run has failed."""
    for test in tests:
        results.fail(f"{name}: {test.name}", f"could not run: {why}")
