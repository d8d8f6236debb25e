"""What a run tests: cases in cells, and cells that one pair of guests has in turn."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TypeAlias

import pytest

from guests.cell import NO_SECURITY
from guests.pair import IN_TREE, OURS, Setup
from judges.messages import Expected

# Kernel messages that are all right while a test runs; `on="siw"` says on which devices alone.
provokes = pytest.mark.provokes
# What is not for every check.
long = pytest.mark.long
NO_LEAK = "test_no_leak"


@dataclass(frozen=True)
class Case:
    """A test function with arguments of its own, which come after the cell."""

    function: Callable[..., None]
    arguments: tuple = ()
    # What it is called, where the arguments say too little or too much.
    name: str = ""
    # Kernel messages that it provokes, beside those of the function.
    provokes: tuple[Expected, ...] = ()

    @property
    def id(self) -> str:
        return self.name or "-".join(map(str, self.arguments))


# A function alone is its case without arguments.
Test: TypeAlias = Case | Callable[..., None]


def case(test: Test) -> Case:
    """A test as a case."""
    return test if isinstance(test, Case) else Case(test)


def of(module: ModuleType, *without: Callable[..., None]) -> list[Test]:
    """The tests of a module in their order, without some."""
    return [value for name, value in vars(module).items() if name.startswith("test_") and callable(value) and value not in without]


@dataclass(frozen=True)
class Plan:
    """What one cell is, and what is tested in it."""

    device: str
    # None where nothing is mounted.
    version: str | None
    tests: list[Test]
    server: str = OURS
    client: str = OURS
    security: str = NO_SECURITY
    # Whether a kernel may say only what is expected.
    quiet: bool = True
    # The ends that are arm64 machines.
    arm64: tuple[str, ...] = ()
    # Whether the server's files are on a disk.
    disk: bool = False
    # The highest version of RPC-over-RDMA that our modules speak.
    protocol: int = 1
    # Whether they count messages from near the end of the counts on.
    near_wrap: bool = False
    # Whether the machines have two nodes.
    nodes: bool = False
    # Kernel messages that every test provokes here.
    provokes: tuple[Expected, ...] = ()

    @property
    def name(self) -> str:
        """In the names of tests."""
        return "-".join(self.words)

    @property
    def words(self) -> list[str]:
        """By which -m chooses, too; without one on the modules, both are ours, and without one on machines, both are x86-64."""
        words = [self.device, self.version or "raw"]
        words += [self.security] if self.security != NO_SECURITY else []
        words += [f"in-tree-{end}" for end, whose in (("server", self.server), ("client", self.client)) if whose == IN_TREE]
        words += ["arm64", *(self.arm64 if len(self.arm64) == 1 else ())] if self.arm64 else []
        words += [word for word, said in (("disk", self.disk), ("v2", self.protocol == 2), ("near-wrap", self.near_wrap),
                                          ("two-nodes", self.nodes)) if said]
        return words


@dataclass(frozen=True)
class Lane:
    """Cells that one pair of guests has in turn. Those with Kerberos come last, since there is no way back from it."""

    name: str
    # Called when the guests are needed: it may build a kernel.
    setup: Callable[[], Setup]
    plans: list[Plan]
    # Of the room that there is for busy ones: one that only waits needs none.
    places: int = 1
    # Seconds after the begin of a run: it does not begin later.
    until: float = math.inf

    def needed_setup(self) -> Setup:
        """The pair, in which leaks can be found if a test looks for any."""
        setup = replace(self.setup(), name=self.name)
        looks = any(case(test).function.__name__ == NO_LEAK for plan in self.plans for test in plan.tests)
        return setup.finding_leaks() if looks else setup
