"""`make check-host`: the tests that need no guest. They run in the tool root, so a host needs no Rust."""

import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import cache
import defects
import progress
import repository
from bench import tools as bench_tools
from guests import kernels, module, roots
from guests.arch import ARM64
from judges import agreement, code_lines, documents, first_words, kernel_tools, layers, quiet_build, unused
from results import Results
from series import patches

# A target; `xdr/fuzz/run.sh` goes on for longer.
FUZZ_SECONDS = 10
LAB = repository.ROOT / "tools/lab"
XDR = repository.ROOT / "xdr"
FUZZ = XDR / "fuzz"
TARGET = repository.BUILD / "host-xdr/target"
# The state machines of the module, as a crate of their own.
MACHINES = repository.TESTS / "machines"
MACHINES_TARGET = repository.BUILD / "host-machines/target"
# Directories with Python programs, and where the modules are that those have from elsewhere.
PROGRAMS = {"tools/lab": "tests/guest", "tools/raw": "tools/raw", "tools/requester": "tools/raw:tools/referee",
            "tools/responder": "tools/raw:tools/referee", "tools/drgn": "tools/drgn", "tools/status": "tools/status",
            "tests/guest": "tests/guest",
            "tools/referee": "tools/referee", "tools/wireshark": "tools/wireshark:tools/referee:tools/lab"}
# The one place of the module that may name what the safe layers are made of. What runs on the host or in user mode, as
# tools/bench does, is no part of the module.
UNSAFE_HOME = "rust/kapi"
CONFINED = (("unsafe", re.compile(r"\bunsafe\b(?!_code)")),
            ("raw bindings", re.compile(r"\bkernel::bindings\b|\bcrate::(kapi::)?bindings\b|\bbindings::")))
# Where structures are shared with C, which changes them: a reference to one would say that it does not.
SHARED_HOME = "rust/kapi/sunrpc"
REFERENCES = (("a reference in a type", re.compile(r"&(?:'(?!static)\w+ )?(?:mut )?bindings::(?!\w+_ops\b)")),
              ("a reference through a raw pointer", re.compile(r"&(?:mut )?\(\*[\w.]+(?:\(\))?\)\.(?!(?:common|link|kind)\b)|"
                                                               r"&(?:mut )?\*(?:self\.)?(?:raw|rqst|xprt|args|task|buf)\b(?!\.cast)")),
              ("a reference from NonNull", re.compile(r"\braw\.as_(?:ref|mut)\(\)")))
# What a comment on safety says that leaves its reason to another one.
BORROWED = re.compile(r"\b(?:as above|by contract)\b|^As (?:for|in|of|those|with)\b", re.IGNORECASE)
# Lines of an unsafe block, at most.
LONGEST = 10
# Of a source file. Those of a function are counted by clippy.
LONGEST_FILE = 600
SOURCES = ("*.rs", "*.c", "*.h", "*.py")
# Columns of a comment in Rust. rustfmt sees to those of code alone.
WIDEST = 100


def run() -> int:
    """All of them, and the last line."""
    results = Results()
    check(results)
    fuzz(results)
    return results.finish()


def check(results: Results) -> None:
    """All but fuzzing. Cheap tests first; then two columns side by side, which take about as long, since rustc has one thread
    for most of a crate."""
    _look(results)
    results.side_by_side(_first, "beside", _second)


def _look(results: Results) -> None:
    results.test("host: tools/lab's own tests", lambda: _own_tests("lab"))
    results.test("host: the referee's own tests", lambda: _own_tests("referee"))
    results.test("host: the tests of rpcrdma-status", lambda: _own_tests("status"))
    results.test("host: unsafe and raw bindings only under rust/kapi", confinement)
    results.test("host: no references to structures of sunrpc", references)
    results.test("host: each unsafe block is short and has its own reason", reasons)
    results.test("host: no file of more lines than a reader keeps in mind", lengths)
    results.test("host: no comment wider than code", widths)
    results.test("host: doc comments of functions begin with a verb", first_words.check)
    results.test("host: arrows between the module's files point down", layers.check)
    results.test("host: nothing in the bindings that is not used", unused.check)
    results.test("host: lines of code of each part", code_lines.check)
    results.test("host: planted defects can be planted", defects.stale)
    results.test("host: each file of the module is in a patch of the series", patches.check)
    results.test("host: what the documents name of the source is there", documents.check)
    results.test("host: rustfmt", _rustfmt)


def _first(results: Results) -> None:
    results.test("host: clippy on the module", lambda: module.clippy(kernels.debug()))
    results.test("host: rustdoc", kernel_tools.rustdoc)
    results.test("host: builds for arm64 without a warning", lambda: quiet_build.check(kernels.stock(ARM64)))


