"""Plants each defect, or those that DEFECTS gives by number, in a copy of the tree, and wants the test named in it to fail."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

import defects
import progress
import repository
import room

pytestmark = pytest.mark.xdist_group("defects")
PLACE = repository.BUILD / "defects"
COPY = PLACE / "tree"
WANTED = os.environ.get("DEFECTS", "").split()
PATCHES = [path for path in defects.listed() if not WANTED or path.name.partition("-")[0] in WANTED]


@pytest.fixture(scope="module")
def tree() -> Path:
    repository.copy(COPY)
    return COPY


@pytest.mark.parametrize("path", PATCHES, ids=lambda path: path.stem)
def test_is_found(tree: Path, path: Path) -> None:
    defect = defects.read(path)
    progress.line(f"  {defect.what}")
    defects.apply(path, tree)
    log = PLACE / f"{path.stem}.log"
    try:
        # What does not compile would fail all tests.
        if _run(defect.build, tree, log) != 0:
            raise progress.Failure(f"{path.name} does not compile", log=log)
        status = _run(defect.command, tree, log)
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
