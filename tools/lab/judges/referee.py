"""What the referee, which knows version 2 and nothing of our module, finds in a capture of the link."""

import subprocess
import sys
from pathlib import Path

import progress
import repository


def judge(path: Path, least: int, before: int = 0) -> None:
    """Fail unless the connections of a capture speak version 2, with so many messages, and break no rule of it."""
    text = text_of(path, before)
    lines = text.splitlines()
    kinds = [word for line in lines if not line.startswith("    ") for word in line.replace(",", " ").split()
             if word.startswith("RDMA2_")]
    if len(kinds) < least:
        raise progress.Failure(f"only {len(kinds)} messages of version 2 in the capture; they are in {_log(path)}")
    counts = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
    progress.line("  in the capture: " + ", ".join(f"{count} {kind.removeprefix('RDMA2_')}" for kind, count in counts.items()))


def must_have(path: Path, invalidates: bool) -> None:
    """Fail unless every header type of RPC messages is in a capture, and keys are made invalid or not."""
    judge(path, 1)
    text = _log(path).read_text()
    wanted = [f"{side}_{form}" for side in ("CALL", "REPLY") for form in ("INLINE", "MIDDLE", "EXTERNAL")]
    absent = [kind for kind in (*wanted, "CONNPROP_FINAL") if f"RDMA2_{kind}" not in text]
    if absent:
        raise progress.Failure(f"not in the capture {path}: {', '.join(absent)}")
    if (", invalidates " in text) != invalidates:
        raise progress.Failure(f"keys are {'not ' if invalidates else ''}made invalid in {path}")


def text_of(path: Path, before: int = 0) -> str:
    """What the referee says of a capture, which is kept beside it; fails if it finds that a rule is broken. Each end has counted
    some messages before the first."""
    log = _log(path)
    argv = [sys.executable, "-B", str(repository.ROOT / "tools/referee"), "judge", f"--before={before}", str(path)]
    with log.open("w") as out:
        status = subprocess.run(argv, stdout=out, stderr=subprocess.STDOUT, check=False).returncode
    text = log.read_text()
    if status != 0:
        broken = [line.strip() for line in text.splitlines() if line.startswith("    ")] or text.splitlines()[-1:]
        raise progress.Failure(f"the referee says: {'; '.join(broken[:5])}; all messages are in {log}")
    return text


def _log(path: Path) -> Path:
    return path.with_suffix(".referee")
