"""The KUnit suites of our module, on the debugging kernel: each has to be there, and to pass."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import kunits
import progress
import room
from guests import arch, kernels

pytestmark = pytest.mark.xdist_group("kunit")


@pytest.fixture(scope="module")
def log() -> Iterator[Path]:
    """What the kernel said: the module with its suites goes in and out."""
    with room.place():
        yield kunits.run(kernels.debug(arch.chosen()))


@pytest.fixture(scope="module")
def results(log: Path) -> dict[str, dict[str, str]]:
    return kunits.results(kernels.debug(arch.chosen()), log)


def test_nothing_else_in_the_kernel_log(log: Path) -> None:
    kunits.must_be_quiet(log)


@pytest.mark.parametrize("suite", kunits.suites())
def test_suite(suite: str, log: Path, results: dict[str, dict[str, str]]) -> None:
    """A case that was skipped has not passed."""
    cases = results.get(suite, {})
    wrong = [f"{name}: {status}" for name, status in cases.items() if status != "PASS"]
    if wrong or not cases:
        raise progress.Failure("; ".join(wrong) or "no case of it has run", log=kunits.parsed(log))
    progress.line(f"  {suite}: {len(cases)} cases")
