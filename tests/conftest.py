"""What pytest has to know of all tests: how many at a time, and what a failure says."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import page
import progress
import repository
import room
from guests import pair
from scheduler import Lanes

ALONE = pytest.StashKey[contextlib.ExitStack]()
# Where tests are that have none.
WITHOUT_GUESTS = ("tests/host", "tests/series", "tests/defects", "tools/")
# Of a file: the first test that has failed.
FAILED = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    room.seconds()
    room.places()
    # A process of xdist may have its tests in another thread. It ends at once, then, and its guests with it.
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            # To be told to end is to be interrupted: guests end with that.
            signal.signal(number, signal.default_int_handler)
    if hasattr(config, "workerinput"):
        # What goes to standard output of such a process goes nowhere.
        progress.speak_to(sys.stderr)
        progress.speak_as(config.workerinput["workerid"])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return room.places()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes:
    return Lanes(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Have no other run's guests beside those of this one, and no processes for a choice of tests that is none."""
    config = session.config
    if hasattr(config, "workerinput"):
        return
    # Each process would find -k and -m wrong, and the run end in a fault of xdist's.
    config.hook.pytest_collection_modifyitems(session=session, config=config, items=[])
    if not config.getoption("collectonly") and not all(name.startswith(WITHOUT_GUESTS) for name in config.args):
        config.stash[ALONE] = contextlib.ExitStack()
        config.stash[ALONE].enter_context(pair.alone())
        # It begins when the other one is over.
        del os.environ[room.BEGAN]
        room.seconds()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.stash.get(ALONE, contextlib.ExitStack()).close()
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    if exitstatus == 0 and not session.config.getoption("collectonly") and reporter and not reporter.stats.get("passed"):
        # All were skipped.
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.fixture
def place() -> Iterator[None]:
    """One of the places of this machine, for a test that has much to compute."""
    with room.place():
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    """Show what a Failure has to say, and not where in our own code it came from."""
    outcome = yield
    report = outcome.get_result()
    if report.failed and call.excinfo is not None and item.parent is not None:
        item.parent.stash.setdefault(FAILED, item.name)
        if isinstance(call.excinfo.value, progress.Failure):
            report.longrepr = call.excinfo.getrepr(style="value")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that goes on from where the one before ended has failed with that."""
    if item.get_closest_marker("one_after_the_other") and (before := item.parent and item.parent.stash.get(FAILED, "")):
        raise progress.Failure(f"could not run: {before} has failed")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Leave a page of the whole run, and say where it is."""
    if hasattr(config, "workerinput"):
        return
    reports = [report for outcome in ("passed", "failed", "error", "skipped") for report in terminalreporter.stats.get(outcome, [])
               if isinstance(report, pytest.TestReport)]
    if reports:
        # One of hours is not to go with the next check.
        plan = config.getoption("plan", "check")
        path = repository.BUILD / ("tests.html" if plan == "check" else f"{plan}.html")
        page.write(path, " ".join(["tests of", *config.args]), room.seconds(), reports)
        terminalreporter.write_line(f"the page of this run: {path}")
