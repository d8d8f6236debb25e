"""The machines, one after the other."""

import shutil
from collections.abc import Iterator

import pytest

from guests.pair import IN_TREE, OURS
from observed import OUTPUTS, Observed
from observers import machine


@pytest.fixture(scope="session", params=[OURS, IN_TREE])
def observed(request: pytest.FixtureRequest) -> Iterator[Observed]:
    """A mount from a machine to itself, and a little that was done with it."""
    directory = OUTPUTS / request.param
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    with machine.machine(request.param) as system:
        system.must("load")
        yield Observed(system, request.param, directory)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of one machine, all of the other, and what has both."""
    order = {OURS: 0, IN_TREE: 1}
    items.sort(key=lambda item: order.get(getattr(item, "callspec", None) and item.callspec.params.get("observed"), len(order)))


def pytest_itemcollected(item: pytest.Item) -> None:
    """One process has all of them, since there is one machine at a time."""
    item.add_marker(pytest.mark.xdist_group("tools"))