def _second(results: Results) -> None:
    results.test("host: mypy", _mypy)
    results.test("host: clippy on xdr", lambda: _cargo("clippy", "clippy", "--all-targets", "--", "-D", "warnings"))
    results.test("host: cargo test in xdr", lambda: _cargo("xdr-tests", "test"))
    results.test("host: codec and referee agree", agreement.check)
    results.test("host: the dissector's tests", _dissector)
    results.test("host: clippy on the state machines", lambda: _machines("clippy", "--all-targets", "--", "-D", "warnings"))
    results.test("host: cargo test of the state machines", lambda: _machines("test"))
    results.test("host: clippy on tools/bench", lambda: _bench("bench-clippy", "clippy", "--all-targets", "--", "-D",
                                                               "warnings"))
    results.test("host: cargo test in tools/bench", lambda: _bench("bench-tests", "test"))
    results.test("host: checkpatch", kernel_tools.checkpatch)
    results.test("host: builds without a warning", lambda: quiet_build.check(kernels.stock()))


def _own_tests(program: str) -> None:
    """Those of a directory of Python programs."""
    directory = repository.ROOT / "tools" / program
    _tool(f"{program}-tests", ["env", f"PYTHONPATH={directory}", "python3", "-B", "-m", "unittest", "discover", "-s",
                               f"{directory}/selftests"])


def confinement() -> None:
    """Fail if code of the module outside rust/kapi says `unsafe` or names raw bindings."""
    wrong = []
    for path in _sources():
        name = str(path.relative_to(repository.ROOT))
        if name.startswith(f"{UNSAFE_HOME}/") or name == f"{UNSAFE_HOME}.rs":
            continue
        for number, line in enumerate(without_comments(path.read_text()).splitlines(), 1):
            wrong += [f"{name}:{number}: {what}" for what, pattern in CONFINED if pattern.search(line)]
    if wrong:
        raise progress.Failure(f"outside {UNSAFE_HOME}: " + "; ".join(wrong[:20]))


def references() -> None:
    """Fail if code makes a reference to a structure that sunrpc has, too; tests have theirs alone."""
    wrong = []
    for path in sorted((repository.ROOT / SHARED_HOME).rglob("*.rs")):
        if path.name == "tests.rs":
            continue
        lines = without_comments(path.read_text()).splitlines()
        wrong += [f"{path.relative_to(repository.ROOT)}:{number}: {what}"
                  for number, line in enumerate(lines, 1) for what in references_in(line)]
    if wrong:
        raise progress.Failure("shared with C: " + "; ".join(wrong[:20]), "read and write single fields by `&raw`")


def references_in(line: str) -> list[str]:
    """What a line of code does of that kind."""
    return [what for what, pattern in REFERENCES if pattern.search(line)]


def reasons() -> None:
    """Fail if an unsafe block is longer than its reason can cover, or if its reason is somewhere else."""
    wrong = []
    for path in sorted((repository.ROOT / UNSAFE_HOME).rglob("*.rs")):
        name, text = path.relative_to(repository.ROOT), path.read_text()
        wrong += [f"{name}:{number}: {what}" for number, what in (*borrowed_reasons(text), *long_blocks(text))]
    if wrong:
        raise progress.Failure(f"{len(wrong)} in all: " + "; ".join(wrong[:20]),
                          "say from which stated invariant it follows, and cut blocks that need several reasons")


def borrowed_reasons(text: str) -> list[tuple[int, str]]:
    """Comments on safety that name no reason of their own, with their lines."""
    found = []
    for match in re.finditer(r"// (?:SAFETY|INVARIANT): (.*(?:\n\s*// .*)*)", text):
        reason = re.sub(r"\s*\n\s*// ", " ", match[1])
        if BORROWED.search(reason):
            found.append((text.count("\n", 0, match.start()) + 1, f"no reason of its own: {reason[:40]}"))
    for match in re.finditer(r"//.*\S +(?:SAFETY|INVARIANT):", text):
        found.append((text.count("\n", 0, match.start()) + 1, "a reason that does not begin its line"))
    return found


def long_blocks(text: str) -> list[tuple[int, str]]:
    """Unsafe blocks of more lines than LONGEST, with their lines."""
    code = without_comments(text)
    found = []
    for match in re.finditer(r"\bunsafe\s*\{", code):
        depth, end = 1, match.end()
        while depth and end < len(code):
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            end += 1
        lines = code.count("\n", match.end(), end) - 1
        if lines > LONGEST:
            found.append((code.count("\n", 0, match.start()) + 1, f"an unsafe block of {lines} lines"))
    return found


def lengths() -> None:
    """Fail if a source file, also of tests and of the lab, is too long."""
    wrong = too_long(repository.listed(*SOURCES))
    if wrong:
        raise progress.Failure(f"{len(wrong)} in all: " + "; ".join(wrong[:20]), "one noun a file: find the second one")


