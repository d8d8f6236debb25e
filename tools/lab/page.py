"""The page that a run leaves: its cells, or its files where there are none, with times, what failed and why, links to logs, and the
charts of the bench if there are any. pytest-html has no groups to count by, and would take as much to be taught."""

import datetime
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jinja2
import pytest

import progress
import repository

TEMPLATE = Path(__file__).with_name("page.html")
CHARTS = repository.BUILD / "bench"
# What a test says of itself that is not to be shown as it is.
CELL, LOGS = "cell", "logs"
# What a kernel has said that is no failure there.
FOUND = "found"


@dataclass(frozen=True)
class Test:
    """What came of one."""

    name: str
    outcome: str
    seconds: float
    said: str
    properties: Sequence[tuple[str, object]]


@dataclass
class Group:
    """Those of a cell, or of a file."""

    name: str
    tests: list[Test] = field(default_factory=list)
    logs: set[str] = field(default_factory=set)

    @property
    def passed(self) -> int:
        return sum(test.outcome == "passed" for test in self.tests)

    @property
    def failed(self) -> int:
        return sum(test.outcome == "failed" for test in self.tests)

    @property
    def seconds(self) -> float:
        return sum(test.seconds for test in self.tests)


def write(path: Path, title: str, seconds: float, reports: Sequence[pytest.TestReport]) -> None:
    """The page of these tests. That which could not be set up has failed."""
    groups: dict[str, Group] = {}
    for report in reports:
        name = str(dict(report.user_properties).get(CELL) or report.nodeid.partition("::")[0])
        group = groups.setdefault(name, Group(name))
        group.tests.append(Test(report.nodeid.partition("@")[0], report.outcome, report.duration, _said(report),
                                [each for each in report.user_properties if each[0] not in (CELL, LOGS)]))
        group.logs |= {os.path.relpath(str(value), path.parent) for name, value in report.user_properties if name == LOGS}
    counts = Counter(test.outcome for group in groups.values() for test in group.tests)
    charts = [os.path.relpath(chart, path.parent) for chart in sorted(CHARTS.glob("*.svg"))]
    page = jinja2.Template(TEMPLATE.read_text(), autoescape=True, trim_blocks=True).render(
        title=title, version=repository.version(), when=f"{datetime.datetime.now():%Y-%m-%d %H:%M}", seconds=seconds, counts=counts,
        groups=list(groups.values()), charts=charts, duration=progress.duration)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page)


def _said(report: pytest.TestReport) -> str:
    """Why a test has failed, or was skipped."""
    if report.skipped and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    return report.longreprtext if report.failed else ""
