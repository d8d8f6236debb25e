"""What pytest has to know of tests on guests: the cells of a run, whose guests are whose, and what a kernel may say."""

import fnmatch
import functools
import inspect
import os
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest

import page
import progress
import repository
import room
from guests.cell import Cell
from judges.messages import of_device
from lane import Guests, TimeOver
from plan import Case, Lane, Plan, case
from plans import PLANS
from totals import TOTALS

LANES, GUESTS = pytest.StashKey[list[Lane]](), pytest.StashKey[Guests]()


@dataclass(frozen=True)
class Place:
    """A cell of the run, and where in the run a test of it comes."""

    lane: Lane
    plan: Plan
    order: tuple[int, int, int]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--plan", choices=sorted(PLANS), default="check", help="the cells of the run, and their tests")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[GUESTS] = Guests()
    for word in sorted({word for lane in _lanes(config) for plan in lane.plans for word in plan.words}):
        config.addinivalue_line("markers", f"{word}: in the name of a cell")


def _lanes(config: pytest.Config) -> list[Lane]:
    """Those of the run. xdist asks before anything is configured."""
    if LANES not in config.stash:
        try:
            config.stash[LANES] = _chosen(PLANS[config.getoption("plan")]())
        except progress.Failure as failure:
            raise pytest.UsageError(str(failure)) from failure
    return config.stash[LANES]


def _chosen(lanes: list[Lane]) -> list[Lane]:
    """What CELLS leaves of them: the cells of that name, or else those that match it as a pattern, or contain it."""
    wanted, names = os.environ.get("CELLS", ""), list(dict.fromkeys(plan.name for lane in lanes for plan in lane.plans))
    found = {wanted} & {*names} or {name for name in names if fnmatch.fnmatchcase(name, wanted) or wanted in name}
    if not found:
        raise progress.Failure(f"CELLS={wanted} chooses none of: {', '.join(names)}")
    left = [replace(lane, plans=[plan for plan in lane.plans if plan.name in found]) for lane in lanes]
    return [lane for lane in left if lane.plans]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Those that only wait run beside the others."""
    return room.places() + sum(lane.places == 0 for lane in _lanes(config))


def pytest_sessionfinish(session: pytest.Session) -> None:
    session.config.stash[GUESTS].stop()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["totals"] = TOTALS.counts()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    TOTALS.include(getattr(node, "workeroutput", {}).get("totals", {}))


def pytest_terminal_summary(config: pytest.Config) -> None:
    """Say what was done in all, in numbers."""
    if not hasattr(config, "workerinput"):
        TOTALS.tell()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have a test once for each case of it in each cell of the run."""
    if "cell" not in metafunc.fixturenames:
        return
    found = []
    for one, lane in enumerate(_lanes(metafunc.config)):
        for two, plan in enumerate(lane.plans):
            for three, each in enumerate(map(case, plan.tests)):
                if each.function is metafunc.function:
                    found.append((Place(lane, plan, (one, two, three)), each))
    names = Counter(_name(*each) for each in found)
    if found:
        # Each case of a function has as many arguments of its own.
        arguments = list(inspect.signature(metafunc.function).parameters)[:1 + len(found[0][1].arguments)]
        metafunc.parametrize(arguments, [_parameter(place, each, names) for place, each in found], indirect=["cell"])


def _name(place: Place, each: Case) -> str:
    return "-".join(filter(None, (place.plan.name, each.id)))


def _parameter(place: Place, each: Case, names: Counter[str]) -> Any:
    """A case in a cell; what several lanes have is told apart by theirs."""
    name = _name(place, each)
    marks = [pytest.mark.xdist_group(place.lane.name), pytest.mark.provokes(*each.provokes, *place.plan.provokes),
             *(getattr(pytest.mark, word) for word in place.plan.words)]
    return pytest.param(place, *each.arguments, marks=marks, id=name if names[name] == 1 else f"{name}-{place.lane.name}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what no cell has, and have the rest in the order of the cells."""
    here = repository.TESTS / "mounts"
    elsewhere = [item for item in items if item.path.is_relative_to(here) and _place(item) is None
                 and "cell" in getattr(item, "fixturenames", ())]
    if elsewhere:
        config.hook.pytest_deselected(items=elsewhere)
    left_out = set(elsewhere)
    items[:] = sorted((item for item in items if item not in left_out), key=lambda item: getattr(_place(item), "order", ()))


def _place(item: pytest.Item) -> Place | None:
    spec = getattr(item, "callspec", None)
    return spec.params.get("cell") if spec else None


@pytest.fixture
def cell(request: pytest.FixtureRequest) -> Cell:
    """The guests, set up for a cell of the run. What has begun goes on."""
    guests, place = request.config.stash[GUESTS], request.param
    request.node.user_properties.append((page.CELL, place.plan.name))
    try:
        found = guests.cell(place.lane, place.plan)
    except TimeOver:
        pytest.skip(f"{place.lane.name}: the time is over")
    request.node.user_properties.append((page.LOGS, str(found.guests.run)))
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Judge what the kernels say, too; and after a failure keep what is known, and make the guests of use again."""
    place, guests = _place(pyfuncitem), pyfuncitem.config.stash[GUESTS]
    if place is None:
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    kind = arguments["cell"].device
    provoked = [message for mark in pyfuncitem.iter_markers("provokes") if mark.kwargs.get("on", kind) == kind
                for message in mark.args] + of_device(kind)
    guests.judge(functools.partial(pyfuncitem.obj, **arguments), arguments["cell"], place.plan, pyfuncitem.name, provoked,
                 lambda said: pyfuncitem.user_properties.append((page.FOUND, said)))
    return True


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """A lane gives its guests back when it is over."""
    if nextitem is None or getattr(_place(nextitem), "lane", None) is not getattr(_place(item), "lane", None):
        item.config.stash[GUESTS].stop()
