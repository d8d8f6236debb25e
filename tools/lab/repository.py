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


def copy(tree: Path) -> None:
    """Bring a copy of the repository up to date: what git knows of, and what it would take. What else is in the copy stays."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                            capture_output=True).stdout
    tree.mkdir(parents=True, exist_ok=True)
    for name in filter(None, listed.decode().split("\0")):
        source, target = ROOT / name, tree / name
        if not source.exists():
            target.unlink(missing_ok=True)
        elif not target.exists() or source.read_bytes() != target.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            # With the time of now: an object of before must not be newer than its source.
            shutil.copyfile(source, target)
            shutil.copymode(source, target)
