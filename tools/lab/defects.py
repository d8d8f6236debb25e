"""The defects of tests/defects, each of which a test has to find.

A defect is a patch with a head:

    What:   the mistake, in a sentence
    Had:    where this transport has really had it
    Caught: TARGET NAME and CELL   (make target, and words of which the name of the failing test has all)
    With:   VARIABLE=VALUE ...   (of make, quoted as in a shell; may be left out)
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import progress
import repository

DIRECTORY = repository.TESTS / "defects"
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
    def run(self) -> tuple[str, tuple[str, ...]]:
        """What one run of make has the tests of."""
        return self.target, self.variables

    @property
    def name(self) -> str:
        """That run, in a word."""
        return "-".join([self.target, *self.variables]).replace(" ", "-")

    @property
    def build(self) -> list[str]:
        return [sys.executable, "-B", "tools/lab", "module", "debug", *(["--kunit"] if self.target == "check-kunit" else [])]

    def found(self, line: str) -> bool:
        """Whether a line of a run says that the test has failed."""
        name = line.partition(" - ")[0]
        return name.startswith(("FAILED ", "ERROR ")) and all(word in name for word in self.test.split(" and "))


def command(defects: Sequence[Defect]) -> list[str]:
    """The tests that have to find defects which have their run in common. A TESTS among the variables comes last, and counts."""
    target, variables = defects[0].run
    return ["make", target, "TESTS=" + " or ".join(dict.fromkeys(f"({defect.test})" for defect in defects)), *variables]


def listed() -> list[Path]:
    """The patches."""
    return sorted(DIRECTORY.glob("*.patch"))


def chosen(numbers: str) -> list[Path]:
    """The patches that have these numbers; all, if there are none."""
    found = {int(path.name.partition("-")[0]): path for path in listed()}
    wanted = numbers.split()
    unknown = [number for number in wanted if not number.isdecimal() or int(number) not in found]
    if unknown:
        raise progress.Failure(f"no defect has the number {unknown[0]}", f"choose from {DIRECTORY}")
    return [found[int(number)] for number in wanted] or list(found.values())


def stale() -> None:
    """Fail if a patch has no head, or does not apply to the tree as it is, or if there are too many."""
    paths = listed()
    if len(paths) > MOST:
        raise progress.Failure(f"{len(paths)} defects, more than {MOST}", "drop one whose kind another plants, too")
    for path in paths:
        read(path)
        apply(path, repository.ROOT, "--check")


def read(path: Path) -> Defect:
    """What a patch says of itself."""
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


def apply(path: Path, tree: Path, *options: str) -> None:
    """Plant a defect in a tree."""
    # Git alone is sure to be there. The copy is not to be taken for a part of the repository around it.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    done = subprocess.run(["git", "apply", *options, str(path)], cwd=tree, env=environment,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise progress.Failure(f"{path.name} does not apply: {done.stderr.strip()}",
                          "adapt the patch to the code as it is now")
