"""`make mutants`: plants small mistakes in the protocol crate and in the state machines of the module, one at a time, each of
which the host tests have to notice.

A mutant that nothing notices is a failure, unless tests/surviving-mutants says why it makes no difference. A line of
that list that is not so any more is a failure, too.
"""

import collections
import os
import posixpath
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cache
import progress
import repository
from guests import kernels, roots
from results import Results

# The last one that Debian's rustc builds.
VERSION = "26.0.0"
SURVIVING = repository.TESTS / "surviving-mutants"
OUT = repository.BUILD / "mutants"
LOG = repository.BUILD / "logs/mutants.log"
# Of cargo-mutants, in seconds. Nothing is as slow as that; what is has not been found.
PATIENCE = 1200
# What it says of a mutant: a test fails, none does, or takes too long, or it is no Rust.
VERDICTS = ("caught", "missed", "timeout", "unviable")
# Its exit statuses when it could judge: all found, some not, some too slow.
JUDGED = (0, 2, 3)


@dataclass(frozen=True)
class Crate:
    """Code that is mutated, and the tests that judge it, by paths of the repository."""

    package: str
    directory: str
    # The directory of the code; the options leave out what judges there, which is not judged.
    mutated: str
    options: tuple[str, ...]
    # What else the crate consists of, and the crates that it uses.
    parts: tuple[str, ...]
    uses: tuple[str, ...]
    # What chooses the tests: each next round looks at what is left of the one before.
    rounds: tuple[str, ...]
    # Seconds of the processor's time after which a test is in a loop without end, however slow the machine is.
    longest: int

    @property
    def tree(self) -> Path:
        """Where the crate is laid out: cargo-mutants copies a directory, and mutates nothing outside of it."""
        return OUT / self.package / "tree"


PROTOCOL = Crate("xdr", "xdr", "xdr/src",
                 tuple(f"--exclude=xdr/src/{name}" for name in ("checks.rs", "checks/**", "vectors.rs", "vectors/**")),
                 ("tools/decode",), (),
                 # Most mistakes are found by the checks, which take no time; the properties look at those that are left.
                 ("--test=checks", "--test=v2", "--test=properties"), 60)
MACHINES = Crate("machines", "tests/machines", "rust", ("--exclude=kunit", "--exclude=tests.rs"),
                 ("rust", "kunit"), ("xdr",), ("--lib",), 10)
CRATES = (PROTOCOL, MACHINES)


@dataclass(frozen=True)
class Survivors:
    """A line of the list: so many mutants of this name make no difference."""

    count: int
    name: str


def run() -> int:
    """All mutants of both crates, or those of the file MUTANTS, and the last line."""
    file = os.environ.get("MUTANTS", "")
    crates = [crate for crate in CRATES if file.startswith(f"{crate.mutated}/") or not file]
    if not crates:
        raise progress.Failure(f"MUTANTS={file} is in no crate that is mutated",
                               f"give a file below {' or '.join(crate.mutated for crate in CRATES)}")
    results = Results()
    LOG.unlink(missing_ok=True)
    verdicts: dict[str, str] = {}
    for crate in crates:
        verdicts |= _try(crate, file)
    judge(verdicts, [line for line in read_list() if line.name.startswith(file)], results)
    return results.finish()


def _try(crate: Crate, file: str) -> dict[str, str]:
    """The verdict on each mutant of a crate, or of a file of it."""
    _lay_out(crate)
    verdicts: dict[str, str] = {}
    for tests in crate.rounds:
        if not verdicts or _survivors(verdicts):
            verdicts.update(_round(crate, tests, file, again=bool(verdicts)))
    return verdicts


def _lay_out(crate: Crate) -> None:
    """Put the parts of the crate into its tree, in the places that they have in the repository, as a workspace."""
    repository.copy(crate.tree, crate.directory, *crate.parts, *crate.uses)
    own = crate.tree / crate.directory
    lines = ["[workspace]", 'resolver = "2"', f'members = ["{crate.directory}"]', f"exclude = {[*crate.uses]}", ""]
    # Cargo looks for profiles here alone.
    _, profiles, settings = (own / "Cargo.toml").read_text().partition("[profile.")
    (crate.tree / "Cargo.toml").write_text("\n".join(lines) + profiles + settings)
    shutil.copyfile(own / "Cargo.lock", crate.tree / "Cargo.lock")


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


def _round(crate: Crate, tests: str, file: str, again: bool) -> dict[str, str]:
    """Try all mutants, or those that were not found before, on some tests: the verdict on each."""
    out, where = OUT / crate.package, file.rstrip("/") or crate.mutated
    # What git ignores is in the tree, which it ignores itself.
    argv = ["nice", "-n", "19", str(_tool()), "mutants", "--output", str(out), "--jobs", str(kernels.JOBS), "--gitignore=false",
            "--no-shuffle", "--colors", "never", "--caught", "--timeout", str(PATIENCE), "--cargo-arg=--locked",
            f"--cargo-arg={tests}", f"--package={crate.package}", *crate.options,
            f"--file=**/{file if Path(file).suffix else f'{where}/**/*.rs'}"]
    argv += ["--iterate"] if again else []
    environment = {
        "CARGO_HOME": str(cache.directory() / "cargo"),
        "CARGO_PROFILE_TEST_DEBUG": "0",
        # Such a loop may take memory, too.
        "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER": f"prlimit --cpu={crate.longest} --as=4294967296",
        # The same cases each time, and none that an earlier mutant failed.
        "PROPTEST_RNG_SEED": "1",
        "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1",
        "PROPTEST_MAX_SHRINK_ITERS": "0",
    }
    out.mkdir(parents=True, exist_ok=True)
    with progress.step(f"mutants: {crate.package} {tests}", LOG):
        script = f'"$@"; status=$?; case $status in {"|".join(map(str, JUDGED))}) ;; *) exit $status;; esac'
        roots.tool_root().run(["sh", "-c", script, "sh", *argv], LOG, "cargo-mutants could not judge", environment,
                              crate.tree)
    return {named(mutant): verdict for verdict in VERDICTS
            for mutant in (out / f"mutants.out/{verdict}.txt").read_text().splitlines()}


def named(mutant: str) -> str:
    """A mutant by the path that its file has in the repository; it may be said by way of what includes it."""
    path, colon, what = mutant.partition(":")
    return posixpath.normpath(path) + colon + what


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
