"""The cache directory: entries keyed by what they were made from, whole or absent."""

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import progress

UNFINISHED = ".unfinished"


def directory() -> Path:
    """Where everything we make outside the build directory lives."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = Path(base) / "rpcrdma"
    path.mkdir(parents=True, exist_ok=True)
    return path.resolve()


def logs() -> Path:
    """Logs of the steps that fill the cache."""
    path = directory() / "logs"
    path.mkdir(exist_ok=True)
    return path


@contextlib.contextmanager
def lock(name: str, why: str) -> Iterator[None]:
    """Hold a lock of this cache; a second run beside ours waits and says what for."""
    path = directory() / "locks" / name
    path.parent.mkdir(exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            progress.line(f"waiting for another run (process {file.read().strip() or 'unknown'}) that {why}")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


@contextlib.contextmanager
def shared(name: str) -> Iterator[None]:
    """Hold a lock that others may hold so at the same time."""
    path = directory() / "locks" / name
    path.parent.mkdir(exist_ok=True)
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def entry(name: str, recipe: str, make: Callable[[Path], None]) -> Path:
    """The entry `name` made by `make` from `recipe`; a change of the recipe is a new entry.

    `make` fills a temporary directory beside the entry, which gets its name only when it is whole, so an
    interrupted run leaves nothing that a later one would take for finished.
    """
    path = directory() / f"{name}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    if path.exists():
        return path
    with lock(path.name, f"makes {name}"):
        if path.exists():
            return path
        # Who was ended in the middle of it may have left programs that go on for a moment: they must neither stop this
        # run nor write into what it makes.
        for left in directory().glob(f"{path.name}{UNFINISHED}.*"):
            shutil.rmtree(left, ignore_errors=True)
        unfinished = path.with_name(f"{path.name}{UNFINISHED}.{os.getpid()}")
        unfinished.mkdir()
        try:
            make(unfinished)
        except BaseException:
            # It may have been the disk that was full.
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        unfinished.rename(path)
    return path
