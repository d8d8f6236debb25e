"""How large the module is, in lines of code, beside a ceiling for each part: growth is decided, not found."""

import re
from collections.abc import Mapping
from pathlib import Path

import progress
import repository

CEILINGS = repository.TESTS / "code-lines"
PROTOCOL = "xdr"
# Code for tests is no part of the module.
TESTS = {"tests", "tests.rs", "fake", "fake.rs", "checks", "checks.rs", "vectors", "vectors.rs"}

COMMENT = re.compile(r"^\s*//.*$", re.M)
IMPORT = re.compile(r"^[ \t]*(?:pub(?:\([^)]*\))?\s+)?use\s[^;]+;", re.M)


def check() -> None:
    """Print the lines of each part beside its ceiling, and fail if there are more."""
    counts, ceilings = count(), read_ceilings(CEILINGS.read_text())
    for part, most in ceilings.items():
        progress.line(f"  {part}: {counts.get(part, 0)} lines of code, at most {most}")
    if wrong := judge(counts, ceilings):
        raise progress.Failure("; ".join(wrong), f"look what can go; else raise {CEILINGS.name} in a commit that says why")


def judge(counts: Mapping[str, int], ceilings: Mapping[str, int]) -> list[str]:
    """What is wrong with the size of any part."""
    unknown = [f"{part} has no ceiling" for part in counts if part not in ceilings]
    return [*unknown, *(f"{part} has {lines} lines of code, more than {ceilings[part]}" for part, lines in counts.items()
                        if part in ceilings and lines > ceilings[part])]


def count() -> dict[str, int]:
    """The lines of code of each part: a folder of the module, a folder of kapi, or xdr. `driver` is all but kapi."""
    counts: dict[str, int] = {}
    for root in (repository.ROOT / "rust", repository.ROOT / PROTOCOL / "src"):
        for path in sorted(root.rglob("*.rs")):
            parts = path.relative_to(root).parts
            if not TESTS & set(parts):
                part = _part(root, parts)
                # kapi.rs counts for the whole alone.
                for each in {part, "kapi" if part.startswith("kapi") else "driver"}:
                    counts[each] = counts.get(each, 0) + lines_of(path.read_text())
    return counts


def _part(root: Path, parts: tuple[str, ...]) -> str:
    if root.parent.name == PROTOCOL:
        return PROTOCOL
    names = [part.removesuffix(".rs") for part in parts]
    return "/".join(names[:2]) if names[0] == "kapi" and len(names) > 1 else names[0]


def lines_of(text: str) -> int:
    """Lines that are not blank, no comment and no import."""
    code = IMPORT.sub("", COMMENT.sub("", text))
    return sum(1 for line in code.splitlines() if line.strip())


def read_ceilings(text: str) -> dict[str, int]:
    """The checked-in list."""
    entries = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {part: int(most) for part, most in entries}
