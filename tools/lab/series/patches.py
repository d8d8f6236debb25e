"""The patches of the series: what each says, and which files of the repository come with it."""

import fnmatch
from dataclasses import dataclass
from pathlib import Path

import progress
import repository

# A file for each patch, in the order of their names, and what else the series has that the module has not.
TEXTS = repository.ROOT / "tools/series"
COVER = TEXTS / "cover.txt"
# What of the repository is the module.
MODULE = ("rust", "kunit", "xdr/src", "Kbuild", "Kconfig")
# And for older kernels, which no series is for.
OLDER = {"rust/kapi/compat.rs"}
# Columns of a subject and of a text, as checkpatch.pl has them.
WIDEST = 75


@dataclass(frozen=True)
class Patch:
    """A patch to be."""

    name: str
    subject: str
    # Of files of the repository; a star is any text, also with slashes.
    patterns: tuple[str, ...]
    body: str


def read() -> list[Patch]:
    """All of them, in their order."""
    return [_patch(path) for path in sorted(TEXTS.glob("[0-9]*.txt"))]


def _patch(path: Path) -> Patch:
    head, _, body = path.read_text().partition("\n\n")
    fields = dict(line.split(": ", 1) for line in head.replace("\n ", " ").splitlines())
    return Patch(path.stem, fields["Subject"], tuple(fields["Files"].split()), body)


def owners(patches: list[Patch], names: list[str]) -> dict[str, int]:
    """For each file the place in the series of its patch: the last one that has it, so that tests are apart from what
    they test."""
    return {name: place for place, patch in enumerate(patches) for name in names
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in patch.patterns)}


def names() -> list[str]:
    """Files of the repository, by which patches may call them."""
    return [str(path.relative_to(repository.ROOT)) for path in repository.listed()]


def check() -> None:
    """Fail if a file of the module comes with no patch, or if a text is not as mails have it."""
    patches, listed = read(), names()
    owned = owners(patches, listed)
    module = [str(path.relative_to(repository.ROOT)) for path in repository.listed(*MODULE)]
    wrong = [f"no patch has {name}" for name in module if name not in owned.keys() | OLDER]
    wrong += [f"{patch.name}: nothing is called {pattern}" for patch in patches for pattern in patch.patterns
              if not fnmatch.filter(listed, pattern)]
    wrong += [f"{patch.name} has no file" for place, patch in enumerate(patches) if place not in owned.values()]
    wrong += [f"{path.name}: wider than {WIDEST}: {line}" for path in (COVER, *TEXTS.glob("[0-9]*.txt"))
              for line in path.read_text().partition("\n\n")[2].splitlines() if len(line) > WIDEST]
    wrong += [f"{patch.name}: a subject wider than {WIDEST}" for patch in patches if len(patch.subject) > WIDEST]
    if wrong:
        raise progress.Failure(f"{len(wrong)} in all: " + "; ".join(wrong[:20]), "see tools/series")
