"""Tests of the order of lanes, with processes that there are, one of which dies; and of a choice of tests that is none."""

import subprocess
import sys
from pathlib import Path

import pytest

import repository
import scheduler

CONFTEST = """
import sys
sys.path.insert(0, {directory!r})
from scheduler import Lanes

def pytest_xdist_make_scheduler(config, log):
    return Lanes(config, log)
"""
TESTS = """
import os, pathlib, time, pytest
LOG = pathlib.Path(__file__).with_name("log")

@pytest.mark.parametrize("number", [pytest.param(n, marks=pytest.mark.xdist_group(group), id=f"{{group}}-{{n}}")
                                    for group, count in {groups!r} for n in range(count)])
def test(number, request):
    with LOG.open("a") as log:
        print(request.node.callspec.id, file=log)
    time.sleep(0.1)
    if request.node.callspec.id == {dies!r}:
        os._exit(1)
"""


def run(directory: Path, processes: int, groups: list[tuple[str, int]], dies: str = "") -> list[str]:
    """The tests that were begun, in their order."""
    (directory / "conftest.py").write_text(CONFTEST.format(directory=str(Path(scheduler.__file__).parent)))
    (directory / "test_groups.py").write_text(TESTS.format(groups=groups, dies=dies))
    argv = [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "--dist=loadgroup", f"-n{processes}", str(directory)]
    status = subprocess.run(argv, cwd=directory, capture_output=True, timeout=120, check=False).returncode
    assert status == bool(dies)
    return (directory / "log").read_text().split()


def test_groups_come_in_their_order(tmp_path: Path) -> None:
    """Also where a later one has more tests; and none is begun before the one before is over."""
    assert run(tmp_path, 1, [("one", 1), ("two", 2), ("three", 5)]) == [
        "one-0", "two-0", "two-1", *(f"three-{n}" for n in range(5))]


def test_what_a_dead_process_had_is_done_by_another(tmp_path: Path) -> None:
    """The rest of its group, once, and not the test that it died in."""
    begun = run(tmp_path, 2, [("one", 2), ("two", 3), ("three", 2)], dies="two-1")
    assert sorted(begun) == sorted(["one-0", "one-1", "two-0", "two-1", "two-2", "three-0", "three-1"])


def test_one_takes_the_place_of_the_only_process(tmp_path: Path) -> None:
    groups = [(name, 1) for name in ("one", "two", "three", "four")]
    assert run(tmp_path, 1, groups, dies="one-0") == ["one-0", "two-0", "three-0", "four-0"]


def test_a_process_that_dies_last_ends_the_run(tmp_path: Path) -> None:
    assert sorted(run(tmp_path, 2, [("one", 1), ("two", 1)], dies="two-0")) == ["one-0", "two-0"]


def chosen(where: str, *argv: str) -> subprocess.CompletedProcess[str]:
    argv = (sys.executable, "-B", "-m", "pytest", *argv, where)
    return subprocess.run(argv, cwd=repository.ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_a_choice_that_is_none_is_said_to_be_wrong() -> None:
    ended = chosen("tests/host/test_plans.py", "-n1", "-k", "one and and two")
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR and "one and and two" in ended.stderr, ended.stdout


def test_a_choice_of_mounts_is_looked_at_before_there_are_tests() -> None:
    ended = chosen("tests/mounts", "--collect-only", "-q", "-k", "no_test_has_this_name")
    assert ended.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, ended.stdout + ended.stderr
