"""The page of a run."""

from pathlib import Path

import pytest

import page


def report(nodeid: str, outcome: str, said: object = None, *properties: tuple[str, str]) -> pytest.TestReport:
    return pytest.TestReport(nodeid, ("", 0, ""), {}, outcome, said, "call", user_properties=properties)  # type: ignore[arg-type]


def test_what_came_of_each_and_where_more_is(tmp_path: Path) -> None:
    log = tmp_path / "logs/clippy.log"
    page.write(tmp_path / "tests.html", "tests", 1, [
        report("tests/host/test_kernel.py::test_clippy", "failed", "clippy found something", (page.LOGS, str(log))),
        report("tests/mounts/test_mount.py::test_sizes[rxe-3]", "skipped", ("test_mount.py", 1, "the time is over"), (page.CELL, "rxe-3")),
        report("tests/mounts/test_mount.py::test_killed[rxe-3]", "passed", None, (page.CELL, "rxe-3"), (page.LOGS, str(tmp_path / "run")),
               (page.LOGS, str(tmp_path / "run.2")), (page.FOUND, "the server says what it should not"))])
    text = (tmp_path / "tests.html").read_text()
    for said in ("clippy found something", '<a href="logs/clippy.log">', "the time is over", '<a href="run">', '<a href="run.2">',
                 "found: the server says what it should not", '<h2 id="rxe-3">', '<h2 id="tests/host/test_kernel.py">'):
        assert said in text, said
