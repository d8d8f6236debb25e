"""What the module's source must not have, as far as its text tells: unsafe code outside one place, references to what C
changes, reasons that are elsewhere, files and comments that are too long."""

import re
from collections.abc import Iterable
from pathlib import Path

import progress
import repository

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


def confinement() -> None:
    """Fail if code of the module outside rust/kapi says `unsafe` or names raw bindings."""
    wrong = []
    for path in sources():
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


def sources() -> list[Path]:
    directories = ("rust", "kunit", "xdr/src", "xdr/tests", "xdr/fuzz/fuzz_targets", "tools/decode",
                   *(f"tests/machines/{crate}src" for crate in ("", "kernel/", "macros/")))
    return sorted(path for name in directories for path in (repository.ROOT / name).rglob("*.rs"))
