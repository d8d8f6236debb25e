"""`make check-tests`: plants each defect of tests/defects, or those that DEFECTS chooses, in a copy of the tree, and wants
the test named in it to fail.

A defect is a patch with a head:

    What:   the mistake, in a sentence
    Had:    where this transport has really had it
    Caught: TARGET NAME   (make target, and what the name of the failing test contains)
    With:   VARIABLE=VALUE ...   (of make, quoted as in a shell; may be left out)
"""

import functools
import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import progress
import repository
from results import Results

DIRECTORY = repository.TESTS / "defects"
# Targets that run the tests alone which TESTS chooses.
CHOOSING = ("check-mount", "requester", "responder", "life", "memory", "matrix")
COPY = repository.BUILD / "defects" / "tree"
# Since each costs a run. What mutants of pure code find is not planted here.
MOST = 50


@dataclass(frozen=True)
class Defect:
    """What a patch says of itself, and the test that has to find it."""

    what: str
    target: str
    test: str
    variables: tuple[str, ...]

    @property
    def command(self) -> list[str]:
        tests = [f"TESTS={self.test}"] if self.target in CHOOSING else []
        return ["make", self.target, *tests, *self.variables]


def run() -> int:
    """Every defect, or those that DEFECTS gives by number, and the last line."""
    results = Results()
    wanted = os.environ.get("DEFECTS", "").split()
    paths = [path for path in sorted(DIRECTORY.glob("*.patch")) if not wanted or path.name.partition("-")[0] in wanted]
    if not paths:
        raise progress.Failure(f"there is none of the defects {' '.join(wanted)}")
    repository.copy(COPY)
    for path in paths:
        results.test(path.stem, functools.partial(_try, path))
    return results.finish()


def stale() -> None:
    """Fail if a patch has no head, or does not apply to the tree as it is, or if there are too many."""
    paths = sorted(DIRECTORY.glob("*.patch"))
    if len(paths) > MOST:
        raise progress.Failure(f"{len(paths)} defects, more than {MOST}", "drop one whose kind another plants, too")
    for path in paths:
        _read(path)
        _patch(path, "--check", tree=repository.ROOT)


def _read(path: Path) -> Defect:
    head: dict[str, str] = {}
    for line in path.read_text().splitlines():
        if line.startswith(("--- ", "diff ")):
            break
        key, _, value = line.partition(":")
        head[key.strip()] = value.strip()
    target, _, test = head.get("Caught", "").partition(" ")
    if not head.get("What") or not target or not test.strip():
        raise progress.Failure(f"{path.name} does not say What: and Caught: TARGET TEST")
    return Defect(head["What"], target, test.strip(), tuple(shlex.split(head.get("With", ""))))


def _try(path: Path) -> None:
    defect = _read(path)
    progress.line(f"  {defect.what}")
    _patch(path)
    try:
        log = repository.BUILD / "defects" / f"{path.stem}.log"
        with progress.step(f"  {shlex.join(defect.command)}", log), log.open("w") as output:
            status = subprocess.run(defect.command, cwd=COPY, stdout=output, stderr=subprocess.STDOUT,
                                    stdin=subprocess.DEVNULL, check=False).returncode
    finally:
        _patch(path, "--reverse")
    failed = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("failed: ")]
    if status == 0:
        raise progress.Failure(f"`make {defect.target}` passes with the defect in it", log=log)
    if not any(defect.test in line for line in failed):
        raise progress.Failure(f"`make {defect.target}` fails, but not in {defect.test}", log=log)


def _patch(path: Path, *options: str, tree: Path = COPY) -> None:
    # Git alone is sure to be there. The copy is not to be taken for a part of the repository around it.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    done = subprocess.run(["git", "apply", *options, str(path)], cwd=tree, env=environment,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise progress.Failure(f"{path.name} does not apply: {done.stderr.strip()}",
                          "adapt the patch to the code as it is now")
