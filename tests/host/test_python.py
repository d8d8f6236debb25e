"""The programs in Python."""

from pathlib import Path

import pytest

import repository
import tool

pytestmark = [pytest.mark.xdist_group("crates"), pytest.mark.usefixtures("place")]
# Directories, and where the modules are that those have from elsewhere.
PROGRAMS = {"tools/lab": "tools/on-device", "tests/mounts": "tools/lab:tools/on-device", "tools/raw": "tools/raw",
            "tools/requester": "tools/raw:tools/referee", "tools/responder": "tools/raw:tools/referee", "tools/drgn": "tools/drgn",
            "tools/status": "tools/status", "tools/on-device": "tools/on-device", "tests/guest": "tools/on-device",
            "tools/referee": "tools/referee", "tools/wireshark": "tools/wireshark:tools/referee:tools/lab"}


# The other tests, whose modules have names of their own, but for what is said to pytest in each directory.
TESTS = [path for path in sorted(repository.TESTS.glob("*/*.py")) if path.parent.name not in ("guest", "mounts") and path.stem != "conftest"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_mypy(name: str) -> None:
    """The programs of a directory hold together: each for itself, since they have modules of the same name."""
    root = repository.ROOT / name
    _mypy(root, PROGRAMS[name], sorted(root.rglob("*.py")))


def test_mypy_of_tests() -> None:
    places = " ".join(sorted({f"tests/{path.parent.name}" for path in TESTS}))
    _mypy(repository.TESTS, f"tools/lab:{places.replace(' ', ':')}", [repository.TESTS / "conftest.py", *TESTS])


def _mypy(root: Path, places: str, paths: list[Path]) -> None:
    found = ":".join(str(repository.ROOT / each) for each in places.split(":"))
    tool.run(f"mypy-{root.name}", ["env", f"MYPYPATH={found}", "mypy", "--check-untyped-defs", "--ignore-missing-imports",
                                   "--explicit-package-bases", "--cache-dir=/dev/null", "--no-error-summary", *map(str, paths)], root)
