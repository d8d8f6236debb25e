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
IN_TURN = "one_after_the_other"
# Of a file: the first of those that has failed.
FAILED = pytest.StashKey[str]()


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Have no other run's guests beside those of this one, before xdist asks how much room there is."""
    begins = not hasattr(config, "workerinput") and not config.getoption("collectonly")
    if begins and not all(name.startswith(WITHOUT_GUESTS) for name in config.args):
        config.stash[ALONE] = contextlib.ExitStack()
        config.stash[ALONE].enter_context(pair.alone())


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
    """Begin no processes for a choice of tests that is none: each would find -k and -m wrong, and the run end in a fault of xdist's."""
    if not hasattr(session.config, "workerinput"):
        session.config.hook.pytest_collection_modifyitems(session=session, config=session.config, items=[])


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
        if item.get_closest_marker(IN_TURN):
            item.parent.stash.setdefault(FAILED, item.name)
        if isinstance(failure := call.excinfo.value, progress.Failure):
            report.longrepr = call.excinfo.getrepr(style="value")
            if failure.log is not None:
                report.user_properties.append((page.LOGS, str(failure.log)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that goes on from where the one before ended has failed with that."""
    if item.get_closest_marker(IN_TURN) and (before := item.parent and item.parent.stash.get(FAILED, "")):
        raise progress.Failure(f"could not run: {before} has failed")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Leave a page of the whole run, and say where it is."""
    if hasattr(config, "workerinput"):
        return
    reports = [report for outcome in ("passed", "failed", "error", "skipped") for report in terminalreporter.stats.get(outcome, [])
               if isinstance(report, pytest.TestReport)]
    if reports:
        path = repository.BUILD / f"{_page(config)}.html"
        page.write(path, " ".join(["tests of", *config.args]), room.seconds(), reports)
        terminalreporter.write_line(f"the page of this run: {path}")


def _page(config: pytest.Config) -> str:
    """The name of the page; that of a check is not to be overwritten by one of its parts."""
    plan = config.getoption("plan", "check")
    if plan != "check":
        return plan
    parts = [path.name for path in repository.TESTS.iterdir() if f"tests/{path.name}" in config.args]
    return parts[0] if len(parts) == 1 else "tests"
