"""Every test of tests/mounts has a cell somewhere, and what a defect needs is in the plan that it names: one that no plan names would
never run, and nothing would say so."""

import importlib
import itertools
import os
import subprocess
from collections.abc import Callable

import pytest

import defects
import repository
from guests import devices
from plan import case, of
from plans import PLANS


def test_each_test_is_in_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    there: set[Callable[..., None]] = {case(test).function for path in (repository.TESTS / "mounts").glob("test_*.py")
                                       for test in of(importlib.import_module(path.stem))}
    planned = set[Callable[..., None]]()
    for variable in ("CLIENT", "SERVER", "VERSION", "SOAK_MINUTES"):
        monkeypatch.delenv(variable, raising=False)
    for name, lanes in PLANS.items():
        for device, end, kernel in itertools.product(devices.KINDS, ("client", "server"), ("stock", "debug")):
            for variable, value in (("DEVICE", "" if name == "adapters" else device), ("END", end), ("KERNEL", kernel)):
                monkeypatch.setenv(variable, value)
            planned |= {case(test).function for lane in lanes() for plan in lane.plans for test in plan.tests
                        if name != "check" or not _long(case(test).function)}
    assert not sorted(test.__name__ for test in there - planned)


# The suites of a kernel have no plan.
FOUND_BY_MOUNTS = [defect for defect in map(defects.read, defects.listed()) if defect.target != "check-kunit"]


@pytest.mark.parametrize("run", sorted({defect.run for defect in FOUND_BY_MOUNTS}), ids=lambda run: run[0])
def test_each_defect_has_its_test(run: tuple[str, tuple[str, ...]]) -> None:
    target, variables = run
    collect = "PYTEST=/usr/bin/python3 -B -m pytest --collect-only -qq"
    # What chooses the tests of this run chooses none there.
    listed = subprocess.run(["make", "-s", target, collect, *variables], cwd=repository.ROOT, env={"PATH": os.environ["PATH"]},
                            stdout=subprocess.PIPE, text=True, check=True)
    names = listed.stdout.splitlines()
    assert not [defect for defect in FOUND_BY_MOUNTS if defect.run == run and not any(defect.found(f"FAILED {name}") for name in names)]


def _long(test: Callable[..., None]) -> bool:
    """Whether a check leaves it out."""
    return any(mark.name == "long" for mark in getattr(test, "pytestmark", ()))
