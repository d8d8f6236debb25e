"""What the user reads: one line when a step begins, now and then how far it is, one line when it ends."""

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

HEARTBEAT_SECONDS = 20
_THREAD = threading.local()
_ELSEWHERE: TextIO | None = None


class Failure(Exception):
    """Something the user has to know: what happened, what to do about it, and where the log is."""

    def __init__(self, what: str, todo: str = "", log: Path | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.todo = todo
        self.log = log

    def __str__(self) -> str:
        """What happened, the end of the log, and the remedy."""
        lines = [self.what]
        if self.log is not None:
            lines += [f"  log: {self.log}", *(f"  | {text}" for text in last_lines(self.log, 15))]
        if self.todo:
            lines.append(f"  what to do: {self.todo}")
        return "\n".join(lines)

    def tell(self) -> None:
        for text in f"FAILED: {self}".splitlines():
            line(text)


class TimedOut(Failure):
    """A guest does not answer, or not in time; nothing more can be asked of it."""


def line(text: str) -> None:
    """Print one line at once, also into a pipe."""
    stream = _ELSEWHERE or sys.stdout
    stream.write(f"{_speaker()}{text}\n")
    stream.flush()


def speak_to(stream: TextIO) -> None:
    """Have all lines go elsewhere than to the standard output."""
    global _ELSEWHERE
    _ELSEWHERE = stream


def speak_as(name: str) -> None:
    """Begin all lines of this thread with a name, since it is not the only one that speaks."""
    _THREAD.speaker = f"{name}: "


def _speaker() -> str:
    return getattr(_THREAD, "speaker", "")


def last_lines(path: Path, count: int) -> list[str]:
    """The end of a log, without reading all of a long one."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - 16384))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [entry.rstrip() for entry in text.replace("\r", "\n").splitlines() if entry.strip()][-count:]


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


@contextlib.contextmanager
def step(title: str, log: Path | None = None) -> Iterator[None]:
    """Announce a step, show the log's last line while it runs long, and say how long it took."""
    line(f"{title} ...")
    began = time.monotonic()
    try:
        with heartbeat("", log):
            yield
    except BaseException as error:
        verdict = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        line(f"{title}: {verdict} after {duration(time.monotonic() - began)}")
        raise
    line(f"{title}: {duration(time.monotonic() - began)}")


@contextlib.contextmanager
def heartbeat(title: str, log: Path | None = None) -> Iterator[None]:
    """Now and then say how long a block has gone on, with the log's last line."""
    began, done, speaker = time.monotonic(), threading.Event(), _speaker()

    def beat() -> None:
        _THREAD.speaker = speaker
        while not done.wait(HEARTBEAT_SECONDS):
            last = last_lines(log, 1) if log else []
            line(f"  {duration(time.monotonic() - began)}: {last[0][:100] if last else title or 'still working'}")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextlib.contextmanager
def undoing(undo: Callable[[], object]) -> Iterator[None]:
    """Have something undone at the end of a block. After a failure, one more in that does not hide it; after a hang
    there is nobody who could."""
    try:
        yield
    except TimedOut:
        raise
    except Exception:
        try:
            undo()
        except Failure as failure:
            line(f"  what was to be undone then: {failure.what}")
        raise
    undo()


def main_guard(function) -> int:
    """Run a command; a Failure becomes its message and exit status 1. Being told to end is being interrupted."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        return function()
    except Failure as failure:
        failure.tell()
        return 1
    except OSError as error:
        line(f"FAILED: {error}")
        return 1
    except KeyboardInterrupt:
        line("interrupted")
        return 130
    finally:
        sys.stdout.flush()
