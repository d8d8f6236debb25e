"""Places in this repository."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
TESTS = ROOT / "tests"


def fresh_log(name: str) -> Path:
    """Where the log of a step goes; that of an earlier run is removed."""
    log = BUILD / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    return log


def listed(*patterns: str) -> list[Path]:
    """Files that git knows of and that are there, and those that it would take."""
    return [ROOT / name for name in _names(patterns) if (ROOT / name).exists()]


def _names(patterns: tuple[str, ...]) -> list[str]:
    found = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns)
    return list(filter(None, found.split("\0")))


def git(*arguments: str) -> str:
    """What git says of this repository."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def version() -> str:
    """What this tree calls itself."""
    return subprocess.run([ROOT / "tools/version"], check=True, capture_output=True, text=True).stdout.strip()


def author() -> tuple[str, str]:
    """Who made the last commit: the name and the address."""
    name, address = git("log", "-1", "--format=%an%n%ae").splitlines()
    return name, address


def copy(tree: Path, *patterns: str) -> None:
    """Bring a copy of the repository, or of a part of it, up to date: what git knows of, and what it would take. What else is
    in the copy stays."""
    tree.mkdir(parents=True, exist_ok=True)
    for name in _names(patterns):
        source, target = ROOT / name, tree / name
        if not source.exists():
            target.unlink(missing_ok=True)
        elif not target.exists() or source.read_bytes() != target.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            # With the time of now: an object of before must not be newer than its source.
            shutil.copyfile(source, target)
            shutil.copymode(source, target)
