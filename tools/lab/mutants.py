"""`make mutants`: plants small mistakes in the protocol crate, one at a time, each of which its tests have to notice.

A mutant that nothing notices is a failure, unless tests/surviving-mutants says why it makes no difference. A line of
that list that is not so any more is a failure, too.
"""

import collections
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cache
import host
import progress
import repository
from guests import kernels, roots
from results import Results

# The last one that Debian's rustc builds.
VERSION = "26.0.0"
SURVIVING = repository.TESTS / "surviving-mutants"
OUT = repository.BUILD / "mutants"
LOG = repository.BUILD / "logs/mutants.log"
# Most mistakes are found by the checks, which take no time; the properties look at those that are left.
ROUNDS = ("checks", "properties")
# What judges is not judged.
JUDGES = ("src/checks.rs", "src/checks/*.rs", "src/vectors.rs")
# A loop without end is found by the processor's time and by the memory that it takes, however slow the machine is.
BOUNDS = "prlimit --cpu=60 --as=4294967296"
# Of cargo-mutants, in seconds. Nothing is as slow as that; what is has not been found.
PATIENCE = 1200
# What it says of a mutant: a test fails, none does, or takes too long, or it is no Rust.
VERDICTS = ("caught", "missed", "timeout", "unviable")
# Its exit statuses when it could judge: all found, some not, some too slow.
JUDGED = (0, 2, 3)


@dataclass(frozen=True)
class Survivors:
    """A line of the list: so many mutants of this name make no difference."""

    count: int
    name: str


def run() -> int:
    """All mutants of the crate, or those of the file MUTANTS, and the last line."""
    file = os.environ.get("MUTANTS", "")
    results = Results()
    LOG.unlink(missing_ok=True)
    verdicts: dict[str, str] = {}
    for tests in ROUNDS:
        if not verdicts or _survivors(verdicts):
            verdicts.update(_round(tests, file, again=bool(verdicts)))
    judge(verdicts, [line for line in read_list() if line.name.startswith(f"src/{file}")], results)
    return results.finish()


def judge(verdicts: Mapping[str, str], listed: Sequence[Survivors], results: Results) -> None:
    """Count those that were found as passed, and those that are listed."""
    counts = collections.Counter(verdicts.values())
    progress.line("mutants: " + ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS))
    results.passed += counts["caught"]
    by_name = collections.defaultdict(list)
    for mutant in _survivors(verdicts):
        # Without line and column, which would come to be wrong in the list.
        by_name[re.sub(r":\d+:\d+:", ":", mutant, count=1)].append(mutant)
    for line in listed:
        there = len(by_name.pop(line.name, []))
        if there == line.count:
            results.passed += there
        else:
            results.fail(line.name, f"{there} of these survive, not {line.count} as in {SURVIVING.name}")
    for mutants in by_name.values():
        for mutant in mutants:
            results.fail(mutant, f"{verdicts[mutant]} by the tests")


def read_list(path: Path = SURVIVING) -> list[Survivors]:
    """The checked-in list."""
    entries = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = re.fullmatch(r"([1-9]\d*)  (\S.*?)  # \S.*", line)
        if parts is None:
            raise ValueError(f"{path}:{number}: not `count  mutant  # reason`")
        entries.append(Survivors(int(parts[1]), parts[2]))
    return entries


def _survivors(verdicts: Mapping[str, str]) -> list[str]:
    return [mutant for mutant, verdict in verdicts.items() if verdict in ("missed", "timeout")]


def _round(tests: str, file: str, again: bool) -> dict[str, str]:
    """Try all mutants, or those that were not found before, on one test program: the verdict on each."""
    argv = ["nice", "-n", "19", str(_tool()), "mutants", "--output", str(OUT), "--jobs", str(kernels.JOBS),
            "--no-shuffle", "--colors", "never", "--caught", "--timeout", str(PATIENCE),
            "--cargo-arg=--locked", f"--cargo-arg=--test={tests}"]
    argv += [f"--exclude={path}" for path in JUDGES]
    argv += [f"--file=src/{file}"] if file else []
    argv += ["--iterate"] if again else []
    environment = {
        "CARGO_HOME": str(cache.directory() / "cargo"),
        "CARGO_PROFILE_TEST_DEBUG": "0",
        "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER": BOUNDS,
        # The same cases each time, and none that an earlier mutant failed.
        "PROPTEST_RNG_SEED": "1",
        "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1",
        "PROPTEST_MAX_SHRINK_ITERS": "0",
    }
    OUT.mkdir(parents=True, exist_ok=True)
    with progress.step(f"mutants: {tests}", LOG):
        script = f'"$@"; status=$?; case $status in {"|".join(map(str, JUDGED))}) ;; *) exit $status;; esac'
        roots.tool_root().run(["sh", "-c", script, "sh", *argv], LOG, "cargo-mutants could not judge", environment,
                              host.XDR)
    return {mutant: verdict for verdict in VERDICTS
            for mutant in (OUT / f"mutants.out/{verdict}.txt").read_text().splitlines()}


def _tool() -> Path:
    """cargo-mutants, built in the tool root."""
    def make(path: Path) -> None:
        log = cache.logs() / "cargo-mutants.log"
        with progress.step(f"building cargo-mutants {VERSION}", log):
            log.unlink(missing_ok=True)
            # /tmp of the root goes when the command ends.
            roots.tool_root().run(["cargo", "install", "--locked", "--root", str(path), "--target-dir", "/tmp/target",
                                   "cargo-mutants", "--version", VERSION], log, "cargo-mutants does not build",
                                  {"CARGO_HOME": str(cache.directory() / "cargo")},
                                  todo="see that the crate registry is in reach")

    recipe = f"{VERSION}\n{roots.tool_root().path.name}"
    return cache.entry("cargo-mutants", recipe, make) / "bin/cargo-mutants"