def too_long(paths: Iterable[Path]) -> list[str]:
    """Those files that are, each with its lines."""
    counts = ((path, path.read_bytes().count(b"\n")) for path in paths)
    return [f"{path}: {lines} lines" for path, lines in counts if lines > LONGEST_FILE]


def widths() -> None:
    """Fail if a comment of Rust is wider than the code that rustfmt makes."""
    wrong = [f"{path.relative_to(repository.ROOT)}:{number}" for path in repository.listed("*.rs")
             for number in wide_comments(path.read_text())]
    if wrong:
        raise progress.Failure(f"{len(wrong)} lines in all: " + "; ".join(wrong[:20]), f"wrap them at {WIDEST} columns")


def wide_comments(text: str) -> list[int]:
    """The lines of comments that are."""
    return [number for number, line in enumerate(text.splitlines(), 1)
            if len(line) > WIDEST and line.lstrip().startswith("//")]


def without_comments(text: str) -> str:
    """Rust source without comments and the contents of plain strings; line numbers stay."""
    def blank(match: re.Match) -> str:
        return "\n" * match[0].count("\n")
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', blank, text, flags=re.DOTALL)


def _sources() -> list[Path]:
    directories = ("rust", "kunit", "xdr/src", "xdr/tests", "xdr/fuzz/fuzz_targets", "tools/decode",
                   *(f"tests/machines/{crate}src" for crate in ("", "kernel/", "macros/")))
    return sorted(path for name in directories for path in (repository.ROOT / name).rglob("*.rs"))


def _rustfmt() -> None:
    sources = [*_sources(), *(path for pattern in ("*/src/*.rs", "*/tests/**/*.rs")
                              for path in sorted(bench_tools.SOURCE.glob(pattern)))]
    _tool("rustfmt", ["rustfmt", "--check", "--color", "never", "--edition", "2021", *map(str, sources)])


def _mypy() -> None:
    """The Python programs hold together: each directory for itself, since they have modules of the same name."""
    for directory, used in PROGRAMS.items():
        root = repository.ROOT / directory
        files = [str(path.relative_to(root)) for path in sorted(root.rglob("*.py"))]
        _tool(f"mypy-{Path(directory).name}",
              ["env", f"MYPYPATH={_search_path(used)}", "mypy", "--check-untyped-defs", "--ignore-missing-imports",
               "--explicit-package-bases", "--cache-dir=/dev/null", "--no-error-summary", *files], root)


def _search_path(directories: str) -> str:
    """Where Python looks for modules, as it wants to be told."""
    return ":".join(str(repository.ROOT / directory) for directory in directories.split(":"))


def _dissector() -> None:
    """Its tests have tshark run in the tool root, and so do not run there themselves."""
    log = repository.fresh_log("dissector-tests")
    environment = {**os.environ, "PYTHONPATH": _search_path(PROGRAMS["tools/wireshark"])}
    argv = [sys.executable, "-B", "-m", "unittest", "discover", "-s", str(repository.ROOT / "tools/wireshark/selftests")]
    with progress.step("host: captures that tshark reads", log), log.open("wb") as output:
        done = subprocess.run(argv, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise progress.Failure("the dissector's tests have failed", log=log)


def _tool(name: str, argv: list[str], directory: Path = repository.ROOT, target: Path = TARGET) -> None:
    log = repository.fresh_log(name)
    environment = {"CARGO_HOME": str(cache.directory() / "cargo"),
                   "CARGO_TARGET_DIR": str(target)}
    with progress.step(f"host: {' '.join(argv[:3])}", log):
        roots.tool_root().run(argv, log, f"{name} found something", environment, directory)


def _cargo(name: str, command: str, *arguments: str) -> None:
    _tool(name, ["cargo", command, "--locked", *arguments], XDR)


def _machines(command: str, *arguments: str) -> None:
    _tool(f"machines-{command}", ["cargo", command, "--locked", *arguments], MACHINES, MACHINES_TARGET)


def _bench(name: str, command: str, *arguments: str) -> None:
    _tool(name, ["cargo", command, "--locked", *arguments], bench_tools.SOURCE, bench_tools.TARGET)


def fuzz(results: Results) -> None:
    """Each target from its corpus, one at a time, as there may be a guest beside them."""
    targets = roots.tool_root().output(["./run.sh", "--list"], FUZZ).split()
    if not targets:
        results.fail("host: fuzz targets", "there is none")
    for target in targets:
        argv = ["./run.sh", target, str(FUZZ_SECONDS)]
        results.test(f"host: fuzz target {target}", functools.partial(_tool, f"fuzz-{target}", argv, FUZZ))
