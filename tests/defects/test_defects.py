"""Plants each defect, or those that DEFECTS gives by number, in a copy of the tree, and wants the test named in it to fail, which
passes without it."""

import os
import shlex
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

import defects
import progress
import repository
import room
from defects import Defect

pytestmark = pytest.mark.xdist_group("defects")
PLACE = repository.BUILD / "defects"
COPY = PLACE / "tree"
# What has failed without a defect.
UNSOUND = set[tuple[str, tuple[str, ...]]]()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    try:
        paths = defects.chosen(os.environ.get("DEFECTS", ""))
    except progress.Failure as failure:
        raise pytest.UsageError(str(failure)) from failure
    if "path" in metafunc.fixturenames:
        metafunc.parametrize("path", paths, ids=lambda path: path.stem)
    if "planted" in metafunc.fixturenames:
        by_run = defaultdict(list)
        for defect in map(defects.read, paths):
            by_run[defect.run].append(defect)
        metafunc.parametrize("planted", by_run.values(), ids=lambda planted: planted[0].name)


@pytest.fixture(scope="module")
def tree() -> Path:
    repository.copy(COPY)
    return COPY


def test_passes_without_a_defect(tree: Path, planted: list[Defect]) -> None:
    """Else it would find whatever is planted."""
    log = PLACE / f"{planted[0].name}.log"
    if _run(defects.command(planted), tree, log) != 0:
        UNSOUND.add(planted[0].run)
        raise progress.Failure("the tests fail without a defect, too", log=log)


def test_is_found(tree: Path, path: Path) -> None:
    defect = defects.read(path)
    if defect.run in UNSOUND:
        raise progress.Failure(f"could not run: {defect.name} fails without it, too")
    progress.line(f"  {defect.what}")
    defects.apply(path, tree)
    log = PLACE / f"{path.stem}.log"
    try:
        # What does not compile would fail all tests.
        if _run(defect.build, tree, log) != 0:
            raise progress.Failure(f"{path.name} does not compile", log=log)
        status = _run(defects.command([defect]), tree, log)
    finally:
        defects.apply(path, tree, "--reverse")
    if status == 0:
        raise progress.Failure(f"`make {defect.target}` passes with the defect in it", log=log)
    if not any(map(defect.found, log.read_text(errors="replace").splitlines())):
        raise progress.Failure(f"`make {defect.target}` fails, but not in {defect.test}", log=log)


def _run(command: list[str], tree: Path, log: Path) -> int:
    """Run a command in the copy, which is a run of its own. Returns its status."""
    environment = {name: value for name, value in os.environ.items() if name not in (room.PLACES, room.BEGAN)}
    with progress.step(f"  {shlex.join(command)}", log), log.open("w") as output:
        return subprocess.run(command, cwd=tree, env=environment, stdout=output, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, check=False).returncode
