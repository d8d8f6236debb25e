"""`make check-mount` and `make soak`: real mounts between two guests, our client against the in-tree server."""

import itertools
import os
import time
from collections.abc import Iterable, Iterator
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
SOAK_MINUTES = 30

# Device, NFS version, tests.
Plan = Iterable[tuple[str, str, list[Test]]]


def run() -> int:
    """Every cell, and the last line."""
    results = Results()
    check(results)
    return results.finish()


def soak() -> int:
    """What is hard on connections and memory, in turn on each device, until SOAK_MINUTES are over."""
    given = os.environ.get("SOAK_MINUTES") or str(SOAK_MINUTES)
    if not given.isdecimal() or int(given) == 0:
        raise say.Failure(f"SOAK_MINUTES={given} is not a number of minutes")
    results = Results()
    _run_plan(results, _until(time.monotonic() + 60 * int(given)))
    return results.finish()


def check(results: Results) -> None:
    """Every version on each device."""
    _run_plan(results, ((device, version, tests) for device in DEVICES for version, tests in mount_tests.LISTS.items()))


def _until(deadline: float) -> Iterator[tuple[str, str, list[Test]]]:
    for device in itertools.cycle(DEVICES):
        if time.monotonic() > deadline:
            return
        yield device, mount_tests.SOAK_VERSION, mount_tests.SOAK


def _run_plan(results: Results, plan: Plan) -> None:
    """Run cells on one pair of guests; a hang costs the rest of its cell, and the next one gets new guests."""
    kernel = kernels.debug()
    # The server is the peer and not what is tested: on the stock kernel it costs a fraction of the time.
    setup = pair.Setup("mount", kernels.stock(), kernel, module.build(kernel), "1500M", "1500M")
    guests: Pair | None = None
    with ExitStack() as stack:
        for device, version, tests in plan:
            name = f"{device} NFSv{version}"
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
            except say.Failure:
                cell.guests.tell_troubles(test.provokes)
                raise
            cell.guests.must_be_quiet(test.provokes)

        if not results.test(f"{name}: {test.name}", judged):
            if hung or not cell.clear():
                _could_not_run(results, name, tests[number + 1:], f"`{test.name}` left the guests unusable")
                return False
    return True


def _could_not_run(results: Results, name: str, tests: list[Test], why: str) -> None:
    """A test that could not run has failed."""
    for test in tests:
        results.fail(f"{name}: {test.name}", f"could not run: {why}")
